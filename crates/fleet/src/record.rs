//! The owner of a machine as text in its description. It is read strictly: what is not exactly such a record proves nothing.

use crate::hypervisor::Owner;
use serde_json::Value;

const PREFIX: &str = "hyperfleet-owner: ";
const NOTE: &str = "Managed by virtpilot. Do not edit: the next line says whose this machine is.";
const FIELDS: [&str; 3] = ["claim", "operator", "uid"];

/// The description of a machine.
pub fn write(owner: &Owner) -> String {
    // Three strings always serialize.
    let record = serde_json::to_string(owner).unwrap_or_default();
    format!("{NOTE}\n\n{PREFIX}{record}")
}

/// The owner that a description names; nothing unless there is exactly one complete record.
pub fn read(description: &str) -> Option<Owner> {
    let mut records = description.lines().filter_map(|line| line.trim().strip_prefix(PREFIX));
    let (record, None) = (records.next()?, records.next()) else { return None };
    let value: Value = serde_json::from_str(record).ok()?;
    let fields = value.as_object()?;
    let is_exact = fields.len() == FIELDS.len() && FIELDS.iter().all(|field| fields.contains_key(*field));
    let owner: Owner = serde_json::from_value(value).ok().filter(|_| is_exact)?;
    let is_complete = [&owner.operator, &owner.claim, &owner.uid].iter().all(|part| !part.is_empty());
    is_complete.then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::hypervisor::Owner;

    fn owner() -> Owner {
        Owner { operator: "o-1".into(), claim: "ci/one".into(), uid: "u-1".into() }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        assert_eq!(read(&write(&owner())), Some(owner()));
        assert_eq!(read(&format!("{}\r\nseen by bob", write(&owner()).replace('\n', "\r\n"))), Some(owner()));
    }

    #[test]
    fn whatever_is_not_exactly_one_record_is_none() {
        let record = write(&owner());
        for text in [
            "",
            "somebody's database",
            &format!("{record}\n{record}"),
            &record.replace("u-1", ""),
            &record.replace("\"uid\"", "\"id\""),
            &record.replace('}', ",\"more\":1}"),
            &record[..record.len() - 3],
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
