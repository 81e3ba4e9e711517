//! Checks that every block of a template is closed, because gotmpl's parser accepts a truncated template.

/// The line and the message of a mistake.
pub type Mistake = (usize, String);

struct Block<'a> {
    keyword: &'a str,
    line: usize,
    has_else: bool,
}

/// Finds the first block that is not closed, or the first keyword outside of its block.
pub fn check(source: &str) -> Result<(), Mistake> {
    let mut open: Vec<Block<'_>> = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(start) = rest.find("{{") {
        line += lines_in(&rest[..start]);
        let action = &rest[start + 2..];
        let end = action_end(action).ok_or((line, "an action is not closed with }}".to_owned()))?;
        let mut words = words(&action[..end]);
        let keyword = words.next().unwrap_or("");
        match keyword {
            "if" | "range" | "with" | "define" | "block" => open.push(Block { keyword, line, has_else: false }),
            "end" if open.pop().is_none() => return Err((line, "{{end}} closes no block".into())),
            "else" => {
                let goes_on = matches!(words.next(), Some("if" | "with"));
                match open.last_mut() {
                    Some(block) if matches!(block.keyword, "if" | "range" | "with") && !block.has_else => {
                        block.has_else = !goes_on;
                    }
                    _ => return Err((line, "{{else}} has no open {{if}}, {{with}} or {{range}}".into())),
                }
            }
            "break" | "continue" if !open.iter().any(|block| block.keyword == "range") => {
                return Err((line, format!("{{{{{keyword}}}}} is outside of {{{{range}}}}")));
            }
            _ => {}
        }
        line += lines_in(&action[..end]);
        rest = &action[end + 2..];
    }
    match open.pop() {
        None => Ok(()),
        Some(block) => Err((block.line, format!("{{{{{}}}}} is never closed with {{{{end}}}}", block.keyword))),
    }
}

fn lines_in(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn words(action: &str) -> impl Iterator<Item = &str> {
    let action = action.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(action);
    let is_word_character = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '$');
    action.split(char::is_whitespace).filter(|word| !word.is_empty()).map(move |word| {
        let end = word.find(|character| !is_word_character(character)).unwrap_or(word.len());
        &word[..end]
    })
}

/// The position of the closing `}}`, outside of comments and quoted text.
fn action_end(action: &str) -> Option<usize> {
    let opening = action.strip_prefix("- ").unwrap_or(action);
    if opening.trim_start_matches('-').trim_start().starts_with("/*") {
        let comment = action.find("*/")? + 2;
        return action[comment..].find("}}").map(|end| comment + end);
    }
    let bytes = action.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while *bytes.get(at)? != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'`' => at += 1 + action[at + 1..].find('`')?,
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check;
    use expect_test::{Expect, expect};

    fn outcome(source: &str, expected: &Expect) {
        let outcome = match check(source) {
            Ok(()) => "fine".to_owned(),
            Err((line, message)) => format!("{line}: {message}"),
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn an_unclosed_block_is_reported_with_its_line() {
        outcome("a\n{{ if .x }}\nb", &expect!["2: {{if}} is never closed with {{end}}"]);
        outcome("{{define \"a\"}}{{range .}}{{end}}", &expect!["1: {{define}} is never closed with {{end}}"]);
        outcome("a\n\n{{ end }}b", &expect!["3: {{end}} closes no block"]);
        outcome("{{else}}", &expect!["1: {{else}} has no open {{if}}, {{with}} or {{range}}"]);
        outcome("{{if 1}}{{else}}{{else}}{{end}}", &expect!["1: {{else}} has no open {{if}}, {{with}} or {{range}}"]);
        outcome("{{break}}", &expect!["1: {{break}} is outside of {{range}}"]);
        outcome("{{ .a", &expect!["1: an action is not closed with }}"]);
    }

    #[test]
    fn quotes_and_comments_are_skipped() {
        outcome("{{/* {{if}} */}}{{- /* if */ -}}", &expect!["fine"]);
        outcome("{{ \"}} {{if}}\" }}{{ `{{end}}` }}{{ '\"' }}", &expect!["fine"]);
        outcome(
            "{{- if .a -}}x{{- else if .b }}y{{ else }}z{{- end -}}{{range .}}{{if .}}{{continue}}{{end}}{{end}}",
            &expect!["fine"],
        );
        outcome("{{ `}}` }}{{ `}} }` }}{{ '}' }}{{ } }}", &expect!["fine"]);
        outcome("{{/* }} {{if}} */}}{{/**/}}{{- /* } */ -}}{{end}}", &expect!["1: {{end}} closes no block"]);
        outcome("{{ /*\n*/ }}\n{{ 1\n}}\n{{end}}", &expect!["5: {{end}} closes no block"]);
        outcome(
            "{{range .}}{{break}}{{end}}{{if 1}}{{break}}{{end}}",
            &expect!["1: {{break}} is outside of {{range}}"],
        );
        outcome("{{range .}}{{break}}{{end}}", &expect!["fine"]);
        outcome("{{range .}}{{with .}}{{break}}{{end}}{{end}}", &expect!["fine"]);
        outcome("{{/* a long comment */}}", &expect!["fine"]);
        outcome("{{/* {{if}} */            }}", &expect!["fine"]);
        outcome("{{ `  }} {{if}}` }}", &expect!["fine"]);
        outcome("{{ } {{if}}", &expect!["fine"]);
        outcome("{{with .a}}{{else with .b}}{{end}}{{block \"n\" .}}{{end}}{{.if}}{{ $end }}", &expect!["fine"]);
    }
}
