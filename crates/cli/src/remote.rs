//! Which registries a command is about, what is shown to them, and what their answers mean for whoever typed it.

use std::cmp::Reverse;
use std::sync::Arc;

use clap::Args;
use egress::http::{SetupError, Url, is_here};
use registry::catalog::{Catalog, Place};
use registry::client::address::{AddressError, shown};
use registry::client::cache::{Cache, MOST};
use registry::client::list::{Kind, is_name};
use registry::client::{
    Address, Client, FetchError, Fetcher, FindError, Listed, Reach, Registries, Remote, Settings,
    Source, Token, error,
};
use registry::{Channel, ErrorCode, State, Version};
use vault::Owner;

use crate::ask::Ask;
use crate::exit::{Exit, Failure};
use crate::home::{Home, VAULT};
use crate::printer::line;
use crate::{owner, shell};

/// Names the registry where no flag does.
pub(crate) const ADDRESS: &str = "REGISTRY_BASE_URL";
/// Holds a token for the registry of [`ADDRESS`], or, where that is not set, for the one that a flag names.
const TOKEN: &str = "HAFT_TOKEN";
/// Who the tokens in the vault belong to.
const TOKEN_OWNER: &str = "haft:registry";

/// What was fetched before.
pub(crate) fn cache(home: &Home) -> Cache {
    Cache::new(home.path().join("cache"), MOST)
}

/// What to say of an address that is only a host.
const BEGINS: &str = "an address begins with https://, or http:// for this machine";

// Which registries. A doc comment here would stand in the help of every verb that has these.
#[derive(Args, Debug, Default)]
pub(crate) struct Which {
    /// The registry: a name that `haft registry list` shows, or an address [default: `REGISTRY_BASE_URL`, or those you have added]
    #[arg(long, value_name = "NAME|URL")]
    registry: Option<String>,
}

impl Which {
    /// The one of this name or address.
    pub(crate) fn named(text: String) -> Self {
        Self { registry: Some(text) }
    }

    /// Whether nobody named one.
    pub(crate) fn is_any(&self) -> bool {
        self.registry.is_none()
    }

    /// What was typed to name it, for a command that is to be typed next.
    pub(crate) fn typed(&self) -> String {
        self.registry
            .as_deref()
            .map_or_else(String::new, |registry| format!(" --registry {}", shell::word(registry)))
    }

    /// The one that the environment names, if it does.
    pub(crate) fn by_environment() -> Option<Self> {
        named_by_environment().map(Self::named)
    }
}

// Whether anybody is asked; no doc comment either.
#[derive(Args, Debug, Default)]
pub(crate) struct Offline {
    /// Ask nobody: what was fetched before has to do
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Whether the token of the environment is meant for a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Environment {
    /// The registry was named together with it, or by the flag where the environment names none.
    Meant,
    /// It is for another, or nobody said for which: whoever is only listed might be anybody.
    NotMeant,
}

/// The registries of a home.
pub(crate) struct Known<'h> {
    home: &'h Home,
    ask: Ask,
    settings: Settings,
    list: Registries,
}

impl<'h> Known<'h> {
    pub(crate) fn new(home: &'h Home, ask: Ask) -> Result<Self, Failure> {
        owner::check_home(home)?;
        let list = Registries::load(home.path()).map_err(|error| list_failure(&error))?;
        Ok(Self { home, ask, settings: Settings::default(), list })
    }

    /// The same, asking nobody where that is wanted.
    pub(crate) fn with(mut self, offline: &Offline) -> Self {
        if offline.offline {
            self.settings.reach = Reach::Offline;
        }
        self
    }

    /// The same, for versions that are so far along.
    pub(crate) fn offered(mut self, channel: Option<Channel>) -> Self {
        self.settings.channel = channel.unwrap_or_default();
        self
    }

    /// The same, or nobody where none is named: for whoever can do without.
    pub(crate) fn client_if_any(&self, which: &Which) -> Result<Option<Client>, Failure> {
        let (meant, _) = self.meant(which)?;
        if meant.is_empty() { Ok(None) } else { self.client(which).map(Some) }
    }

    /// Whether a registry at an address is one that its owner added, or that the environment names.
    pub(crate) fn knows(&self, address: &str) -> bool {
        let Ok(address) = Address::parse(address) else { return false };
        let is_it = |url: &str| Address::parse(url).is_ok_and(|one| one.url() == address.url());
        self.list.iter().any(|one| one.has_address() && is_it(&one.url))
            || named_by_environment().is_some_and(|text| is_it(&text))
    }

    /// The registries that are meant, in the order of their priorities.
    pub(crate) fn client(&self, which: &Which) -> Result<Client, Failure> {
        let (meant, environment) = self.meant(which)?;
        if meant.is_empty() {
            return Err(none_named());
        }
        let sources: Result<_, _> = meant.iter().map(|one| self.source(one, environment)).collect();
        Ok(Client::new(sources?))
    }

    /// The one registry that is meant, which a change needs.
    pub(crate) fn one(&self, which: &Which) -> Result<Remote, Failure> {
        let (mut meant, environment) = self.meant(which)?;
        if which.registry.is_none() {
            // Nothing is ever published in a folder.
            meant.retain(|one| one.kind == Kind::Registry);
        }
        match meant.as_slice() {
            [] => Err(none_named()),
            [one] if one.kind != Kind::Registry => {
                let message = format!("`{}` is a {}, no registry", one.name, one.kind.name());
                Err(Failure::invalid(message))
            }
            [one] => self.remote(one, environment),
            several => {
                let names: Vec<_> = several.iter().map(|one| one.name.as_str()).collect();
                let message = format!("there are {} registries, and one is meant", names.len());
                let first = shell::word(names[0]);
                Err(Failure::invalid(message)
                    .hint(format!("name it, such as --registry {first}: {}", names.join(", "))))
            }
        }
    }

    /// What is shown at an address that something is taken from: the token of the registry that it is in, which every
    /// verb shows there.
    pub(crate) fn token_at(
        &self,
        address: &Address,
        which: &Which,
    ) -> Result<Option<Token>, Failure> {
        let of_environment = match (named_by_environment(), &which.registry) {
            (Some(text), _) => Some(self.at(&text)?),
            (None, Some(text)) => Some(self.named(text)?),
            (None, None) => None,
        };
        let listed = self.list.iter().filter(|one| one.has_address()).cloned();
        let listed = listed.map(|one| (one, Environment::NotMeant));
        let meant = of_environment.map(|one| (one, Environment::Meant));
        let mut around: Vec<_> = meant.into_iter().chain(listed).collect();
        around.retain(|(one, _)| Address::parse(&one.url).is_ok_and(|base| base.holds(address)));
        // The token of the environment comes before one that is kept, and one for a part of a place before one for all.
        around.sort_by_key(|(one, how)| (*how == Environment::NotMeant, Reverse(one.url.len())));
        for (one, how) in &around {
            if let Some(token) = self.token(one, *how)? {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// Of the flag, else of the environment, else all.
    fn meant(&self, which: &Which) -> Result<(Vec<Listed>, Environment), Failure> {
        let variable = named_by_environment();
        match (&which.registry, variable) {
            (Some(text), variable) => {
                let named = self.named(text)?;
                let is_there = |base: String| self.at(&base).is_ok_and(|at| at.url == named.url);
                let is_meant = variable.is_none_or(is_there);
                let how = if is_meant { Environment::Meant } else { Environment::NotMeant };
                Ok((vec![named], how))
            }
            (None, Some(text)) => Ok((vec![self.at(&text)?], Environment::Meant)),
            (None, None) => Ok((self.list.iter().cloned().collect(), Environment::NotMeant)),
        }
    }

    /// The registry of a name or at an address.
    pub(crate) fn named(&self, text: &str) -> Result<Listed, Failure> {
        match self.list.get(text) {
            Some(listed) => Ok(listed.clone()),
            None if is_name(text) => {
                let failure =
                    Failure::new(Exit::NotFound, format!("there is no registry `{text}`"));
                let names: Vec<_> = self.list.iter().map(|one| one.name.as_str()).collect();
                Err(failure.hint(match names.as_slice() {
                    [] => format!(
                        "`haft registry add {} URL` names one; an address begins with https://",
                        shell::word(text)
                    ),
                    names => {
                        format!("there is {}; an address begins with https://", names.join(", "))
                    }
                }))
            }
            None => self.at(text),
        }
    }

    /// The registry at an address, under the name that it may have.
    fn at(&self, text: &str) -> Result<Listed, Failure> {
        let url = Address::of_registry(text).map_err(|error| no_address(text, error))?.to_string();
        let known = self.list.iter().find(|one| one.kind == Kind::Registry && one.url == url);
        Ok(known.cloned().unwrap_or_else(|| Listed {
            name: url.clone(),
            url,
            kind: Kind::Registry,
            priority: 0,
        }))
    }

    fn source(&self, listed: &Listed, how: Environment) -> Result<Source, Failure> {
        let place = match listed.kind {
            Kind::Registry => return Ok(Source::Registry(Box::new(self.remote(listed, how)?))),
            Kind::WellKnown => Place::WellKnown(self.lister(listed)?),
            Kind::Catalog if listed.has_address() => Place::Address(self.lister(listed)?),
            Kind::Catalog => Place::File(listed.url.clone().into()),
            Kind::Folder => Place::Folder(listed.url.clone().into()),
        };
        Ok(Source::Catalog(Box::new(Catalog::new(&listed.name, place))))
    }

    /// A registry that is shown this token and no other.
    pub(crate) fn showing(&self, listed: &Listed, token: &Token) -> Result<Remote, Failure> {
        Ok(Remote::new(&listed.name, self.fetcher(listed, Some(token))?))
    }

    fn remote(&self, listed: &Listed, how: Environment) -> Result<Remote, Failure> {
        let token = self.token(listed, how)?;
        Ok(Remote::new(&listed.name, self.fetcher(listed, token.as_ref())?))
    }

    /// What fetches a catalog. The token of the environment is for registries, never for whoever lists something.
    fn lister(&self, listed: &Listed) -> Result<Fetcher, Failure> {
        let token = self.token(listed, Environment::NotMeant)?;
        self.fetcher(listed, token.as_ref())
    }

    fn fetcher(&self, listed: &Listed, token: Option<&Token>) -> Result<Fetcher, Failure> {
        let cache = Arc::new(cache(self.home));
        let address = address(&listed.url)?;
        Fetcher::new(&address, token, cache, self.settings)
            .map_err(|error: SetupError| Failure::of(Exit::Unavailable, &error))
    }

    /// The token of the environment where it is meant for this registry, else that of the vault, which is for that
    /// address alone.
    fn token(&self, listed: &Listed, how: Environment) -> Result<Option<Token>, Failure> {
        let is_shown = |token: &String| how == Environment::Meant && !token.is_empty();
        let variable = std::env::var(TOKEN).ok().filter(is_shown);
        let no_token = |where_: &str| Failure::invalid(format!("what {where_} holds is no token"));
        if let Some(text) = variable {
            return Token::parse(&text).map(Some).map_err(|error| no_token(TOKEN).cause(error));
        }
        if self.settings.reach == Reach::Offline || !self.home.path().join(VAULT).exists() {
            return Ok(None);
        }
        let kept = owner::vault(self.home, self.ask)?
            .get(&place(&listed.url)?)
            .map_err(|error| owner::vault_failure(&error))?;
        let token = kept.map(|kept| Token::parse(kept.expose()));
        token.transpose().map_err(|error| no_token("the vault").cause(error))
    }
}

/// Where the token of an address is kept: another address is never shown it, whatever it is called.
pub(crate) fn place(url: &str) -> Result<vault::Place, Failure> {
    vault::Place::new(Owner::Package(TOKEN_OWNER.to_owned()), url)
        .map_err(|error| Failure::of(Exit::Invalid, &error))
}

/// Reads an address.
pub(crate) fn address(text: &str) -> Result<Address, Failure> {
    Address::parse(text).map_err(|error| no_address(text, error))
}

fn no_address(text: &str, error: AddressError) -> Failure {
    let failure = Failure::invalid(format!("`{}` is no address of a registry", shown(text)));
    if text.contains("://") { failure.cause(error) } else { failure.hint(BEGINS) }
}

fn none_named() -> Failure {
    let hint = format!(
        "name one with --registry URL or {ADDRESS}, or keep one with `haft registry add NAME URL`"
    );
    Failure::invalid("no registry is named").kind("no_registry").hint(hint)
}

/// What to say of a list that cannot be used.
pub(crate) fn list_failure(error: &registry::client::list::ListError) -> Failure {
    use registry::client::list::ListError;
    let exit = match error {
        ListError::Disk(..) => Exit::Unavailable,
        ListError::Taken(_) | ListError::Full => Exit::Conflict,
        ListError::Unknown(_) => Exit::NotFound,
        ListError::Unreadable(..) | ListError::Name(_) | ListError::Address(..) => Exit::Invalid,
    };
    let mut failure = Failure::of(exit, error);
    match error {
        ListError::Address(text, _) if !text.contains("://") => {
            failure.causes.clear();
            failure.hint(BEGINS)
        }
        ListError::Taken(name) => {
            failure.hint(format!("`haft registry rm {}` forgets it", shell::word(name)))
        }
        _ => failure,
    }
}

fn named_by_environment() -> Option<String> {
    std::env::var(ADDRESS).ok().filter(|text| !text.is_empty())
}

/// What to say where it is not known which registry has a tool.
pub(crate) fn not_found(id: &str, version: Option<&str>, error: &FindError) -> Failure {
    match error {
        FindError::Nowhere => Failure::new(Exit::NotFound, format!("no registry has `{id}`"))
            .hint("`haft search` finds what there is"),
        FindError::NoVersion(name, there) => {
            let failure = Failure::new(Exit::NotFound, format!("`{name}` does not offer `{id}`"));
            failure.hint(what_there_is(version, there))
        }
        FindError::InSeveral(_) => {
            let message = format!("`{id}` is in several registries: {error}");
            Failure::new(Exit::Conflict, message)
                .hint("say which one is meant with --registry NAME")
        }
        FindError::Failed(name, cause @ FetchError::Unaskable("version", _)) => {
            failed(name, cause).hint("without `@` the highest is meant")
        }
        FindError::Failed(name, cause) => failed(name, cause),
        FindError::NoRegistries => none_named(),
    }
}

/// How many versions are named where one is not there.
const NAMED: usize = 5;

/// What a registry has instead of the version that was asked for, the highest where none was named.
fn what_there_is(version: Option<&str>, there: &[Version]) -> String {
    let names = |is_meant: fn(&Version) -> bool| {
        let meant = there.iter().filter(|one| is_meant(one)).map(|one| line(&one.version));
        let names: Vec<_> = meant.take(NAMED).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let others = names(|one| one.channel.is_offered() && !one.yanked);
    let beta = names(|one| one.channel == State::Beta && !one.yanked);
    let yanked = names(|one| one.yanked);
    match (version, others, beta, yanked) {
        (Some(_), Some(others), ..) => format!("there is {others}"),
        (None, _, Some(beta), _) => format!("in beta there is {beta}: --channel beta takes it"),
        (_, _, _, Some(yanked)) => {
            format!("what there is was taken back: {yanked}; ID@VERSION fetches it all the same")
        }
        _ => "what there is waits for a reviewer, or was refused: who may publish or review it asks for ID@VERSION".to_owned(),
    }
}

/// Why nobody was reached, in words of ours, and what to do about it, where that is known.
fn unreached(error: &FetchError) -> Option<(&'static str, Option<&'static str>)> {
    use std::io::ErrorKind;
    let FetchError::Unreachable(error) = error else { return None };
    let first: &(dyn std::error::Error + 'static) = &**error;
    std::iter::successors(Some(first), |error| error.source()).find_map(|error| {
        let text = error.to_string();
        if text.contains("InvalidContentType") {
            return Some((
                "what listens there speaks no TLS",
                Some("write http:// where that is meant"),
            ));
        }
        if text.contains("failed to lookup address") {
            return Some(("there is no host of that name", None));
        }
        match error.downcast_ref::<std::io::Error>()?.kind() {
            ErrorKind::ConnectionRefused => Some(("nobody listens there", None)),
            ErrorKind::ConnectionReset => Some(("the connection was cut", None)),
            ErrorKind::TimedOut => Some(("no answer came in time", None)),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                Some(("there is no way to that host from here", None))
            }
            _ => None,
        }
    })
}

/// What to say of a registry that did not do what it was asked.
pub(crate) fn failed(registry: &str, error: &FetchError) -> Failure {
    let exit = match error.kind() {
        error::Kind::NotFound => Exit::NotFound,
        error::Kind::Denied => Exit::Denied,
        error::Kind::Conflict => Exit::Conflict,
        error::Kind::Invalid | error::Kind::Untrustworthy => Exit::Invalid,
        error::Kind::Unavailable => Exit::Unavailable,
    };
    let mut failure = Failure::of(exit, error);
    let unreached = unreached(error);
    if let Some((why, _)) = unreached {
        failure.causes = vec![why.to_owned()];
    }
    failure.message = match error {
        FetchError::Unreachable(_) => format!("failed to reach `{registry}`"),
        FetchError::Refused { said: Some(said), .. } if exit == Exit::NotFound => {
            format!("`{registry}` says: {}", said.message)
        }
        FetchError::Refused { said: Some(said), .. } => {
            format!("`{registry}` refuses: {}", said.message)
        }
        FetchError::Refused { status, .. } => format!("`{registry}` answers with {status}"),
        FetchError::TokenInPlain => {
            format!("everybody on the way to `{registry}` could read the token")
        }
        FetchError::NoToken => format!("there is no token for `{registry}`"),
        FetchError::Offline(_) => {
            format!("`{registry}` is not asked, and what it would answer is not kept here")
        }
        FetchError::Unaskable(what, text) => format!("`{}` is no {what} of a tool", line(text)),
        error => format!("`{registry}` is not used: {error}"),
    };
    if let FetchError::Refused { said: Some(said), .. } = error {
        let findings = said.details.get("findings").and_then(|found| found.as_array());
        let details = findings.into_iter().flatten().take(50).filter_map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            let (pointer, message) = (text("pointer"), text("message"));
            // The first one is told by the registry's own words.
            let is_said = said.message.contains(&registry::error::found(pointer, message));
            (!is_said).then(|| format!("{} {pointer}: {message}", text("path")))
        });
        failure = failure.details(details.collect::<Vec<_>>());
    }
    match error {
        FetchError::NoToken => failure.hint(format!(
            "`haft registry token new` makes one, where the registry runs; it is read from {}",
            token_places()
        )),
        FetchError::TokenInPlain => failure.hint("use https://"),
        FetchError::Unaskable("version", _) => {
            failure.hint("a version has three numbers, as in 1.2.3")
        }
        FetchError::Unreachable(_) if unreached.is_some_and(|(_, hint)| hint.is_some()) => {
            unreached.and_then(|(_, hint)| hint).into_iter().fold(failure, Failure::hint)
        }
        FetchError::Unreachable(_) if Url::parse(registry).is_ok_and(|url| is_here(&url)) => {
            failure.hint("`haft registry serve` serves one on this machine")
        }
        FetchError::Offline(_) => failure.hint("leave --offline out to ask the registry"),
        _ if error.code() == Some(ErrorCode::Unauthorized)
            || matches!(error, FetchError::Refused { status: 401, .. }) =>
        {
            failure.hint(good_token())
        }
        _ => failure,
    }
}

/// What to say where a token is missing that is good.
pub(crate) fn good_token() -> String {
    format!("a token that is good is read from {}", token_places())
}

fn token_places() -> String {
    format!(
        "{TOKEN}, which is for the address in {ADDRESS}, else for the one that --registry names; \
         or `haft registry login NAME` keeps one for a registry that you have added"
    )
}
