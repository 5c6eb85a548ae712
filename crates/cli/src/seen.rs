//! Which packages this home has seen. A rule may be written before its package is there, so one for a package that
//! nobody has is no error; but it may also be misspelt, and is told of.

use ledger::{State, StateError};
use manifest::dialect::Dialect;
use manifest::shape::suggest;
use tokio::runtime::Runtime;

use crate::exit::Failure;
use crate::home::Home;
use crate::printer::line;
use crate::{installed, owner};

/// Packages by their ids with the dialect.
#[derive(Default)]
pub(crate) struct Seen {
    /// Those that were called here or granted something.
    known: Vec<String>,
    /// Those that a rule is about; whether there are such is not known.
    named: Vec<String>,
}

impl Seen {
    /// What the ledger of a home knows. Where there is none, none is made.
    pub(crate) fn at(home: &Home, runtime: &Runtime) -> Result<Self, Failure> {
        match owner::records_there(home, runtime)? {
            Some(records) => Self::of(&records.state, home, runtime),
            None => Ok(Self { known: installed_in(home), ..Self::default() }),
        }
    }

    /// What an open ledger knows.
    pub(crate) fn of(state: &State, home: &Home, runtime: &Runtime) -> Result<Self, Failure> {
        let seen = runtime.block_on(async {
            let rules = state.remembered(None).await?;
            let named = rules.into_iter().map(|one| one.rule.package).collect();
            let mut known = state.packages().await?;
            known.extend(installed_in(home));
            Ok(Self { known, named })
        });
        seen.map_err(|error: StateError| owner::of_state(&error))
    }

    /// The packages that an id means, with its dialect or without.
    pub(crate) fn meant<'s>(&'s self, id: &'s str) -> impl Iterator<Item = &'s str> {
        let is_meant = move |one: &&str| *one == id || without_dialect(one) == id;
        self.known.iter().map(String::as_str).filter(is_meant)
    }

    /// What to say of an id, with its dialect or without, of which nothing was called and to which nothing is granted.
    pub(crate) fn doubt<'s>(&'s self, id: &str) -> Option<String> {
        let is_bare = without_dialect(id) == id;
        let alike = |one: &'s String| if is_bare { without_dialect(one) } else { one.as_str() };
        if self.known.iter().map(alike).any(|one| one == id) {
            return None;
        }
        let all = self.known.iter().chain(&self.named).map(alike).filter(|one| *one != id);
        // A Jumith id has a word in front that its name has not.
        let bare = |id: &'_ str| -> String {
            let id = without_dialect(id);
            id.strip_prefix("tool:").unwrap_or(id).to_owned()
        };
        let of_another = all.clone().find(|one| bare(one) == bare(id));
        // A dialect in front would make short ids look alike.
        let by_name = || {
            let near = suggest(without_dialect(id), all.clone().map(without_dialect))?;
            all.clone().find(|one| without_dialect(one) == near)
        };
        let near = of_another.or_else(by_name);
        let near = near.map(|near| format!("; did you mean `{}`?", line(near))).unwrap_or_default();
        let id = line(id);
        Some(format!("no package `{id}` is known here{near}"))
    }
}

/// What is installed, whether or not it was called. A home that cannot be read is told of elsewhere.
fn installed_in(home: &Home) -> Vec<String> {
    let contents = installed::home(home).read().unwrap_or_default();
    contents.lock.packages().iter().map(|one| one.id.clone()).collect()
}

fn without_dialect(id: &str) -> &str {
    match id.split_once(':') {
        Some((dialect, bare)) if Dialect::named(dialect).is_some() => bare,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_was_never_seen_is_told_with_the_one_it_is_near_to() {
        let seen = Seen {
            known: ["mcpkg:acme.weather", "capability:tool:notes", "capability:web"]
                .map(str::to_owned)
                .to_vec(),
            named: vec!["mcpkg:acme.mail".into(), "mcpkg:acme.mial".into()],
        };
        for id in ["mcpkg:acme.weather", "acme.weather", "tool:notes", "capability:tool:notes"] {
            assert_eq!(seen.doubt(id), None, "{id}");
        }
        for (id, near) in [
            ("mcpkg:acme.wether", "did you mean `mcpkg:acme.weather`?"),
            ("acme.waether", "did you mean `acme.weather`?"),
            ("jumith:acme.weather", "did you mean `mcpkg:acme.weather`?"),
            ("mcpkg:acme.mial", "did you mean `mcpkg:acme.mail`?"),
            ("capability:notes", "did you mean `capability:tool:notes`?"),
            ("mcpkg:other", "is known here"),
            ("capability:any", "is known here"),
        ] {
            let told = seen.doubt(id).unwrap();
            assert!(told.ends_with(near), "{id}: {told}");
        }
        assert!(Seen::default().doubt("mcpkg:acme.weather").is_some());
    }
}
