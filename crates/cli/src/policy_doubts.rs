//! What in a policy may not be meant, as far as this machine knows: folders that are not there, packages that nobody
//! has, actions that they do not have, and what agents would be shown if it were installed.

use std::path::PathBuf;

use host::surface::Surface;
use install::project::View;
use policy::Policy;
use policy::policy::{Doubt, Which};

use crate::declared::{Declared, missing};
use crate::exit::Failure;
use crate::home::Home;
use crate::installed;
use crate::owner;
use crate::printer::{Printer, line};
use crate::project;
use crate::seen::Seen;

/// All that there is to doubt. Whoever only looks makes no ledger.
pub(crate) fn doubts(policy: &Policy, home: &Home) -> Result<Vec<Doubt>, Failure> {
    let mut found = policy.doubts();
    let folders = &policy.folders;
    for (name, all) in [("read", &folders.read), ("write", &folders.write), ("deny", &folders.deny)]
    {
        let gone = all.iter().filter(|folder| !expanded(folder).exists());
        let key = format!("folders.{name}");
        found.extend(gone.map(|one| Doubt::new(&*key, format!("`{}` is not there", line(one)))));
    }
    found.extend(of_shown(policy, home)?);
    if policy.packages.is_empty() {
        return Ok(found);
    }
    let runtime = owner::runtime()?;
    let records = owner::records_there(home, &runtime)?;
    let seen = match &records {
        Some(records) => Seen::of(&records.state, home, &runtime)?,
        None => Seen::default(),
    };
    for (id, rules) in &policy.packages {
        found.extend(seen.doubt(id).map(|doubt| Doubt::of_package(id, doubt)));
        if let Some(named) = &rules.implementation
            && let Ok(there) = installed::unlinked(id, home, Printer::silent())
            && let Some(tool) = there.tools.first()
            && tool.package.implementations.iter().all(|one| one.id != *named)
        {
            let message =
                format!("it has no implementation `{}`, so it cannot be called", line(named));
            found.push(Doubt::of_package(id, message));
        }
        let Some(records) = records.as_ref().filter(|_| !rules.actions.is_empty()) else {
            continue;
        };
        // A rule without a dialect may be about several packages, and one that has the action is enough.
        let meant = seen.meant(id).map(|one| Declared::of(one, &records.state, &runtime));
        let meant: Vec<_> = meant.collect();
        for action in rules.actions.keys() {
            let doubts: Option<Vec<_>> = meant.iter().map(|one| one.doubt_action(action)).collect();
            let first = doubts.and_then(|doubts| doubts.into_iter().next());
            found.extend(first.map(|doubt| Doubt::of_action(id, action, doubt)));
        }
    }
    Ok(found)
}

/// What agents are shown by it that is not installed.
fn of_shown(policy: &Policy, home: &Home) -> Result<Vec<Doubt>, Failure> {
    let mut all = vec![("agents.pinned".to_owned(), &policy.agents.pinned)];
    for (name, profile) in &policy.profiles {
        all.push((format!("profile.{name}.tools"), &profile.tools));
        all.push((format!("profile.{name}.pinned"), &profile.pinned));
    }
    all.retain(|(_, which)| !which.is_empty());
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let view = project::view(home, Printer::silent())?;
    let doubts = all.into_iter().flat_map(|(key, which)| {
        let absent = absent(which, &view, home).into_iter();
        absent.map(move |message| Doubt::new(&*key, message))
    });
    Ok(doubts.collect())
}

/// What to say of each that is meant by name and is not there: the package, or the action of it.
pub(crate) fn absent<'a>(
    which: impl IntoIterator<Item = &'a Which>,
    view: &View,
    home: &Home,
) -> Vec<String> {
    let there = view.listed();
    let of_one = |one: &Which| {
        let meant: Vec<_> = there.iter().filter(|two| one.is_of(&two.id)).collect();
        if meant.is_empty() {
            return Some(format!("nothing that is installed is `{}`", line(&one.to_string())));
        }
        let action = one.action()?;
        let mut known = Vec::new();
        for package in &meant {
            // Of what cannot be read it is not known what it has, nor of a server that nobody asked.
            let found = installed::unlinked(&package.id, home, Printer::silent()).ok()?;
            let before = known.len();
            for tool in found.tools {
                let approved = tool.surface.iter().flat_map(Surface::tools);
                let approved = approved.filter_map(|one| one["name"].as_str());
                known.extend(approved.map(str::to_owned));
                known.extend(tool.package.actions.into_iter().map(|action| action.name));
            }
            if known.len() == before {
                return None;
            }
        }
        let near = missing(action, known.iter().map(String::as_str))?;
        let ids: Vec<_> = meant.iter().map(|package| line(&package.id)).collect();
        Some(format!("there is no action `{}` in {}{near}", line(action), ids.join(", ")))
    };
    which.into_iter().filter_map(of_one).collect()
}

/// A folder of a policy, in which `~` is the owner's own.
pub(crate) fn expanded(folder: &str) -> PathBuf {
    match (folder.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => folder.into(),
    }
}
