//! Secrets that a Vault server keeps, asked for at each call and never kept.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use egress::http::{Client, HeaderName, HeaderValue, Method, Request, SendError, Url};
use egress::resolve::SystemResolver;
use egress::{Rule, Rules};
use policy::policy::{Store, VaultServer};
use vault::kv::{self, Answer, KvError, VaultKv};
use vault::{FileVault, Owner, Place, Secret, outside};

use crate::error::{CallError, Kind};
use crate::host::Settings;
use crate::secrets::refusal;

/// Whose entry of our own vault the token is. No package can have this id, because there is no such dialect.
pub const TOKEN_OWNER: &str = "haft:vault";

/// What the token is called there.
pub const TOKEN_NAME: &str = "TOKEN";

/// How long the server may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Asks the owner's Vault server for a field of an entry.
pub(super) async fn ask(
    server: &VaultServer,
    known: &Settings,
    own: &FileVault,
    (mount, path, field): (&str, &str, &str),
) -> Result<Secret, CallError> {
    let settings = kv::Settings {
        address: server.address.clone(),
        token: token(server, known, own)?,
        namespace: server.namespace.clone(),
        version: match server.store {
            Store::First => kv::Version::V1,
            Store::Second => kv::Version::V2,
        },
    };
    let asking = Asking(client(&server.address)?);
    let store = VaultKv::new(settings, asking).map_err(|error| not_had(&error))?;
    store.get(mount, path, field).await.map_err(|error| not_had(&error))
}

/// The token, from the file that the policy names or else from our own vault.
fn token(server: &VaultServer, known: &Settings, own: &FileVault) -> Result<Secret, CallError> {
    let unavailable = |error: &dyn Error| {
        CallError::new(Kind::Unavailable, format!("the token of the Vault server: {error}"))
    };
    if let Some(file) = &server.token_file {
        let below_home = known.user_home.as_ref().zip(file.strip_prefix("~/"));
        let path = below_home.map_or_else(|| PathBuf::from(file), |(home, rest)| home.join(rest));
        return outside::from_file(&path).map_err(|error| unavailable(&error));
    }
    let place = Place::new(Owner::Package(TOKEN_OWNER.to_owned()), TOKEN_NAME)
        .map_err(|error| unavailable(&error))?;
    let found = own.get(&place).map_err(|error| {
        refusal::of_vault(format!("the token of the Vault server: {error}"), &error)
    })?;
    found.ok_or_else(|| {
        let message = "there is no token for the Vault server";
        CallError::new(Kind::MissingInput, message)
            .with("owner", TOKEN_OWNER)
            .with("name", TOKEN_NAME)
    })
}

/// A client that reaches this server and nobody else. The owner named it, so it may be a private one.
fn client(address: &str) -> Result<Client, CallError> {
    let unavailable = |message: String| CallError::new(Kind::Unavailable, message);
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
    let (host, port) = host.ok_or_else(|| unavailable(format!("`{address}` is no address")))?;
    let rule =
        Rule::parse(&format!("{host}:{port}")).map_err(|error| unavailable(error.to_string()))?;
    let rules = Rules::from_iter([rule.reaching_private()]);
    let client = Client::new(rules, Arc::new(SystemResolver::default()));
    client.map_err(|error| unavailable(error.to_string()))
}

/// Asks by the one client of ours.
#[derive(Debug)]
struct Asking(Client);

impl kv::Fetch for Asking {
    type Error = SendError;

    async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        limit: usize,
    ) -> Result<Answer, SendError> {
        let url = Url::parse(url).map_err(|_| SendError::BadRedirect)?;
        let mut request = Request::new(Method::GET, url);
        for (name, value) in headers {
            let odd = || SendError::Header((*name).to_owned());
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| odd())?;
            value.set_sensitive(true);
            request.headers.insert(name, value);
        }
        request.most = limit as u64;
        request.within = WITHIN;
        request.redirects = 0;
        let response = self.0.send(request).await?;
        Ok(Answer { status: response.status.as_u16(), body: response.body.into() })
    }
}

fn not_had(error: &KvError<SendError>) -> CallError {
    let kind = match error {
        KvError::Missing | KvError::NoField(_) => Kind::MissingInput,
        _ => Kind::Unavailable,
    };
    // The deepest cause says most: `connection refused`, `invalid peer certificate`.
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    CallError::new(kind, format!("{error}{cause}"))
}
