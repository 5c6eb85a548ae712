//! The file a tool travels in.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | how much a package may hold |
//! | [`refusal`] | why an archive is refused, in codes that never change |
//! | [`digest`] | the digest of a file, and the list that stands for all of them |
//! | `record`, `names`, `source`, `mcpb`, `nested`, `content`, `beneath` | the parts of the reader and of the disk |
//! | [`archive`] | a zip archive, opened strictly |
//! | [`mod@write`] | an archive made of files, always with the same bytes |
//! | [`contents`] | the files of a package wherever they are, and which is the manifest |
//! | [`gather`], [`secrets`] | the files of a folder that belong into a package, and what must not |
//! | [`pack`] | from files to an archive |
//! | [`bundle`] | a package as one JSON text |
//! | [`extract`] | files of an archive on the disk, beneath one fresh folder |
//! | [`key`], [`signature`] | who vouches for the files, and whether they still are what was signed |

pub mod archive;
mod beneath;
pub mod bundle;
mod content;
pub mod contents;
pub mod digest;
pub mod extract;
pub mod gather;
pub mod key;
pub mod limits;
mod mcpb;
mod names;
mod nested;
pub mod pack;
mod record;
pub mod refusal;
pub mod secrets;
pub mod signature;
mod source;
pub mod write;

pub use content::Sink;
