//! What the owner gives to a tool, in plain words.

use manifest::model::{Input, InputKind, InputSource, Package};
pub(super) use manifest::words::{Fact, Weight, asks, duration, effect, facts};

use super::inert::short;

/// Something the owner gives to a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) about: String,
    pub(super) is_required: bool,
    pub(super) obtain: Option<String>,
}

/// What the owner gives to a tool: secrets and settings.
pub(super) fn needs(package: &Package) -> Vec<Need> {
    let need = |input: &Input| Need {
        name: input.name.clone(),
        kind: match (input.secret, input.kind) {
            (true, _) => "secret",
            (false, InputKind::Text) => "text",
            (false, InputKind::Number { .. }) => "number",
            (false, InputKind::Flag) => "yes or no",
            (false, InputKind::Folder) => "folder",
            (false, InputKind::File) => "file",
        },
        about: match (&input.prompt, input.source, &input.default) {
            (Some(prompt), _, _) => short(prompt, 600),
            (None, InputSource::Caller, _) => "from the caller's environment".to_owned(),
            (None, InputSource::Owner, Some(default)) if !input.secret => {
                format!("default {default}")
            }
            (None, InputSource::Owner, _) => String::new(),
        },
        is_required: input.required,
        obtain: input.obtain_url.as_deref().and_then(super::link::outside).map(str::to_owned),
    };
    package.inputs.iter().map(need).collect()
}
