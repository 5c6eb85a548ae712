//! Which packages this home has seen. A rule may be written before its package is there, so one for a package that
//! nobody has is no error; but it may also be misspelt, and is told of.

use ledger::State;
use manifest::dialect::Dialect;
use manifest::shape::suggest;
use tokio::runtime::Runtime;

use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::owner;
use crate::printer::line;

/// The packages that were called here or granted something, by their ids with the dialect.
pub(crate) struct Seen(Vec<String>);

impl Seen {
    /// What the ledger of a home knows. Where there is none, none is made.
    pub(crate) fn at(home: &Home, runtime: &Runtime) -> Result<Self, Failure> {
        if !home.path().join("state.db").exists() {
            return Ok(Self(Vec::new()));
        }
        let records = owner::records(home, runtime)?;
        Self::of(&records.state, runtime)
    }

    /// What an open ledger knows.
    pub(crate) fn of(state: &State, runtime: &Runtime) -> Result<Self, Failure> {
        let packages = runtime.block_on(state.packages());
        packages.map(Self).map_err(|error| Failure::of(Exit::Unavailable, &error))
    }

    /// What to say of an id, with its dialect or without, that was never seen.
    pub(crate) fn doubt(&self, id: &str) -> Option<String> {
        let is_bare = without_dialect(id) == id;
        let known: Vec<&str> =
            self.0.iter().map(|one| if is_bare { without_dialect(one) } else { one }).collect();
        if known.contains(&id) {
            return None;
        }
        let of_another =
            known.iter().copied().find(|one| without_dialect(one) == without_dialect(id));
        let near = of_another.or_else(|| suggest(id, known.iter().copied()));
        let near = near.map(|near| format!("; did you mean `{}`?", line(near))).unwrap_or_default();
        let id = line(id);
        Some(format!("no package `{id}` has been called, granted or installed here yet{near}"))
    }
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
        let seen = Seen(vec!["mcpkg:acme.weather".into(), "capability:tool:notes".into()]);
        for id in ["mcpkg:acme.weather", "acme.weather", "tool:notes", "capability:tool:notes"] {
            assert_eq!(seen.doubt(id), None, "{id}");
        }
        for (id, near) in [
            ("mcpkg:acme.wether", "did you mean `mcpkg:acme.weather`?"),
            ("acme.waether", "did you mean `acme.weather`?"),
            ("jumith:acme.weather", "did you mean `mcpkg:acme.weather`?"),
            ("mcpkg:other", "has been called, granted or installed here yet"),
        ] {
            let told = seen.doubt(id).unwrap();
            assert!(told.ends_with(near), "{id}: {told}");
        }
        assert!(Seen(Vec::new()).doubt("mcpkg:acme.weather").is_some());
    }
}
