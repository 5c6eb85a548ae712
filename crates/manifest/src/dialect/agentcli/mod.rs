//! agentcli: tools.json, the exact contract of a local process.

mod go;
mod rules;

pub(crate) mod lower;

pub(crate) use rules::check_rules;
pub use rules::{DANGEROUS, normalised_program};

use std::sync::LazyLock;

use crate::concept::Concept;
use crate::shape::{Bounds, Shape, filled_text, list, list_within, may, must, open, text};

static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![may("tools", "The tools; absent or null means none.", list(tool()).or_null())])
});

/// The shape of a tools.json.
pub fn shape() -> &'static Shape {
    &SHAPE
}

fn tool() -> Shape {
    let number = Shape::Integer(Bounds::default());
    open(vec![
        must("name", "What the tool is called by; unique in the file.", filled_text().ruled()).is(Concept::Id).ruled(),
        may("description", "What it does, for the model.", text().or_null()).is(Concept::Description),
        may("schema", "JSON Schema of its input.", Shape::Schema.or_null()).is(Concept::Input),
        must("command", "Arguments, the program first: an absolute path, or one in `./tools/bin/` beside this file.", list_within(1, None, text()).ruled()).is(Concept::Run).ruled(),
        may("timeoutSec", "Time limit in seconds; 30 when absent, zero or less.", number.or_null()).is(Concept::Timeout),
        may("envPassthrough", "Names of variables handed on from the caller.", list(text()).or_null()).is(Concept::EnvPassthrough),
    ])
}
