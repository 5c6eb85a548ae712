//! How requests say who is asking, and which variables hold what they need for that.

/// How requests are authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Which way.
    pub kind: AuthKind,
    /// Scopes of the credential.
    pub scopes: Vec<String>,
    /// Variables that may hold the credential; where one is needed, there is a name for it.
    pub env: Vec<String>,
    /// Page about it.
    pub docs_url: Option<String>,
}

impl Auth {
    /// The variables that may hold the credential as it is sent.
    pub fn credentials(&self) -> impl Iterator<Item = &String> {
        let is_account = self.kind == AuthKind::Oauth2;
        self.env.iter().filter(move |name| !is_account || AccountPart::of(name).is_none())
    }

    /// The variable that holds a part of an account.
    pub fn holder(&self, part: AccountPart) -> Option<&String> {
        self.env.iter().find(|name| AccountPart::of(name) == Some(part))
    }

    /// The same, with names of our own for what the author gave none: no credential could be kept without.
    #[must_use]
    pub(crate) fn named(mut self) -> Self {
        use AccountPart::{ClientId, ClientSecret, RefreshToken, TokenUrl};
        let has = |part| self.holder(part).is_some();
        let has_account =
            has(TokenUrl) && has(ClientId) && (has(ClientSecret) || has(RefreshToken));
        if self.credentials().next().is_some() || has_account {
            return self;
        }
        let more: Vec<&str> = match self.kind {
            AuthKind::None => Vec::new(),
            AuthKind::Bearer | AuthKind::ApiKey => vec!["API_KEY"],
            AuthKind::Oauth2 => {
                let parts = AccountPart::ALL.into_iter().filter(|part| !has(*part));
                parts.map(AccountPart::name).chain(["ACCESS_TOKEN"]).collect()
            }
        };
        self.env.extend(more.into_iter().map(str::to_owned));
        self
    }
}

/// A part of an account at a token endpoint, as OAuth 2 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountPart {
    /// The address of the endpoint.
    TokenUrl,
    /// The client's id.
    ClientId,
    /// The client's secret.
    ClientSecret,
    /// A refresh token.
    RefreshToken,
}

impl AccountPart {
    const ALL: [Self; 4] = [Self::TokenUrl, Self::ClientId, Self::ClientSecret, Self::RefreshToken];

    /// How the name of a variable ends that holds it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenUrl => "TOKEN_URL",
            Self::ClientId => "CLIENT_ID",
            Self::ClientSecret => "CLIENT_SECRET",
            Self::RefreshToken => "REFRESH_TOKEN",
        }
    }

    /// What a variable of this name holds, if it is a part of an account.
    fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        Self::ALL.into_iter().find(|part| {
            let before = name.strip_suffix(part.name());
            before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
        })
    }
}

/// A way to authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthKind {
    /// None.
    None,
    /// `Authorization: Bearer`.
    Bearer,
    /// `X-API-Key`.
    ApiKey,
    /// OAuth 2.
    Oauth2,
}

impl AuthKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            AuthKind::None => "none",
            AuthKind::Bearer => "bearer",
            AuthKind::ApiKey => "api_key",
            AuthKind::Oauth2 => "oauth2",
        }
    }

    /// The way of that name.
    pub fn named(name: &str) -> Option<Self> {
        [AuthKind::None, AuthKind::Bearer, AuthKind::ApiKey, AuthKind::Oauth2]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_gets_one_where_no_credential_could_be_kept_without() {
        let named = |kind: &str, env: &[&str]| {
            let env = env.iter().map(|name| (*name).to_owned()).collect();
            let kind = AuthKind::named(kind).unwrap();
            Auth { kind, scopes: Vec::new(), env, docs_url: None }.named().env
        };
        let account = ["TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN", "ACCESS_TOKEN"];
        assert_eq!(named("none", &[]), [""; 0]);
        assert_eq!(named("bearer", &[]), ["API_KEY"]);
        assert_eq!(named("api_key", &[]), ["API_KEY"]);
        assert_eq!(named("bearer", &["MY_TOKEN_URL"]), ["MY_TOKEN_URL"]);
        assert_eq!(named("oauth2", &[]), account);
        for whole in [
            &["ACME_TOKEN"][..],
            &["ACME_CLIENT_ID", "KEY"],
            &["a_token_url", "a_client_id", "a_client_secret"],
            &["A_TOKEN_URL", "A_CLIENT_ID", "A_REFRESH_TOKEN"],
        ] {
            assert_eq!(named("oauth2", whole), whole);
        }
        let rest = ["A_CLIENT_ID", "A_CLIENT_SECRET", "TOKEN_URL", "REFRESH_TOKEN", "ACCESS_TOKEN"];
        assert_eq!(named("oauth2", &["A_CLIENT_ID", "A_CLIENT_SECRET"]), rest);
    }
}
