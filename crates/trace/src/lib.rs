//! Where the time of a request goes, told to a collector.
//!
//! Whoever runs a registry may name a collector of OpenTelemetry; then each request that is sampled, and its parts worth
//! seeing, are sent there as OTLP over HTTP. Nobody waits for it: what is over goes into a queue that has an end, and
//! what finds no place there, or no collector, is lost and counted.
//!
//! | module | what it is |
//! |---|---|
//! | `context` | where a request belongs among those of others |
//! | `part` | what a request spends its time with |
//! | `otlp` | both as the collector reads them |
//! | `export` | the queue, and whoever sends what is in it |

mod context;
mod export;
mod otlp;
mod part;
pub mod reach;

use std::time::Duration;

use egress::http::{HeaderMap, Url};

pub use context::Trace;
pub use context::drawn;
pub use export::Traces;
pub use otlp::{Finished, Kind, Span};
pub use part::{Parts, Place, Running, part, within};

/// How many numbers have 32 bits.
const NUMBERS: f64 = 4_294_967_296.0;

/// Who is told.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Where spans are sent.
    pub url: Url,
    /// What is said along, which may be secret.
    pub headers: HeaderMap,
    /// How long it may take to answer.
    pub within: Duration,
    /// What the registry is called, and what else is said of it.
    pub resource: Vec<(String, String)>,
    /// Which traces are sent.
    pub sampler: Sampler,
}

/// Which traces are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The share of all traces, from 0 to 1.
    pub share: f64,
    /// Who decides of those that begin elsewhere.
    pub elsewhere: Elsewhere,
}

/// Who decides of a trace that begins elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Whoever began it.
    Followed,
    /// We, by our share.
    Counted,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { share: 1.0, elsewhere: Elsewhere::Followed }
    }
}

impl Sampler {
    /// Whether a trace is sent. By its id, so that all who have the same share send the same traces.
    fn takes(self, trace: &Trace) -> bool {
        if self.elsewhere == Elsewhere::Followed && trace.parent.is_some() {
            return trace.is_sampled;
        }
        let number = trace.id.get(16..24).and_then(|part| u32::from_str_radix(part, 16).ok());
        number.is_some_and(|number| f64::from(number) < self.share * NUMBERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_sent_and_whoever_asks_may_decide() {
        let share = |share, elsewhere| Sampler { share, elsewhere };
        let followed = |flags: &str| {
            let text = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            Trace::follow(&text).unwrap()
        };
        assert!(share(0.0, Elsewhere::Followed).takes(&followed("01")));
        assert!(!share(1.0, Elsewhere::Followed).takes(&followed("00")));
        assert!(!share(0.0, Elsewhere::Counted).takes(&followed("01")));
        assert!(share(1.0, Elsewhere::Counted).takes(&followed("00")));
        // 0xa3ce929d is 0.64 of the way.
        assert!(!share(0.63, Elsewhere::Counted).takes(&followed("01")));
        assert!(share(0.65, Elsewhere::Counted).takes(&followed("01")));
        let some = share(0.25, Elsewhere::Followed);
        let taken = (0..4_000).filter(|_| some.takes(&Trace::begin())).count();
        assert!((800..1_200).contains(&taken), "{taken}");
    }
}
