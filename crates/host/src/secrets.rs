//! The values a call is given: variables, and secrets from where the owner keeps them.

mod described;
mod desktop;
mod fitting;
pub(crate) mod refusal;
pub mod server;

pub use described::Described;
pub(crate) use described::describe;
pub use fitting::misfit;

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use manifest::dialect::Dialect;
use manifest::model::{Input, InputSource, Package};
use policy::{Allowance, Denial, GrantKind, Grants, may_be_passed};
use vault::outside::{self, OutsideError};
use vault::{FileVault, Owner, Place, Redactor, Reference, Secret};

use crate::call::Tool;
use crate::confine::{self, Forbidden};
use crate::error::{CallError, Kind, Missing};
use crate::host::Settings;
use crate::login::logins::Wanted;
use crate::login::{self, Bearer, LoginError, Logins};
use crate::template::Variable;

/// What a call is given, by name.
pub(crate) type Variables = Vec<(String, Variable)>;

/// Collects the values of a call.
pub(crate) struct Collector<'c> {
    pub(crate) tool: &'c Tool,
    pub(crate) settings: &'c Settings,
    pub(crate) vault: &'c FileVault,
    pub(crate) grants: &'c Grants,
    /// The sign-ins of the home, where the owner is signed in for the tool.
    pub(crate) logins: Option<&'c Logins>,
    pub(crate) elsewhere: Elsewhere,
}

/// What is done about secrets that others keep.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Elsewhere {
    /// They are asked for.
    Asked,
    /// They are left alone, because nothing is run.
    Left,
}

/// What was collected for a call.
#[derive(Default)]
pub(crate) struct Collected<'i> {
    /// What it is given; where nothing is run, also what stands for the rest.
    pub(crate) variables: Variables,
    /// What it needs and is not given.
    pub(crate) missing: Vec<Missing<'i>>,
}

impl<'i> Collected<'i> {
    /// The values, if all that are needed are there.
    pub(crate) fn whole(self) -> Result<Variables, CallError> {
        if self.missing.is_empty() {
            Ok(self.variables)
        } else {
            Err(CallError::missing(&self.missing))
        }
    }

    fn add(
        &mut self,
        name: &str,
        value: Option<String>,
        is_secret: bool,
        missing: Option<Missing<'i>>,
    ) {
        let variable = value.map(|value| (name.to_owned(), Variable { value, is_secret }));
        self.variables.extend(variable);
        self.missing.extend(missing);
    }

    /// Whether it is known what becomes of a value. A tool may say again when it runs what its manifest says.
    fn knows(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
            || self.missing.iter().any(|one| one.name == name)
    }
}

/// Why a value cannot be had.
enum NotHad {
    /// It is about this one.
    This(CallError),
    /// Whoever keeps it does not answer, or not us: nobody waits for that again.
    Any(CallError),
}

impl From<CallError> for NotHad {
    fn from(error: CallError) -> Self {
        Self::This(error)
    }
}

impl Collector<'_> {
    /// What the tool declares, what the call turned out to need, and the variables that were granted.
    pub(crate) async fn collect<'i>(
        &'i self,
        allowance: &Allowance,
        more: &'i [Input],
    ) -> Result<Collected<'i>, CallError> {
        let (mut collected, inputs) = (Collected::default(), &self.tool.package.inputs);
        let token = self.token(allowance).await?;
        for name in &allowance.environment {
            let given = self.given(name, token.as_ref());
            let value = self.settings.variable(name).filter(|_| given.is_none());
            let Some(value) = value else { continue };
            let input = inputs.iter().find(|input| input.name == *name);
            let unfit = input.and_then(|input| Some((input, check_fits(input, value).err()?)));
            let (value, missing) = match unfit {
                Some((input, error)) => {
                    let error = error.with("variable", &**name);
                    (self.stand_in(input), Some(refusal::withheld(input, error)))
                }
                None => (Some(value.to_owned()), None),
            };
            collected.add(name, value, input.is_some_and(|input| input.secret), missing);
        }
        for input in more {
            self.check_declared(&input.name)?;
        }
        for input in inputs.iter().chain(more) {
            if collected.knows(&input.name) || input.source == InputSource::Caller {
                continue;
            }
            let given = self.given(&input.name, token.as_ref());
            let (value, missing) = match Box::pin(self.value(input, given)).await {
                Ok(value) => {
                    let is_missing = value.is_none() && input.required && !self.leaves(input);
                    (value, is_missing.then(|| refusal::missing(input)))
                }
                Err(NotHad::This(error)) => (None, Some(refusal::withheld(input, error))),
                Err(NotHad::Any(error)) => return Err(error),
            };
            let value = value.or_else(|| self.stand_in(input));
            collected.add(&input.name, value, input.secret, missing);
        }
        Ok(collected)
    }

    /// The value of an input, as it may be given.
    async fn value(&self, input: &Input, given: Option<&Secret>) -> Result<Option<String>, NotHad> {
        let kept = match (given, &input.reference) {
            (Some(given), _) => Some(given.clone()),
            (None, Some(reference)) => self.refer(reference).await?,
            (None, None) => self.keep(&place(&self.tool.package, &input.name)?)?,
        };
        // Nothing is taken from wherever a variable of its name happens to be set, unless that was granted.
        let value = kept.map(|secret| secret.expose().to_owned()).or_else(|| input.default.clone());
        if let Some(value) = &value {
            self.check_passed(&input.name)?;
            check_fits(input, value).map_err(|error| refusal::looked_for(error, input))?;
        }
        Ok(value)
    }

    /// The value that somebody brought along, or that the owner signed in for.
    fn given<'g>(&'g self, name: &str, token: Option<&'g (String, Secret)>) -> Option<&'g Secret> {
        let mut given = self.tool.given.values.iter().chain(token);
        given.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The token of the owner's sign-in, where it is given to the tool as one of its secrets: nobody could give it another while
    /// it runs, so this one lasts as long as the call may. Where nothing is run, it is the one that is there.
    async fn token(&self, allowance: &Allowance) -> Result<Option<(String, Secret)>, CallError> {
        let secrets = self.tool.package.token_secrets();
        let Some(logins) = self.logins.filter(|_| !secrets.is_empty()) else { return Ok(None) };
        let package = self.tool.package.canonical_id();
        let named = |error: LoginError| match error {
            LoginError::Vault(error) => refusal::by_vault(login::NAME, &error),
            error => CallError::from(error).of_package(&package),
        };
        let Some(kept) = logins.kept(&package).map_err(named)? else { return Ok(None) };
        let Some(secret) = kept.audience.secret() else { return Ok(None) };
        if !secrets.contains(&secret) {
            let message = format!(
                "you signed in for its secret `{secret}`, and it has none of that name any more"
            );
            return Err(CallError::new(Kind::NeedsLogin, message).of_package(&package));
        }
        let bearer = match self.elsewhere {
            Elsewhere::Left => Some(kept.bearer()),
            Elsewhere::Asked => {
                let until = Instant::now() + Duration::from_millis(allowance.timeout_ms);
                let rules = confine::rules(allowance)?;
                let bearer = logins.bearer(&package, Wanted::Lasting, &rules, until);
                Box::pin(bearer).await.map_err(named)?
            }
        };
        let value = bearer.as_ref().and_then(Bearer::value);
        Ok(value.map(|(name, token)| (name.to_owned(), token.clone())))
    }

    /// What stands for a value that is not there, where nothing is run.
    fn stand_in(&self, input: &Input) -> Option<String> {
        let is_wanted = self.elsewhere == Elsewhere::Left && (input.secret || input.required);
        is_wanted.then(|| stand_in(&input.name))
    }

    /// Whether it is not known if a value is there, because whoever keeps it is left alone.
    fn leaves(&self, input: &Input) -> bool {
        self.elsewhere == Elsewhere::Left && is_elsewhere(input)
    }

    /// Refuses a shared secret that a tool names only when it runs: the owner could not know who gets it.
    fn check_declared(&self, name: &str) -> Result<(), CallError> {
        let package = &self.tool.package;
        let is_declared = package.inputs.iter().any(|input| input.name == name);
        if is_declared || *place(package, name)?.owner() != Owner::Shared {
            return Ok(());
        }
        let message = format!(
            "the secret `{name}` is shared between tools, and the manifest of this one does not name it"
        );
        Err(CallError::new(Kind::Denied, message))
    }

    /// Refuses a variable that steers programs. In some dialects an input is no variable of its process.
    fn check_passed(&self, name: &str) -> Result<(), CallError> {
        let is_variable = !matches!(self.tool.package.dialect, Dialect::Jumith | Dialect::Mcpb);
        if is_variable && !may_be_passed(name, &self.settings.policy) {
            return Err(CallError::denied(&Denial::environment(name, &self.settings.policy)));
        }
        Ok(())
    }

    fn keep(&self, place: &Place) -> Result<Option<Secret>, NotHad> {
        let kept = self.vault.get(place);
        kept.map_err(|error| NotHad::Any(refusal::by_vault(place.name(), &error)))
    }

    /// What a reference leads to. A manifest can name anything, so what lies outside our own vault
    /// is given only where the owner said so.
    async fn refer(&self, reference: &str) -> Result<Option<Secret>, NotHad> {
        let parsed = Reference::from_str(reference)
            .map_err(|error| CallError::new(Kind::Unavailable, error.to_string()))?;
        match &parsed {
            Reference::Secret { name } => self.keep(&place(&self.tool.package, name)?),
            Reference::Environment { name } => {
                let allowed = &self.settings.policy.secrets.environment;
                if !allowed.contains(name) {
                    return Err(refusal::unnamed(reference, "environment", allowed, name).into());
                }
                let value = self.settings.variable(name).map(|value| Secret::new(value.to_owned()));
                Ok(value.transpose().map_err(|error| refusal::unavailable(name, &error))?)
            }
            Reference::File { path } => {
                // By where it really lies, before it is opened and after: a tool may have put a link there.
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                self.check_file(reference, &real)?;
                let failed = |error: OutsideError| refusal::by_file(reference, &error);
                let opened = outside::Opened::file(&real).map_err(failed)?;
                self.check_file(reference, &opened.place().map_err(failed)?)?;
                Ok(opened.read().map(Some).map_err(failed)?)
            }
            Reference::Vault { .. } | Reference::Keyring { .. } => {
                let allowed = &self.settings.policy.secrets.references;
                if !allowed.iter().any(|one| one == reference) {
                    let error = refusal::unnamed(reference, "references", allowed, reference);
                    return Err(error.into());
                }
                self.ask(&parsed).await.map_err(|mut error| {
                    error.message = format!("`{reference}` is not to be had: {error}");
                    NotHad::Any(error)
                })
            }
        }
    }

    /// Refuses a file that the walls would not show. A package that wants no folders is given one file that was
    /// granted to it by its own path.
    fn check_file(&self, reference: &str, path: &Path) -> Result<(), CallError> {
        if Forbidden::new(self.settings).holds(path) {
            let how = "the file is haft's own, or your policy hides it";
            return Err(refusal::refused(reference, how));
        }
        let wants_none = self.tool.package.permissions.filesystem.as_deref() == Some("none");
        let is_granted = |granted: &str| {
            if wants_none { path == Path::new(granted) } else { path.starts_with(granted) }
        };
        if self.grants.of(GrantKind::Read).any(is_granted) {
            Ok(())
        } else {
            Err(refusal::ungranted(reference, path))
        }
    }

    /// Asks whoever keeps it, as far as it is known who that is; nobody, where they are left alone.
    async fn ask(&self, reference: &Reference) -> Result<Option<Secret>, CallError> {
        let is_left = self.elsewhere == Elsewhere::Left;
        let asked = match reference {
            Reference::Vault { mount, path, field } => {
                let server = self.settings.policy.secrets.server.as_ref();
                let server = server.ok_or_else(refusal::no_server)?;
                if is_left {
                    return Ok(None);
                }
                server::ask(server, self.settings, self.vault, (mount, path, field)).await
            }
            Reference::Keyring { .. } if is_left => return Ok(None),
            Reference::Keyring { service, account } => desktop::ask(service, account).await,
            Reference::Secret { .. } | Reference::Environment { .. } | Reference::File { .. } => {
                return Ok(None);
            }
        };
        asked.map(Some)
    }
}

/// Refuses a value that the tool would not know what to do with.
fn check_fits(input: &Input, value: &str) -> Result<(), CallError> {
    fitting::misfit(input, value).map_or(Ok(()), |wrong| Err(refusal::unfit(input, &wrong)))
}

/// Where the vault keeps the value of a variable, where it is the vault that does.
pub(crate) fn kept_at(package: &Package, name: &str) -> Option<Place> {
    let input = package.inputs.iter().find(|input| input.name == name)?;
    match input.reference.as_deref().map(Reference::from_str) {
        None => place(package, name).ok(),
        Some(Ok(Reference::Secret { name })) => place(package, &name).ok(),
        Some(_) => None,
    }
}

/// Where a secret of a package is kept. In the dialect whose names may be shared, a name with a dot is.
pub fn place(package: &Package, name: &str) -> Result<Place, CallError> {
    if name == login::NAME {
        let message = format!("`{name}` is no name of a secret: a sign-in is kept there");
        return Err(CallError::new(Kind::Denied, message));
    }
    let owner = match package.dialect {
        Dialect::Jumith if name.contains('.') => Owner::Shared,
        _ => Owner::Package(package.canonical_id()),
    };
    Place::new(owner, name).map_err(|error| CallError::new(Kind::BadInput, error.to_string()))
}

/// The name under which a Node tool finds one of its secrets, beside the secret's own.
pub(crate) fn told_as(tool: &str, name: &str) -> String {
    format!("{tool}-{name}")
}

/// The names under which a Node tool finds the secrets that its manifest names. Two tools with one of them in common are
/// not told apart by whoever keeps secrets by these names: `a` with `b-c`, and `a-b` with `c`.
pub fn names_told(package: &Package) -> Vec<String> {
    let tool = package.name.as_deref().unwrap_or_default();
    let secrets = package.inputs.iter().filter(|input| input.secret);
    match package.dialect {
        Dialect::Jumith => secrets.map(|input| told_as(tool, &input.name)).collect(),
        _ => Vec::new(),
    }
}

/// Takes the secrets of a call out of whatever is shown of it.
pub(crate) fn redactor(variables: &[(String, Variable)]) -> Redactor {
    let secrets: Vec<_> = variables
        .iter()
        .filter(|(_, variable)| variable.is_secret)
        .filter_map(|(name, variable)| Some((name, Secret::new(variable.value.clone()).ok()?)))
        .collect();
    Redactor::new(secrets.iter().map(|(name, secret)| (name.as_str(), secret)))
}

/// What stands for a value that is not there, where nothing is run.
fn stand_in(name: &str) -> String {
    format!("({name})")
}

/// Whether a value only stands for one that is not there.
pub(crate) fn is_stand_in(name: &str, variable: &Variable) -> bool {
    variable.value == stand_in(name)
}

/// What stands for all that a package is given, where it cannot be told what of it is there.
pub(crate) fn stand_ins(package: &Package) -> Variables {
    let given = package.inputs.iter().filter(|input| input.source != InputSource::Caller);
    given
        .map(|Input { name, secret, .. }| {
            (name.clone(), Variable { value: stand_in(name), is_secret: *secret })
        })
        .collect()
}

/// Whether the value of an input is with somebody who is not asked where nothing is run.
fn is_elsewhere(input: &Input) -> bool {
    let reference = input.reference.as_deref().map(Reference::from_str);
    matches!(reference, Some(Ok(Reference::Vault { .. } | Reference::Keyring { .. })))
}

/// The same without what a call does not need and would not be given.
pub(crate) fn without_unset(package: &Package, variables: &[(String, Variable)]) -> Variables {
    let is_unset = |(name, one): &&(String, Variable)| {
        let input = package.inputs.iter().find(|input| input.name == *name);
        is_stand_in(name, one) && input.is_some_and(|input| !input.required && !is_elsewhere(input))
    };
    variables.iter().filter(|one| !is_unset(one)).cloned().collect()
}
