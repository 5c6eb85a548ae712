//! A container image on disk: bytes, checked, become a folder.
//!
//! [`Store::find`] looks for the image that a digest pins, in OCI layouts (folders, or tars of them) and in archives of
//! `docker save`; [`Store::unpack`] checks every byte of it and puts its files into a folder, whole or not at all.
//! Nothing here runs anything, and nothing is fetched. Each module uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | how much an image may hold |
//! | [`refusal`] | why one is refused |
//! | [`digest`], [`mod@reference`] | what stands for bytes; an image as manifests name it |
//! | `documents` | the JSON of an image: index, manifest, settings |
//! | [`parts`] | what an image is made of, for whoever brings it here |
//! | `tar` | the entries of a tar, one after the other |
//! | [`source`] | where the bytes of an image are |
//! | `tree` | files beneath one folder, where links lead nowhere else |
//! | [`layer`] | one layer, put on those below it |
//! | `turn` | whose turn it is to work on an image |
//! | [`store`] | images found, unpacked and kept |

pub mod digest;
mod documents;
pub mod layer;
pub mod limits;
pub mod parts;
pub mod reference;
pub mod refusal;
pub mod source;
pub mod store;
mod tar;
mod tree;
mod turn;

pub use digest::Digest;
pub use documents::Settings;
pub use limits::Limits;
pub use parts::{Part, Parts};
pub use reference::Reference;
pub use refusal::{Code, ImageError, Refusal};
pub use source::{MOST_INDEXES, Source};
pub use store::{Found, Image, Keeping, Store};
