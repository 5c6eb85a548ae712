//! What is wrong with a database, a folder or a bucket, in the words of whoever runs it.
//!
//! What libraries say of it repeats itself, names lines of their code and holds whole answers of a server. A
//! [`Trouble`] says it once; what nobody has foreseen keeps the innermost of their words.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use object_store::Error as Failure;
use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

/// The oldest `PostgreSQL` that is taken.
pub(crate) const OLDEST_POSTGRES: i64 = 14;

/// What is wrong with a place that something is kept in.
#[derive(Debug)]
pub enum Trouble {
    /// The disk is full, or nobody may have more of it.
    NoRoom,
    /// Nothing can be changed there.
    ReadOnly,
    /// Whoever runs this may not.
    NotAllowed,
    /// A file is where a folder should be, or a folder where a file should be.
    InTheWay,
    /// It is not there, or the folder that it goes to is not.
    Missing,
    /// The file is no database.
    NoDatabaseFile,
    /// The file of a database is damaged.
    Damaged,
    /// Something in it is not what it was written as.
    Row,
    /// Another program holds it.
    Held,
    /// Its address cannot be understood: why not.
    Address(String),
    /// A file that its address names is not there: a certificate, or a socket.
    AddressFile,
    /// There is no host of that name.
    UnknownHost,
    /// There is no way to the host.
    NoWay,
    /// The host is there, and nobody listens at the port.
    NobodyListens,
    /// No answer came in time.
    NoAnswer,
    /// The connection was cut.
    CutOff,
    /// The server is starting or stopping.
    Restarting,
    /// The server has as many connections as it takes.
    Crowded,
    /// No connection by TLS came about: why not.
    Tls(String),
    /// The server lets nobody in by that name, password or way: what it said.
    Login(String),
    /// The server has no such database: what it said.
    NoDatabase(String),
    /// The server is too old: its version.
    TooOld(i64),
    /// There is no such bucket.
    NoBucket,
    /// The bucket does not take these keys.
    Keys,
    /// Something that nobody has foreseen.
    Unforeseen(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Trouble::NoRoom => "there is no room left on its disk",
            Trouble::ReadOnly => "it can only be read",
            Trouble::NotAllowed => "this user may not read or write it",
            Trouble::InTheWay => {
                "a file is where a folder should be, or a folder where a file should be"
            }
            Trouble::Missing => "it, or the folder it is in, is not there",
            Trouble::NoDatabaseFile => "the file is no database",
            Trouble::Damaged => "the file is damaged",
            Trouble::Row => "a row of it is damaged",
            Trouble::Held => "another program holds it",
            Trouble::Address(why) => return write!(out, "its address cannot be understood: {why}"),
            Trouble::AddressFile => "a file that its address names is not there",
            Trouble::UnknownHost => "there is no host of that name",
            Trouble::NoWay => "there is no way to that host from here",
            Trouble::NobodyListens => "nobody listens there",
            Trouble::NoAnswer => "no answer came in time",
            Trouble::CutOff => "the connection was cut",
            Trouble::Restarting => "the server is starting or stopping",
            Trouble::Crowded => "the server takes no more connections",
            Trouble::Tls(why) => return write!(out, "there is no connection by TLS: {why}"),
            Trouble::Login(said) | Trouble::NoDatabase(said) => said,
            Trouble::TooOld(version) => {
                return write!(
                    out,
                    "it is PostgreSQL {version}, and {OLDEST_POSTGRES} is the oldest that is taken"
                );
            }
            Trouble::NoBucket => "there is no such bucket",
            Trouble::Keys => "the bucket is not for these keys",
            Trouble::Unforeseen(error) => return write!(out, "{}", innermost(&**error)),
        })
    }
}

impl Error for Trouble {}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(said) => of_database(&*said),
            // What TLS has against the other side comes as data that is not valid.
            sqlx::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
                Trouble::Tls(error.to_string())
            }
            // Of a database in a file nothing is opened by this way.
            sqlx::Error::Io(error) if error.kind() == ErrorKind::NotFound => Trouble::AddressFile,
            sqlx::Error::Io(error) => error.into(),
            sqlx::Error::Tls(error) => Trouble::Tls(innermost(&*error).to_string()),
            sqlx::Error::Configuration(error) => Trouble::Address(innermost(&*error).to_string()),
            sqlx::Error::PoolTimedOut => Trouble::NoAnswer,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Trouble::Row,
            other => Trouble::Unforeseen(other.into()),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        of_io(&error).unwrap_or_else(|| Trouble::Unforeseen(error.into()))
    }
}

impl From<Failure> for Trouble {
    fn from(error: Failure) -> Self {
        let known = match &error {
            // Whether the bucket or what is in it is missing is in the answer alone.
            Failure::NotFound { .. } => is_no_bucket(&error).then_some(Trouble::NoBucket),
            Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => {
                // The same is said of files.
                each_cause(&error).find_map(of_io_cause).or(Some(Trouble::Keys))
            }
            _ if is_no_bucket(&error) => Some(Trouble::NoBucket),
            _ => each_cause(&error).find_map(of_io_cause),
        };
        known.unwrap_or_else(|| Trouble::Unforeseen(error.into()))
    }
}

/// Whether an S3 server says that it is the bucket which is not there.
pub(crate) fn is_no_bucket(error: &Failure) -> bool {
    error.to_string().contains("<Code>NoSuchBucket</Code>")
}

fn of_database(said: &dyn DatabaseError) -> Trouble {
    if let Some(said) = said.try_downcast_ref::<PgDatabaseError>() {
        let words = || said.message().to_owned();
        match said.code() {
            "28000" | "28P01" => return Trouble::Login(words()),
            "3D000" => return Trouble::NoDatabase(words()),
            "53100" => return Trouble::NoRoom,
            "53300" => return Trouble::Crowded,
            "57P01" | "57P02" | "08006" => return Trouble::CutOff,
            "57P03" => return Trouble::Restarting,
            "42501" => return Trouble::NotAllowed,
            "25006" => return Trouble::ReadOnly,
            _ => return Trouble::Unforeseen(words().into()),
        }
    }
    let code = said.try_downcast_ref::<SqliteError>().and_then(DatabaseError::code);
    // Of an extended code the last byte is what it belongs to.
    match code.and_then(|code| code.parse::<u32>().ok()).map(|code| (code, code & 0xff)) {
        // That the shared part of a journal cannot grow is said in a code of its own.
        Some((_, 13) | (4874, _)) => Trouble::NoRoom,
        Some((_, 8)) => Trouble::ReadOnly,
        Some((_, 3)) => Trouble::NotAllowed,
        Some((_, 26)) => Trouble::NoDatabaseFile,
        Some((_, 11)) => Trouble::Damaged,
        Some((_, 5)) => Trouble::Held,
        _ => Trouble::Unforeseen(said.message().to_owned().into()),
    }
}

fn of_io(error: &io::Error) -> Option<Trouble> {
    Some(match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Trouble::NoRoom,
        ErrorKind::ReadOnlyFilesystem => Trouble::ReadOnly,
        ErrorKind::PermissionDenied => Trouble::NotAllowed,
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            Trouble::InTheWay
        }
        ErrorKind::NotFound => Trouble::Missing,
        ErrorKind::ConnectionRefused => Trouble::NobodyListens,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Trouble::NoWay,
        ErrorKind::TimedOut => Trouble::NoAnswer,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Trouble::CutOff,
        // The system has no number for it, and the standard library no kind.
        _ if error.to_string().contains("failed to lookup address") => Trouble::UnknownHost,
        _ => return None,
    })
}

fn of_io_cause(error: &(dyn Error + 'static)) -> Option<Trouble> {
    let error = error.downcast_ref::<io::Error>()?;
    // What such an error was made of is not among its causes.
    of_io(error).or_else(|| of_io_cause(error.get_ref()?))
}

fn each_cause<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

/// Each cause repeats the ones beneath it.
fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    each_cause(error).last().unwrap_or(error)
}

/// Whether a version of `PostgreSQL`, as the number that it tells, is taken.
pub(crate) fn check_version(number: i64) -> Result<(), Trouble> {
    let version = number / 10_000;
    if version < OLDEST_POSTGRES { Err(Trouble::TooOld(version)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_postgresql_is_told_with_both_versions() {
        assert!(check_version(140_000).is_ok() && check_version(180_001).is_ok());
        let old = check_version(130_022).unwrap_err();
        assert_eq!(old.to_string(), "it is PostgreSQL 13, and 14 is the oldest that is taken");
    }

    #[test]
    fn a_full_disk_is_known_however_deep_it_is_told() {
        let full = io::Error::from(ErrorKind::StorageFull);
        let deep = Failure::Generic { store: "x", source: Box::new(io::Error::other(full)) };
        assert!(matches!(Trouble::from(deep), Trouble::NoRoom));
    }

    #[test]
    fn of_what_nobody_has_foreseen_the_innermost_words_are_left() {
        let inner = io::Error::other("a strange thing");
        let deep = Failure::Generic { store: "x", source: Box::new(inner) };
        assert_eq!(Trouble::from(deep).to_string(), "a strange thing");
    }
}
