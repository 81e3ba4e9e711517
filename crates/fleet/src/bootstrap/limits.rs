//! How many wrong requests an address may make at the bootstrap endpoint, how many in the name of one claim, and how many genuine ones a guest.
//!
//! Many machines may share one address, and a replica passes on requests of all of them. So only what is wrong counts, and who guesses there
//! keeps no other machine out.

use bootstrap::Claim;
use change::Moment;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// What is wrong of an address.
const REQUESTS: Rate = Rate { burst: 300, every: Duration::from_millis(20) };
/// Refused requests of an address in the name of one claim. A token has 256 bits: this is for whoever reads the log.
const REFUSALS: Rate = Rate { burst: 10, every: Duration::from_secs(10) };
/// Genuine requests of one guest: a few at its start and its end, otherwise one in half a minute. A job may be as powerful as its guest.
const REPORTS: Rate = Rate { burst: 30, every: Duration::from_secs(1) };
/// The most addresses, the most claims, and the most pairs of an address and a claim, that are remembered.
const MOST: usize = 4096;

/// How many at once, and how long until there is one more.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    every: Duration,
}

/// Who asks how much.
#[derive(Debug, Default)]
pub struct Limits {
    requests: Counts<IpAddr>,
    refusals: Counts<(IpAddr, String)>,
    genuine: Counts<String>,
}

impl Limits {
    /// A wrong request of an address; if there were too many, how long to wait.
    pub fn request(&mut self, address: IpAddr, now: Moment) -> Result<(), Duration> {
        let key = network(address);
        self.requests.check(&key, REQUESTS, now)?;
        self.requests.count(key, REQUESTS, now);
        Ok(())
    }

    /// Whether an address may still ask in the name of a claim; otherwise how long to wait.
    pub fn may_ask(&self, address: IpAddr, claim: &Claim, now: Moment) -> Result<(), Duration> {
        self.refusals.check(&(network(address), claim.uid.clone()), REFUSALS, now)
    }

    /// Whether the guest of a claim may make another request; otherwise how long to wait.
    pub fn may_report(&self, claim: &Claim, now: Moment) -> Result<(), Duration> {
        self.genuine.check(&claim.uid, REPORTS, now)
    }

    /// A request of the guest of a claim was genuine. Only these count: nobody else keeps it out.
    pub fn reported(&mut self, claim: &Claim, now: Moment) {
        self.genuine.count(claim.uid.clone(), REPORTS, now);
    }

    /// A request in the name of a claim was wrong.
    pub fn refused(&mut self, address: IpAddr, claim: &Claim, now: Moment) {
        self.refusals.count((network(address), claim.uid.clone()), REFUSALS, now);
    }
}

/// What counts as one address: of IPv6, a whole network belongs to one machine.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address => address,
    }
}

/// For each key, the moment until which its requests are paid for: a bucket that leaks one request each time.
#[derive(Debug)]
struct Counts<K>(BTreeMap<K, Moment>);

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Counts<K> {
    fn check(&self, key: &K, rate: Rate, now: Moment) -> Result<(), Duration> {
        let used = self.0.get(key).map_or(Duration::ZERO, |until| until.elapsed().saturating_sub(now.elapsed()));
        let after = used.saturating_add(rate.every);
        match after.checked_sub(rate.every.saturating_mul(rate.burst)) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => Ok(()),
        }
    }

    fn count(&mut self, key: K, rate: Rate, now: Moment) {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.retain(|_, until| *until > now);
            // Who has used least is forgotten with the least harm.
            if self.0.len() >= MOST
                && let Some(least) = self.0.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone())
            {
                self.0.remove(&least);
            }
        }
        let until = self.0.entry(key).or_insert(now);
        *until = (*until).max(now).after(rate.every);
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, MOST, network};
    use bootstrap::Claim;
    use change::Moment;
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    fn at(millis: u64) -> Moment {
        Moment::since_start(Duration::from_millis(millis))
    }

    fn claim(uid: &str) -> Claim {
        Claim { namespace: "ci".into(), name: "a".into(), uid: uid.into() }
    }

    #[test]
    fn who_guesses_for_one_claim_has_to_wait_and_keeps_no_other_machine_of_the_address_out() {
        let (mut limits, address) = (Limits::default(), IpAddr::from(Ipv4Addr::new(10, 0, 0, 1)));
        for _ in 0..10 {
            assert_eq!(limits.may_ask(address, &claim("a"), at(0)), Ok(()));
            limits.refused(address, &claim("a"), at(0));
        }
        assert_eq!(limits.may_ask(address, &claim("a"), at(0)), Err(Duration::from_secs(10)));
        assert_eq!(limits.may_ask(address, &claim("b"), at(0)), Ok(()));
        assert_eq!(limits.may_ask(Ipv4Addr::new(10, 0, 0, 2).into(), &claim("a"), at(0)), Ok(()));
        assert_eq!(limits.may_ask(address, &claim("a"), at(10_000)), Ok(()));
        limits.refused(address, &claim("a"), at(10_000));
        assert!(limits.may_ask(address, &claim("a"), at(10_000)).is_err());
    }

    #[test]
    fn a_guest_that_reports_without_end_has_to_wait_and_no_other_one() {
        let mut limits = Limits::default();
        let taken = |limits: &mut Limits, uid: &str, now| {
            let may = |limits: &mut Limits| {
                let may = limits.may_report(&claim(uid), now).is_ok();
                may.then(|| limits.reported(&claim(uid), now)).is_some()
            };
            (0..1_000).filter(|_| may(limits)).count()
        };
        assert_eq!(taken(&mut limits, "a", at(0)), 30);
        assert_eq!(taken(&mut limits, "b", at(0)), 30);
        assert_eq!(taken(&mut limits, "a", at(10_000)), 10);
        assert_eq!(limits.may_report(&claim("a"), at(10_000)), Err(Duration::from_secs(1)));
    }

    #[test]
    fn an_address_has_a_burst_of_wrong_requests_and_then_fifty_a_second() {
        let (mut limits, address) = (Limits::default(), IpAddr::from(Ipv4Addr::LOCALHOST));
        let taken = |limits: &mut Limits, now| (0..1_000).filter(|_| limits.request(address, now).is_ok()).count();
        assert_eq!(taken(&mut limits, at(0)), 300);
        assert_eq!(taken(&mut limits, at(1_000)), 50);
        assert_eq!(taken(&mut limits, at(60_000)), 300);
    }

    #[test]
    fn many_addresses_need_no_endless_memory_and_hide_nobody_who_has_used_much() {
        let mut limits = Limits::default();
        let busy = IpAddr::from(Ipv4Addr::LOCALHOST);
        while limits.request(busy, at(0)).is_ok() {}
        for number in 0..3 * u32::try_from(MOST).unwrap() {
            limits.request(Ipv4Addr::from(0x0B00_0000 + number).into(), at(0)).unwrap();
        }
        assert!(limits.requests.0.len() <= MOST && limits.request(busy, at(0)).is_err());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address_and_ipv4_is_the_same_in_both_forms() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
