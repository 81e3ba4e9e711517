//! Messages of the API server and of admission webhooks, which may quote values.

use super::words::{is_secret_key, is_secret_text};
use super::{Place, REDACTED};
use crate::object::key::Kind;

/// What the server writes right before a value.
const BEFORE_VALUE: [&str; 5] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: ", "Not found: ", "got "];
/// What the server writes after the path of a field, where others write its value.
const VERDICTS: [&str; 9] =
    ["Invalid", "Required", "Unsupported", "Duplicate", "Forbidden", "Internal", "Too", "Not", "expected"];

/// The message of a server about an object of this kind, without values that may not be shown.
pub fn redact(kind: &Kind, message: &str) -> String {
    let (mut done, mut rest) = (String::new(), message);
    // What stands before a value and names its field.
    let mut context = String::new();
    while let Some(next) = rest.chars().next() {
        let is_value = BEFORE_VALUE.iter().any(|before| context.ends_with(before));
        let length = match next {
            '"' => quoted(rest),
            _ if is_value => unquoted(rest),
            _ => {
                done.push(next);
                context.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
        };
        let (value, after) = rest.split_at(length);
        let is_structure = next != '"' && value.contains(['{', '[']);
        // A message begins with the kind and the name of its object.
        let is_name = done == context && context.to_lowercase().starts_with(&kind.kind.to_lowercase());
        let is_hidden = is_structure
            || (names_secret(kind, &context, is_value) && !is_name)
            || is_secret_text(value.trim_matches('"'));
        done.push_str(if is_hidden { REDACTED } else { value });
        context.clear();
        rest = after;
    }
    assignments(&done)
}

/// The length of a quoted text, with its quotes.
fn quoted(text: &str) -> usize {
    let mut is_escaped = true;
    for (index, character) in text.char_indices() {
        match character {
            '"' if !is_escaped => return index + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// The length of a value without quotes: up to the next colon or comma outside of all brackets.
fn unquoted(text: &str) -> usize {
    let (mut depth, mut index) = (0_usize, 0);
    while let Some(character) = text[index..].chars().next() {
        match character {
            '"' => {
                index += quoted(&text[index..]);
                continue;
            }
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' if depth == 0 => return index,
            '}' | ']' | ')' => depth -= 1,
            ':' | ',' if depth == 0 => return index,
            _ => {}
        }
        index += character.len_utf8();
    }
    text.len()
}

/// Whether the text before a value names a field whose value may not be shown.
fn names_secret(kind: &Kind, context: &str, is_value: bool) -> bool {
    let top = if is_value { Place::top(kind) } else { Place::default() };
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-[]/".contains(c);
    top.is_hidden
        || context.split(|c| !is_path(c)).any(|path| {
            let mut steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty());
            let is_hidden = steps.clone().fold(top, Place::step).is_hidden;
            // A name that the server does not accept may be an assignment.
            is_hidden || steps.any(|step| step == "env") || path.split('/').any(is_secret_key)
        })
}

/// Redacts words such as `password=x`, and what follows `password:`.
fn assignments(text: &str) -> String {
    let (mut done, mut follows_name) = (String::new(), false);
    for word in text.split_inclusive(char::is_whitespace) {
        let plain = word.trim_end();
        let space = &word[plain.len()..];
        let name = plain.strip_suffix([':', '=']);
        let is_verdict = VERDICTS.iter().any(|verdict| plain.starts_with(verdict)) || plain.starts_with(REDACTED);
        if name.is_none() && ((follows_name && !is_verdict) || is_secret_text(plain)) {
            done.push_str(REDACTED);
            done.push_str(space);
        } else {
            done.push_str(word);
        }
        follows_name = name.is_some_and(|name| name.split(['.', '[', ']', '/']).any(is_secret_key))
            || plain.eq_ignore_ascii_case("bearer");
    }
    done
}

#[cfg(test)]
mod tests {
    use super::redact;
    use crate::object::key::Kind;

    fn redacted(message: &str) -> String {
        redact(&Kind::new("apps/v1", "DaemonSet"), message)
    }

    #[test]
    fn values_of_secret_fields_are_redacted_in_messages() {
        for (message, expected) in [
            (
                r#"X "x" is invalid: spec.env[0].value: Invalid value: "hunter2": too short"#,
                r#"X "x" is invalid: spec.env[0].value: Invalid value: (redacted): too short"#,
            ),
            (r#"spec.env[0].name: Invalid value: "A=hunter2": no"#, "spec.env[0].name: Invalid value: (redacted): no"),
            (
                r#"spec.env[0]: Invalid value: core.EnvVar{Name:"A", Value:"hunter2"}: no"#,
                r#"spec.env[0]: Invalid value: (redacted): no"#,
            ),
            (
                r#"data[db-password]: Invalid value: "a \"hunter2": no"#,
                "data[db-password]: Invalid value: (redacted): no",
            ),
            (r#"webhook "w" denied: token "hunter2" is old"#, r#"webhook "w" denied: token (redacted) is old"#),
            ("denied: password=hunter2 is weak", "denied: (redacted) is weak"),
            ("denied: password: hunter2 is weak", "denied: password: (redacted) is weak"),
            (r#"Invalid value: "https://me:hunter2@host": no"#, "Invalid value: (redacted): no"),
            (".spec.x: expected map, got &{hunter2}", ".spec.x: expected map, got (redacted)"),
            (
                r#"spec.a: Invalid value: core.X{Name:"a}: b", Value:"hunter2"}: no"#,
                "spec.a: Invalid value: (redacted): no",
            ),
        ] {
            assert_eq!(redacted(message), expected);
        }
        let secret =
            redact(&Kind::new("v1", "Secret"), r#"Secret "s" is invalid: data[a]: Invalid value: "hunter2": no"#);
        assert_eq!(secret, r#"Secret "s" is invalid: data[a]: Invalid value: (redacted): no"#);
    }

    #[test]
    fn other_messages_are_unchanged() {
        for message in [
            "injected",
            r#"DaemonSet "x" is invalid: spec.replicas: Invalid value: -1: must be positive"#,
            r#"spec.type: Unsupported value: "Many": supported values: "One", "Two""#,
            r#"services "x" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "services""#,
            r#"Apply failed with 1 conflict: conflict with "gitops": .spec.type"#,
            r#"admission webhook "w.example.com" denied the request: no quota"#,
            r#"unknown field "spec.tokn""#,
            "X is invalid: [spec.a: Invalid value: -1] and (spec.b: Invalid value: 3)",
            "data.password: Required value",
            "",
        ] {
            assert_eq!(redacted(message), message);
        }
    }
}
