//! From a valid `SKILL.md` to the model. What can be called are its scripts, which only its folder knows.

use crate::dialect::Dialect;
use crate::dialect::lowering::{blank, text};
use crate::json::Node;
use crate::model::{Kind, Package, Person};

/// Lowers a head that has passed its checks.
pub(crate) fn lower(head: &Node<'_>, source: &str) -> Package {
    let name = text(head, "name").unwrap_or_default();
    let mut package = blank(Dialect::Skill, name, source);
    package.kind = Kind::SkillPack;
    package.description = text(head, "description").map(|words| words.trim().to_owned());
    package.license = text(head, "license");
    if let Some(more) = head.get("metadata") {
        // One that is no exact version says less than the digest of the bytes.
        package.version =
            text(more, "version").filter(|version| semver::Version::parse(version).is_ok());
        let name = text(more, "author");
        package.author = name.map(|name| Person { name: Some(name), ..Person::default() });
    }
    package
}
