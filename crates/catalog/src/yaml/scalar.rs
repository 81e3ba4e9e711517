//! The YAML styles in which a text can be written.

/// The styles that are possible for a text.
#[derive(Debug)]
pub struct ScalarStyles {
    /// The text has line breaks.
    pub has_breaks: bool,
    /// It may be written without quotes.
    pub allows_plain: bool,
    /// It may be written in single quotes.
    pub allows_single: bool,
    /// It may be written as a literal block.
    pub allows_block: bool,
}

impl ScalarStyles {
    /// Determines the possible styles of a text.
    pub fn of(text: &str) -> ScalarStyles {
        if text.is_empty() {
            return ScalarStyles { has_breaks: false, allows_plain: true, allows_single: true, allows_block: false };
        }
        let mut has_marks = text.starts_with("---") || text.starts_with("...");
        let mut has_special = false;
        let mut has_breaks = false;
        let mut break_then_space = false;
        let mut space_then_break = false;
        let mut before = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let blank_follows = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            has_marks |= match (before, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | ':' | '-') | (Some(_), ':') => blank_follows,
                (Some(before), '#') => matches!(before, ' ' | '\t' | '\0') || is_break(before),
                _ => false,
            };
            has_special |= !is_printable(character);
            has_breaks |= is_break(character);
            break_then_space |= character == ' ' && before.is_some_and(is_break);
            space_then_break |= is_break(character) && before == Some(' ');
            before = Some(character);
        }
        let at_edge = |is: fn(char) -> bool| text.starts_with(is) || text.ends_with(is);
        let has_edges = at_edge(|character| character == ' ') || at_edge(is_break);
        let is_hard = space_then_break || has_special;
        ScalarStyles {
            has_breaks,
            allows_plain: !has_edges && !break_then_space && !is_hard && !has_breaks && !has_marks,
            allows_single: !break_then_space && !is_hard,
            allows_block: !text.ends_with(' ') && !is_hard,
        }
    }
}

/// Whether YAML treats the character as a line break.
pub fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether Go's emitter leaves the character unescaped; it escapes tabs and everything beyond the first 65536 code points.
pub fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}

/// The escape sequence of a character in double quotes.
pub fn escaped(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        character => {
            let code = u32::from(character);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
