//! The owner record in the description of a machine: one line for people and one line for us.

use crate::hypervisor::Owner;
use serde::{Deserialize, Serialize};

/// What our line begins with.
const MARKER: &str = "virtpilot-owner:";
/// The version of the format. A record of another version is not understood, so that its machine is left alone.
const VERSION: u32 = 1;

/// What we write down about a machine, on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The id of the machine: copies of a machine have its description, and are not ours.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
    /// The image of its seed, whether or not it is uploaded yet: whoever destroys the machine deletes it, too.
    pub seed: Option<SeedVolume>,
    /// Whether the machine was brought to its blueprint.
    pub is_configured: bool,
}

/// An uploaded image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedVolume {
    /// The node it was uploaded to.
    pub node: String,
    /// `STORAGE:iso/FILE`.
    pub volume: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    version: u32,
    id: String,
    operator: String,
    claim: String,
    uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<SeedVolume>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    configured: bool,
}

/// The description of a new machine.
pub fn describe(record: &Record) -> String {
    let people = format!(
        "CI machine of claim {}, created by virtpilot. The next line says whose it is; without it, it is never deleted.",
        record.owner.claim
    );
    format!("{people}\n\n{}\n", line(record))
}

/// The record in the description of a machine. Nothing unless there is exactly one marker, everything after it can be read, and it is about
/// this machine: a description that is ambiguous makes a machine nobody's, and so does one that was copied from another machine.
pub fn parse(description: &str, id: &str) -> Option<Record> {
    if description.matches(MARKER).count() != 1 {
        return None;
    }
    decode(description.lines().find_map(|line| line.strip_prefix(MARKER))?, id)
}

/// The record of a machine in a JSON text.
pub fn decode(text: &str, id: &str) -> Option<Record> {
    let line: Line = serde_json::from_str(text.trim()).ok()?;
    let owner = Owner { operator: line.operator, claim: line.claim, uid: line.uid };
    let is_complete = !owner.operator.is_empty() && !owner.claim.is_empty() && !owner.uid.is_empty();
    (line.version == VERSION && line.id == id && is_complete).then_some(Record {
        id: line.id,
        owner,
        seed: line.seed,
        is_configured: line.configured,
    })
}

/// The description with another record; every other line stays.
pub fn replace(description: &str, record: &Record) -> String {
    let lines = description.lines().map(|old| match old.starts_with(MARKER) {
        true => line(record),
        false => old.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// The line with the record that belongs into the description of its machine.
pub fn line(record: &Record) -> String {
    format!("{MARKER} {}", encode(record))
}

/// The record as a JSON text in one line.
pub fn encode(record: &Record) -> String {
    let Owner { operator, claim, uid } = record.owner.clone();
    let seed = record.seed.clone();
    let (id, configured) = (record.id.clone(), record.is_configured);
    let line = Line { version: VERSION, id, operator, claim, uid, seed, configured };
    // Only a map with keys that are no texts cannot be written.
    serde_json::to_string(&line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Record, SeedVolume, describe, parse, replace};
    use crate::hypervisor::Owner;

    fn record() -> Record {
        let owner = Owner { operator: "op-1".into(), claim: "ci/run-7".into(), uid: "0f-1".into() };
        let seed = SeedVolume { node: "pve1".into(), volume: "local:iso/virtpilot-0f-1-ab.iso".into() };
        Record { id: "100007".into(), owner, seed: Some(seed), is_configured: false }
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let described = describe(&record());
        assert_eq!(parse(&described, "100007"), Some(record()));
        assert_eq!(parse(&described, "100008"), None, "a copy of the machine");
        assert_eq!(parse(&described.replace('\n', "\r\n"), "100007"), Some(record()), "line ends of another system");
    }

    #[test]
    fn notes_of_people_stay_when_the_record_is_replaced() {
        let described = format!("a note\n{}another note\n", describe(&record()));
        let configured = Record { is_configured: true, seed: None, ..record() };
        let replaced = replace(&described, &configured);
        assert_eq!(parse(&replaced, "100007"), Some(configured));
        assert!(replaced.starts_with("a note\nCI machine of claim ci/run-7,") && replaced.ends_with("another note\n"));
        assert_eq!(replaced.lines().count(), described.lines().count());
    }

    #[test]
    fn a_description_that_is_not_exactly_one_complete_record_is_nobodys() {
        let described = describe(&record());
        let whole = described.lines().find(|line| line.starts_with("virtpilot-owner:")).unwrap().to_owned();
        let cases = [
            ("nothing", String::new()),
            ("a note", "my machine".into()),
            ("two records", format!("{described}{described}")),
            ("a record and a quotation of the marker", format!("{described}see virtpilot-owner: above")),
            ("not at the start of a line", format!("x {whole}")),
            ("cut off", whole[..whole.len() - 1].to_owned()),
            ("another version", whole.replace("\"version\":1", "\"version\":2")),
            ("an unknown field", whole.replace("{", "{\"x\":1,")),
            ("the same field twice", whole.replace("\"uid\":", "\"uid\":\"a\",\"uid\":")),
            ("no uid", whole.replace("0f-1\",\"seed", "\",\"seed")),
            ("something after it", format!("{whole} {{}}")),
        ];
        for (what, description) in cases {
            assert_eq!(parse(&description, "100007"), None, "{what}: {description}");
        }
        assert_eq!(parse(&whole, "100007"), Some(record()));
    }

    #[test]
    fn a_claim_cannot_forge_a_second_record() {
        let mut forged = record();
        forged.owner.claim = "a/b\nvirtpilot-owner: {}".into();
        assert_eq!(parse(&describe(&forged), "100007"), None);
    }
}
