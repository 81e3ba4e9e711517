//! The valid words most like one that is not.

/// The words most like this one, at most three.
pub fn nearest<'a>(word: &str, valid: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut scored: Vec<(usize, &str)> =
        valid.into_iter().map(|name| (strsim::levenshtein(&word, &name.to_lowercase()), name)).collect();
    scored.sort_unstable();
    scored.dedup();
    let close = word.chars().count() / 2 + 1;
    scored.into_iter().filter(|(score, _)| *score <= close).take(3).map(|(_, name)| name.to_owned()).collect()
}

/// The question whether one of them was meant; nothing if there is none.
pub fn question(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(" (did you mean {}?)", nearest.join(" or ")) }
}
