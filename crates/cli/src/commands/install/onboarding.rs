//! What is left for the owner to do before a package can be called.

use std::path::Path;

use host::secrets::place;
use install::Contents;
use manifest::model::{Auth, AuthKind, InputKind, Package};

use super::inputs::Values;
use crate::ask::Ask;
use crate::exit::Failure;
use crate::home::Home;
use crate::printer::line;
use crate::{installed, login_words, owner, shell};

/// What is left to be done, in words.
pub(super) fn next(
    package: &Package,
    values: &Values,
    home: &Home,
    ask: Ask,
) -> Result<Vec<String>, Failure> {
    let mut next = folders(package, values);
    next.extend(login_words::next(package, home));
    next.extend(credential(package, home, ask)?);
    if package.chain.is_some() {
        next.extend(steps(package, &installed::home(home).read()?));
    }
    Ok(next)
}

/// What its calls sign in with, where none of it is kept.
fn credential(package: &Package, home: &Home, ask: Ask) -> Result<Option<String>, Failure> {
    let needs = |auth: &&Auth| auth.kind != AuthKind::None && !auth.env.is_empty();
    let Some(auth) = package.auth.as_ref().filter(needs) else { return Ok(None) };
    let vault = owner::vault(home, ask)?;
    let given = login_words::given_secret(package, &vault, home);
    if given.is_some_and(|name| auth.env.contains(&name)) {
        return Ok(None);
    }
    for name in &auth.env {
        let place = place(package, name).map_err(|error| Failure::invalid(error.to_string()))?;
        if vault.get(&place).map_err(|error| owner::vault_failure(&error))?.is_some() {
            return Ok(None);
        }
    }
    let (id, names) = (shell::word(&package.canonical_id()), line(&auth.env.join(" or ")));
    let name = shell::word(&auth.env[0]);
    let words = format!("Its calls want {names}: `haft secret set {id} {name}` keeps it");
    Ok(Some(words))
}

/// The folders and files that it was told of and does not see.
fn folders(package: &Package, values: &Values) -> Vec<String> {
    let is_path = |name: &str| {
        let input = package.inputs.iter().find(|input| input.name == name);
        input.is_some_and(|input| {
            matches!(input.kind, InputKind::Folder | InputKind::File) && !input.secret
        })
    };
    let given = values.iter().filter(|(name, _)| is_path(name)).flat_map(|(_, value)| {
        serde_json::from_str::<Vec<String>>(value.expose())
            .unwrap_or_else(|_| vec![value.expose().to_owned()])
    });
    let open: Vec<_> = package.permissions.read.iter().chain(&package.permissions.write).collect();
    let unseen = given.filter(|path| !open.iter().any(|seen| Path::new(path).starts_with(seen)));
    let id = shell::word(&package.canonical_id());
    unseen
        .map(|path| {
            let (shown, path) = (line(&path), shell::word(&path));
            format!("It does not see {shown} yet: `haft grant {id} --read {path}` lets it")
        })
        .collect()
}

/// The tools of its steps that are not here.
fn steps(package: &Package, contents: &Contents) -> Vec<String> {
    let steps = package.chain.iter().flat_map(|chain| &chain.steps);
    let missing = steps.filter(|step| contents.called(&step.tool).is_empty());
    let words = |tool: &str| format!("It calls `{}`, which is not installed", line(tool));
    missing.map(|step| words(&step.tool)).collect()
}
