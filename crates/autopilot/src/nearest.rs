//! The valid words most like one that is not.

/// The word that begins with this one or contains it, else the one most like it; two if both are as near.
pub fn nearest<'a>(word: &str, valid: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> =
        valid.into_iter().map(|name| (distance(&word, &name.to_lowercase()), name)).collect();
    scored.sort_unstable();
    scored.dedup();
    let close = word.chars().count() / 2 + 1;
    let best = scored.first().map_or(0, |(score, _)| *score);
    let near = scored.into_iter().take_while(|(score, _)| *score == best && *score <= close);
    near.take(2).map(|(_, name)| name.to_owned()).collect()
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
    use super::{nearest, question};

    #[test]
    fn only_the_nearest_word_is_named_or_two_that_are_as_near() {
        let valid = ["enable-mtv", "enable-aaq", "enable-numa", "enable-metallb"];
        assert_eq!(question(&nearest("enable-mtvv", valid)), " (did you mean enable-mtv?)");
        assert_eq!(question(&nearest("bat", ["cat", "hat", "rat", "dog"])), " (did you mean cat or hat?)");
        assert_eq!(question(&nearest("xyz", valid)), "");
        assert_eq!(question(&nearest("x", [])), "");
    }

    #[test]
    fn a_name_with_the_word_in_it_is_near() {
        let names = ["psi-enable", "pci-passthrough", "metrics-service", "vfio-pci", "swap-enable"];
        assert_eq!(nearest("pci", names), ["pci-passthrough"]);
        assert_eq!(nearest("psi", names), ["psi-enable"]);
        assert_eq!(nearest("metrics-servise", names), ["metrics-service"]);
        assert!(nearest("e", names).is_empty());
    }
}
