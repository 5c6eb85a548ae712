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
}

/// One thing that the owner is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) name: String,
    pub(crate) prompt: String,
    pub(crate) secret: bool,
    pub(crate) required: bool,
    pub(crate) default: Option<String>,
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
    Open(&'s str),
}

impl<'a> Asked<'a> {
    pub(crate) fn new(around: &'a Around<'a>) -> Self {
        Self { around, wanted: Vec::new(), secrets: Vec::new(), warnings: Vec::new() }
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

    /// The parts of a value; its variables are asked for from now on.
    pub(crate) fn parts(&mut self, text: &str, sink: Sink<'_>) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        for piece in pieces(text) {
            parts.push(match piece {
                Piece::Literal(text) => Part::Text(text.to_owned()),
                Piece::Home | Piece::Project => Part::Text(self.folder(&piece)?),
                Piece::Variable(name, default) => {
                    let secret = self.is_secret_in(name, sink);
                    let prompt =
                        format!("The value of `{name}`, which the client was given as a variable");
                    // What everybody can read is no secret.
                    let default = default.filter(|_| !secret);
                    self.want(name, prompt, secret, default)?;
                    Part::Wanted(name.to_owned())
                }
                Piece::Input(id) => {
                    let known = self.around.inputs.iter().find(|one| one.id == id);
                    let Some(AskedFor { description, password, default, .. }) = known else {
                        return Err(format!("`${{input:{id}}}` is asked for nowhere in the file"));
                    };
                    let secret = *password || self.is_secret_in(id, sink);
                    let prompt =
                        description.clone().unwrap_or_else(|| format!("The value of `{id}`"));
                    let default = default.as_deref().filter(|_| !secret);
                    let name = name_of(id);
                    self.want(&name, prompt, secret, default)?;
                    Part::Wanted(name)
                }
                Piece::Unknown(whole) => {
                    return Err(format!("`{whole}` is filled in by the client alone"));
                }
            });
        }
        if let Sink::Open(place) = sink {
            let secret = parts.iter().find_map(|part| match part {
                Part::Wanted(name) if self.is_secret(name) => Some(name),
                _ => None,
            });
            if let Some(name) = secret {
                return Err(format!(
                    "the secret `{name}` stands in {place}, which other processes can read"
                ));
            }
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
        let text = text.as_str();
        let prompt = format!("The value of `{name}`");
        if is_secret(name, text) {
            self.keep(name, text, prompt)?;
        } else {
            self.want(name, prompt, false, Some(text))?;
        }
        Ok(vec![Part::Wanted(name.to_owned())])
    }

    /// Asks for a secret whose value is known already.
    pub(crate) fn keep(&mut self, name: &str, value: &str, prompt: String) -> Result<(), String> {
        let secret = Secret::new(value.to_owned())
            .map_err(|error| format!("the value of `{name}` cannot be kept: {error}"))?;
        self.want(name, prompt, true, None)?;
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

    fn is_secret_in(&self, name: &str, sink: Sink<'_>) -> bool {
        is_secret_name(name) || matches!(sink, Sink::Named(of) if is_secret_name(of))
    }

    /// Asks for something; as strictly as any place that it stands in does.
    fn want(
        &mut self,
        name: &str,
        prompt: String,
        secret: bool,
        default: Option<&str>,
    ) -> Result<(), String> {
        if let Some(known) = self.wanted.iter_mut().find(|one| one.name == name) {
            known.secret |= secret;
            if known.secret {
                known.default = None;
            }
            known.required = known.default.is_none();
            return Ok(());
        }
        if self.wanted.len() == MOST {
            return Err(format!("it asks for more than {MOST} values"));
        }
        let default = default.map(str::to_owned);
        let required = default.is_none();
        self.wanted.push(Want { name: name.to_owned(), prompt, secret, required, default });
        Ok(())
    }
}

/// What the client asks for, as a variable would be called.
fn name_of(id: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = id.chars().map(plain).take(100).collect();
    if is_name(&name) { name } else { format!("_{name}") }
}
