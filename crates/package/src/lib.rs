//! The file a tool travels in.
//!
//! The modules form a ladder; each uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | [`limits`] | how much a package may hold |
//! | [`refusal`] | why an archive is refused, in codes that never change |
//! | [`digest`] | the digest of a file, and the list that stands for all of them |
//! | `record`, `names`, `source`, `mcpb`, `nested`, `content` | the parts of the reader |
//! | [`archive`] | a zip archive, opened strictly |
//! | [`write`] | an archive made of files, always with the same bytes |
//! | [`extract`] | files of an archive on the disk, beneath one fresh folder |

pub mod archive;
mod content;
pub mod digest;
pub mod extract;
pub mod limits;
mod mcpb;
mod names;
mod nested;
mod record;
pub mod refusal;
mod source;
pub mod write;

pub use content::Sink;
