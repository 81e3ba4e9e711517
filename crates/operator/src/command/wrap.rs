//! Makes texts fit into lines: wraps them at words, or cuts them. Widths count the characters that are seen.

/// Stands for what is cut off.
const CUT: &str = "...";

/// How many characters of a text are seen: colours are not.
pub(crate) fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, seen)| seen.chars().count())).sum::<usize>()
}

/// A text of somebody else without characters that a terminal would act on, or that change the order of others.
pub(crate) fn plain(text: &str) -> String {
    let is_harmful = |character: char| {
        let is_direction =
            matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (character.is_control() && character != '\t') || is_direction
    };
    text.chars().map(|character| if is_harmful(character) { '\u{fffd}' } else { character }).collect()
}

/// The text in lines of at most this width, as far as its words allow.
pub(crate) fn lines(text: &str, most: usize) -> Vec<String> {
    let (mut lines, mut length) = (Vec::<String>::new(), 0);
    for word in text.split_whitespace() {
        let count = width(word);
        match lines.last_mut() {
            Some(line) if length + 1 + count <= most => {
                line.push(' ');
                line.push_str(word);
                length += 1 + count;
            }
            _ => {
                lines.push(word.to_owned());
                length = count;
            }
        }
    }
    lines
}

/// The same, each line after this indent and with a line break.
pub(crate) fn indented(text: &str, indent: &str, width: usize) -> String {
    let mut lines = lines(text, width.saturating_sub(indent.chars().count()));
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// A text for a terminal of this width, its first line after one indent and the others after spaces; elsewhere it stays one line.
pub(crate) fn hanging(first: &str, text: &str, terminal: Option<usize>) -> String {
    let Some(most) = terminal else { return format!("{first}{text}\n") };
    let count = width(first);
    let lines = lines(text, most.saturating_sub(count)).join(&format!("\n{}", " ".repeat(count)));
    format!("{first}{lines}\n")
}

/// The beginning of a text that is too long.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(CUT.len())).chain(CUT.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::{cut, hanging, indented, lines, plain, width};

    #[test]
    fn colours_have_no_width_and_texts_of_others_have_none() {
        assert_eq!(width("\u{1b}[1mab\u{1b}[0m c"), 4);
        assert_eq!(lines("\u{1b}[1mab\u{1b}[0m c d", 4), ["\u{1b}[1mab\u{1b}[0m c", "d"]);
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}c\td"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\td");
    }

    #[test]
    fn texts_are_wrapped_at_words_by_characters() {
        assert_eq!(lines("äöü äöü  äöü", 7), ["äöü äöü", "äöü"]);
        assert_eq!(lines("a-word-that-is-long b", 5), ["a-word-that-is-long", "b"]);
        assert_eq!(indented("one two", "  ", 6), "  one\n  two\n");
        assert_eq!(hanging("x: ", "one two", Some(6)), "x: one\n   two\n");
        assert_eq!(hanging("x: ", "one two", None), "x: one two\n");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        assert_eq!((cut("äöüß", 4), cut("abcdefgh", 6)), ("äöüß".to_owned(), "abc...".to_owned()));
    }
}
