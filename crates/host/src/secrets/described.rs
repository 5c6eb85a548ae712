//! What a manifest says of the values that its owner has to give.

use manifest::model::Package;
use policy::{GrantKind, Grants};
use serde_json::Value;

use crate::clip;

/// How much is told of what the manifest says; a stranger wrote it.
pub(super) const MOST_TOLD: usize = 400;

/// What a manifest says of a value, cut to what somebody may want to read. Each face escapes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// What is asked for.
    pub prompt: Option<String>,
    /// Where it is to be had.
    pub obtain_url: Option<String>,
}

impl Described {
    /// What the manifest of a package says of the input of this name.
    pub fn of(package: &Package, name: &str) -> Self {
        let input = package.inputs.iter().find(|input| input.name == name);
        let of_auth = package.auth.as_ref().filter(|auth| auth.env.iter().any(|one| one == name));
        let obtain_url = input.and_then(|input| input.obtain_url.as_deref());
        let obtain_url = obtain_url.or_else(|| of_auth?.docs_url.as_deref());
        let cut = |text: &str| clip::start(text, MOST_TOLD);
        Self {
            prompt: input.and_then(|input| input.prompt.as_deref()).map(cut),
            obtain_url: obtain_url.map(cut),
        }
    }
}

/// Adds to what is told of missing values what their manifest says of them. One whose variable was granted is read
/// from there, once it is set.
pub(crate) fn describe(missing: &mut [Value], package: &Package, grants: &Grants) {
    for one in missing {
        let Some(name) = one["name"].as_str().map(str::to_owned) else { continue };
        let Described { prompt, obtain_url } = Described::of(package, &name);
        let is_missing = one.get("code").is_none();
        let is_granted =
            is_missing && grants.of(GrantKind::Environment).any(|granted| granted == name);
        let told = [
            ("prompt", prompt),
            ("obtain_url", obtain_url),
            ("variable", is_granted.then_some(name)),
        ];
        for (key, value) in told {
            if let Some(value) = value {
                one[key] = value.into();
            }
        }
    }
}
