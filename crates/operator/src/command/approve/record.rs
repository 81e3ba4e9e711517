//! The annotation `approved-by`: who approved which digest, and when, one line each.

use change::Digest;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;

/// A used approval and its record are kept so long; audit logs of clusters are rarely kept longer.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) digest: Digest,
    pub(super) at: Timestamp,
    /// What it is about, in one word.
    pub(super) object: String,
    /// The user, last in the line because a name may have blanks.
    pub(super) by: String,
}

impl Record {
    /// An approval by this user; what would break the line is left out of the name.
    pub(super) fn new(digest: Digest, at: Timestamp, object: &str, by: &str) -> Record {
        let by = by.replace(char::is_control, "");
        Record { digest, at, object: object.to_owned(), by }
    }

    /// The records in an annotation; lines that are none are left out.
    pub(super) fn read(annotation: &str) -> Vec<Record> {
        annotation.lines().filter_map(Record::parse).collect()
    }

    fn parse(line: &str) -> Option<Record> {
        let mut parts = line.splitn(4, ' ');
        let (digest, at) = (Digest::parse(parts.next()?)?, parts.next()?.parse().ok()?);
        Some(Record { digest, at, object: parts.next()?.to_owned(), by: parts.next()?.to_owned() })
    }

    /// Whether it is so old that it is not kept once it is used.
    pub(super) fn is_old(&self, now: Timestamp) -> bool {
        Duration::try_from(now.duration_since(self.at)).is_ok_and(|age| age > KEPT)
    }

    /// Who, and when.
    pub(super) fn author(&self) -> String {
        format!("by {} on {}", self.by, seconds(self.at))
    }
}

fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.digest, seconds(self.at), self.object, self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::Record;
    use change::Digest;
    use serde_json::json;

    #[test]
    fn a_record_is_one_line_whatever_the_name_of_the_user() {
        let (digest, at) = (Digest::of(&json!(1)), "2026-11-21T10:00:00Z".parse().unwrap());
        for (name, expected) in [
            ("kubeadmin", "kubeadmin"),
            ("system:serviceaccount:a:b", "system:serviceaccount:a:b"),
            ("Ada Lovelace, Ltd.", "Ada Lovelace, Ltd."),
            ("a\nsha256:b", "asha256:b"),
        ] {
            let record = Record::new(digest, at, "MachineConfig/x", name);
            assert_eq!(record.to_string(), format!("{digest} 2026-11-21T10:00:00Z MachineConfig/x {expected}"));
            assert_eq!(Record::read(&record.to_string()), [record]);
        }
        let read =
            Record::read(&format!("{digest}\nnonsense\n\n{digest} today x y\n{digest} 2026-11-21T10:00:00Z X/y me"));
        assert_eq!((read.len(), read[0].author().as_str()), (1, "by me on 2026-11-21T10:00:00Z"));
        assert!(!read[0].is_old("2026-12-21T10:00:00Z".parse().unwrap()));
        assert!(read[0].is_old("2026-12-21T10:00:01Z".parse().unwrap()));
        assert!(!read[0].is_old("2026-11-01T00:00:00Z".parse().unwrap()), "a clock that is behind");
    }
}
