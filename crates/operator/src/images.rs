//! The images that the environment names in `RELATED_IMAGE_*` variables.

use std::collections::BTreeMap;

const PREFIX: &str = "RELATED_IMAGE_";

/// `RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER` is the image `kubevirt-metrics-exporter`.
pub(crate) fn from_environment() -> BTreeMap<String, String> {
    from(std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?))))
}

fn from(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let named = variables.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?.to_owned(), value)));
    named.map(|(name, value)| (name.to_lowercase().replace('_', "-"), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::from;

    #[test]
    fn an_image_is_named_by_its_variable() {
        let variables = [("RELATED_IMAGE_A_B", "one"), ("RELATED_IMAGES", "two"), ("PATH", "three")];
        let images = from(variables.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(images.into_iter().collect::<Vec<_>>(), [("a-b".to_owned(), "one".to_owned())]);
    }
}
