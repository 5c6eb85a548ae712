//! What a token is for, and who is told it.

use egress::http::Url;

use super::address::{canonical, covers, safe};
use super::error::LoginError;

/// What a token is for, and who is told it: nobody else ever is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A server or an agent on the network, in requests to it.
    Server {
        /// The resource that the token is for.
        url: Url,
        /// The same, letter by letter as it is asked for.
        name: String,
    },
    /// The package itself, as the value of one of its secrets.
    Package {
        /// The name of the secret.
        secret: String,
        /// The resource that the token is for, where the owner named one.
        resource: Option<String>,
    },
}

impl Audience {
    /// A server that is called so.
    pub fn server(name: String) -> Result<Self, LoginError> {
        Ok(Self::Server { url: safe(&name, "server", "resource")?, name })
    }

    /// The server at an endpoint, by the name that the owner gave it, or by its own address. A name has to be one of this
    /// very server.
    pub fn at(endpoint: &Url, named: Option<&Url>) -> Result<Self, LoginError> {
        match named {
            Some(url) if !covers(url, endpoint) => {
                Err(LoginError::Foreign { named: url.to_string() })
            }
            named => Self::server(canonical(named.unwrap_or(endpoint))),
        }
    }

    /// The package, by a secret of it.
    pub fn package(secret: &str, named: Option<&Url>) -> Self {
        Self::Package { secret: secret.to_owned(), resource: named.map(canonical) }
    }

    /// What tokens are asked for.
    pub fn resource(&self) -> Option<&str> {
        match self {
            Self::Server { name, .. } => Some(name),
            Self::Package { resource, .. } => resource.as_deref(),
        }
    }

    /// The secret that the token is given as.
    pub fn secret(&self) -> Option<&str> {
        match self {
            Self::Server { .. } => None,
            Self::Package { secret, .. } => Some(secret),
        }
    }

    /// How forms and pages say what tokens are asked for.
    pub(super) fn pair(&self) -> Option<(&'static str, &str)> {
        self.resource().map(|resource| ("resource", resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_server_goes_by_its_own_address_or_by_a_name_that_covers_it() {
        let endpoint = url("https://a.test/agent/");
        let at = |named: Option<&str>| Audience::at(&endpoint, named.map(url).as_ref());
        assert_eq!(at(None).unwrap().resource(), Some("https://a.test/agent/"));
        assert_eq!(at(Some("https://a.test/")).unwrap().resource(), Some("https://a.test"));
        for other in ["https://b.test/", "https://a.test/other", "http://a.test/agent"] {
            assert!(matches!(at(Some(other)), Err(LoginError::Foreign { .. })), "{other}");
        }
    }

    #[test]
    fn a_package_is_given_a_token_that_need_not_be_for_any_resource() {
        let audience = Audience::package("TOKEN", None);
        assert_eq!((audience.secret(), audience.pair()), (Some("TOKEN"), None));
        let audience = Audience::package("TOKEN", Some(&url("https://api.test/")));
        assert_eq!(audience.pair(), Some(("resource", "https://api.test")));
    }
}
