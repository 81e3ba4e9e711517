//! The predecessor's command lines, in the form that ours have.

use std::ffi::OsString;

/// Flags that kubectl also takes before the command; each has a value.
const OF_KUBECTL: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];

/// In a pod the predecessor runs without arguments, and it takes the flags of `run` without a subcommand; so do we. Elsewhere a person types,
/// who has to name the command: the operator would run with that person's rights. Go also writes long flags with one dash, so those of
/// `run` may have one dash, too.
pub(crate) fn compatible(
    mut arguments: Vec<OsString>,
    in_a_pod: bool,
    flags_of_run: &[String],
) -> Result<Vec<OsString>, String> {
    if arguments.get(1).is_some_and(|first| first == "-help") {
        arguments[1] = "--help".into();
    }
    let leading = leading_flags(&arguments);
    if leading > 0 && arguments.get(1 + leading).is_some_and(|word| !word.to_string_lossy().starts_with('-')) {
        // After the command, where they belong.
        arguments[1..=1 + leading].rotate_right(1);
    }
    let ours = ["-h", "--help", "-V", "--version"];
    let has_no_command = match arguments.get(1).map(|first| first.to_string_lossy()) {
        None => in_a_pod,
        Some(first) => first.starts_with('-') && !ours.contains(&first.as_ref()),
    };
    if has_no_command && !in_a_pod {
        return Err("name a command: \"virtpilot run\" with these flags starts the operator, with the rights of the \
                    kubeconfig; \"virtpilot --help\" lists the others"
            .to_owned());
    }
    if has_no_command {
        arguments.insert(1, "run".into());
    }
    if arguments.get(1).is_some_and(|first| first == "run") {
        let flags = arguments.iter_mut().skip(2).take_while(|word| *word != "--");
        flags.for_each(|word| add_dash(word, flags_of_run));
    }
    Ok(arguments)
}

/// How many words before the command are flags of kubectl and their values.
fn leading_flags(arguments: &[OsString]) -> usize {
    let mut count = 0;
    while let Some(word) = arguments.get(1 + count).and_then(|word| word.to_str()) {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if !OF_KUBECTL.contains(&name) {
            break;
        }
        count += if value.is_some() { 1 } else { 2 };
    }
    count
}

/// Adds the second dash to a long flag; anything else, such as a short flag, stays as it is.
fn add_dash(word: &mut OsString, flags: &[String]) {
    let Some(text) = word.to_str() else { return };
    let name = text.strip_prefix('-').map(|rest| rest.split('=').next().unwrap_or(rest));
    if name.is_some_and(|name| flags.iter().any(|flag| flag == name)) {
        *word = format!("-{text}").into();
    }
}

#[cfg(test)]
mod tests {
    use super::compatible;

    fn parsed(words: &[&str], in_a_pod: bool) -> String {
        let flags = crate::flags_of_run();
        let words = match compatible(words.iter().map(Into::into).collect(), in_a_pod, &flags) {
            Ok(words) => words,
            Err(why) => return why,
        };
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_predecessors_command_lines_start_the_operator() {
        assert_eq!(parsed(&["virtpilot"], true), "virtpilot run");
        assert_eq!(parsed(&["virtpilot"], false), "virtpilot", "outside a pod the help is printed");
        assert_eq!(parsed(&["virtpilot", "--leader-elect"], true), "virtpilot run --leader-elect");
        assert!(parsed(&["virtpilot", "--kubeconfig", "f"], false).starts_with("name a command"));
        assert_eq!(parsed(&["virtpilot", "--version"], true), "virtpilot --version");
        assert_eq!(parsed(&["virtpilot", "-help"], true), "virtpilot --help");
        assert_eq!(parsed(&["virtpilot", "status"], true), "virtpilot status");
    }

    #[test]
    fn long_flags_may_have_one_dash() {
        assert_eq!(
            parsed(
                &["virtpilot", "-leader-elect=true", "-metrics-bind-address", ":8080", "-zap-log-level=debug"],
                true
            ),
            "virtpilot run --leader-elect=true --metrics-bind-address :8080 --zap-log-level=debug"
        );
        assert_eq!(parsed(&["virtpilot", "run", "-development"], false), "virtpilot run --development");
        // Short flags and other commands are not the predecessor's.
        assert_eq!(parsed(&["virtpilot", "run", "-h"], false), "virtpilot run -h");
        assert_eq!(parsed(&["virtpilot", "status", "-namespace", "-o"], false), "virtpilot status -namespace -o");
        assert_eq!(parsed(&["virtpilot", "run", "--", "-namespace"], false), "virtpilot run -- -namespace");
    }

    #[test]
    fn flags_of_kubectl_may_come_before_the_command() {
        assert_eq!(
            parsed(&["virtpilot", "--context", "c", "--kubeconfig=f", "-n", "x", "status", "--all"], false),
            "virtpilot status --context c --kubeconfig=f -n x --all"
        );
        assert_eq!(
            parsed(&["virtpilot", "--namespace", "x", "--leader-elect"], true),
            "virtpilot run --namespace x --leader-elect"
        );
    }

    #[test]
    fn every_flag_of_the_predecessor_is_accepted_with_one_dash_and_with_two() {
        let flags = [
            "metrics-bind-address=:8080",
            "debug-bind-address=localhost:8081",
            "health-probe-bind-address=:8082",
            "leader-elect",
            "leader-elect=true",
            "leader-elect=T",
            "leader-elect=0",
            "namespace=openshift-cnv",
            "crd-validation-timeout=10s",
            "crd-validation-timeout=0s",
            "enable-debug-server=true",
            "development=true",
            "zap-log-level=debug",
            "zap-log-level=5",
            "zap-devel=false",
            "zap-encoder=json",
            "zap-stacktrace-level=panic",
            "zap-time-encoding=rfc3339",
        ];
        for flag in flags {
            for dashes in ["-", "--"] {
                let words = vec!["virtpilot".into(), format!("{dashes}{flag}").into()];
                let words = compatible(words, true, &crate::flags_of_run()).unwrap();
                let parsed = <crate::Arguments as clap::Parser>::try_parse_from(words);
                assert!(parsed.is_ok(), "{dashes}{flag}: {}", parsed.err().unwrap());
            }
        }
    }
}
