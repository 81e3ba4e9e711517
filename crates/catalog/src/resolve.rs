//! Renders an asset for a cluster whose answers are given, instead of one query at a time.

use crate::applies::{Applicability, applies};
use crate::cluster::facts::Facts;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::Asset;
use crate::pack::catalog::Catalog;
use crate::render::{Rendered, render};
use serde_json::Value;

/// A template that needs more rounds of queries keeps asking.
const ROUNDS: usize = 8;

/// What an asset comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// The desired object.
    Object(Value),
    /// There is none, and why.
    None(String),
    /// The asset is broken, and why.
    Broken(String),
}

/// Decides whether an asset applies, and renders it.
pub fn resolve(catalog: &Catalog, asset: &Asset, facts: &Facts, answer: impl Fn(&Query) -> Answer) -> Resolved {
    let mut facts = facts.clone();
    for _ in 0..ROUNDS {
        let needed = match applies(asset, &facts) {
            Applicability::Applies => match render(catalog, asset, &facts) {
                Rendered::Object(object) => return Resolved::Object(object),
                Rendered::Empty => return Resolved::None("its template renders nothing".to_owned()),
                Rendered::NotApplicable(why) => return Resolved::None(why),
                Rendered::Needs(queries) => queries,
                Rendered::Held(query) => return Resolved::Broken(format!("{query} cannot be answered")),
                Rendered::Broken(why) => return Resolved::Broken(why),
            },
            Applicability::Not(unmet) | Applicability::NotAskedFor(unmet) => return Resolved::None(unmet.to_string()),
            Applicability::Missing(need) => return Resolved::None(need.why()),
            Applicability::Needs(queries) => queries,
            Applicability::Held(query) => return Resolved::Broken(format!("{query} cannot be answered")),
            Applicability::Broken(why) => return Resolved::Broken(why),
        };
        facts.answers.extend(needed.into_iter().map(|query| (query.clone(), answer(&query))));
    }
    Resolved::Broken("it asks for more after every answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Resolved, resolve};
    use crate::cluster::facts::Facts;
    use crate::cluster::query::Answer;
    use crate::pack::test_pack::of_template;
    use serde_json::json;

    const HEAD: &str = "apiVersion: v1\nkind: X\nmetadata: {name: x}\n";

    fn resolved(template: &str, keys: &str, answer: &Answer) -> Resolved {
        let catalog = of_template(template, keys);
        resolve(&catalog, &catalog.assets[0], &Facts::default(), |_| answer.clone())
    }

    #[test]
    fn an_asset_is_rendered_with_the_answers_of_the_cluster() {
        let template = format!("{HEAD}y: {{{{ getConfigMapData \"n\" \"m\" \"k\" }}}}\n");
        let found = Answer::Found(json!({"data": {"k": "v"}}));
        let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "y": "v"});
        assert_eq!(resolved(&template, "", &found), Resolved::Object(object));
        let unknown = Resolved::Broken("v1 ConfigMap n/m cannot be answered".to_owned());
        assert_eq!(resolved(&template, "", &Answer::Unknown), unknown);
        let gate = "  conditions: [{type: kubevirt-feature-gate, value: G}]";
        let why = "feature gate `G` of the KubeVirt object should be set and is not set";
        assert_eq!(resolved(HEAD, gate, &Answer::Found(json!([]))), Resolved::None(why.to_owned()));
        assert!(matches!(resolved(HEAD, gate, &Answer::Unknown), Resolved::Broken(_)));
    }

    #[test]
    fn an_asset_without_an_object_says_why() {
        let none = |why: &str| Resolved::None(why.to_owned());
        assert_eq!(resolved("# nothing\n", "", &Answer::Absent), none("its template renders nothing"));
        assert_eq!(resolved("{{ notApplicable \"cold\" }}", "", &Answer::Absent), none("cold"));
        let broken = Resolved::Broken("active/a.yaml.tpl:1: fail: no".to_owned());
        assert_eq!(resolved("{{ fail \"no\" }}", "", &Answer::Absent), broken);
    }

    #[test]
    fn an_asset_that_asks_without_end_is_broken() {
        let endless = "{{ define \"more\" }}{{ if not (objectExists \"A\" \"n\" .) }}{{ template \"more\" (print . \"x\") }}{{ end }}{{ end }}{{ template \"more\" \"x\" }}";
        assert!(matches!(resolved(endless, "", &Answer::Absent), Resolved::Broken(why) if why.starts_with("it asks")));
    }
}
