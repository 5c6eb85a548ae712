//! Where a registry is kept: what was typed, what the environment says, and the stores that are meant.

use std::path::{Path, PathBuf};

use clap::Args;
use server::blobs::BlobError;
use server::{Blobs, Store, StoreError, Trouble};

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::trouble;

/// Variables that name a database, the first before the second.
const VARIABLES: [&str; 2] = ["HAFT_DATABASE_URL", "DATABASE_URL"];
/// The most bytes of a file that holds an address.
const ADDRESS_BYTES: u64 = 64 << 10;

#[derive(Args, Debug, Default)]
pub(super) struct DatabaseArgs {
    /// The database: a file or `postgres://…` [default: registry/registry.db in the home]
    ///
    /// A password does not belong here, where everybody who lists processes sees it: put the address into `HAFT_DATABASE_URL` (or `DATABASE_URL`, when it begins with `postgres`) or into a file for `--database-file`, or the password into `PGPASSWORD` or `~/.pgpass`.
    #[arg(long, value_name = "PLACE")]
    database: Option<String>,
    /// A file that holds the address of the database
    #[arg(long, value_name = "FILE", conflicts_with = "database")]
    database_file: Option<PathBuf>,
}

impl DatabaseArgs {
    /// Whether the command line says which.
    pub(super) fn is_named(&self) -> bool {
        self.database.is_some() || self.database_file.is_some()
    }
}

#[derive(Args, Debug, Default)]
pub(super) struct BlobArgs {
    /// Where the package files are: a folder or `s3://bucket/prefix` [default: registry/blobs in the home]
    #[arg(long, value_name = "PLACE")]
    blobs: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
    #[command(flatten)]
    pub(super) blobs: BlobArgs,
}

impl DatabaseArgs {
    /// The address that is meant; none for the one in the home.
    fn address(&self) -> Result<Option<String>, Failure> {
        if let Some(place) = &self.database {
            if has_password(place) {
                let message =
                    "a password in the arguments can be seen by everybody on this machine";
                return Err(Failure::new(Exit::Invalid, message).hint(
                    "put the address into HAFT_DATABASE_URL or --database-file, or the password into PGPASSWORD",
                ));
            }
            return Ok(Some(place.clone()));
        }
        if let Some(path) = &self.database_file {
            return read_address(path).map(Some);
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let [own, common] = VARIABLES;
        // Many programs have the second one set: it counts when it can be meant.
        let is_postgres = |address: &String| {
            address.starts_with("postgres://") || address.starts_with("postgresql://")
        };
        Ok(variable(own).or_else(|| variable(common).filter(is_postgres)))
    }

    /// The file that is meant; none where the database is no file.
    pub(super) fn file(&self, home: &Home) -> Result<Option<PathBuf>, Failure> {
        let Some(address) = self.address()? else {
            return Ok(Some(home.path().join("registry").join("registry.db")));
        };
        Ok(match address.split_once("://") {
            Some(("sqlite", path)) => Some(path.into()),
            Some(_) => None,
            None => Some(address.into()),
        })
    }
}

fn read_address(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let failed = |error: std::io::Error| Failure::unread(path.display(), error);
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(ADDRESS_BYTES).read_to_string(&mut text).map_err(failed)?;
    let address = text.trim();
    if address.is_empty() || address.lines().count() > 1 {
        let message = format!("`{}` does not hold one address", path.display());
        return Err(Failure::new(Exit::Invalid, message));
    }
    Ok(address.to_owned())
}

/// Whether an address holds a password: before the host, or among the parameters.
fn has_password(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split('/').next().unwrap_or_default();
    let user = host.rsplit_once('@').map_or("", |(user, _)| user);
    let in_user = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    in_user || parameters.split('&').any(|parameter| parameter.starts_with("password="))
}

/// Opens the database that is meant, and makes it where it is a file that is not there.
pub(super) async fn open(args: &DatabaseArgs, home: &Home) -> Result<Store, Failure> {
    let opened = match args.address()? {
        Some(place) => Store::open(&place).await,
        None => Store::file(&folder(home)?.join("registry.db")).await,
    };
    opened.map_err(|error| {
        let exit = match &error {
            // What was typed is wrong, and will not work later.
            StoreError::Address(_) => Exit::Invalid,
            StoreError::Open { .. } | StoreError::Newer { .. } | StoreError::Query { .. } => {
                Exit::Unavailable
            }
        };
        Failure::of(exit, &error)
    })
}

/// Opens the database that is meant, which must be there: an empty one in its place would be told as a registry
/// without faults, or kept as a backup of nothing.
pub(super) async fn open_existing(args: &DatabaseArgs, home: &Home) -> Result<Store, Failure> {
    if let Some(path) = missing(args, home)? {
        let message = format!("there is no registry at `{}`", path.display());
        return Err(Failure::new(Exit::NotFound, message)
            .hint("`haft registry serve` makes one; --home or --database name another"));
    }
    open(args, home).await
}

/// The file of the database that is meant, where it is one and is not there.
pub(super) fn missing(args: &DatabaseArgs, home: &Home) -> Result<Option<PathBuf>, Failure> {
    Ok(args.file(home)?.filter(|path| !path.exists()))
}

/// Opens the place of the package files that is meant; a folder that was named must be there.
pub(super) fn open_existing_blobs(args: &BlobArgs, home: &Home) -> Result<Blobs, Failure> {
    match &args.blobs {
        Some(place) if !place.contains("://") && !Path::new(place).is_dir() => {
            let message = format!("there is no folder `{place}` with package files");
            Err(Failure::new(Exit::NotFound, message))
        }
        _ => open_blobs(args, home),
    }
}

/// Opens the place of the package files that is meant.
pub(super) fn open_blobs(args: &BlobArgs, home: &Home) -> Result<Blobs, Failure> {
    let opened = match &args.blobs {
        Some(place) => Blobs::open(place, &settings()),
        None => Blobs::folder(&folder(home)?.join("blobs")),
    };
    opened.map_err(|error| {
        let exit = match &error {
            BlobError::Address(_) => Exit::Invalid,
            _ => Exit::Unavailable,
        };
        Failure::of(exit, &error)
    })
}

/// The folder of the registry in the home, which is for its owner alone.
pub(super) fn folder(home: &Home) -> Result<PathBuf, Failure> {
    let folder = home.path().join("registry");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|error| {
        let message = format!("failed to make `{}`", folder.display());
        let trouble = Trouble::from(error);
        let failure = Failure::new(Exit::Unavailable, message).cause(&trouble);
        // Every folder on the way is made: where that cannot be, the home is told of.
        let hint = trouble::hint(&trouble).filter(|_| !matches!(trouble, Trouble::Missing));
        hint.into_iter().fold(failure, Failure::hint)
    })?;
    Ok(folder)
}

/// A folder with room for what the database will hold: the one that it is in, or that of the home where it is no file.
pub(super) fn room(args: &DatabaseArgs, home: &Home) -> Result<PathBuf, Failure> {
    let file = args.file(home)?;
    match file.as_deref().and_then(Path::parent) {
        Some(parent) if parent.as_os_str().is_empty() => Ok(".".into()),
        Some(parent) => Ok(parent.into()),
        None => folder(home),
    }
}

/// What the environment says of an S3 store.
fn settings() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("AWS_"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_seen_wherever_it_stands() {
        for address in [
            "postgres://haft:secret@db/registry",
            "postgresql://haft:secret@db:5432/registry?sslmode=require",
            "postgres://db/registry?user=haft&password=secret",
        ] {
            assert!(has_password(address), "{address}");
        }
        for address in [
            "postgres://haft@db:5432/registry",
            "postgres://db:5432/registry?application_name=a:b@c",
            "postgres://haft:@db/registry",
            "/var/lib/haft/registry.db",
            "sqlite:///var/lib/haft/registry.db",
        ] {
            assert!(!has_password(address), "{address}");
        }
    }
}
