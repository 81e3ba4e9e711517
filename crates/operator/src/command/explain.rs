//! `explain`: what users may write, from the very table that judges it.

use super::{Format, print};
use anyhow::Context;
use change::PatchableKinds;
use change::allow::{Explanation, PathRule, explain, sensitive_kinds};
use serde_json::json;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    about: About,
}

#[derive(clap::Subcommand)]
enum About {
    /// What the annotation `patch` may touch in objects of a kind
    Patch(Patch),
}

#[derive(clap::Args)]
struct Patch {
    /// The kind, such as DaemonSet
    kind: String,
    /// Sensitive kinds that users may patch after all, as the operator was told
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: PatchableKinds,
    /// How to print it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let About::Patch(arguments) = &arguments.about;
    let explained = explain(&arguments.kind, &arguments.patchable_kinds);
    print(&match arguments.output {
        Format::Text => text(&explained),
        Format::Json => {
            let mut value = serde_json::to_value(&explained).context("could not write the rules")?;
            value["closedKinds"] = sensitive_kinds().map(|(kinds, why)| json!({"kinds": kinds, "why": why})).collect();
            format!("{value:#}\n")
        }
    })
}

fn text(explained: &Explanation) -> String {
    let kind = &explained.kind;
    let mut text = match (explained.sensitive, explained.open.is_empty()) {
        (true, true) => format!("A {kind} cannot be patched by annotation: {}.\n", explained.why),
        (true, false) => format!("A {kind} is closed to patches, because {}, and was opened.\n", explained.why),
        (false, _) if explained.named => format!("{kind} ({}). {}\n", explained.class, explained.why),
        (false, _) => format!("There are no rules for {kind} alone, so the default is meant. {}\n", explained.why),
    };
    if explained.sensitive && explained.open.is_empty() {
        text.push_str(&format!("Whoever runs the operator opens it with: virtpilot run --patchable-kinds {kind}\n"));
    }
    section(&mut text, "May be patched:", &explained.open);
    section(&mut text, "Except:", &explained.closed);
    if let Some(example) = explained.example {
        let object = kind.to_lowercase();
        text.push_str(&format!(
            "\nFor example:\n  kubectl annotate --overwrite {object} NAME '{}={example}'\n",
            api::annotation::PATCH
        ));
    }
    text.push_str("\n* is one step of a path or a part of one, ** any number of steps. What the result changes is judged as well.\n");
    text.push_str("\nClosed kinds:\n");
    for (kinds, why) in sensitive_kinds() {
        text.push_str(&format!("  {}: {why}\n", kinds.join(", ")));
    }
    text
}

fn section(text: &mut String, title: &str, rules: &[PathRule]) {
    let Some(width) = rules.iter().map(|rule| rule.path.len()).max() else { return };
    text.push_str(&format!("\n{title}\n"));
    for rule in rules {
        text.push_str(&format!("  {:<width$}  {}\n", rule.path, rule.why));
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use change::PatchableKinds;
    use change::allow::explain;

    #[test]
    fn an_explanation_shows_what_is_open_what_is_closed_and_an_example() {
        let shown = text(&explain("service", &PatchableKinds::none()));
        for part in [
            "Service (services)",
            "\n  /spec/** ",
            "\n  /spec/externalIPs/** ",
            "kubectl annotate --overwrite service NAME",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(
            text(&explain("Frobnicator", &PatchableKinds::none()))
                .starts_with("There are no rules for Frobnicator alone")
        );
    }

    #[test]
    fn a_closed_kind_says_why_and_how_it_is_opened() {
        let closed = text(&explain("MachineConfig", &PatchableKinds::none()));
        assert!(closed.contains("--patchable-kinds MachineConfig") && !closed.contains("May be patched"));
        let opened = text(&explain("MachineConfig", &PatchableKinds::parse("MachineConfig").unwrap()));
        assert!(opened.contains("was opened") && opened.contains("May be patched"));
    }
}
