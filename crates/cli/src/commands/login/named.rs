//! The authorization server that the owner names, where nobody on the network says which one it is.

use egress::http::Url;
use host::login::address::check_safe;
use host::login::{Audience, Found, Kept, LoginError};
use host::{Host, Tool};
use manifest::model::{Package, SignIn};

use super::desk::Desk;
use super::refused::failure;
use crate::commands::call;
use crate::exit::Failure;
use crate::login_words;
use crate::printer::line;

/// An address as it is typed: one that codes and tokens may travel to.
pub(super) fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "it is no URL: `https://login.example.com`")?;
    check_safe(&url).map_err(
        |_| "it must be of `https`, or of this machine, without a user, a password and a fragment",
    )?;
    Ok(url)
}

impl Desk<'_> {
    /// The authorization server that the owner names, now or when they signed in before, and what its tokens are for; `None`
    /// where the server or agent of the package has to be asked.
    pub(super) async fn named(
        &self,
        host: &Host,
        tool: &Tool,
        before: Option<&Kept>,
    ) -> Result<Option<Found>, Failure> {
        let (package, resource) = (&tool.package, self.args.resource.as_ref());
        let sign_in = package.sign_in();
        let Some(issuer) = &self.args.issuer else {
            let again = before.filter(|one| is_of_package(one, package)).and_then(again);
            return match (again, sign_in) {
                (Some(found), _) => Ok(Some(found)),
                (None, SignIn::Asked) => Ok(None),
                (None, SignIn::Named(_)) => Err(self.unnamed(package)),
                (None, SignIn::Impossible) => Err(no_secret(package)),
            };
        };
        let audience = if sign_in == SignIn::Asked && self.args.secret.is_none() {
            let remote = host.remote(tool).await;
            let (endpoint, _) = remote.map_err(|error| call::failure(&error, &[], tool))?;
            Audience::at(&endpoint, resource).map_err(|error: LoginError| failure(&error))?
        } else {
            Audience::package(self.secret(package)?, resource)
        };
        Ok(Some(Found::named(issuer.clone(), audience)))
    }

    fn unnamed(&self, package: &Package) -> Failure {
        let id = package.canonical_id();
        let message = format!(
            "nobody on the network says where to sign in for `{}`, which runs here",
            line(&id)
        );
        let command = self.args.command(&id) + login_words::first(package);
        Failure::invalid(message).hint(login_words::signs_in(&command))
    }

    /// The secret that the package is given the token as.
    fn secret<'p>(&self, package: &'p Package) -> Result<&'p str, Failure> {
        let secrets = package.token_secrets();
        let all = || {
            let names: Vec<_> = secrets.iter().map(|name| line(name)).collect();
            format!("--secret names one of {}", names.join(", "))
        };
        match (&self.args.secret, secrets.as_slice()) {
            (_, []) => Err(no_secret(package)),
            (None, [only]) => Ok(only),
            (None, _) => {
                let message = "it declares several secrets, and is given the token as one of them";
                Err(Failure::invalid(message).hint(all()))
            }
            (Some(typed), known) => {
                known.iter().find(|one| *one == typed).copied().ok_or_else(|| {
                    let message = format!("it declares no secret `{}`", line(typed));
                    Failure::invalid(message).hint(all())
                })
            }
        }
    }
}

/// Who signed the owner in before, and for what.
pub(super) fn again(before: &Kept) -> Option<Found> {
    let issuer = Url::parse(&before.issuer).ok()?;
    Some(Found::named(issuer, before.audience.clone()))
}

/// Whether a sign-in is one whose token is given to the package, as a secret that it still has.
fn is_of_package(before: &Kept, package: &Package) -> bool {
    before.audience.secret().is_some_and(|secret| package.token_secrets().contains(&secret))
}

fn no_secret(package: &Package) -> Failure {
    const NONE: &str = "declares no secret that it could be given a token as";
    match package.sign_in() {
        SignIn::Asked => Failure::invalid(format!("it {NONE}"))
            .hint("without --secret the token is told to its server or agent"),
        SignIn::Named(_) | SignIn::Impossible => {
            Failure::invalid(format!("it is no server or agent on the network, and {NONE}"))
                .hint(login_words::impossible(package))
        }
    }
}
