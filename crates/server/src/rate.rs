//! How often somebody has asked.
//!
//! A [`Limiter`] keeps one number for each who asks: the moment at which all that was asked so far would be
//! paid off at the allowed pace. It takes bounded memory, whoever asks.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::settings::Limits;

/// The most who are known apart; those beyond share one allowance.
const MOST: usize = 50_000;
/// How often those who owe nothing are forgotten, at most.
const SWEEP: Duration = Duration::from_secs(1);
/// What an allowance is for.
const SPAN: Duration = Duration::from_mins(1);

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// A token, by its id.
    Token(String),
    /// An address; of IPv6 the network that one customer has.
    Address(IpAddr),
    /// All those who are too many to be known apart.
    Others,
}

impl Who {
    /// Whoever asks from an address.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Who::Address(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            address @ IpAddr::V4(_) => Who::Address(address),
        }
    }
}

/// The limits of a registry.
#[derive(Debug)]
pub struct Rates {
    /// Of reads.
    pub reads: Limiter,
    /// Of changes.
    pub changes: Limiter,
    /// Of what is not good to be let in.
    pub failures: Limiter,
}

impl Rates {
    /// Limits, with nobody having asked yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            reads: Limiter::new(limits.reads),
            changes: Limiter::new(limits.changes),
            failures: Limiter::new(limits.failures),
        }
    }
}

/// One limit: so many a minute, all at once or spread.
#[derive(Debug)]
pub struct Limiter {
    /// What one costs; nothing is without limit.
    cost: Duration,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    paid_off: HashMap<Who, Instant>,
    swept: Instant,
}

impl Limiter {
    /// So many a minute; zero is without limit.
    pub fn new(per_minute: u32) -> Self {
        let cost = SPAN.checked_div(per_minute).unwrap_or(Duration::ZERO);
        let known = Known { paid_off: HashMap::new(), swept: Instant::now() };
        Self { cost, known: Mutex::new(known) }
    }

    /// Counts one, unless it is one too many: then it says how long to wait.
    pub fn take(&self, who: &Who, now: Instant) -> Result<(), Duration> {
        self.ask(who, now, self.cost)
    }

    /// Says whether one more would be one too many, and counts nothing.
    pub fn check(&self, who: &Who, now: Instant) -> Result<(), Duration> {
        self.ask(who, now, Duration::ZERO)
    }

    fn ask(&self, who: &Who, now: Instant, spent: Duration) -> Result<(), Duration> {
        if self.cost.is_zero() {
            return Ok(());
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let paid_off = known.paid_off.get(who).copied().unwrap_or(now).max(now);
        let after = paid_off + self.cost;
        if after > now + SPAN {
            return Err(after.saturating_duration_since(now + SPAN));
        }
        if spent.is_zero() {
            return Ok(());
        }
        if known.paid_off.len() >= MOST && !known.paid_off.contains_key(who) {
            if now.duration_since(known.swept) >= SWEEP {
                known.paid_off.retain(|_, paid_off| *paid_off > now);
                known.swept = now;
            }
            if known.paid_off.len() >= MOST && *who != Who::Others {
                drop(known);
                return self.ask(&Who::Others, now, spent);
            }
        }
        known.paid_off.insert(who.clone(), after);
        Ok(())
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.known.lock().unwrap().paid_off.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: usize) -> Who {
        Who::Token(number.to_string())
    }

    #[test]
    fn an_allowance_is_spent_and_comes_back() {
        let (limiter, start) = (Limiter::new(60), Instant::now());
        for _ in 0..60 {
            assert_eq!(limiter.take(&token(1), start), Ok(()));
        }
        assert_eq!(limiter.take(&token(1), start), Err(Duration::from_secs(1)));
        assert_eq!(limiter.check(&token(1), start), Err(Duration::from_secs(1)));
        assert_eq!(limiter.take(&token(2), start), Ok(()), "others have their own");
        let later = start + Duration::from_secs(2);
        assert_eq!(limiter.check(&token(1), later), Ok(()));
        assert_eq!(limiter.take(&token(1), later), Ok(()));
        assert_eq!(limiter.take(&token(1), later), Ok(()));
        assert!(limiter.take(&token(1), later).is_err());
        assert_eq!(Limiter::new(0).take(&token(1), start), Ok(()), "zero is without limit");
    }

    #[test]
    fn memory_is_bounded_and_those_beyond_share_an_allowance() {
        let (limiter, start) = (Limiter::new(2), Instant::now());
        for number in 0..MOST + 10 {
            let _whatever = limiter.take(&token(number), start);
        }
        assert!(limiter.count() <= MOST + 1);
        assert!(limiter.take(&token(MOST + 20), start).is_err(), "the others have spent theirs");
        let later = start + Duration::from_mins(3);
        assert_eq!(limiter.take(&token(MOST + 21), later), Ok(()));
        assert!(limiter.count() < 10, "those who owe nothing are forgotten");
    }

    #[test]
    fn one_customer_is_one_whatever_the_address() {
        let who = |text: &str| Who::at(text.parse().unwrap());
        assert_eq!(who("::ffff:192.0.2.1"), who("192.0.2.1"));
        assert_eq!(who("2001:db8::1"), who("2001:db8::ffff:2"));
        assert_ne!(who("2001:db8::1"), who("2001:db8:0:1::1"));
        assert_ne!(who("192.0.2.1"), who("192.0.2.2"));
    }
}
