//! Agent skills: a folder with a `SKILL.md`, which is a head in YAML and instructions in Markdown. It is read, never
//! written here.
//!
//! The instructions are a stranger's words to an agent: they are kept as they are and decide nothing. `allowed-tools` is
//! what the author would like to be allowed, and grants nothing either.

mod block;
mod head;
mod scalar;
mod shape;

pub(crate) mod lower;

pub(crate) use head::parse;
pub use shape::{NAME, shape};

use crate::finding::{Code, Finding};
use crate::json::{Node, Pointer};
use crate::shape::clip;

/// What the file is called.
pub const FILE_NAME: &str = "SKILL.md";

/// The line around the head.
const FENCE: &str = "---";

/// Whether a text begins as a `SKILL.md` does.
pub fn is_skill(text: &str) -> bool {
    text.split('\n').next().is_some_and(|first| first.trim_end() == FENCE)
}

/// A skill is called as the folder that it is in; what is wrong where it is not.
pub(crate) fn check_folder(head: &Node<'_>, folder: &str) -> Option<Finding> {
    let name = head.get("name")?;
    let text = name.as_text().filter(|text| *text != folder)?;
    let message =
        format!("the skill is called `{}`, and its folder `{}`", clip(text), clip(folder));
    let finding = Finding::new(Code::FolderName, Pointer::root().key("name"), name.span, message);
    Some(finding.help("give both the same name: agents look for a skill by its folder"))
}
