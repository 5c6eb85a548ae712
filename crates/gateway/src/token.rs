//! Bearer tokens of the gateway: who may do what over HTTP. Only their digests are kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger::Time;
use policy::Who;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mark::Marks;
use crate::mcp::client::lock;

/// What every token begins with, so that it is found where it should not be.
const BEGINNING: &str = "haft_";

/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// What whoever shows a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See and call tools.
    Agent,
    /// And install and remove them, as far as the policy lets them in.
    Installer,
    /// And everything else that is done over HTTP.
    Owner,
}

impl Role {
    /// Each with its name.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Agent, "agent"), (Self::Installer, "installer"), (Self::Owner, "owner")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A token, without what is secret about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The profile that it sees, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether questions to the owner may be put where it is shown: there is a person, and it is them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// Until when it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// The digest of the token, in hex.
    sha256: String,
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct Wanted<'w> {
    /// What its owner calls it.
    pub name: &'w str,
    /// What it may do.
    pub role: Role,
    /// The profile that it sees, and nothing else.
    pub profile: Option<String>,
    /// Whether questions to the owner may be put where it is shown.
    pub asks: bool,
    /// Until when it counts.
    pub expires: Option<Time>,
}

/// Why tokens cannot be read or changed.
#[derive(Debug)]
pub enum TokenError {
    /// The file cannot be used.
    File(PathBuf, io::Error),
    /// The file says something that is none.
    Broken(PathBuf),
    /// There is one of that name.
    Taken,
    /// There is none of that name.
    Missing,
    /// A name that is none.
    Name,
    /// The name of those who show no token.
    Tokenless,
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path, _) => write!(out, "failed to use `{}`", path.display()),
            Self::Broken(path) => {
                write!(out, "`{}` holds no tokens that can be read", path.display())
            }
            Self::Taken => write!(out, "there is a token of that name already"),
            Self::Missing => write!(out, "there is no token of that name"),
            Self::Tokenless => {
                write!(out, "that is what whoever shows no token is called; choose another name")
            }
            Self::Name => write!(
                out,
                "the name of a token has letters of ASCII, digits, `-`, `_` and `.`, and is no longer than 64"
            ),
        }
    }
}

impl std::error::Error for TokenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Who is told why tokens cannot be read.
type Listener = Box<dyn Fn(&TokenError) + Send + Sync>;

/// The tokens of a home.
pub struct Tokens {
    file: [PathBuf; 1],
    known: Mutex<Option<(Marks, Vec<Token>)>>,
    /// The file that could not be read when it was last told of.
    told: Mutex<Option<Marks>>,
    listener: Option<Listener>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tokens").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Those in a file, which need not be there.
    pub fn at(file: PathBuf) -> Self {
        Self { file: [file], known: Mutex::default(), told: Mutex::default(), listener: None }
    }

    /// The same, and who is told when somebody shows a token and the file cannot be read: once for each change of it.
    #[must_use]
    pub fn telling(self, listener: impl Fn(&TokenError) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..self }
    }

    /// Where they are.
    pub fn file(&self) -> &Path {
        &self.file[0]
    }

    /// All of them.
    pub fn all(&self) -> Result<Vec<Token>, TokenError> {
        let marks = Marks::of(&self.file);
        let mut known = lock(&self.known);
        if let Some((then, all)) = &*known
            && *then == marks
        {
            return Ok(all.clone());
        }
        let all = read(self.file())?;
        *known = Some((marks, all.clone()));
        Ok(all)
    }

    /// The one that is shown, as long as it counts.
    pub fn find(&self, shown: &str, now: Time) -> Option<Token> {
        let digest = digest(shown);
        // All are compared, each in full, so that the time it takes says nothing.
        let mut found = None;
        let all = self.all().inspect_err(|error| self.tell(error)).ok()?;
        for token in all {
            if is_equal(&token.sha256, &digest) {
                found = Some(token);
            }
        }
        found.filter(|token| token.expires.is_none_or(|until| now.unix_millis() < until))
    }

    /// Makes one. What is secret about it is said once, now.
    pub fn add(&self, wanted: Wanted<'_>, now: Time) -> Result<String, TokenError> {
        let Wanted { name, role, profile, asks, expires } = wanted;
        check_name(name)?;
        let mut all = self.all()?;
        if all.iter().any(|token| token.name == name) {
            return Err(TokenError::Taken);
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| self.broken(io::ErrorKind::Other.into()))?;
        let secret = format!("{BEGINNING}{}", URL_SAFE_NO_PAD.encode(bytes));
        all.push(Token {
            name: name.to_owned(),
            role,
            profile,
            asks,
            created: now.unix_millis(),
            expires: expires.map(Time::unix_millis),
            sha256: digest(&secret),
        });
        self.write(&all)?;
        Ok(secret)
    }

    /// Takes one away.
    pub fn remove(&self, name: &str) -> Result<Token, TokenError> {
        let mut all = self.all()?;
        let at = all.iter().position(|token| token.name == name).ok_or(TokenError::Missing)?;
        let removed = all.remove(at);
        self.write(&all)?;
        Ok(removed)
    }

    /// Looks whether they can be read, and tells who listens where they cannot.
    pub fn check(&self) {
        if let Err(error) = self.all() {
            self.tell(&error);
        }
    }

    /// Tells why the file cannot be read, unless it was told of this very file.
    fn tell(&self, error: &TokenError) {
        let Some(listener) = &self.listener else { return };
        let marks = Marks::of(&self.file);
        let before = lock(&self.told).replace(marks.clone());
        if before != Some(marks) {
            listener(error);
        }
    }

    fn write(&self, all: &[Token]) -> Result<(), TokenError> {
        let text = serde_json::to_vec_pretty(all).map_err(|error| self.broken(error.into()))?;
        write(self.file(), &text).map_err(|error| self.broken(error))
    }

    fn broken(&self, error: io::Error) -> TokenError {
        TokenError::File(self.file().to_owned(), error)
    }
}

/// What whoever shows no token is called, where none is asked for.
pub(crate) const ANYBODY: &str = "anybody";

fn check_name(name: &str) -> Result<(), TokenError> {
    if [ANYBODY, Who::STDIO].contains(&name) {
        return Err(TokenError::Tokenless);
    }
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if is_plain && (1..=64).contains(&name.len()) { Ok(()) } else { Err(TokenError::Name) }
}

fn read(file: &Path) -> Result<Vec<Token>, TokenError> {
    let failed = |error| TokenError::File(file.to_owned(), error);
    let found = match fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    if found.len() > LARGEST {
        return Err(TokenError::Broken(file.to_owned()));
    }
    check_private(&found).map_err(failed)?;
    let text = fs::read(file).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|_| TokenError::Broken(file.to_owned()))
}

/// Whoever can write it makes tokens, and whoever reads it learns whose there are.
#[cfg(unix)]
fn check_private(found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let others = found.permissions().mode() & 0o077;
    if others == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "others may use it; `chmod 600` keeps them from it",
    ))
}

#[cfg(not(unix))]
fn check_private(_found: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Replaces a file whole, for nobody else to read.
fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.open(&beside)?;
    written.write_all(text)?;
    written.sync_all()?;
    fs::rename(&beside, file)?;
    fs::File::open(folder)?.sync_all()
}

fn digest(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_equal(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn wanted(name: &str) -> Wanted<'_> {
        Wanted { name, role: Role::Agent, profile: None, asks: false, expires: None }
    }

    #[test]
    fn a_token_is_found_by_what_is_secret_about_it_until_it_is_taken_away_or_runs_out() {
        let folder = std::env::temp_dir().join(format!("haft-tokens-{}", std::process::id()));
        let tokens = Tokens::at(folder.join("tokens.json"));
        let now = Time::from_unix_millis(1_000_000);
        assert_eq!(tokens.find("haft_x", now), None);
        let secret =
            tokens.add(Wanted { profile: Some("coding".into()), ..wanted("laptop") }, now).unwrap();
        let found = tokens.find(&secret, now).unwrap();
        assert_eq!((found.role, found.profile.as_deref()), (Role::Agent, Some("coding")));
        assert_eq!(tokens.find(&secret[..secret.len() - 1], now), None);
        assert!(matches!(tokens.add(wanted("laptop"), now), Err(TokenError::Taken)));
        assert!(matches!(tokens.add(wanted("a b"), now), Err(TokenError::Name)));
        for name in ["stdio", "anybody"] {
            assert!(matches!(tokens.add(wanted(name), now), Err(TokenError::Tokenless)), "{name}");
        }
        assert!(!fs::read_to_string(tokens.file()).unwrap().contains(&secret));
        let soon = now.plus(Duration::from_secs(1));
        let short = tokens.add(Wanted { expires: Some(soon), ..wanted("short") }, now).unwrap();
        assert!(tokens.find(&short, now).is_some());
        assert_eq!(tokens.find(&short, soon), None);
        tokens.remove("laptop").unwrap();
        assert_eq!(tokens.find(&secret, now), None);
        assert!(matches!(tokens.remove("laptop"), Err(TokenError::Missing)));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("haft-tokens-open-{}", std::process::id()));
        let tokens = Tokens::at(folder.join("tokens.json"));
        let now = Time::from_unix_millis(0);
        let secret = tokens.add(wanted("a"), now).unwrap();
        fs::set_permissions(tokens.file(), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(tokens.find(&secret, now), None);
        assert!(matches!(tokens.all(), Err(TokenError::File(..))));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_read_is_told_of_once_for_each_change() {
        use std::os::unix::fs::PermissionsExt;
        use std::sync::Arc;
        let folder = std::env::temp_dir().join(format!("haft-tokens-told-{}", std::process::id()));
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let tokens = Tokens::at(folder.join("tokens.json"))
            .telling(move |error| lock(&heard).push(error.to_string()));
        let now = Time::from_unix_millis(0);
        let secret = tokens.add(wanted("a"), now).unwrap();
        let look = || {
            for _ in 0..3 {
                let _ = tokens.find(&secret, now);
            }
            std::mem::take(&mut *lock(&told)).len()
        };
        let mode = |mode| {
            fs::set_permissions(tokens.file(), fs::Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(look(), 0);
        mode(0o644);
        assert_eq!(look(), 1);
        mode(0o600);
        assert_eq!(look(), 0);
        fs::write(tokens.file(), "[").unwrap();
        assert_eq!(look(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
