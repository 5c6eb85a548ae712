//! The shape of the head of a `SKILL.md`.

use std::sync::LazyLock;

use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{Pattern, Shape, filled_text, may, must, open, text_like, text_within};

static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![
        must("name", "What the skill and its folder are called.", text_like(&NAME)).is(Concept::Id),
        must("description", "What it does and when to use it.", text_within(1, 1024))
            .is(Concept::Description),
        may("license", "Its licence, or the file that holds it.", filled_text())
            .is(Concept::License),
        may("compatibility", "What it needs around it, in words.", text_within(1, 500)),
        may(
            "metadata",
            "More about it; `version` and `author` are understood.",
            Shape::Map(Box::new(Shape::Anything)),
        ),
        may(
            "allowed-tools",
            "Tools that its author would like to be allowed; it grants nothing.",
            Shape::Anything,
        ),
    ])
});

/// The name of a skill.
pub static NAME: Pattern = Pattern {
    text: "^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$",
    matches: |s| {
        let is_plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        s.len() <= 64 && s.split('-').all(is_plain)
    },
    noun: "skill name",
    words: "at most 64 small letters, digits and single hyphens between them",
    code: Code::BadPattern,
};

/// The shape of the head.
pub fn shape() -> &'static Shape {
    &SHAPE
}
