//! What in a policy may not be meant, as far as this machine knows: folders that are not there, packages that nobody
//! has, actions that they do not have.

use std::path::PathBuf;

use policy::Policy;
use policy::policy::Doubt;

use crate::declared::Declared;
use crate::exit::Failure;
use crate::home::Home;
use crate::installed;
use crate::owner;
use crate::printer::{Printer, line};
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

/// A folder of a policy, in which `~` is the owner's own.
pub(crate) fn expanded(folder: &str) -> PathBuf {
    match (folder.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => folder.into(),
    }
}
