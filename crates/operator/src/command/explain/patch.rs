//! `explain patch`: prints which fields users may patch, from the table that patches are checked against.

use crate::command::{Format, print};
use anyhow::Context;
use change::PatchableKinds;
use change::allow::{Explanation, PathRule, explain, sensitive_kinds};
use serde_json::json;

/// The widest column of paths.
const WIDEST_PATH: usize = 60;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kind, such as DaemonSet, or an object, such as ConfigMap/trusted-ca
    #[arg(value_parser = crate::command::value::kind_or_object)]
    kind: String,
    /// Kinds whose closed fields users may patch, comma-separated; set it as for the operator
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: PatchableKinds,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
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
        (true, false) => {
            format!("A {kind} cannot be patched by default: {}. --patchable-kinds allows it.\n", explained.why)
        }
        (false, _) if explained.named => format!("{kind} ({}). {}\n", explained.class, explained.why),
        (false, _) => format!("{kind} has no rules of its own; the default rules apply. {}\n", explained.why),
    };
    if explained.opened && !explained.sensitive {
        text.push_str("--patchable-kinds allows what is closed by default.\n");
    } else if !explained.opened {
        let what = if explained.sensitive { "it" } else { "what is closed below, and all of /spec" };
        text.push_str(&format!("To allow {what}, start the operator with --patchable-kinds {kind}.\n"));
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
    text.push_str(
        "\n* matches one path segment or a part of it, ** any number of segments, *!(a|b) any segment but a and b, [name=a|b] a list item or a key \
         with one of these names in any case, value=a a text. The fields that differ in the result are checked, too.\n",
    );
    text.push_str("\nSensitive kinds and objects:\n");
    for (kinds, why) in sensitive_kinds() {
        text.push_str(&format!("  {}: {why}\n", kinds.join(", ")));
    }
    text
}

fn section(text: &mut String, title: &str, rules: &[PathRule]) {
    // A few paths are long; they do not make the column wide.
    let Some(width) = rules.iter().map(|rule| rule.path.len().min(WIDEST_PATH)).max() else { return };
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
    fn an_explanation_lists_open_fields_closed_fields_and_an_example() {
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
                .starts_with("Frobnicator has no rules of its own; the default rules apply")
        );
    }

    #[test]
    fn a_sensitive_kind_is_explained_with_the_flag_that_allows_it() {
        let closed = text(&explain("MachineConfig", &PatchableKinds::none()));
        assert!(closed.contains("--patchable-kinds MachineConfig") && !closed.contains("May be patched"));
        let opened = text(&explain("MachineConfig", &PatchableKinds::parse("MachineConfig").unwrap()));
        assert!(opened.contains("--patchable-kinds allows it") && opened.contains("May be patched"));
        let object = text(&explain("ConfigMap/trusted-ca", &PatchableKinds::none()));
        assert!(
            object.starts_with("A ConfigMap cannot be patched by annotation: other programs trust what it contains")
        );
    }

    #[test]
    fn closed_fields_are_explained_with_the_flag_that_allows_them() {
        let closed = text(&explain("Service", &PatchableKinds::none()));
        assert!(
            closed.contains("start the operator with --patchable-kinds Service.") && closed.contains("/spec/type ")
        );
        let opened = text(&explain("Service", &PatchableKinds::parse("Service").unwrap()));
        assert!(opened.contains("--patchable-kinds allows what is closed by default"));
        assert!(!opened.contains("/spec/type ") && opened.contains("*kubevirt.io"), "{opened}");
    }
}
