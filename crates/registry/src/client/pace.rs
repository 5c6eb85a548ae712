//! When something is tried again.

use std::time::{Duration, SystemTime};

/// How often something is tried, and how long is waited between.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often it is tried.
    pub tries: u32,
    /// How long is waited after the first failure; twice as long after each more.
    pub first: Duration,
    /// How long is waited at most.
    pub most: Duration,
    /// How long is waited at most where a registry asks for it.
    pub asked: Duration,
}

impl Pace {
    /// The usual pace.
    pub const DEFAULT: Self = Self {
        tries: 4,
        first: Duration::from_millis(200),
        most: Duration::from_secs(5),
        asked: Duration::from_secs(30),
    };

    /// How long to wait after so many failures, half of it by chance, so that many who failed together do not come
    /// back together. `None`: it was tried often enough, or the registry wants more patience than there is.
    pub fn wait(&self, failures: u32, asked: Option<Duration>, chance: u32) -> Option<Duration> {
        if failures >= self.tries {
            return None;
        }
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.first.saturating_mul(doubled).min(self.most);
        let half = longest / 2;
        let wait = half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX));
        match asked {
            Some(asked) if asked > self.asked => None,
            Some(asked) => Some(asked.max(wait)),
            None => Some(wait),
        }
    }
}

/// A number by chance; where the system has none, the middle.
pub(super) fn chance() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

/// Reads `Retry-After`: seconds, or a moment.
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    Some(moment.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_longer_and_none_is_too_long() {
        let pace = Pace { tries: 20, ..Pace::DEFAULT };
        let wait = |failures, chance| pace.wait(failures, None, chance).unwrap();
        for failures in 1..20 {
            let (least, most) = (wait(failures, 0), wait(failures, u32::MAX));
            assert!(least < most && most <= pace.most, "{failures}: {least:?} {most:?}");
            assert!(wait(failures + 1 - u32::from(failures == 19), 0) >= least);
        }
        assert_eq!(wait(1, u32::MAX), Duration::from_millis(200));
        assert_eq!(wait(19, u32::MAX), pace.most);
        assert_eq!(Pace::DEFAULT.wait(4, None, 0), None);
    }

    #[test]
    fn a_registry_is_given_the_time_it_asks_for_and_no_more() {
        let seconds = |text| retry_after(text, SystemTime::UNIX_EPOCH);
        assert_eq!(seconds("7"), Some(Duration::from_secs(7)));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:09 GMT"), Some(Duration::from_secs(9)));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("-1"), None);
        let wait = |asked| Pace::DEFAULT.wait(1, seconds(asked), 0);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("31"), None);
        assert_eq!(wait("99999999999999999999"), None);
        assert_eq!(wait("0"), Some(Duration::from_millis(100)));
    }
}
