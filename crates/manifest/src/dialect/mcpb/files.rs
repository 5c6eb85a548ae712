//! The files of the bundle that a manifest names.

use crate::json::{Node, Path, Pointer};

/// A file a manifest names.
#[derive(Debug)]
pub(crate) struct Named<'n, 't> {
    /// What it is for.
    pub(crate) role: Role,
    /// Where it is named.
    pub(crate) pointer: Pointer,
    /// The value that names it.
    pub(crate) node: &'n Node<'t>,
    /// The path.
    pub(crate) path: &'n str,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The server's program.
    EntryPoint,
    /// The icon.
    Icon,
    /// Another picture.
    Picture,
}

/// Every file a manifest names, as far as it names them by a text that is not empty.
pub(crate) fn files<'n, 't>(document: &'n Node<'t>) -> Vec<Named<'n, 't>> {
    let root = Path::ROOT;
    let mut files = Vec::new();
    let mut add = |role, path: Path<'_>, node: Option<&'n Node<'t>>| {
        let Some(node) = node else { return };
        if let Some(text) = node.as_text().filter(|text| !text.is_empty()) {
            files.push(Named { role, pointer: path.pointer(), node, path: text });
        }
    };
    add(Role::Icon, root.key("icon"), document.get("icon"));
    for (index, icon) in document.list_at("icons").iter().enumerate() {
        add(Role::Picture, root.key("icons").index(index).key("src"), icon.get("src"));
    }
    for (index, picture) in document.list_at("screenshots").iter().enumerate() {
        add(Role::Picture, root.key("screenshots").index(index), Some(picture));
    }
    add(
        Role::EntryPoint,
        root.key("server").key("entry_point"),
        document.at(&["server", "entry_point"]),
    );
    files
}

impl Named<'_, '_> {
    /// Whether it is the address of something outside the bundle.
    pub(crate) fn is_address(&self) -> bool {
        self.role != Role::EntryPoint
            && (self.path.starts_with("https://") || self.path.starts_with("http://"))
    }

    /// The path without the `./` that may stand before it.
    pub(crate) fn plain(&self) -> &str {
        self.path.strip_prefix("./").unwrap_or(self.path)
    }
}
