//! `explain` of a profile, and of an object that a profile governs.

use super::text::{Detail, document, target, text};
use super::{Profile, Profiles, absent, meant};
use crate::command::colour::{Colour, Palette};
use crate::command::object_name::is_object;
use crate::command::table::terminal_width;
use crate::command::target::{Target, on_runtime};
use crate::command::wrap;
use anyhow::bail;
use api::advisor::{Item, TargetRef};
use catalog::Catalog;
use change::{Key, Kind};
use serde_json::{Value, json};

/// One explanation, in both formats.
pub(in crate::command) struct Explained {
    pub(in crate::command) text: String,
    pub(in crate::command) document: Value,
}

/// The profiles of a cluster that govern objects.
#[derive(Default)]
pub(in crate::command) struct Governing(Vec<Profile>);

impl Governing {
    /// Reads them; a cluster that does not show any has none.
    pub(in crate::command) fn read(target: &Target) -> Governing {
        let found = on_runtime(async {
            match Profiles::find(target).await? {
                Some(profiles) => profiles.all().await,
                None => Ok(Vec::new()),
            }
        });
        match found {
            Ok(all) => Governing(all.into_iter().filter(Profile::governs).collect()),
            Err(error) => {
                eprintln!("warning: it is not known what the advisor governs: {error:#}");
                Governing::default()
            }
        }
    }

    /// The profile and the item that an object belongs to.
    fn find(&self, is_meant: impl Fn(&Key) -> bool) -> Option<(&Profile, &Item)> {
        let mut items = self.0.iter().flat_map(|profile| profile.status.items.iter().map(move |item| (profile, item)));
        items.find(|(_, item)| is_meant(&object(&item.target_ref)))
    }

    /// Which profile governs an object, in one sentence; nothing if none does.
    pub(in crate::command) fn of(&self, key: &Key) -> Option<String> {
        let (profile, item) = self.find(|object| object.is_same_object(key))?;
        Some(sentence(profile, item))
    }

    /// An object that only a profile knows.
    pub(in crate::command) fn explain(&self, word: &str) -> Option<Explained> {
        let (profile, item) = self.find(|object| is_object(word, object))?;
        let sentence = sentence(profile, item);
        let text =
            format!("{}\n{}", wrap::plain(&target(&item.target_ref)), wrap::hanging("  ", &sentence, terminal_width()));
        let document =
            json!({"object": target(&item.target_ref), "governedBy": profile.name, "item": item, "why": sentence});
        Some(Explained { text, document })
    }
}

fn sentence(profile: &Profile, item: &Item) -> String {
    let message = item.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    wrap::plain(&format!(
        "VirtPlatformConfig {} governs it, and the autopilot leaves it alone: item {}, {:?}{message}; \"virtpilot plan show {0}\"",
        profile.name, item.name, item.state
    ))
}

fn object(target: &TargetRef) -> Key {
    let kind = Kind::new(&target.api_version, &target.kind);
    Key { kind, namespace: target.namespace.clone().unwrap_or_default(), name: target.name.clone() }
}

/// The explanation of the profile that a word means; nothing if it means none.
pub(in crate::command) fn profile(word: &str, catalog: &Catalog, target: &Target) -> anyhow::Result<Option<Explained>> {
    on_runtime(async {
        let Some(name) = meant(word, catalog, target).await? else { return Ok(None) };
        let known = catalog.profiles.iter().find(|profile| profile.name == name);
        let found = match Profiles::find(target).await? {
            Some(profiles) => profiles.get(&name).await?,
            None => None,
        };
        if known.is_none() && found.is_none() {
            bail!("{}", absent(&name, catalog));
        }
        Ok(Some(explained(&name, known, found.as_ref(), Palette::of_output())))
    })
}

fn explained(
    name: &str,
    known: Option<&catalog::profile::Profile>,
    found: Option<&Profile>,
    palette: Palette,
) -> Explained {
    let mut shown = String::new();
    if let Some(known) = known {
        shown.push_str(&format!("{}  profile\n", palette.paint(Colour::Bold, name)));
        shown.push_str(&wrap::hanging("  ", &known.description, terminal_width()));
        shown.push_str(&wrap::hanging("  ", &known.impact_summary, terminal_width()));
        let options = options(known, found);
        if !options.is_empty() {
            shown.push_str("\nOptions:\n");
            options.iter().for_each(|line| shown.push_str(&wrap::hanging("  ", line, terminal_width())));
        }
        shown.push('\n');
    }
    match found {
        Some(profile) => shown.push_str(&text(profile, Detail::Summary, terminal_width(), palette)),
        None => shown.push_str(&format!(
            "There is no VirtPlatformConfig {name}, so the profile is neither planned nor applied.\n{} {}\n",
            palette.paint(Colour::Bold, "Next:"),
            create(name)
        )),
    }
    let mut document = found.map_or_else(|| json!({"name": name}), |found| document(found, Detail::Summary));
    document["description"] = json!(known.map(|known| &known.description));
    document["impactSummary"] = json!(known.map(|known| &known.impact_summary));
    document["options"] = json!(found.and_then(|profile| profile.spec.options.as_ref()));
    Explained { text: shown, document }
}

/// A command that has a profile planned which has no object yet, for any POSIX shell.
fn create(name: &str) -> String {
    format!(
        "kubectl create --filename - <<'END'\n\
         {{\"apiVersion\":\"advisor.kubevirt.io/v1alpha1\",\"kind\":\"VirtPlatformConfig\",\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{\"profile\":\"{name}\"}}}}\n\
         END"
    )
}

/// Each option with its value and what it does.
fn options(known: &catalog::profile::Profile, found: Option<&Profile>) -> Vec<String> {
    let Some(options) = &known.options else { return Vec::new() };
    let set = found.and_then(|profile| profile.spec.options.as_ref()?.get(&options.key));
    let line = |(name, schema): (&String, &Value)| {
        let value = match (set.and_then(|set| set.get(name)), schema.get("default")) {
            (Some(value), _) => wrap::plain(&value.to_string()),
            (None, Some(default)) => format!("{default} (default)"),
            (None, None) => "not set".to_owned(),
        };
        format!("{}.{name}: {value}. {}", options.key, schema["description"].as_str().unwrap_or_default())
    };
    options.properties.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{profile as of, sample};
    use super::{Governing, create, explained};
    use crate::command::colour::Palette;
    use crate::pack;
    use change::{Key, Kind};
    use serde_json::json;
    use std::process::Command;

    #[test]
    fn an_object_names_the_profile_that_governs_it() {
        let governing = Governing(vec![sample()]);
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
        let key = |name: &str| Key { kind: kind.clone(), namespace: String::new(), name: name.into() };
        let wanted = "VirtPlatformConfig load-aware-rebalancing governs it, and the autopilot leaves it alone: item enable-psi-metrics, Pending; \
            \"virtpilot plan show load-aware-rebalancing\"";
        assert_eq!(governing.of(&key("99-psi")).as_deref(), Some(wanted));
        assert_eq!(governing.of(&key("other")), None);
        let found = governing.explain("machineconfig/99-psi").unwrap();
        assert_eq!(found.text, format!("MachineConfig 99-psi\n  {wanted}\n"));
        assert_eq!(found.document["governedBy"], "load-aware-rebalancing");
        assert!(governing.explain("MachineConfig/other").is_none());
    }

    #[test]
    fn a_profile_is_explained_with_its_options_also_without_an_object() {
        let catalog = pack::embedded().unwrap();
        let known = catalog.profiles.iter().find(|profile| profile.name == "load-aware-rebalancing");
        let options = json!({"options": {"loadAware": {"mode": "Predictive"}}});
        let shown = explained("load-aware-rebalancing", known, Some(&of(&options, json!({}))), Palette::default()).text;
        assert!(shown.contains("loadAware.mode: \"Predictive\". Automatic evicts."), "{shown}");
        assert!(shown.contains("loadAware.deschedulingIntervalSeconds: 60 (default). "), "{shown}");
        assert!(shown.contains("loadAware.evictionLimitTotal: not set. "), "{shown}");
        let absent = explained("load-aware-rebalancing", known, None, Palette::default());
        assert!(absent.text.contains("is neither planned nor applied.\nNext: kubectl create "), "{}", absent.text);
        assert_eq!(absent.document["name"], "load-aware-rebalancing");
    }

    /// `dash` is the `sh` of many systems, and knows no here-strings.
    #[test]
    fn the_command_that_creates_a_profile_is_one_of_any_posix_shell() {
        let command = create("load-aware-rebalancing");
        assert!(!command.contains("<<<"), "{command}");
        let program = format!("kubectl() {{ [ \"$*\" = 'create --filename -' ] && cat; }}\n{command}\n");
        for arguments in [&["-n", "-c"][..], &["-c"]] {
            let output = Command::new("sh").args(arguments).arg(&program).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            if arguments.len() == 1 {
                let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(object["spec"], json!({"profile": "load-aware-rebalancing"}));
            }
        }
    }
}
