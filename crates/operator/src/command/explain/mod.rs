//! `explain`: why an asset, an object, a profile, a machine or a job is in its state, what users may set, and what events and states mean.

#[cfg(test)]
mod agreement;
mod history;
mod next;
mod patch;
mod reference;
mod text;

use super::colour::Palette;
use super::evaluation::Evaluation;
use super::object_name::is_object;
use super::table::{self, terminal_width};
use super::{Format, print, profile, wrap};
use anyhow::bail;
use autopilot::nearest::{nearest, question};
use autopilot::{Core, Explanation, StatusLine};
use catalog::Catalog;
use history::Events;
use profile::explain::{Explained, Governing};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    about: Option<About>,
    #[command(flatten)]
    subject: Subject,
}

#[derive(clap::Args)]
struct Subject {
    /// Assets, features or profiles, or objects as KIND/NAME or KIND/NAMESPACE/NAME
    #[arg(value_name = "ASSET|PROFILE|KIND/[NAMESPACE/]NAME", add = super::completions::assets())]
    subjects: Vec<String>,
    #[command(flatten)]
    evaluation: Evaluation,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(clap::Subcommand)]
enum About {
    /// Why the machine of a MachineClaim of the fleet is as it is, and what would unblock it
    Machine(super::fleet::explain::Arguments),
    /// The whole story of a CI job of the fleet: what it waited for and how long, where it ran, and what would make it start
    Job(super::queue::job::Arguments),
    /// The fields that the annotation `patch` may change in objects of a kind
    Patch(patch::Arguments),
    /// Every annotation that users may set: where, its values, its default
    Annotations(reference::OfPack),
    /// Every event: its type, what it means and what to do
    Events(reference::Output),
    /// Every state that `status` shows: what it means and what to do next
    States(reference::Output),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.about {
        Some(About::Machine(arguments)) => super::fleet::explain::run(arguments),
        Some(About::Job(arguments)) => super::queue::job::run(arguments),
        Some(About::Patch(arguments)) => patch::run(arguments),
        Some(About::Annotations(arguments)) => reference::annotations(arguments),
        Some(About::Events(output)) => reference::events(output),
        Some(About::States(output)) => reference::states(output),
        None => explain(&arguments.subject),
    }
}

fn explain(arguments: &Subject) -> anyhow::Result<()> {
    if arguments.subjects.is_empty() {
        bail!(
            "name an asset or an object such as MachineConfig/NAME, or one of machine, job, patch, annotations, events, states"
        );
    }
    let catalog = arguments.evaluation.catalog()?;
    let (target, mut shown, mut subjects) = (arguments.evaluation.target(), Vec::new(), Vec::new());
    for subject in &arguments.subjects {
        match profile::explain::profile(subject, &catalog, target)? {
            Some(explained) => shown.push(Shown::of(explained, arguments.output)),
            None => subjects.push(subject.clone()),
        }
    }
    if subjects.is_empty() {
        return print(&joined(shown));
    }
    let governing = Governing::read(target);
    let core = arguments.evaluation.evaluate_with_previews(arguments.evaluation.catalog()?)?;
    let is_named = |subject: &str, line: &StatusLine| {
        is_subject(subject, line) || assets_of(subject, &catalog).contains(&line.asset.as_str())
    };
    let explanations = core.explain(|line| subjects.iter().any(|subject| is_named(subject, line)));
    let is_explained = |subject: &str| explanations.iter().any(|explanation| is_named(subject, &explanation.line));
    for subject in subjects.iter().filter(|subject| !is_explained(subject)) {
        match governing.explain(subject) {
            Some(explained) => shown.push(Shown::of(explained, arguments.output)),
            None => bail!("{}", unknown(subject, &core)),
        }
    }
    let is_feature = |subject: &str| !explanations.iter().any(|explanation| is_subject(subject, &explanation.line));
    if let [subject] = subjects.as_slice()
        && explanations.len() > 1
        && shown.is_empty()
        && is_feature(subject)
        && matches!(arguments.output, Format::Text)
    {
        return print(&overview(subject, &explanations, terminal_width()));
    }
    let events = Events::read(target, &explanations);
    for explanation in explanations {
        let history = events.history(&explanation);
        let next = next::next(&explanation, &catalog, &core);
        let governor = explanation.line.key.as_ref().and_then(|key| governing.of(key));
        shown.push(match arguments.output {
            Format::Text => {
                let (width, palette) = (terminal_width(), Palette::of_output());
                let governor = governor.map(|governor| format!("\n{}", wrap::hanging("", &governor, width)));
                let text = text::text(&explanation, &catalog, &next, &history, width, palette);
                Shown::Text(text + &governor.unwrap_or_default())
            }
            Format::Json => {
                let mut document = document(&explanation, &catalog, &next, &history);
                document["governedBy"] = json!(governor);
                Shown::Json(document)
            }
        });
    }
    print(&joined(shown))
}

/// One explanation in its format.
enum Shown {
    Text(String),
    Json(Value),
}

impl Shown {
    fn of(explained: Explained, format: Format) -> Shown {
        match format {
            Format::Text => Shown::Text(explained.text),
            Format::Json => Shown::Json(explained.document),
        }
    }
}

fn joined(shown: Vec<Shown>) -> String {
    let (mut texts, mut documents) = (Vec::new(), Vec::new());
    for one in shown {
        match one {
            Shown::Text(text) => texts.push(text),
            Shown::Json(document) => documents.push(document),
        }
    }
    if documents.is_empty() { texts.join("\n") } else { format!("{:#}\n", Value::Array(documents)) }
}

/// Whether a line of `status` is about an asset, or about an object as KIND/NAME or KIND/NAMESPACE/NAME.
fn is_subject(subject: &str, line: &StatusLine) -> bool {
    if line.asset == subject || line.asset.split('/').next() == Some(subject) {
        return true;
    }
    line.key.as_ref().is_some_and(|key| is_object(subject, key))
}

/// The assets of a feature or a group.
fn assets_of<'a>(subject: &str, catalog: &'a Catalog) -> Vec<&'a str> {
    let of_feature = |asset: &&catalog::Asset| catalog.features_of(asset).any(|feature| feature.name == subject);
    let of_group = |asset: &&catalog::Asset| asset.group.as_deref() == Some(subject);
    let assets = catalog.assets.iter().filter(|asset| of_feature(asset) || of_group(asset));
    assets.map(|asset| asset.name.as_str()).collect()
}

/// Several assets, each in one line.
fn overview(subject: &str, explanations: &[Explanation], terminal: Option<usize>) -> String {
    let rows: Vec<[String; 4]> = explanations
        .iter()
        .map(|Explanation { line, word, .. }| {
            let object = line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string);
            [line.asset.clone(), object, word.to_string(), line.state.to_string()]
        })
        .collect();
    let table =
        table::fitted(["ASSET", "OBJECT", "STATE", "DETAIL"], &rows, &[1, 3], terminal, &|_, _, text| text.to_owned());
    format!("{subject} is several assets; \"virtpilot explain ASSET\" explains one:\n\n{table}")
}

fn unknown(subject: &str, core: &Core) -> String {
    let lines: Vec<StatusLine> = core.explain(|_| true).into_iter().map(|explanation| explanation.line).collect();
    let objects =
        lines.iter().filter_map(|line| line.key.as_ref()).map(|key| format!("{}/{}", key.kind.kind, key.name));
    let mut names: Vec<String> = lines.iter().map(|line| line.asset.clone()).collect();
    if subject.contains('/') {
        names = objects.collect();
    }
    let nearest = question(&nearest(subject, names.iter().map(String::as_str)));
    format!("there is no asset and no managed object {subject:?}{nearest}; \"virtpilot status --all\" lists them")
}

fn document(explanation: &Explanation, catalog: &Catalog, next: &next::Next, history: &history::History) -> Value {
    let line = &explanation.line;
    let notes = catalog.asset(&line.asset).map(|asset| catalog.notes(asset)).unwrap_or_default();
    json!({
        "asset": line.asset,
        "object": line.key.as_ref().map(ToString::to_string),
        "state": explanation.word.to_string(),
        "why": line.state.to_string(),
        "next": next.step,
        "nextIsNotEnough": next.besides,
        "notes": {
            "docs": notes.docs, "why": notes.why, "sources": notes.sources, "verify": notes.verify, "optOut": notes.opt_out,
        },
        "gates": explanation.gates,
        "overrides": explanation.overrides.iter().map(|(key, value)| json!({"annotation": key, "value": value})).collect::<Vec<_>>(),
        "owners": explanation.owners,
        "advice": explanation.advice,
        "history": history.entries,
        "historyProblem": history.problem,
    })
}

#[cfg(test)]
mod tests {
    use super::{assets_of, is_subject};
    use autopilot::{LineState, ObjectState, StatusLine};
    use change::{Key, Kind};

    #[test]
    fn a_feature_stands_for_its_assets() {
        let catalog = crate::pack::embedded().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(assets_of("swap", &catalog), ["swap-enable"]);
        assert!(assets_of("logging", &catalog).len() > 1);
        assert!(assets_of("nothing", &catalog).is_empty());
    }

    #[test]
    fn assets_and_objects_are_found_by_name_and_kinds_in_any_case() {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let state = LineState::Object(ObjectState::InSync);
        let line = StatusLine { asset: "pair/ConfigMap".into(), key: Some(key), component: String::new(), state };
        for subject in ["pair/ConfigMap", "pair", "ConfigMap/x", "configmap/n/x"] {
            assert!(is_subject(subject, &line), "{subject}");
        }
        for subject in ["pai", "ConfigMap/y", "Service/x", "ConfigMap/m/x", "x", "a/b/c/d"] {
            assert!(!is_subject(subject, &line), "{subject}");
        }
    }
}
