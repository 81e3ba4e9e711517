//! Which assets a `VirtPlatformConfig` governs, so that every object has one owner.

use crate::cluster::facts::Facts;
use crate::pack::catalog::Catalog;
use crate::profile::Profile;
use std::collections::BTreeMap;

/// The assets of a profile, those that an option switches off included.
pub fn governs(profile: &Profile) -> impl Iterator<Item = &str> {
    profile.items.iter().map(|item| item.asset.as_str())
}

/// The governed assets, each with the name of its `VirtPlatformConfig`; the first one where several name an asset.
pub fn governed<'a>(catalog: &'a Catalog, facts: &'a Facts) -> BTreeMap<&'a str, &'a str> {
    let mut governed = BTreeMap::new();
    for profile in &catalog.profiles {
        if let Some(name) = facts.governing.get(&profile.name) {
            for asset in governs(profile) {
                governed.entry(asset).or_insert(name.as_str());
            }
        }
    }
    governed
}

#[cfg(test)]
mod tests {
    use super::governed;
    use crate::cluster::facts::Facts;
    use crate::pack::catalog::Catalog;
    use crate::pack::test_pack::files;

    #[test]
    fn the_assets_of_a_governing_profile_are_governed_also_if_an_option_switches_them_off() {
        let metadata = "assets:\n  - {name: a, path: active/a.yaml, install: always}\n  - {name: b, path: active/b.yaml, install: always}\n  \
            - {name: c, path: active/c.yaml, install: always}\nexcluded_assets: [a, b, c]\n";
        let head =
            |name: &str| format!("name: {name}\ncategory: c\ndescription: D.\nimpact_summary: I.\nadvertised: true\n");
        let options = "options: {key: k, properties: {active: {type: boolean, description: D., default: false}}}\n";
        let item = |asset: &str, more: &str| format!("  - {{name: {asset}, description: D., asset: {asset}{more}}}\n");
        let one = format!("{}{options}items:\n{}{}", head("one"), item("a", ""), item("b", ", when: active"));
        let two = format!("{}items:\n{}{}", head("two"), item("b", ""), item("c", ""));
        let object =
            |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: n}}\n");
        let (a, b, c) = (object("a"), object("b"), object("c"));
        let catalog = Catalog::load(files(&[
            ("active/metadata.yaml", metadata),
            ("active/a.yaml", &a),
            ("active/b.yaml", &b),
            ("active/c.yaml", &c),
            ("profiles/one.yaml", &one),
            ("profiles/two.yaml", &two),
        ]));
        let catalog = catalog.unwrap_or_else(|faults| panic!("{faults:?}"));
        let by = |profiles: &[&str]| {
            let governing = profiles.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect();
            let facts = Facts { governing, ..Facts::default() };
            governed(&catalog, &facts).iter().map(|(asset, by)| format!("{asset} {by}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(by(&[]), "");
        assert_eq!(by(&["other"]), "");
        assert_eq!(by(&["one"]), "a one, b one");
        assert_eq!(by(&["one", "two"]), "a one, b one, c two");
    }
}
