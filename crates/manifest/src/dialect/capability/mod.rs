//! capability: permissions, limits, trust, and catalogs in two layers.

mod layers;
mod rules;
mod shape;

pub(crate) mod lower;

pub use layers::{check_layers, merge};
pub(crate) use rules::{check_catalog_rules, check_rules};
pub use shape::{catalog_shape, shape};
