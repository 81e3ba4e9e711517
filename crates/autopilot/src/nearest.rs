//! The valid words most like one that is not.

/// The words that begin with this one or contain it, else those most like it; at most three.
pub fn nearest<'a>(word: &str, valid: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> =
        valid.into_iter().map(|name| (distance(&word, &name.to_lowercase()), name)).collect();
    scored.sort_unstable();
    scored.dedup();
    let close = word.chars().count() / 2 + 1;
    scored.into_iter().filter(|(score, _)| *score <= close).take(3).map(|(_, name)| name.to_owned()).collect()
}

/// How far a name is from a word; one of at least three characters is near every name that has it.
fn distance(word: &str, name: &str) -> usize {
    match name.find(word).filter(|_| word.chars().count() >= 3) {
        Some(0) => 0,
        Some(_) => 1,
        None => strsim::levenshtein(word, name),
    }
}

/// The question whether one of them was meant; nothing if there is none.
pub fn question(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(" (did you mean {}?)", nearest.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_name_with_the_word_in_it_is_near() {
        let names = ["psi-enable", "pci-passthrough", "metrics-service", "vfio-pci", "swap-enable"];
        assert_eq!(nearest("pci", names), ["pci-passthrough", "vfio-pci"]);
        assert_eq!(nearest("psi", names), ["psi-enable"]);
        assert_eq!(nearest("metrics-servise", names), ["metrics-service"]);
        assert!(nearest("e", names).is_empty());
    }
}
