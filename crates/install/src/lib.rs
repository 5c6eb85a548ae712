//! How a tool reaches this machine, and how it leaves again.
//!
//! A package that came from somewhere is read whole ([`Parcel`]), shown as a [`Card`], and once it was agreed to
//! written into the staging area ([`stage()`]). What is [`Ready`] can be tried, and is then put in its place by
//! one change of the [`Home`], which is made whole or not at all.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`report`] | who is told how far it is |
//! | `typed` | commands as they would be typed |
//! | [`error`] | what keeps a home from being read or changed |
//! | [`key`] | what a package is called on the disk |
//! | [`acquire`] | how the artefacts of a package reach this machine, inside the walls |
//! | [`download`] | files from addresses that the owner typed |
//! | [`pinned`], [`lockfile`] | what is installed, exactly |
//! | [`beside`] | what runs beside the calls of a package, so far as its owner is shown it |
//! | [`record`] | how it came here and what was agreed to |
//! | [`whole`] | whether its files are what they were |
//! | [`revoked`] | which packages were revoked, and what came of it |
//! | [`journal`] | changes that are made whole or not at all |
//! | [`catalog`] | the catalogs of a home, as others can read them |
//! | [`contents`] | what is in a home |
//! | [`home`] | a home, how it is read, and the one lock around every change |
//! | [`changing`] | the changes that are made of it |
//! | [`estimate`] | what its author estimates that a package costs |
//! | [`parcel`] | a package as it came |
//! | [`card`] | what the owner is shown |
//! | [`mod@stage`] | files that are ready to be put in their place |
//! | [`mod@bring`] | what was acquired, among them |
//! | [`installed`] | a package that lies in a home |
//! | [`project`] | what the home of a project adds, once its owner trusts it |
//! | [`mod@check`] | whether a home is what it says it is |

pub mod acquire;
pub mod beside;
pub mod bring;
pub mod card;
pub mod catalog;
pub mod changing;
pub mod check;
pub mod contents;
pub mod download;
pub mod error;
pub mod estimate;
pub mod home;
pub mod installed;
pub mod journal;
pub mod key;
pub mod lockfile;
pub mod parcel;
pub mod pinned;
pub mod project;
pub mod record;
pub mod report;
pub mod revoked;
pub mod stage;
mod typed;
pub mod whole;

pub use beside::Beside;
pub use bring::{bring, make_room};
pub use card::Card;
pub use changing::{Changing, Put, PutError, Ready};
pub use contents::{Contents, Layer, Listed};
pub use error::HomeError;
pub use home::Home;
pub use installed::Installed;
pub use lockfile::Lockfile;
pub use parcel::{Parcel, ParcelError, Piece};
pub use pinned::{Pinned, Sha256, Source};
pub use revoked::{Revocation, Revocations};
pub use stage::{StageError, Wanted, stage};
