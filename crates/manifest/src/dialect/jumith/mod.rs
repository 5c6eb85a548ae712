//! jumith: describe documents and bundles of Node tools, as the registry API carries them.

mod rules;
mod shape;

pub(crate) mod lower;

pub use rules::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES, MAX_FILES};
pub(crate) use rules::{check_bundle_rules, check_rules};
pub use shape::{bundle_shape, shape};
