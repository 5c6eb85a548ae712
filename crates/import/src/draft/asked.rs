//! What a package asks its owner for, gathered while settings are read.

use vault::Secret;

use super::Around;
use crate::config::AskedFor;
use crate::secret::{is_secret, is_secret_name, is_secret_value};
use crate::variable::{Piece, is_name, pieces};

/// The most that a package asks for.
const MOST: usize = 64;

/// What is asked for so far.
pub(crate) struct Asked<'a> {
    around: &'a Around<'a>,
    pub(crate) wanted: Vec<Want>,
    pub(crate) secrets: Vec<(String, Secret)>,
    pub(crate) warnings: Vec<String>,
    /// What stands where nothing secret may.
    open: Vec<(String, &'static str)>,
}

/// One thing that the owner is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) name: String,
    pub(crate) prompt: String,
    pub(crate) secret: bool,
    pub(crate) required: bool,
    pub(crate) default: Option<String>,
    origin: Origin,
}

/// Where a value comes from that something is asked for instead of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A variable or an input of the client's.
    Client,
    /// It is written out in the settings of the server.
    Written,
}

/// A part of a value, once it is known what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    /// What the owner is asked for under that name.
    Wanted(String),
}

impl Part {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Wanted(_) => String::new(),
        }
    }
}

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink<'s> {
    /// A variable or header of that name.
    Named(&'s str),
    /// The command line, or an address: nothing secret may stand there.
    Open(&'static str),
}

impl Sink<'_> {
    /// Whether what is called so would be a secret there.
    fn makes_secret(self, name: &str) -> bool {
        is_secret_name(name) || matches!(self, Self::Named(of) if is_secret_name(of))
    }
}

impl<'a> Asked<'a> {
    pub(crate) fn new(around: &'a Around<'a>) -> Self {
        Self {
            around,
            wanted: Vec::new(),
            secrets: Vec::new(),
            warnings: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Refuses secrets that stand where others can read them; which values are secrets is known at the end.
    pub(crate) fn check_open(&self) -> Result<(), String> {
        match self.open.iter().find(|(name, _)| self.is_secret(name)) {
            None => Ok(()),
            Some((name, place)) => {
                Err(format!("the secret `{name}` stands in {place}, which others can read"))
            }
        }
    }

    /// Whether something that is asked for is a secret.
    pub(crate) fn is_secret(&self, name: &str) -> bool {
        self.wanted.iter().any(|one| one.name == name && one.secret)
    }

    /// A text in which the folders that are known are written out.
    pub(crate) fn written_out(&self, text: &str) -> Result<String, String> {
        let mut whole = text.to_owned();
        for (written, piece) in [
            ("${userHome}", Piece::Home),
            ("${HOME}", Piece::Home),
            ("${workspaceFolder}", Piece::Project),
        ] {
            if whole.contains(written) {
                whole = whole.replace(written, &self.folder(&piece)?);
            }
        }
        Ok(whole)
    }

    fn folder(&self, piece: &Piece<'_>) -> Result<String, String> {
        let found = match piece {
            Piece::Project => self.around.folder.map(str::to_owned),
            _ => self.around.machine.home().and_then(|home| home.to_str().map(str::to_owned)),
        };
        let name = if *piece == Piece::Project { "workspaceFolder" } else { "userHome" };
        found.ok_or_else(|| format!("`${{{name}}}` is known to the client alone"))
    }

    /// A part that the owner is asked for, as the client asked for it.
    fn wanted(
        &mut self,
        name: String,
        prompt: String,
        secret: bool,
        default: Option<String>,
    ) -> Result<Part, String> {
        let required = default.is_none();
        let part = Part::Wanted(name.clone());
        self.want(Want { name, prompt, secret, required, default, origin: Origin::Client })?;
        Ok(part)
    }

    /// The parts of a value; its variables are asked for from now on.
    pub(crate) fn parts(&mut self, text: &str, sink: Sink<'_>) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        for piece in pieces(text) {
            parts.push(match piece {
                Piece::Literal(text) => Part::Text(text.to_owned()),
                Piece::Home | Piece::Project => Part::Text(self.folder(&piece)?),
                Piece::Variable(name, default) => {
                    let secret = sink.makes_secret(name);
                    if secret && default.is_some_and(|default| !default.is_empty()) {
                        let message = format!("the default of the secret `{name}` is not carried");
                        self.warnings.push(message);
                    }
                    // What everybody can read is no secret.
                    let default = default.filter(|_| !secret).map(str::to_owned);
                    let prompt =
                        format!("The value of `{name}`, which the client was given as a variable");
                    self.wanted(name.to_owned(), prompt, secret, default)?
                }
                Piece::Input(id) => {
                    let known = self.around.inputs.iter().find(|one| one.id == id);
                    let Some(AskedFor { description, password, default, .. }) = known else {
                        return Err(format!("`${{input:{id}}}` is asked for nowhere in the file"));
                    };
                    let secret = *password || sink.makes_secret(id);
                    let prompt =
                        description.clone().unwrap_or_else(|| format!("The value of `{id}`"));
                    let default = default.clone().filter(|_| !secret);
                    self.wanted(name_of(id), prompt, secret, default)?
                }
                Piece::Unknown(whole) => {
                    return Err(format!("`{whole}` is filled in by the client alone"));
                }
            });
        }
        if let Sink::Open(place) = sink {
            self.open.extend(parts.iter().filter_map(|part| match part {
                Part::Wanted(name) => Some((name.clone(), place)),
                Part::Text(_) => None,
            }));
        }
        Ok(parts)
    }

    /// A variable as settings set it: a value that is a secret is kept apart, another is the default.
    pub(crate) fn variable(&mut self, name: &str, value: &str) -> Result<Vec<Part>, String> {
        let parts = self.parts(value, Sink::Named(name))?;
        if !is_name(name) {
            return Err(format!("`{name}` is no name of a variable"));
        }
        if parts.iter().any(|part| matches!(part, Part::Wanted(_))) {
            let is_literal =
                |part: &Part| matches!(part, Part::Text(text) if is_secret_value(text));
            if parts.iter().any(is_literal) {
                return Err(format!(
                    "`{name}` is a secret in part; write all of it as one variable"
                ));
            }
            return Ok(parts);
        }
        let text: String = parts.into_iter().map(Part::into_text).collect();
        let prompt = format!("The value of `{name}`");
        if is_secret(name, &text) {
            self.keep(name, &text, prompt)?;
        } else {
            let (name, default, origin) = (name.to_owned(), Some(text), Origin::Written);
            self.want(Want { name, prompt, secret: false, required: false, default, origin })?;
        }
        Ok(vec![Part::Wanted(name.to_owned())])
    }

    /// Asks for a secret whose value is known already.
    pub(crate) fn keep(&mut self, name: &str, value: &str, prompt: String) -> Result<(), String> {
        let secret = Secret::new(value.to_owned())
            .map_err(|error| format!("the value of `{name}` cannot be kept: {error}"))?;
        let (own, origin) = (name.to_owned(), Origin::Written);
        self.want(Want { name: own, prompt, secret: true, required: true, default: None, origin })?;
        match self.secrets.iter().find(|(known, _)| known == name) {
            Some((_, known)) if known.expose() != secret.expose() => {
                Err(format!("`{name}` has two values"))
            }
            Some(_) => Ok(()),
            None => {
                self.secrets.push((name.to_owned(), secret));
                Ok(())
            }
        }
    }

    /// Asks for something; as strictly as any place that it stands in does.
    fn want(&mut self, want: Want) -> Result<(), String> {
        let Some(known) = self.wanted.iter_mut().find(|one| one.name == want.name) else {
            if self.wanted.len() == MOST {
                return Err(format!("it asks for more than {MOST} values"));
            }
            self.wanted.push(want);
            return Ok(());
        };
        if known.origin != want.origin {
            let name = &want.name;
            return Err(format!(
                "`{name}` is set for it, and is a variable of yours elsewhere in its settings"
            ));
        }
        known.secret |= want.secret;
        let default = known.default.take().or(want.default);
        known.default = default.filter(|_| !known.secret);
        known.required = known.default.is_none();
        Ok(())
    }
}

/// What the client asks for, as a variable would be called.
fn name_of(id: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = id.chars().map(plain).take(100).collect();
    if is_name(&name) { name } else { format!("_{name}") }
}
