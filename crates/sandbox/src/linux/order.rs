//! From what a process may have to what a room is told: every path is looked
//! at here, so that the room grants the very file that was meant.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::mounts;
use super::repository;
use super::wire::{Access, Bounds, Bytes, Held, Order, Placement};
use crate::check::{check_absolute, check_arguments, check_variable};
use crate::confinement::{Confinement, Network, PROXY_PORT, SCRATCH};
use crate::held::{self, HeldFolder};
use crate::network::MOST_DOORS;
use crate::outcome::SpawnError;
use crate::scratch;

/// Writes the order for one program.
pub(crate) fn write(confinement: &Confinement, argv: &[OsString]) -> Result<Order, SpawnError> {
    let program = argv.first().map(PathBuf::from).unwrap_or_default();
    check_absolute(&program)?;
    check_absolute(&confinement.folder)
        .or_else(|error| if confinement.folder == Path::new("/") { Ok(()) } else { Err(error) })?;
    let limits = &confinement.limits;
    let milliseconds = |duration: std::time::Duration| {
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2)
    };
    let placements = placements(confinement)?;
    check_arguments(argv)?;
    Ok(Order {
        arguments: argv.iter().map(Bytes::of).collect(),
        shown_as: None,
        environment: environment(confinement)?,
        folder: Bytes::of(&confinement.folder),
        root: confinement.root.as_deref().map(|path| placement(path, Access::Read)).transpose()?,
        held: held(&placements)?,
        placements,
        links: links(confinement)?,
        devices: devices(confinement)?,
        scratch: confinement.scratch,
        listen: match confinement.network {
            Network::Deny => Vec::new(),
            Network::Allow => {
                let doors = confinement.doors.iter().copied().filter(|port| *port != PROXY_PORT);
                std::iter::once(PROXY_PORT).chain(doors.take(MOST_DOORS)).collect()
            }
        },
        tells_names: false,
        is_regrouped: false,
        limits: Bounds {
            memory: limits.memory,
            grouped: false,
            cpu_time_ms: limits.cpu_time.map(milliseconds),
            processors: limits.cpu_share.map(|share| share.div_ceil(100)),
            processes: limits.processes,
            open_files: limits.open_files,
            file_size: limits.file_size,
            deadline_ms: limits.deadline.map(milliseconds),
        },
    })
}

/// The folders in which nothing must be planted.
pub(crate) fn guarded(order: &Order) -> Vec<Placement> {
    order.placements.iter().filter(|one| one.access == Access::Write).cloned().collect()
}

/// What stays as it is in the folders that may be written, beside what does for its name.
fn held(placements: &[Placement]) -> Result<Vec<Held>, SpawnError> {
    let mut all = BTreeMap::new();
    for folder in placements.iter().filter(|one| one.access == Access::Write) {
        all.extend(repository::find(folder.path.path()).map_err(SpawnError::LeadsTooFar)?);
    }
    // What is granted by its own name is meant.
    all.retain(|path, _| placements.iter().all(|one| one.path.path() != path));
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(path, _)| path.components().count());
    Ok(all.into_iter().map(|(path, shape)| Held { path: Bytes::of(path), shape }).collect())
}

/// Changes an order for a room without namespaces: the scratch folder is one of the host's, and
/// what only namespaces can do is refused.
pub(crate) fn without_namespaces(
    order: &mut Order,
    confinement: &Confinement,
) -> Result<HeldFolder, SpawnError> {
    if confinement.network == Network::Allow {
        return Err(SpawnError::Needs("a list of hosts"));
    }
    if confinement.root.is_some() {
        return Err(SpawnError::Needs("a root of its own"));
    }
    let is_hidden_below_a_grant = order.placements.iter().any(|hidden| {
        hidden.access == Access::Hide
            && order.placements.iter().any(|grant| {
                grant.access != Access::Hide && hidden.path.path().starts_with(grant.path.path())
            })
    });
    if is_hidden_below_a_grant {
        return Err(SpawnError::Needs("hiding a part of a granted folder"));
    }
    // What a host left behind that was killed goes first.
    held::sweep(&std::env::temp_dir(), scratch::PREFIX);
    let scratch = scratch::make().map_err(SpawnError::Host)?;
    let folder = scratch.path();
    order.placements.push(placement(folder, Access::Write)?);
    let inside = Bytes::of(SCRATCH);
    if order.folder == inside {
        order.folder = Bytes::of(folder);
    }
    for variable in &mut order.environment {
        for name in ["HOME", "TMPDIR"] {
            if variable.0 == format!("{name}={SCRATCH}").into_bytes() {
                let mut text = format!("{name}=").into_bytes();
                text.extend(folder.as_os_str().as_bytes());
                variable.0 = text;
            }
        }
    }
    Ok(scratch)
}

/// What every program has of its own. Granted from outside, it would be everybody's.
const OWN: [&str; 2] = ["/proc", "/dev"];

fn environment(confinement: &Confinement) -> Result<Vec<Bytes>, SpawnError> {
    let variable = |(name, value): &(OsString, OsString)| {
        check_variable(name, value)?;
        Ok(Bytes([name.as_bytes(), b"=", value.as_bytes()].concat()))
    };
    confinement.environment.iter().map(variable).collect()
}

fn links(confinement: &Confinement) -> Result<Vec<(Bytes, Bytes)>, SpawnError> {
    let link = |(path, target): &(PathBuf, PathBuf)| {
        check_absolute(path)?;
        Ok((Bytes::of(path), Bytes::of(target)))
    };
    confinement.links.iter().map(link).collect()
}

fn devices(confinement: &Confinement) -> Result<Vec<Bytes>, SpawnError> {
    let device = |path: &PathBuf| {
        check_absolute(path)?;
        if path.starts_with("/dev") {
            Ok(Bytes::of(path))
        } else {
            Err(SpawnError::BadPath(path.clone()))
        }
    };
    confinement.devices.iter().map(device).collect()
}

/// All paths in one list, parents before children; of two words on one path the later kind holds:
/// read, then write, then hide.
fn placements(confinement: &Confinement) -> Result<Vec<Placement>, SpawnError> {
    let mut all = Vec::new();
    for (paths, access) in [
        (&confinement.readable, Access::Read),
        (&confinement.writable, Access::Write),
        (&confinement.hidden, Access::Hide),
    ] {
        for path in paths {
            match placement(path, access) {
                // What is not there cannot be seen.
                Err(SpawnError::Missing(..)) if access == Access::Hide => {}
                placed => all.push(placed?),
            }
        }
    }
    all.sort_by_key(|one| one.path.path().components().count());
    Ok(all)
}

fn placement(path: &Path, access: Access) -> Result<Placement, SpawnError> {
    check_absolute(path)?;
    if OWN.iter().any(|own| path.starts_with(own)) {
        return Err(SpawnError::Own(path.to_owned()));
    }
    let missing = |errno: Errno| SpawnError::Missing(path.to_owned(), errno.into());
    let opened = match mounts::plain(path) {
        Err(Errno::LOOP) => return Err(SpawnError::Link(path.to_owned())),
        opened => opened.map_err(missing)?,
    };
    let stat = rustix::fs::fstat(&opened).map_err(missing)?;
    Ok(Placement { path: Bytes::of(path), access, identity: (stat.st_dev, stat.st_ino) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(confinement: &Confinement) -> Result<Order, SpawnError> {
        write(confinement, &["/bin/true".into()])
    }

    #[test]
    fn a_path_must_be_absolute_plain_and_not_the_root() {
        for path in ["usr", "/", "/usr/../etc", "", "/nul\0"] {
            let confinement = Confinement { readable: vec![path.into()], ..Default::default() };
            let refused = of(&confinement);
            assert!(matches!(refused, Err(SpawnError::BadPath(_))), "{path:?}: {refused:?}");
        }
    }

    #[test]
    fn a_path_through_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        let granting = |path: PathBuf| Confinement { writable: vec![path], ..Default::default() };
        assert!(of(&granting(folder.join("real"))).is_ok());
        assert!(matches!(of(&granting(folder.join("link"))), Err(SpawnError::Link(_))));
        std::fs::create_dir(folder.join("real/inner")).unwrap();
        let through = of(&granting(folder.join("link/inner")));
        assert!(matches!(through, Err(SpawnError::Link(_))));
    }

    #[test]
    fn parents_come_before_children_and_hiding_last() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        let confinement = Confinement {
            readable: vec![folder.join("a/b")],
            writable: vec![folder.clone()],
            hidden: vec![folder.join("a"), folder.join("missing")],
            ..Default::default()
        };
        let order = of(&confinement).unwrap();
        let access: Vec<_> = order.placements.iter().map(|one| one.access).collect();
        assert_eq!(access, [Access::Write, Access::Hide, Access::Read]);
    }

    #[test]
    fn a_root_of_its_own_needs_namespaces() {
        let folder = tempfile::tempdir().unwrap();
        let root = Some(folder.path().canonicalize().unwrap());
        let confinement = Confinement { root, ..Default::default() };
        let mut order = of(&confinement).unwrap();
        let refused = without_namespaces(&mut order, &confinement);
        assert!(matches!(refused, Err(SpawnError::Needs("a root of its own"))));
    }

    #[test]
    fn text_that_no_process_can_have_is_refused() {
        for (name, value) in [("A=B", "x"), ("", "x"), ("A", "x\0y"), ("A\0", "x")] {
            let environment = vec![(name.into(), value.into())];
            let confinement = Confinement { environment, ..Default::default() };
            let refused = of(&confinement);
            assert!(
                matches!(refused, Err(SpawnError::BadVariable(bad)) if bad == name),
                "{name:?}={value:?}"
            );
        }
        let refused = write(&Confinement::default(), &["/bin/true".into(), "a\0b".into()]);
        assert!(matches!(refused, Err(SpawnError::BadArgument(1))));
    }
}
