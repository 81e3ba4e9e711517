//! Amounts of bytes and of time, as people write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An amount of bytes as a Kubernetes quantity: `8Gi` is 8 x 1024^3, `50G` is 50 x 1000^3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Quantity(
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]{1,3})?(Ki|Mi|Gi|Ti|k|K|M|G|T)?$"), length(max = 32))] pub String,
);

impl Quantity {
    /// The bytes; nothing if it cannot be read.
    pub fn bytes(&self) -> Option<u64> {
        let end = self.0.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(self.0.len());
        let (number, unit) = self.0.split_at(end);
        let factor: u64 = match unit {
            "" => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
        if part.is_empty() {
            return Some(whole);
        }
        let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
        let part = u128::from(part.parse::<u64>().ok()?) * u128::from(factor) / u128::from(scale);
        whole.checked_add(u64::try_from(part).ok()?)
    }
}

/// A span of time such as `90s`, `30m`, `1h30m` or `2d`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Span(#[schemars(regex(pattern = r"^([0-9]{1,6}(s|m|h|d)){1,4}$"), length(max = 32))] pub String);

impl Span {
    /// The time; nothing if it cannot be read.
    pub fn duration(&self) -> Option<Duration> {
        let (mut seconds, mut number) = (0_u64, None::<u64>);
        for letter in self.0.chars() {
            match letter.to_digit(10) {
                Some(digit) => {
                    number = Some(number.unwrap_or_default().checked_mul(10)?.checked_add(u64::from(digit))?);
                }
                None => {
                    let unit = match letter {
                        's' => 1,
                        'm' => 60,
                        'h' => 3_600,
                        'd' => 86_400,
                        _ => return None,
                    };
                    seconds = seconds.checked_add(number.take()?.checked_mul(unit)?)?;
                }
            }
        }
        (number.is_none() && !self.0.is_empty()).then(|| Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantity, Span};

    #[test]
    fn quantities_are_those_of_kubernetes() {
        let bytes = |text: &str| Quantity(text.into()).bytes();
        assert_eq!(bytes("50Gi"), Some(50 << 30));
        assert_eq!(bytes("50G"), Some(50_000_000_000));
        assert_eq!((bytes("512"), bytes("1.5Gi"), bytes("8192M")), (Some(512), Some(3 << 29), Some(8_192_000_000)));
        for wrong in ["", "G", "5Q", "5.G5", "-1Gi", "99999999999T", "1.Gi5"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_are_sums_of_numbers_with_units() {
        let seconds = |text: &str| Span(text.into()).duration().map(|span| span.as_secs());
        assert_eq!((seconds("90s"), seconds("1h30m"), seconds("2d")), (Some(90), Some(5_400), Some(172_800)));
        for wrong in ["", "5", "m", "5x", "1h5"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
