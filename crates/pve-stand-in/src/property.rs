//! Property strings, such as `virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=10`, and sizes, such as `32G`.

/// The parts of a property string in their order; a part without `=` has the name "".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Properties(Vec<(String, String)>);

impl Properties {
    pub(crate) fn parse(text: &str) -> Properties {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let split = |part: &str| match part.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (String::new(), part.to_owned()),
        };
        Properties(parts.map(split).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Sets a value in its place, or at the end.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// The first part.
    pub(crate) fn first(&self) -> Option<(&str, &str)> {
        self.0.first().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Replaces the first part.
    pub(crate) fn set_first(&mut self, name: &str, value: &str) {
        if let Some(first) = self.0.first_mut() {
            *first = (name.to_owned(), value.to_owned());
        }
    }

    pub(crate) fn text(&self) -> String {
        let part = |(name, value): &(String, String)| match name.is_empty() {
            true => value.clone(),
            false => format!("{name}={value}"),
        };
        self.0.iter().map(part).collect::<Vec<_>>().join(",")
    }
}

const UNITS: [(char, u64); 4] = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30), ('T', 1 << 40)];

/// The bytes of a size.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match UNITS.iter().find(|(letter, _)| text.ends_with(*letter)) {
        Some((_, unit)) => (&text[..text.len() - 1], *unit),
        None => (text, 1),
    };
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(unit),
        Some((whole, fraction)) => {
            let (digits, scale) =
                (fraction.parse::<u64>().ok()?, 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?);
            whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(digits.checked_mul(unit)? / scale)
        }
    }
}

/// The shortest exact text of a size.
pub(crate) fn size(bytes: u64) -> String {
    let exact = UNITS.iter().rev().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match exact {
        Some((letter, unit)) => format!("{}{letter}", bytes / unit),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Properties, bytes, size};

    #[test]
    fn property_strings_keep_the_order_of_their_parts() {
        let mut net = Properties::parse("virtio,bridge=vmbr0");
        net.set_first("virtio", "BC:24:11:00:00:01");
        net.set("tag", "10");
        net.set("bridge", "vmbr1");
        assert_eq!(net.text(), "virtio=BC:24:11:00:00:01,bridge=vmbr1,tag=10");
        assert_eq!((net.get("bridge"), net.get("none")), (Some("vmbr1"), None));
    }

    #[test]
    fn sizes_are_read_and_written_with_units() {
        for (text, expected) in [("32G", 32 << 30), ("1.5K", 1536), ("512", 512), ("2T", 2 << 40)] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        assert_eq!((bytes("G"), bytes("-1G"), bytes("1X")), (None, None, None));
        assert_eq!([size(32 << 30), size(1536), size(5 << 20)], ["32G", "1536", "5M"]);
    }
}
