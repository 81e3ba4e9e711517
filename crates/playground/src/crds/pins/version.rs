//! Orders versions of Go modules and plain dotted versions.

use std::cmp::Ordering;

/// How two versions are ordered; `None` if one of them is not a dotted version.
pub(super) fn compare(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (Version::parse(left)?, Version::parse(right)?);
    Some(left.numbers.cmp(&right.numbers).then_with(|| compare_prereleases(left.prerelease, right.prerelease)))
}

/// Whether a version precedes a release and is not a commit.
pub(super) fn is_prerelease(version: &str) -> bool {
    pseudo_time(version).is_none() && Version::parse(version).is_none_or(|version| version.prerelease.is_some())
}

/// The time in a pseudo-version, which stands for a commit: `v0.0.0-20251015095338-264e80a2b6e7`.
pub(super) fn pseudo_time(version: &str) -> Option<&str> {
    let (before, commit) = version.strip_suffix("+incompatible").unwrap_or(version).rsplit_once('-')?;
    let time = before.rsplit(['-', '.']).next()?;
    let is_time = time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit());
    let is_commit = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_time && is_commit && before.len() > time.len()).then_some(time)
}

struct Version<'a> {
    numbers: Vec<u64>,
    prerelease: Option<&'a str>,
}

impl Version<'_> {
    fn parse(text: &str) -> Option<Version<'_>> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (numbers, prerelease) =
            text.split_once('-').map_or((text, None), |(numbers, prerelease)| (numbers, Some(prerelease)));
        let numbers = numbers.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        Some(Version { numbers, prerelease })
    }
}

fn compare_prereleases(left: Option<&str>, right: Option<&str>) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => {
            let key = |part: &str| match part.parse::<u64>() {
                // Numbers precede words.
                Ok(number) => (0, number, String::new()),
                Err(_) => (1, 0, part.to_owned()),
            };
            left.split('.').map(key).cmp(right.split('.').map(key))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{compare, is_prerelease, pseudo_time};
    use std::cmp::Ordering;

    #[test]
    fn versions_are_ordered_as_go_orders_them() {
        let ascending = [
            "v0.0.0-20251015095338-264e80a2b6e7",
            "v0.9.0",
            "v0.10.0-alpha",
            "v0.10.0-rc.2",
            "v0.10.0-rc.10",
            "v0.10.0-rc.x",
            "v0.10.0",
            "v3.9.0+incompatible",
        ];
        for (index, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), Some(index.cmp(&other)), "{left} {right}");
            }
        }
        assert_eq!(compare("11.0.143", "11.0.99"), Some(Ordering::Greater));
        assert_eq!(compare("11.0.143", "11.0.143rc1"), None);
    }

    #[test]
    fn commits_and_prereleases_are_told_apart() {
        let time = Some("20251015095338");
        assert_eq!(pseudo_time("v0.0.0-20251015095338-264e80a2b6e7"), time);
        assert_eq!(pseudo_time("v1.2.4-0.20251015095338-264e80a2b6e7"), time);
        assert_eq!(pseudo_time("v1.2.4-rc.1.0.20251015095338-264e80a2b6e7"), time);
        assert_eq!(pseudo_time("v2.0.0-20251015095338-264e80a2b6e7+incompatible"), time);
        for other in ["v1.2.3", "v1.2.3-rc.1", "v1.2.3-20251015095338", "20251015095338-264e80a2b6e7", "v1-x-y"] {
            assert_eq!(pseudo_time(other), None, "{other}");
        }
        assert!(is_prerelease("v1.2.3-rc.1") && is_prerelease("1.2.3rc1"));
        assert!(!is_prerelease("v1.2.3") && !is_prerelease("v0.0.0-20251015095338-264e80a2b6e7"));
    }
}
