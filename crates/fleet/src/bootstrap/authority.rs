//! The authorities of the bootstrap endpoint: which one signs its certificate, which ones guests trust, and when there has to be a new one.
//!
//! A machine trusts what its configuration had when it was created. So a new authority is trusted long before it signs anything.

use bootstrap::Secret;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an authority is valid.
pub const LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// So long before the end of the last one there is a new one.
const SUCCESSOR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// No machine is as old: the limits of a guest are shorter, and so is the longest life that a pool gives.
const KNOWN_BEFORE_USE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the certificate of the endpoint is valid.
pub const CERTIFICATE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// So long before its end it is replaced.
pub const CERTIFICATE_MARGIN: Duration = Duration::from_secs(10 * 24 * 60 * 60);
/// So much is dated back, for guests whose clock is late.
pub const DATED_BACK: Duration = DAY;

/// An authority with its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    /// When it was made.
    pub created: Timestamp,
    /// Its certificate as PEM.
    pub certificate: String,
    /// Its private key as PEM.
    pub key: Secret,
}

/// What to do with the authorities that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The one that signs; nothing if there is none that can.
    pub signer: Option<&'a Authority>,
    /// Those that guests trust.
    pub trusted: Vec<&'a Authority>,
    /// Whether another one has to be made.
    pub is_new_wanted: bool,
}

/// What to do with these authorities now.
pub fn choose(all: &[Authority], now: Timestamp) -> Choice<'_> {
    let mut trusted: Vec<&Authority> = all.iter().filter(|one| now < end(one, Duration::ZERO)).collect();
    trusted.sort_by_key(|one| one.created);
    // A certificate is not valid longer than what signs it.
    let can_sign = |one: &&&Authority| now < end(one, CERTIFICATE_LIFE);
    let is_known = |one: &&&Authority| change::now::later(one.created, KNOWN_BEFORE_USE) <= now;
    let known = trusted.iter().rev().filter(can_sign).find(is_known);
    let signer = known.or_else(|| trusted.iter().find(can_sign)).copied();
    let is_new_wanted = trusted.last().is_none_or(|newest| end(newest, SUCCESSOR) <= now);
    Choice { signer, trusted, is_new_wanted }
}

/// The end of an authority, less a margin.
fn end(one: &Authority, margin: Duration) -> Timestamp {
    change::now::later(one.created, LIFE.saturating_sub(margin))
}

#[cfg(test)]
mod tests {
    use super::{Authority, CERTIFICATE_LIFE, Choice, KNOWN_BEFORE_USE, choose};
    use bootstrap::Secret;
    use jiff::{SignedDuration, Timestamp};

    const HOUR: SignedDuration = SignedDuration::from_hours(1);

    fn made(created: Timestamp) -> Authority {
        let name = created.to_string();
        Authority { created, certificate: name.clone(), key: Secret::new(name) }
    }

    /// Fifty years, hour by hour: each machine that boots trusts whoever signs as long as it lives.
    #[test]
    fn a_machine_trusts_the_signer_for_as_long_as_it_lives_and_there_always_is_one() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (mut all, mut now) = (Vec::new(), start);
        // Who booted at most 30 days ago, and what it trusts; the oldest first.
        let mut machines: std::collections::VecDeque<(Timestamp, Vec<Timestamp>)> = Default::default();
        let mut signers = std::collections::BTreeSet::new();
        while now < start + HOUR * 24 * 365 * 50 {
            if choose(&all, now).is_new_wanted {
                all.push(made(now));
            }
            let Choice { signer, trusted, is_new_wanted } = choose(&all, now);
            let signer = signer.unwrap();
            assert!(!is_new_wanted && trusted.len() <= 2, "{now}");
            let signs_until = now + SignedDuration::try_from(CERTIFICATE_LIFE).unwrap();
            assert!(signs_until <= signer.created + SignedDuration::try_from(super::LIFE).unwrap(), "{now}");
            signers.insert(signer.created);
            machines.push_back((now, trusted.iter().map(|one| one.created).collect()));
            while machines
                .front()
                .is_some_and(|(booted, _)| *booted + SignedDuration::try_from(KNOWN_BEFORE_USE).unwrap() < now)
            {
                machines.pop_front();
            }
            for (booted, trusts) in [&machines[0], &machines[machines.len() - 1]] {
                assert!(trusts.contains(&signer.created), "booted {booted}, now {now}");
            }
            now += HOUR * 7;
        }
        assert!(signers.len() >= 5, "{signers:?}");
    }

    #[test]
    fn the_first_one_signs_at_once_and_one_that_has_ended_never_does() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(choose(&[], now), Choice { signer: None, trusted: Vec::new(), is_new_wanted: true });
        let fresh = [made(now)];
        assert_eq!(choose(&fresh, now).signer, fresh.first());
        // A clock that was set back.
        assert_eq!(choose(&fresh, now - HOUR * 48).signer, fresh.first());
        let old = [made(now - HOUR * 24 * 365 * 11)];
        let choice = choose(&old, now);
        assert!(choice.signer.is_none() && choice.trusted.is_empty() && choice.is_new_wanted);
    }
}
