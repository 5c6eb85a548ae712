//! How an owner can sign in for a package.

use super::{Entry, Input, InputSource, Package};

/// How an owner can sign in for a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn<'p> {
    /// Its server or its agent on the network says where, and is told the token.
    Asked,
    /// Nobody on the network says where, so the owner does; it is given the token as one of these secrets, of which there
    /// is at least one.
    Named(Vec<&'p str>),
    /// Nobody can: it is no server, and takes no secret that a token could be given as.
    Impossible,
}

impl Package {
    /// How an owner can sign in for it.
    pub fn sign_in(&self) -> SignIn<'_> {
        let asks =
            |entry: &Entry| entry.is_server_elsewhere() || matches!(entry, Entry::A2a { .. });
        if self.implementations.iter().any(|one| asks(&one.entry)) {
            return SignIn::Asked;
        }
        let secrets = self.token_secrets();
        if secrets.is_empty() { SignIn::Impossible } else { SignIn::Named(secrets) }
    }

    /// Its secrets that a token can be given as: those that come from the owner, and not with a call.
    pub fn token_secrets(&self) -> Vec<&str> {
        let is_kept = |input: &&Input| input.secret && input.source != InputSource::Caller;
        self.inputs.iter().filter(is_kept).map(|input| &*input.name).collect()
    }
}
