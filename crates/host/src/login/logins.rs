//! The sign-ins of a home: read, renewed once for all who need it, forgotten. Whoever changes one has its lock.
//!
//! A renewed token is sealed in the vault before anybody is told it, in one step with what it replaces:
//! whatever is killed and whenever, the vault holds the old tokens or the new ones.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use egress::Rules;
use egress::http::Client;
use egress::resolve::SystemResolver;
use sha2::{Digest, Sha256};
use tokio::time::timeout_at;
use vault::{FileVault, Owner, Place, Secret};

use super::error::LoginError;
use super::kept::{Agreed, Bearer, Kept, now};
use super::token::renew;
use super::underway::Underway;

/// What a sign-in is called in the vault. No secret of a package can be called so.
pub const NAME: &str = "(login)";

/// How long a renewal of another program is waited for, before a sign-in is kept or forgotten.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often one who waits for another's renewal looks again.
const LOOK: Duration = Duration::from_millis(25);

/// The sign-ins of a home.
#[derive(Clone, Debug)]
pub struct Logins {
    vault: Arc<FileVault>,
    locks: PathBuf,
    underway: Underway,
}

/// Which token is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'t> {
    /// One that has not ended.
    Any,
    /// One that does not end before the time is over that is waited for it, where such a one can be had: for those
    /// whom nobody could give another on the way.
    Lasting,
    /// Another than this one, which was refused.
    Another(&'t Secret),
}

impl Logins {
    /// The sign-ins that a vault keeps, in a home.
    pub fn new(vault: Arc<FileVault>, home: &Path) -> Self {
        Self { vault, locks: home.join("locks"), underway: Underway::default() }
    }

    /// Whether the owner is signed in for a package; needs no passphrase.
    pub fn is_signed_in(&self, package: &str) -> bool {
        let place = place(package);
        let listed = self.vault.list().unwrap_or_default();
        place.is_ok_and(|place| listed.iter().any(|one| one.place == place))
    }

    /// What is kept for a package.
    pub fn kept(&self, package: &str) -> Result<Option<Kept>, LoginError> {
        let secret = self.vault.get(&place(package)?)?;
        secret.map(|secret| Kept::of_secret(&secret)).transpose()
    }

    /// Keeps a sign-in, and gives the one that was there before. A renewal that is under way ends first.
    pub async fn keep(&self, package: &str, kept: &Kept) -> Result<Option<Kept>, LoginError> {
        let _lock = lock(&self.locks, package, Instant::now() + PATIENCE).await?;
        let before = self.kept(package).unwrap_or_default();
        self.vault.set(&place(package)?, &kept.to_secret()?)?;
        Ok(before)
    }

    /// Forgets a sign-in, and gives what can be read of it; `None` where there was none. A renewal that is
    /// under way ends first, so that it brings nothing back.
    pub async fn forget(
        &self,
        package: &str,
    ) -> Result<Option<Result<Kept, LoginError>>, LoginError> {
        let _lock = lock(&self.locks, package, Instant::now() + PATIENCE).await?;
        let kept = self.kept(package);
        let was_there = self.vault.remove(&place(package)?)?;
        Ok(kept.transpose().filter(|_| was_there))
    }

    /// Waits for the renewals that nobody waits for any more, for a while.
    pub async fn settle(&self) {
        self.underway.settle().await;
    }

    /// The token for a package, where the owner is signed in: the one that is kept, or a new one. Of all
    /// who need a new one at the same time, in this program or another, one fetches it. The others wait as
    /// long as they may; one that is being fetched is not given up, because it takes the old one's place.
    pub async fn bearer(
        &self,
        package: &str,
        wanted: Wanted<'_>,
        rules: &Rules,
        until: Instant,
    ) -> Result<Option<Bearer>, LoginError> {
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        let is_good = |kept: &Kept| match wanted {
            Wanted::Any => !kept.is_over(now()),
            Wanted::Lasting => {
                let needed = if kept.refresh.is_some() { left } else { 0 };
                !kept.is_over(now() + needed)
            }
            Wanted::Another(refused) => {
                kept.access.expose() != refused.expose() && !kept.is_over(now())
            }
        };
        let Some(before) = self.kept(package)? else { return Ok(None) };
        if is_good(&before) {
            return Ok(Some(before.bearer()));
        }
        let lock = lock(&self.locks, package, until).await?;
        // Somebody else may have fetched one, or signed out, while this one waited.
        let Some(kept) = self.kept(package)? else { return Ok(None) };
        let is_new = kept.access.expose() != before.access.expose() && !kept.is_over(now());
        if is_new || is_good(&kept) {
            return Ok(Some(kept.bearer()));
        }
        let client = client(rules, &kept.hosts)?;
        let (logins, package) = (self.clone(), package.to_owned());
        let renewing = self.underway.finish(async move {
            let _lock = lock;
            logins.renew(&package, &client, kept).await
        });
        let renewed = timeout_at(until.into(), renewing).await.map_err(|_| LoginError::Busy)?;
        renewed.unwrap_or(Err(LoginError::Unkept("its renewal broke off"))).map(Some)
    }

    async fn renew(&self, package: &str, client: &Client, old: Kept) -> Result<Bearer, LoginError> {
        let used = old.access.clone();
        let renewed = renew(client, old).await?;
        // Who came without the lock may have signed out, or in again; then that holds.
        let place = place(package)?;
        let is_same = |found: &Secret| {
            Kept::of_secret(found).is_ok_and(|kept| kept.access.expose() == used.expose())
        };
        match self.vault.get(&place)?.filter(is_same) {
            Some(found) if self.vault.replace(&place, &found, &renewed.to_secret()?)? => {
                Ok(renewed.bearer())
            }
            _ => Err(LoginError::Ended),
        }
    }
}

/// A client that reaches what the rules allow, and the hosts the owner agreed to.
pub fn client(rules: &Rules, hosts: &[Agreed]) -> Result<Client, LoginError> {
    let rules = rules.clone().allowing(hosts.iter().filter_map(Agreed::rule));
    Client::new(rules, Arc::new(SystemResolver::default()))
        .map_err(|_| LoginError::Unkept("the certificates to trust cannot be used"))
}

fn place(package: &str) -> Result<Place, LoginError> {
    Place::new(Owner::Package(package.to_owned()), NAME)
        .map_err(|_| LoginError::Unkept("the package has no proper id"))
}

/// Waits until nobody else renews the tokens of a package. The lock ends with the program, however it ends.
pub(crate) async fn lock(folder: &Path, package: &str, until: Instant) -> Result<File, LoginError> {
    let digest = Sha256::digest(package.as_bytes());
    let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    std::fs::create_dir_all(folder).map_err(LoginError::Lock)?;
    let file = File::options().create(true).append(true).open(folder.join(name));
    let file = file.map_err(LoginError::Lock)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                tokio::time::sleep(LOOK).await;
            }
            Err(TryLockError::WouldBlock) => return Err(LoginError::Busy),
            Err(TryLockError::Error(error)) => return Err(LoginError::Lock(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use egress::http::Url;

    use super::super::audience::Audience;
    use super::super::kept::Agreed;
    use super::super::register::{Known, Method};
    use super::*;

    /// A sign-in whose token has ended, at a server that takes questions and never answers.
    fn over(host: &str) -> Kept {
        Kept {
            audience: Audience::server("https://a.test/mcp".to_owned()).unwrap(),
            issuer: format!("http://{host}"),
            token: Url::parse(&format!("http://{host}/token")).unwrap(),
            revocation: None,
            client: Known { id: "me".to_owned(), secret: None, method: Method::None },
            hosts: vec![Agreed { host: host.to_owned(), is_typed: true }],
            scopes: Vec::new(),
            access: Secret::new("t0ken".to_owned()).unwrap(),
            refresh: Secret::new("l0ng".to_owned()).ok(),
            until: 7,
        }
    }

    #[tokio::test]
    async fn whoever_needs_a_renewal_waits_for_it_no_longer_than_they_may() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = silent.local_addr().unwrap().to_string();
        let home = tempfile::tempdir().unwrap();
        let vault = Arc::new(FileVault::open(home.path().join("vault"), || None).unwrap());
        let logins = Logins::new(vault, home.path());
        logins.keep("a", &over(&host)).await.unwrap();
        let began = Instant::now();
        // The first renews, and the second waits for the lock.
        for _ in 0..2 {
            let until = Instant::now() + Duration::from_millis(200);
            let bearer = logins.bearer("a", Wanted::Any, &Rules::from_iter([]), until).await;
            let error = bearer.unwrap_err();
            assert!(matches!(error, LoginError::Busy), "{error:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
}
