//! Faults that tests put into the guest. Release builds have none.

use bootstrap::Step;

/// A fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    #[cfg(debug_assertions)]
    kind: Option<(Kind, Step)>,
}

#[cfg(debug_assertions)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The thread that does the step panics.
    Panic,
    /// The process is gone at once.
    Abort,
    /// The main thread panics.
    MainPanic,
    /// The main thread does nothing any more.
    Hang,
}

#[cfg(debug_assertions)]
impl Fault {
    /// `KIND:STEP`.
    pub(crate) fn parse(text: &str) -> Result<Fault, String> {
        let wrong = || format!("{text:?} is not a fault: write panic, main-panic, abort or hang, a colon and a step");
        let (kind, step) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match kind {
            "panic" => Kind::Panic,
            "main-panic" => Kind::MainPanic,
            "abort" => Kind::Abort,
            "hang" => Kind::Hang,
            _ => return Err(wrong()),
        };
        let step = serde_json::from_value(step.into()).map_err(|_| wrong())?;
        Ok(Fault { kind: Some((kind, step)) })
    }

    /// Happens in the thread that does a step.
    #[expect(clippy::panic, reason = "that is what it is for")]
    pub(crate) fn happens_at(self, step: Step) {
        match self.kind {
            Some((Kind::Panic, at)) if at == step => panic!("a fault of a test at {step:?}"),
            Some((Kind::Abort, at)) if at == step => std::process::abort(),
            _ => {}
        }
    }

    /// Happens in the main thread.
    #[expect(clippy::panic, reason = "that is what it is for")]
    pub(crate) fn happens_in_main(self, step: Option<Step>) {
        match self.kind {
            Some((Kind::MainPanic, at)) if Some(at) == step => panic!("a fault of a test at {at:?}"),
            Some((Kind::Hang, at)) if Some(at) == step => loop {
                std::thread::park();
            },
            _ => {}
        }
    }
}

#[cfg(not(debug_assertions))]
impl Fault {
    pub(crate) fn happens_at(self, _: Step) {}
    pub(crate) fn happens_in_main(self, _: Option<Step>) {}
}
