//! Colours of the output on a terminal; elsewhere, and where NO_COLOR is set, there are none.

use autopilot::StateWord;
use std::io::IsTerminal;

/// How a text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
    Bold,
    Dim,
}

impl Colour {
    /// The colour of a state: red is wrong, yellow waits, green is as it should be, and what somebody switched off is dim.
    pub(crate) fn of(word: StateWord) -> Colour {
        match word {
            StateWord::InSync | StateWord::Gone => Colour::Green,
            word if word.is_problem() => Colour::Red,
            word if word < StateWord::Unmanaged => Colour::Yellow,
            _ => Colour::Dim,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Bold => "1",
            Colour::Dim => "2",
        }
    }
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Palette {
    is_coloured: bool,
}

impl Palette {
    #[cfg(test)]
    pub(crate) const COLOURED: Palette = Palette { is_coloured: true };

    /// That of standard output.
    pub(crate) fn of_output() -> Palette {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Palette { is_coloured: std::io::stdout().is_terminal() && !is_plain }
    }

    /// The text in a colour.
    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        match self.is_coloured && !text.is_empty() {
            true => format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code()),
            false => text.to_owned(),
        }
    }

    /// A state in its colour.
    pub(crate) fn state(self, word: StateWord) -> String {
        self.paint(Colour::of(word), &word.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{Colour, Palette};
    use autopilot::StateWord;

    #[test]
    fn only_a_palette_with_colours_paints() {
        assert_eq!(Palette::default().paint(Colour::Red, "text"), "text");
        assert_eq!(Palette::COLOURED.paint(Colour::Red, "text"), "\u{1b}[31mtext\u{1b}[0m");
        assert_eq!(Palette::COLOURED.paint(Colour::Red, ""), "");
    }

    #[test]
    fn a_state_has_the_colour_of_its_urgency() {
        let of =
            |colour| StateWord::ALL.into_iter().filter(move |word| Colour::of(*word) == colour).collect::<Vec<_>>();
        assert_eq!(of(Colour::Green), [StateWord::InSync, StateWord::Gone]);
        assert!(of(Colour::Red).contains(&StateWord::Failed) && of(Colour::Red).iter().all(|word| word.is_problem()));
        assert!(
            of(Colour::Yellow).contains(&StateWord::PendingApproval) && of(Colour::Yellow).contains(&StateWord::Paused)
        );
        assert!(of(Colour::Dim).contains(&StateWord::Disabled) && of(Colour::Dim).contains(&StateWord::Unmanaged));
        assert_eq!(of(Colour::Bold), []);
    }
}
