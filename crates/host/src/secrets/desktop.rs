//! Secrets that the desktop's keyring keeps, in builds that have it.

use vault::Secret;

use crate::error::{CallError, Kind};

/// Asks the keyring for an entry.
#[cfg(all(feature = "keyring", target_os = "linux"))]
pub(super) async fn ask(service: &str, account: &str) -> Result<Secret, CallError> {
    use vault::keyring::{Keyring, KeyringError};

    let (service, account) = (service.to_owned(), account.to_owned());
    let asked = tokio::task::spawn_blocking(move || Keyring::connect()?.get(&service, &account));
    let found = asked.await.map_err(|error| {
        CallError::new(Kind::Unavailable, format!("the question broke off: {error}"))
    })?;
    found.map_err(|error| {
        let kind = match error {
            KeyringError::Missing => Kind::MissingInput,
            _ => Kind::Unavailable,
        };
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        CallError::new(kind, format!("{error}{}", cause.unwrap_or_default()))
    })
}

/// There is no keyring in this build.
#[cfg(not(all(feature = "keyring", target_os = "linux")))]
#[expect(clippy::unused_async, reason = "other builds wait for the keyring")]
pub(super) async fn ask(_service: &str, _account: &str) -> Result<Secret, CallError> {
    let message = "this build knows no keyring; one with the feature `keyring` does";
    Err(CallError::new(Kind::Unavailable, message))
}
