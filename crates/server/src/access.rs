//! Tokens, owners, reviews and publishers of a registry: who may change them, and how.

use std::time::Duration;

use registry::{Channel, Decision, Owners, Provenance, Publisher, State, WaitingList};

use crate::identity::{self, IdentityError, Sworn};
use crate::service::{ChangeError, MakeTokenError, Registry, make_token, now};
use crate::store::StoreError;
use crate::store::owners::Changed;
use crate::store::reviews::{Kept, Review};
use crate::store::tokens::{Identity, Token};
use crate::store::versions::{FindError, Which};
use crate::token::{Action, Role, Scope, Secret};

/// How long a token is good that is given for an identity.
pub const GIVEN_FOR: Duration = Duration::from_mins(15);

/// How often it is looked again who may say something of a version that others move meanwhile.
const AGAIN: usize = 8;

/// Why an administrator's wish is not done.
#[derive(Debug)]
pub enum AccessError {
    /// The token is not for that.
    Role(Action),
    /// The token is not for these names.
    Namespace(String),
    /// There is nothing of that id.
    NotFound(String),
    /// The rule cannot be one.
    Rule(identity::RuleError),
    /// The identity is not good.
    Identity(IdentityError),
    /// A token cannot be made.
    Make(MakeTokenError),
    /// The database refuses.
    Store(StoreError),
}

impl From<StoreError> for AccessError {
    fn from(error: StoreError) -> Self {
        AccessError::Store(error)
    }
}

/// A token as it is told, without what it is.
impl From<&Token> for registry::Token {
    fn from(token: &Token) -> Self {
        Self {
            id: token.id.clone(),
            namespace: token.scope.name().to_owned(),
            role: token.role.name().to_owned(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            provenance: token.provenance.clone(),
        }
    }
}

impl Registry {
    /// Whether somebody may see versions of a package that are not offered: who may publish or review it.
    pub async fn sees_hidden(
        &self,
        token: Option<&Token>,
        id: &str,
        namespace: &str,
    ) -> Result<bool, StoreError> {
        let Some(token) = token.filter(|token| token.role != Role::Read) else { return Ok(false) };
        if token.scope.covers(namespace) {
            return Ok(true);
        }
        if !token.role.allows(Action::Publish) {
            return Ok(false);
        }
        self.store.is_owner(id, token.scope.name()).await
    }

    /// Who may publish a package.
    pub async fn owners(&self, asked: &str) -> Result<Owners, FindError> {
        let (id, namespace) = self.store.resolve(asked).await?;
        let owners = self.store.owners(&id).await?;
        Ok(Owners { id, namespace, owners })
    }

    /// Adds an owner to a package, or removes one. Only tokens of the package's own namespace may: an owner
    /// who was added adds no others.
    pub async fn change_owner(
        &self,
        token: &Token,
        asked: &str,
        owner: &str,
        change: OwnerChange,
    ) -> Result<Owners, ChangeError> {
        let found = |error| match error {
            FindError::Store(error) => ChangeError::Store(error),
            other => ChangeError::NotFound(other),
        };
        let (id, namespace) = self.store.resolve(asked).await.map_err(found)?;
        // What is good for one build gives nobody a right for ever.
        if !token.role.allows(Action::Publish) || token.provenance.is_some() {
            return Err(ChangeError::Role(Action::Publish));
        }
        if !token.scope.covers(&namespace) {
            return Err(ChangeError::Namespace(namespace));
        }
        let done = match change {
            OwnerChange::Add if owner == namespace => Ok(Changed::Unchanged),
            OwnerChange::Add => self.store.add_owner(&id, owner, &token.id, now()).await,
            OwnerChange::Remove if owner == namespace => {
                return Err(ChangeError::OwnNamespace(namespace));
            }
            OwnerChange::Remove => self.store.remove_owner(&id, owner).await,
        };
        if done.map_err(ChangeError::Store)? == Changed::TooMany {
            return Err(ChangeError::TooManyOwners);
        }
        self.owners(&id).await.map_err(found)
    }

    /// What waits for this reviewer.
    pub async fn waiting(
        &self,
        token: &Token,
        offset: u32,
        limit: u32,
    ) -> Result<WaitingList, AccessError> {
        if !token.role.allows(Action::Review) {
            return Err(AccessError::Role(Action::Review));
        }
        Ok(self.store.waiting(&token.scope, offset, limit).await?)
    }

    /// Approves a version into a channel, or refuses it. Where nothing is held back, and no reviewer has said
    /// anything of it, its publisher may move it between channels, as it might have published it there.
    pub async fn review(
        &self,
        token: &Token,
        asked: &str,
        version: &str,
        decision: &Decision,
    ) -> Result<(), ChangeError> {
        let found = |error| match error {
            FindError::Store(error) => ChangeError::Store(error),
            other => ChangeError::NotFound(other),
        };
        let (id, namespace) = self.store.resolve(asked).await.map_err(found)?;
        for _ in 0..AGAIN {
            let known =
                self.store.find_hidden(&id, Which::Exactly(version)).await.map_err(found)?;
            let is_held = self.settings.quarantine.holds(&namespace)
                || !known.channel.is_offered()
                || self.is_reviewed(&id, version, &known.publisher).await?;
            let action = match (decision.channel, is_held) {
                (Some(_), false) if token.role == Role::Publish => Action::Publish,
                _ => Action::Review,
            };
            self.check(token, action, &id, [namespace.as_str()]).await?;
            if is_held && decision.channel.is_some() && known.publisher == token.id {
                return Err(ChangeError::OwnVersion);
            }
            let review = Review {
                id: &id,
                version,
                seen: known.channel,
                state: decision.channel.map_or(State::Rejected, Channel::into),
                reason: decision.reason.trim(),
                by: &token.id,
                at: now(),
            };
            if self.store.review(&review).await.map_err(found)? == Kept::Said {
                self.take_in().await;
                return Ok(());
            }
        }
        Err(ChangeError::Busy)
    }

    /// Whether somebody else than its publisher has said anything of a version: that is not the publisher's to undo.
    async fn is_reviewed(&self, id: &str, version: &str, by: &str) -> Result<bool, ChangeError> {
        let said = self.store.reviews(id, version).await.map_err(ChangeError::Store)?;
        Ok(said.iter().any(|one| one.reviewer != by))
    }

    /// Whether somebody may see how the registry itself is doing.
    pub fn check_operator(&self, by: &Token) -> Result<(), AccessError> {
        check_admin(by, &Scope::All)
    }

    /// Makes a token for somebody; nobody gives more than they have.
    pub async fn give_token(
        &self,
        by: &Token,
        scope: Scope,
        role: Role,
        lifetime: Option<Duration>,
    ) -> Result<(Secret, Token), AccessError> {
        check_admin(by, &scope)?;
        make_token(&self.store, scope, role, lifetime).await.map_err(AccessError::Make)
    }

    /// The tokens that somebody may see.
    pub async fn tokens_for(&self, by: &Token) -> Result<Vec<Token>, AccessError> {
        check_admin(by, &by.scope)?;
        let mut tokens = self.store.tokens().await?;
        tokens.retain(|token| by.scope.holds(&token.scope));
        Ok(tokens)
    }

    /// Ends a token.
    pub async fn revoke_token(&self, by: &Token, id: &str) -> Result<(), AccessError> {
        check_admin(by, &by.scope)?;
        match self.store.token_called(id).await? {
            Some(token) if by.scope.holds(&token.scope) => {
                self.store.revoke_token(id, now()).await?;
                Ok(())
            }
            _ => Err(AccessError::NotFound(id.to_owned())),
        }
    }

    /// Trusts a publisher. The registry asks its issuer for keys, so only who administers everything may name one.
    pub async fn trust_publisher(
        &self,
        by: &Token,
        rule: registry::NewPublisher,
    ) -> Result<Publisher, AccessError> {
        check_admin(by, &Scope::All)?;
        trust_publisher(&self.store, rule).await
    }

    /// All publishers that are trusted.
    pub async fn publishers(&self, by: &Token) -> Result<Vec<Publisher>, AccessError> {
        check_admin(by, &Scope::All)?;
        Ok(self.store.publishers().await?)
    }

    /// Trusts a publisher no more. Tokens that it was given end within a quarter of an hour.
    pub async fn forget_publisher(&self, by: &Token, id: &str) -> Result<(), AccessError> {
        check_admin(by, &Scope::All)?;
        let was_there = self.store.remove_publisher(id).await?;
        if was_there { Ok(()) } else { Err(AccessError::NotFound(id.to_owned())) }
    }

    /// Gives a token for an identity, once: to publish, for a quarter of an hour.
    pub async fn exchange(
        &self,
        identity: &str,
        namespace: Option<&str>,
    ) -> Result<(Secret, Token), AccessError> {
        let checked = identity::check(&self.store, &self.keys, identity, namespace, now()).await;
        let Sworn { namespace, provenance, hash, remembered_until } =
            checked.map_err(AccessError::Identity)?;
        let no_randomness = |error| AccessError::Make(MakeTokenError::Randomness(error));
        let secret = Secret::generate().map_err(no_randomness)?;
        let created_at = now();
        let token = token_for(&secret, &namespace, provenance, created_at);
        let identity = Identity { hash: &hash, remembered_until };
        if self.store.keep_token_for(&secret, &token, &identity).await? {
            Ok((secret, token))
        } else {
            Err(AccessError::Identity(IdentityError::Used))
        }
    }
}

/// What becomes of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerChange {
    /// It is one from now on.
    Add,
    /// It is none any more.
    Remove,
}

/// Keeps a rule, when it can be one.
pub async fn trust_publisher(
    store: &crate::Store,
    rule: registry::NewPublisher,
) -> Result<Publisher, AccessError> {
    identity::check_rule(&rule).map_err(AccessError::Rule)?;
    let text = serde_json::to_string(&rule).unwrap_or_default();
    // The same rule has the same id, so that saying it twice keeps it once.
    let id = package::digest::Digest::of(text.as_bytes()).to_string()[..12].to_owned();
    let created_at = now();
    store.keep_publisher(&id, &rule, created_at).await?;
    Ok(Publisher::new(id, rule, created_at))
}

fn token_for(secret: &Secret, namespace: &str, provenance: Provenance, created_at: u64) -> Token {
    let life = u64::try_from(GIVEN_FOR.as_millis()).unwrap_or(0);
    Token {
        id: secret.id(),
        scope: Scope::named(namespace),
        role: Role::Publish,
        created_at,
        expires_at: Some(created_at + life),
        revoked_at: None,
        provenance: Some(provenance),
    }
}

fn check_admin(by: &Token, scope: &Scope) -> Result<(), AccessError> {
    if !by.role.allows(Action::Administer) {
        return Err(AccessError::Role(Action::Administer));
    }
    if by.scope.holds(scope) {
        Ok(())
    } else {
        Err(AccessError::Namespace(scope.name().to_owned()))
    }
}
