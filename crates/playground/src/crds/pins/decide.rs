//! Decides from what was found about a source whether its pin moves, and what its line of the table says.

use super::version::{compare, is_prerelease, pseudo_time};
use std::cmp::Ordering;

/// Whether pins may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Only report.
    Verify,
    /// Move the pins of sources whose newest version loads.
    Update,
}

/// The newest version of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Newest {
    /// It is the pinned one.
    Pinned,
    /// It is newer than the pinned one.
    Newer(String),
    /// The one that is served is not to be taken.
    Unsuitable { version: String, why: &'static str },
    /// It cannot be found out.
    Unknown { why: String },
    /// The source has no versions: it is part of this repository.
    Unversioned,
}

/// What was found about a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) source: String,
    pub(super) pinned: String,
    /// Why the pinned version does not load.
    pub(super) pinned_fault: Option<String>,
    /// Why its authors withdrew the pinned version.
    pub(super) retracted: Option<String>,
    pub(super) newest: Newest,
    /// Why the newer version does not load.
    pub(super) newest_fault: Option<String>,
}

/// Judges the version that is served as the newest; `time` is when it was made.
pub(super) fn judge(pinned: &str, served: &str, time: Option<&str>) -> Newest {
    let unsuitable = |why| Newest::Unsuitable { version: served.to_owned(), why };
    if served == pinned {
        return Newest::Pinned;
    }
    if served.ends_with("+incompatible") && !pinned.ends_with("+incompatible") {
        return unsuitable("predates the module's go.mod");
    }
    if is_prerelease(served) && !is_prerelease(pinned) {
        return unsuitable("is a prerelease");
    }
    let order = match pseudo_time(pinned) {
        // A commit has no place among the releases, so it is compared by its time.
        Some(pinned_time) => served_time(served, time).map(|served| served.as_str().cmp(pinned_time)),
        None if pseudo_time(served).is_some() => return unsuitable("is not a release"),
        None => compare(served, pinned),
    };
    match order {
        Some(Ordering::Greater) => Newest::Newer(served.to_owned()),
        Some(_) => unsuitable("is older than the pin"),
        None => unsuitable("cannot be compared with the pin"),
    }
}

fn served_time(served: &str, time: Option<&str>) -> Option<String> {
    if let Some(time) = pseudo_time(served) {
        return Some(time.to_owned());
    }
    // From 2018-01-19T19:59:49Z to the form in a pseudo-version.
    let digits: String = time?.chars().filter(char::is_ascii_digit).take(14).collect();
    (digits.len() == 14).then_some(digits)
}

impl Finding {
    /// The version that the pin moves to.
    pub(super) fn moves_to(&self, mode: Mode) -> Option<&str> {
        match &self.newest {
            Newest::Newer(version) if mode == Mode::Update && self.newest_fault.is_none() => Some(version),
            _ => None,
        }
    }

    /// Whether the source does not load, also after its pin has moved.
    pub(super) fn is_broken(&self, mode: Mode) -> bool {
        self.pinned_fault.is_some() && self.moves_to(mode).is_none()
    }

    /// The line of the table: source, pinned version, newest version, result.
    pub(super) fn line(&self, mode: Mode) -> [String; 4] {
        let newest = match &self.newest {
            Newest::Pinned => &self.pinned,
            Newest::Newer(version) | Newest::Unsuitable { version, .. } => version,
            Newest::Unknown { .. } => "?",
            Newest::Unversioned => "-",
        };
        [self.source.clone(), self.pinned.clone(), newest.to_owned(), self.result(mode)]
    }

    fn result(&self, mode: Mode) -> String {
        if self.moves_to(mode).is_some() {
            return "updated".to_owned();
        }
        let state = match (&self.pinned_fault, &self.newest, mode) {
            (Some(fault), _, _) => format!("no longer loads: {fault}"),
            (None, Newest::Pinned, _) => "current".to_owned(),
            (None, Newest::Newer(_), Mode::Verify) => "stale".to_owned(),
            (None, Newest::Unversioned, _) | (None, _, Mode::Verify) => "loads".to_owned(),
            (None, _, Mode::Update) => "kept".to_owned(),
        };
        let newest = match (&self.newest, &self.newest_fault) {
            (Newest::Newer(version), Some(fault)) => Some(format!("{version} does not load: {fault}")),
            (Newest::Newer(version), None) => Some(format!("{version} loads")),
            (Newest::Unsuitable { version, why }, _) => Some(format!("{version} {why}")),
            (Newest::Unknown { why }, _) => Some(format!("the newest version is unknown: {why}")),
            (Newest::Unversioned, _) => Some("written from public documents".to_owned()),
            (Newest::Pinned, _) => None,
        };
        let retracted = self.retracted.as_ref().map(|why| format!("the pinned version is retracted: {why}"));
        [Some(state), newest, retracted].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, Mode, Newest, judge};
    use crate::text_table::{Align, lines};
    use expect_test::expect;

    fn judged(pinned: &str, served: &str, time: Option<&str>) -> String {
        match judge(pinned, served, time) {
            Newest::Pinned => "pinned".to_owned(),
            Newest::Newer(version) => format!("newer {version}"),
            Newest::Unsuitable { version, why } => format!("{version} {why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_release_moves_only_to_a_newer_release() {
        let commit = "v1.3.1-0.20260101000000-0123456789ab";
        let served = ["v1.3.0", "v1.10.0", "v1.2.9", "v1.4.0-rc.1", "v2.0.0+incompatible", commit, "v1.x"]
            .map(|served| judged("v1.3.0", served, None));
        expect![[r#"
            pinned
            newer v1.10.0
            v1.2.9 is older than the pin
            v1.4.0-rc.1 is a prerelease
            v2.0.0+incompatible predates the module's go.mod
            v1.3.1-0.20260101000000-0123456789ab is not a release
            v1.x is a prerelease"#]]
        .assert_eq(&served.join("\n"));
        assert_eq!(judged("v1.4.0-rc.1", "v1.4.0-rc.2", None), "newer v1.4.0-rc.2");
        assert_eq!(judged("v2.0.0+incompatible", "v2.1.0+incompatible", None), "newer v2.1.0+incompatible");
        assert_eq!(judged("11.0.99", "11.0.143", None), "newer 11.0.143");
    }

    #[test]
    fn a_commit_moves_to_what_was_made_later() {
        let pinned = "v0.0.0-20251015095338-264e80a2b6e7";
        let later = "v0.0.0-20251015095339-aaaaaaaaaaaa";
        assert_eq!(judged(pinned, later, None), format!("newer {later}"));
        assert_eq!(judged(later, pinned, None), format!("{pinned} is older than the pin"));
        assert_eq!(judged(pinned, "v0.1.0", Some("2026-01-02T03:04:05Z")), "newer v0.1.0");
        assert_eq!(judged(pinned, "v0.1.0", Some("2018-01-19T19:59:49Z")), "v0.1.0 is older than the pin");
        assert_eq!(judged(pinned, "v0.1.0", None), "v0.1.0 cannot be compared with the pin");
        let old = judged(pinned, "v3.9.0+incompatible", Some("2018-01-19T19:59:49Z"));
        assert_eq!(old, "v3.9.0+incompatible predates the module's go.mod");
    }

    fn findings() -> Vec<Finding> {
        let moved = || Some("m@v1.1.0 no longer contains a.yaml".to_owned());
        let newer = || Newest::Newer("v1.1.0".to_owned());
        let refused = || Newest::Unknown { why: "the Go module proxy refused a module: 403 Forbidden".to_owned() };
        let older = || Newest::Unsuitable { version: "v0.9.0".to_owned(), why: "is older than the pin" };
        let of = |source: &str, pinned_fault: Option<&str>, newest: Newest, newest_fault: Option<String>| Finding {
            source: source.to_owned(),
            pinned: "v1.0.0".to_owned(),
            pinned_fault: pinned_fault.map(str::to_owned),
            retracted: None,
            newest,
            newest_fault,
        };
        let gone = Some("the Go module proxy refused a module: 404 Not Found");
        let mut retracted = of("retracted", None, newer(), moved());
        retracted.retracted = Some("lost data".to_owned());
        vec![
            of("current", None, Newest::Pinned, None),
            of("newer", None, newer(), None),
            of("newer-moved", None, newer(), moved()),
            of("older", None, older(), None),
            of("refused", None, refused(), None),
            of("gone-newer", gone, newer(), None),
            of("gone-moved", gone, newer(), moved()),
            of("gone-refused", gone, refused(), None),
            of("gone", gone, Newest::Pinned, None),
            retracted,
            Finding { pinned: "-".to_owned(), ..of("written.yaml", None, Newest::Unversioned, None) },
        ]
    }

    fn table(mode: Mode) -> String {
        let rows: Vec<_> = findings().iter().map(|finding| finding.line(mode)).collect();
        lines([Align::Left; 4], &rows).join("\n")
    }

    fn broken(mode: Mode) -> Vec<String> {
        findings().into_iter().filter(|finding| finding.is_broken(mode)).map(|finding| finding.source).collect()
    }

    #[test]
    fn verify_reports_what_is_stale_and_what_no_longer_loads() {
        expect![[r#"
            current       v1.0.0  v1.0.0  current
            newer         v1.0.0  v1.1.0  stale; v1.1.0 loads
            newer-moved   v1.0.0  v1.1.0  stale; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml
            older         v1.0.0  v0.9.0  loads; v0.9.0 is older than the pin
            refused       v1.0.0  ?       loads; the newest version is unknown: the Go module proxy refused a module: 403 Forbidden
            gone-newer    v1.0.0  v1.1.0  no longer loads: the Go module proxy refused a module: 404 Not Found; v1.1.0 loads
            gone-moved    v1.0.0  v1.1.0  no longer loads: the Go module proxy refused a module: 404 Not Found; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml
            gone-refused  v1.0.0  ?       no longer loads: the Go module proxy refused a module: 404 Not Found; the newest version is unknown: the Go module proxy refused a module: 403 Forbidden
            gone          v1.0.0  v1.0.0  no longer loads: the Go module proxy refused a module: 404 Not Found
            retracted     v1.0.0  v1.1.0  stale; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml; the pinned version is retracted: lost data
            written.yaml  -       -       loads; written from public documents"#]].assert_eq(&table(Mode::Verify));
        assert_eq!(broken(Mode::Verify), ["gone-newer", "gone-moved", "gone-refused", "gone"]);
        assert!(findings().iter().all(|finding| finding.moves_to(Mode::Verify).is_none()));
    }

    #[test]
    fn update_moves_only_the_pins_whose_newest_version_loads() {
        expect![[r#"
            current       v1.0.0  v1.0.0  current
            newer         v1.0.0  v1.1.0  updated
            newer-moved   v1.0.0  v1.1.0  kept; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml
            older         v1.0.0  v0.9.0  kept; v0.9.0 is older than the pin
            refused       v1.0.0  ?       kept; the newest version is unknown: the Go module proxy refused a module: 403 Forbidden
            gone-newer    v1.0.0  v1.1.0  updated
            gone-moved    v1.0.0  v1.1.0  no longer loads: the Go module proxy refused a module: 404 Not Found; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml
            gone-refused  v1.0.0  ?       no longer loads: the Go module proxy refused a module: 404 Not Found; the newest version is unknown: the Go module proxy refused a module: 403 Forbidden
            gone          v1.0.0  v1.0.0  no longer loads: the Go module proxy refused a module: 404 Not Found
            retracted     v1.0.0  v1.1.0  kept; v1.1.0 does not load: m@v1.1.0 no longer contains a.yaml; the pinned version is retracted: lost data
            written.yaml  -       -       loads; written from public documents"#]].assert_eq(&table(Mode::Update));
        assert_eq!(broken(Mode::Update), ["gone-moved", "gone-refused", "gone"]);
    }
}
