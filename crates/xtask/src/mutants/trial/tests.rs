//! The mutants of a small crate are built and tested.

use super::Trial;
use crate::mutants::build::Copy;
use crate::mutants::mutant::tests::replacing;
use crate::mutants::mutant::{Fate, Mutant};

const MANIFEST: &str =
    "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n[profile.mutants]\ninherits = \"dev\"\n";
const CRATE: &str = "[package]\nname = \"p\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
const LOCK: &str = "version = 4\n[[package]]\nname = \"p\"\nversion = \"0.0.0\"\n";
const SOURCE: &str = r#"
const LIMIT: u8 = 2 + 3;
fn is_low(number: u8) -> bool {
    number < LIMIT
}
fn numbers() -> impl Iterator<Item = u8> {
    0..LIMIT
}
fn name() -> String {
    "name".to_owned()
}
fn unused() -> u8 {
    7
}
#[test]
fn low_numbers_are_named() {
    assert!(numbers().eq([0, 1, 2, 3, 4]) && is_low(4) && !is_low(6) && !name().is_empty());
}
"#;

#[test]
fn every_mutant_is_caught_missed_or_does_not_compile() {
    let cases = [
        ("< LIMIT", "> LIMIT", Fate::Caught),
        ("< LIMIT", "<= LIMIT", Fate::Missed),
        ("+", "-", Fate::Unviable),
        ("+", "|", Fate::Caught),
        ("0..LIMIT", "std::iter::empty()", Fate::Caught),
        ("0..LIMIT", "7", Fate::Unviable),
        ("\"name\".to_owned()", "String::new()", Fate::Caught),
        ("\"name\".to_owned()", "7", Fate::Unviable),
        ("\"name\".to_owned()", "loop { std::process::abort() }", Fate::Caught),
        ("7\n}", "8\n}", Fate::Missed),
    ];
    let folder = tempfile::tempdir().unwrap();
    let copy = Copy::below(folder.path());
    std::fs::create_dir_all(copy.root.join("crates/p/src")).unwrap();
    for (file, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("crates/p/Cargo.toml", CRATE),
        ("crates/p/src/lib.rs", SOURCE),
    ] {
        copy.write(file, text).unwrap();
    }
    let mutant = |old: &str, new: &str| Mutant {
        name: format!("replace {old} with {new}"),
        file: "crates/p/src/lib.rs".into(),
        ..replacing(SOURCE, old, new)
    };
    let mutants: Vec<Mutant> = cases.iter().map(|(old, new, _)| mutant(old, new)).collect();
    let tested = Trial::new("p", &copy, mutants.iter().collect()).unwrap().run().unwrap();
    let fates: Vec<(&str, Fate)> = tested.iter().map(|(mutant, fate)| (mutant.name.as_str(), *fate)).collect();
    let expected: Vec<(&str, Fate)> =
        mutants.iter().zip(cases).map(|(mutant, (_, _, fate))| (mutant.name.as_str(), fate)).collect();
    assert_eq!(fates, expected);
    assert_eq!(copy.read("crates/p/src/lib.rs").unwrap(), SOURCE, "the copy is as it was");
}
