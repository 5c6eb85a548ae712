//! Spans of different lengths, put into columns of one.

use std::time::Duration;

use ledger::Time;
use ledger::state::metrics::Span;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Columns of one length, the oldest first, the last one that of now.
#[derive(Clone, Debug)]
pub struct Columns {
    /// How long each is.
    pub lasts: Duration,
    /// They themselves.
    pub columns: Vec<Span>,
}

impl Columns {
    /// What the lengths are called.
    pub fn unit(&self) -> &'static str {
        if self.lasts == HOUR { "hour" } else { "day" }
    }

    /// The last day by hours where something happened in it, else the last thirty days.
    pub fn lately(spans: &[Span], now: Time) -> Self {
        let day = Self::of(spans, now, HOUR, 24);
        if day.columns.iter().any(|one| one.calls > 0) {
            day
        } else {
            Self::of(spans, now, DAY, 30)
        }
    }

    /// All that is told apart: by hours as long as it began in the last three days, else by days.
    pub fn whole(spans: &[Span], now: Time) -> Self {
        let first = spans.iter().find(|span| !span.lasts.is_zero()).map_or(now, |span| span.begins);
        let age = now.unix_millis().saturating_sub(first.unix_millis()).unsigned_abs();
        let count = |lasts: Duration| {
            let columns = u128::from(age).div_ceil(lasts.as_millis()) + 1;
            usize::try_from(columns).unwrap_or(usize::MAX)
        };
        match count(HOUR) {
            hours @ ..=72 => Self::of(spans, now, HOUR, hours.max(12)),
            _ => Self::of(spans, now, DAY, count(DAY).clamp(12, 400)),
        }
    }

    fn of(spans: &[Span], now: Time, lasts: Duration, count: usize) -> Self {
        let long = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        let last = now.unix_millis() / long;
        let first = last - i64::try_from(count).unwrap_or(0) + 1;
        let begins = |at: i64| Time::from_unix_millis(at * long);
        let mut columns: Vec<Span> = (first..=last)
            .map(|at| Span { begins: begins(at), lasts, ..Span::default() })
            .collect();
        for span in spans.iter().filter(|span| !span.lasts.is_zero() && span.lasts <= lasts) {
            let at = usize::try_from(span.begins.unix_millis() / long - first);
            if let Some(column) = at.ok().and_then(|at| columns.get_mut(at)) {
                column.calls += span.calls;
                column.failed += span.failed;
                column.latencies.join(&span.latencies);
            }
        }
        Self { lasts, columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Time {
        Time::from_unix_millis(1_793_923_200_000).plus(HOUR * u32::try_from(hours).unwrap())
    }

    fn span(hours: u64, lasts: Duration, calls: u64) -> Span {
        Span { begins: at(hours), lasts, calls, ..Span::default() }
    }

    #[test]
    fn hours_are_put_where_they_were_and_add_up_to_days() {
        let spans =
            [span(0, Duration::ZERO, 99), span(0, HOUR, 1), span(5, HOUR, 2), span(23, HOUR, 4)];
        let lately = Columns::lately(&spans, at(23));
        assert_eq!((lately.unit(), lately.columns.len()), ("hour", 24));
        assert_eq!(lately.columns.iter().map(|one| one.calls).sum::<u64>(), 7);
        assert_eq!((lately.columns[23].calls, lately.columns[5].calls), (4, 2));
        let later = Columns::lately(&spans, at(24 * 9));
        assert_eq!((later.unit(), later.columns.len()), ("day", 30));
        assert_eq!(later.columns[30 - 1 - 9].calls, 7);
        assert_eq!(Columns::whole(&spans, at(40)).unit(), "hour");
        assert_eq!(Columns::whole(&spans, at(24 * 20)).columns.len(), 21);
        assert_eq!(Columns::whole(&[], at(0)).columns.len(), 12);
    }
}
