//! Who may write. Nothing is written without one of these.

/// The right to write.
#[derive(Debug)]
pub struct Permit {
    _made_here: (),
}

impl Permit {
    /// For the only process of a deployment, which needs no election.
    pub fn unopposed() -> Permit {
        Permit { _made_here: () }
    }

    /// For a command that somebody typed.
    pub fn person() -> Permit {
        Permit { _made_here: () }
    }
}
