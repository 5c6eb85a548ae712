//! All that the operator may set.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use package::limits::Limits;

use crate::identity::keys::Asking;
use crate::settings::{Counting, Quarantine, Reading};
use trace::Traces;

/// Where it is written what became of each request.
pub type Log = Arc<dyn Fn(&crate::web::Told) + Send + Sync>;

/// What the operator may set.
#[derive(Clone)]
pub struct Settings {
    /// The most bytes of a body.
    pub upload_bytes: usize,
    /// How many uploads are looked at side by side; the others wait.
    pub uploads: usize,
    /// How long a body may take to arrive.
    pub patience: Duration,
    /// What a package may hold.
    pub limits: Limits,
    /// The most bytes of all files together of which a bundle is made.
    pub bundle_bytes: u64,
    /// Who may read.
    pub reading: Reading,
    /// Whose versions wait for a reviewer.
    pub quarantine: Quarantine,
    /// How often somebody may ask.
    pub rates: crate::settings::Limits,
    /// Who says truly for whom it asks.
    pub proxies: Vec<ipnet::IpNet>,
    /// How the issuers of identities are asked for their keys.
    pub asking: Asking,
    /// The address that others know the registry by; none when it is the one they ask.
    pub public_url: Option<String>,
    /// Where it is written what became of each request.
    pub log: Option<Log>,
    /// Where it is told what the time of each request goes into.
    pub traces: Option<Traces>,
    /// Where it is told what is counted.
    pub counting: Counting,
    /// The file that the index is kept in between two starts; it is made anew where there is none.
    pub index: Option<PathBuf>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settings")
            .field("upload_bytes", &self.upload_bytes)
            .field("uploads", &self.uploads)
            .field("patience", &self.patience)
            .field("limits", &self.limits)
            .field("bundle_bytes", &self.bundle_bytes)
            .field("reading", &self.reading)
            .field("quarantine", &self.quarantine)
            .field("rates", &self.rates)
            .field("proxies", &self.proxies)
            .field("asking", &self.asking)
            .field("traces", &self.traces)
            .field("counting", &self.counting)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            upload_bytes: 64 << 20,
            uploads: 4,
            patience: Duration::from_mins(5),
            limits: Limits::DEFAULT,
            // Written as text it still is one that clients take.
            bundle_bytes: 64 << 20,
            reading: Reading::default(),
            quarantine: Quarantine::default(),
            rates: crate::settings::Limits::default(),
            proxies: Vec::new(),
            asking: Asking::default(),
            log: None,
            traces: None,
            public_url: None,
            counting: Counting::default(),
            index: None,
        }
    }
}
