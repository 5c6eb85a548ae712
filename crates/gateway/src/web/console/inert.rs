//! Text from outside, made to be nothing but text: every template escapes by [`Inert`], so no page has to think of it.

use std::fmt::{self, Write};

use askama::filters::Escaper;
use manifest::inert;

/// Escapes for HTML, in texts and in attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inert;

impl Escaper for Inert {
    fn write_escaped_str<W: Write>(&self, mut out: W, text: &str) -> fmt::Result {
        inert::write(&mut out, text)
    }
}
