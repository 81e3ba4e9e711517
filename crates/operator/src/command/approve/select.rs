//! Finds the changes that a person names, among those that wait for an approval.

use super::waiting::{Change, Names, Object, Waiting};
use crate::command::object_name::is_object;
use autopilot::nearest::{nearest, question};
use change::{Digest, Key};
use std::collections::BTreeSet;

/// As many digits as `status` shows.
const SHORTEST: usize = 8;
/// More changes that wait are counted.
const LISTED: usize = 5;

/// What a person names.
pub(super) struct Selection<'a> {
    pub(super) words: &'a [String],
    pub(super) pool: Option<&'a str>,
    pub(super) deletions: bool,
}

/// The changes that a person names, in the order in which they wait; an error if one of the names is of none, or nobody can approve one.
pub(super) fn select<'a>(selection: &Selection<'_>, waiting: &'a Waiting) -> Result<Vec<&'a Change>, String> {
    let changes = &waiting.changes;
    let mut chosen = BTreeSet::new();
    for word in selection.words {
        chosen.extend(find(word.trim(), changes, &waiting.names)?);
    }
    if let Some(pool) = selection.pool {
        chosen.extend(of_pool(pool, changes)?);
    }
    if selection.deletions {
        let deletions = positions(changes, |change| change.is_deletions);
        if deletions.is_empty() {
            return Err(format!("no deletion of many objects waits for an approval; {}", listed(changes)));
        }
        chosen.extend(deletions);
    }
    if chosen.is_empty() {
        return Err(format!(
            "name what to approve: an asset, KIND/NAME, a digest, --pool POOL, --deletions or --plan FILE; {}",
            listed(changes)
        ));
    }
    let chosen: Vec<&Change> = chosen.into_iter().map(|at| &changes[at]).collect();
    match chosen.iter().find(|change| change.digest.is_none()) {
        None => Ok(chosen),
        Some(change) => Err(format!(
            "the digest of {} is not known yet; start the operator, which asks, or wait until it has",
            change.word()
        )),
    }
}

/// The changes that one word names.
fn find(word: &str, changes: &[Change], known: &Names) -> Result<Vec<usize>, String> {
    let is_named = |name: &String| name.eq_ignore_ascii_case(word);
    let by_name = positions(changes, |change| any(change, |object| object.names.iter().any(is_named)));
    if !by_name.is_empty() {
        return Ok(by_name);
    }
    let by_object =
        positions(changes, |change| any(change, |object| object.key.as_ref().is_some_and(|key| is_object(word, key))));
    if !by_object.is_empty() {
        return Ok(by_object);
    }
    if let Some(digits) = digits(word) {
        let found = positions(changes, |change| change.digest.is_some_and(|digest| begins(&digest, &digits)));
        return match found.len() {
            0 => Err(format!(
                "nobody asks to approve {word}; {}; a digest changes with the change, and is good for one write",
                listed(changes)
            )),
            1 => Ok(found),
            _ => Err(format!("several digests begin with {word}; give more digits")),
        };
    }
    let too_short = word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names = || changes.iter().flat_map(|change| &change.objects).flat_map(|object| &object.names);
    let words: Vec<String> = changes.iter().flat_map(|change| &change.objects).map(Object::word).collect();
    Err(match known.values().flatten().any(is_named) {
        true => format!("nothing of {word} waits for an approval; {}", listed(changes)),
        false if too_short => {
            format!("{word:?} is too short for a digest: {SHORTEST} digits are needed; {}", listed(changes))
        }
        false => {
            let candidates = names().chain(&words).map(String::as_str);
            let meant = question(&nearest(word, candidates));
            format!("nothing with the name {word:?} waits for an approval{meant}; {}", listed(changes))
        }
    })
}

/// The changes that restart nodes of this pool, or of exactly these pools.
fn of_pool(pool: &str, changes: &[Change]) -> Result<Vec<usize>, String> {
    let found = positions(changes, |change| change.pool.as_deref() == Some(pool));
    if !found.is_empty() {
        return Ok(found);
    }
    let pools: BTreeSet<&str> = changes.iter().filter_map(|change| change.pool.as_deref()).collect();
    match pools.is_empty() {
        true => Err("nothing waits for an approval to restart nodes; run \"virtpilot status\"".to_owned()),
        false => {
            let pools: Vec<&str> = pools.into_iter().collect();
            Err(format!(
                "nothing waits for an approval to restart nodes of pool {pool:?}, but for {}",
                pools.join(", ")
            ))
        }
    }
}

fn positions(changes: &[Change], is_chosen: impl Fn(&Change) -> bool) -> Vec<usize> {
    changes.iter().enumerate().filter(|(_, change)| is_chosen(change)).map(|(at, _)| at).collect()
}

fn any(change: &Change, is_chosen: impl Fn(&Object) -> bool) -> bool {
    change.objects.iter().any(is_chosen)
}

/// Whether a word names an object that is written as `Kind/name` or `Kind/namespace/name`.
pub(super) fn is_word(word: &str, object: &str) -> bool {
    let parts: Vec<&str> = object.split('/').collect();
    let (kind, namespace, name) = match parts.as_slice() {
        [kind, name] => (*kind, "", *name),
        [kind, namespace, name] => (*kind, *namespace, *name),
        _ => return word == object,
    };
    is_object(word, &Key { kind: change::Kind::new("", kind), namespace: namespace.into(), name: name.into() })
}

/// The digits of a word that is a digest, or begins one.
fn digits(word: &str) -> Option<String> {
    let digits = word.strip_prefix("sha256:").unwrap_or(word);
    let is_digest = (SHORTEST..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| digits.to_lowercase())
}

fn begins(digest: &Digest, digits: &str) -> bool {
    digest.to_string().strip_prefix("sha256:").is_some_and(|all| all.starts_with(digits))
}

/// The only one of these digests that a word names.
pub(super) fn digest_among<'a>(word: &str, digests: impl Iterator<Item = &'a Digest>) -> Option<Digest> {
    let digits = digits(word.trim())?;
    let mut found = digests.filter(|digest| begins(digest, &digits));
    found.next().copied().filter(|_| found.next().is_none())
}

/// What waits, in a few words.
pub(super) fn listed(changes: &[Change]) -> String {
    let names: Vec<String> = changes.iter().take(LISTED).map(Change::with_name).collect();
    match changes.len().checked_sub(LISTED) {
        _ if changes.is_empty() => "nothing waits for an approval".to_owned(),
        None | Some(0) => format!("waiting for an approval: {}", names.join(", ")),
        Some(more) => format!("waiting for an approval: {} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{digest_among, find, is_word, listed, of_pool};
    use crate::command::approve::waiting::{Change, Names, Object};
    use change::{Digest, Key, Kind};
    use expect_test::expect;
    use std::collections::BTreeSet;

    fn digest(text: &str) -> Digest {
        Digest::parse(&format!("sha256:{text:0<64}")).unwrap()
    }

    fn object(asset: &str, names: &[&str], kind: &str, namespace: &str, name: &str) -> Object {
        let kind = Kind::new(if kind == "MachineConfig" { "machineconfiguration.openshift.io/v1" } else { "v1" }, kind);
        let names = names.iter().chain([&asset]).map(|name| (*name).to_owned()).collect();
        let key = Key { kind, namespace: namespace.into(), name: name.into() };
        Object { asset: asset.to_owned(), names, key: Some(key), item: None }
    }

    fn waiting() -> Vec<Change> {
        let change = |digest: Option<Digest>, object: Object, pool: Option<&str>| Change {
            digest,
            objects: vec![object],
            pool: pool.map(str::to_owned),
            is_deletions: false,
            note: None,
        };
        let deletions =
            (0..6).map(|number| object(&format!("x{number}"), &["many"], "ConfigMap", "virt", &format!("x{number}")));
        vec![
            change(
                Some(digest("abcdef0123")),
                object("swap-enable", &["swap"], "MachineConfig", "", "90-swap"),
                Some("worker"),
            ),
            change(
                Some(digest("abcdef0199")),
                object("psi-enable", &[], "MachineConfig", "", "99-psi"),
                Some("worker"),
            ),
            change(None, object("pci", &[], "MachineConfig", "", "50-pci"), Some("gpu,worker")),
            Change {
                digest: Some(digest("77")),
                objects: deletions.collect(),
                pool: None,
                is_deletions: true,
                note: None,
            },
        ]
    }

    fn found(word: &str) -> Result<Vec<usize>, String> {
        find(word, &waiting(), &Names::from([("mtv".to_owned(), BTreeSet::from(["mtv".to_owned()]))]))
    }

    #[test]
    fn a_change_is_named_by_its_asset_feature_object_or_digest() {
        for word in [
            "swap-enable",
            "SWAP-enable",
            "swap",
            "MachineConfig/90-swap",
            "machineconfig/90-swap",
            "MACHINECONFIG/90-swap",
            "MachineConfig 90-swap",
            "machineconfig.machineconfiguration.openshift.io/90-swap",
            "abcdef0123",
            "ABCDEF0123",
            "sha256:abcdef0123",
        ] {
            assert_eq!(found(word), Ok(vec![0]), "{word}");
        }
        for word in ["many", "x3", "configmap/x3", "ConfigMap/virt/x3", "77000000", &digest("77").to_string()] {
            assert_eq!(found(word), Ok(vec![3]), "{word}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_and_what_waits() {
        let errors: Vec<String> = [
            "swpa-enable",
            "mtv",
            "abcdef01",
            "12345678",
            "abcd",
            "ConfigMap/other/x3",
            "Machineconfig/90-swop",
            "a/b/c/d",
            "",
        ]
        .map(|word| found(word).unwrap_err().replace(&listed(&waiting()), "WAITING"))
        .into();
        expect![[r#"
            nothing with the name "swpa-enable" waits for an approval (did you mean swap-enable?); WAITING
            nothing of mtv waits for an approval; WAITING
            several digests begin with abcdef01; give more digits
            nobody asks to approve 12345678; WAITING; a digest changes with the change, and is good for one write
            "abcd" is too short for a digest: 8 digits are needed; WAITING
            nothing with the name "ConfigMap/other/x3" waits for an approval (did you mean ConfigMap/virt/x3?); WAITING
            nothing with the name "Machineconfig/90-swop" waits for an approval (did you mean MachineConfig/90-swap?); WAITING
            nothing with the name "a/b/c/d" waits for an approval; WAITING
            nothing with the name "" waits for an approval; WAITING"#]]
        .assert_eq(&errors.join("\n"));
        expect!["waiting for an approval: swap-enable abcdef01 (MachineConfig 90-swap), psi-enable abcdef01 (MachineConfig 99-psi), pci not asked yet (MachineConfig 50-pci), --deletions 77000000 (deletion of 6 objects)"]
            .assert_eq(&listed(&waiting()));
        assert_eq!(listed(&[]), "nothing waits for an approval");
    }

    #[test]
    fn a_pool_is_named_with_all_pools_that_a_change_concerns() {
        assert_eq!(of_pool("worker", &waiting()), Ok(vec![0, 1]));
        assert_eq!(of_pool("gpu,worker", &waiting()), Ok(vec![2]));
        expect![[r#"nothing waits for an approval to restart nodes of pool "gpu", but for gpu,worker, worker"#]]
            .assert_eq(&of_pool("gpu", &waiting()).unwrap_err());
        assert!(of_pool("gpu", &[]).unwrap_err().starts_with("nothing waits for an approval to restart nodes; "));
    }

    #[test]
    fn a_digest_and_an_object_of_a_record_are_named_like_those_that_wait() {
        let all = [digest("abcdef0123"), digest("abcdef0199")];
        assert_eq!(digest_among("abcdef0199", all.iter()), Some(all[1]));
        assert!([("abcdef01"), ("abcdef"), ("swap")].iter().all(|word| digest_among(word, all.iter()).is_none()));
        assert!(
            is_word("machineconfig/90-swap", "MachineConfig/90-swap") && is_word("ConfigMap/x", "ConfigMap/virt/x")
        );
        assert!(!is_word("MachineConfig/90", "MachineConfig/90-swap") && !is_word("Secret/x", "ConfigMap/virt/x"));
        assert!(is_word("deletion-of-6-objects", "deletion-of-6-objects"));
    }
}
