//! What agents are shown, and what they may bring about.

use manifest::dialect::Dialect;

/// The longest name of a profile.
const LONGEST_NAME: usize = 32;

/// What agents are shown, and what they may bring about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRules {
    /// How many tools they are shown at a time; with more there are, they are shown how to find them.
    pub tools: u64,
    /// What they are shown in any case.
    pub pinned: Vec<Which>,
    /// What becomes of a tool that they want and that is not installed.
    pub install: AgentInstall,
    /// Whether the owner may be asked in the client of the agent.
    pub ask_in_client: bool,
}

impl Default for AgentRules {
    fn default() -> Self {
        Self { tools: 40, pinned: Vec::new(), install: AgentInstall::Request, ask_in_client: true }
    }
}

/// What becomes of a tool that an agent wants and that is not installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentInstall {
    /// Nothing, and nobody is told.
    Never,
    /// The owner finds a request.
    #[default]
    Request,
    /// It is installed where the policy lets it in without a question.
    Allow,
}

impl AgentInstall {
    /// Each with its name.
    pub const ALL: [(AgentInstall, &'static str); 3] = [
        (AgentInstall::Never, "never"),
        (AgentInstall::Request, "request"),
        (AgentInstall::Allow, "allow"),
    ];
}

/// A part of what is installed, under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What belongs to it.
    pub tools: Vec<Which>,
    /// What of it is shown in any case.
    pub pinned: Vec<Which>,
}

impl Profile {
    /// The one that is shown where none is named, if there is one of this name.
    pub const USUAL: &str = "default";

    /// Whether an action of a package belongs to it.
    pub fn holds(&self, canonical: &str, action: &str) -> bool {
        self.tools.iter().any(|which| which.is(canonical, action))
    }

    /// Whether all of a package belongs to it, and with that whatever it has beside its actions.
    pub fn holds_all_of(&self, canonical: &str) -> bool {
        self.tools.iter().any(|which| which.action.is_none() && which.is_of(canonical))
    }
}

/// Refuses what cannot be the name of a profile: it stands in addresses.
pub fn check_profile(name: &str) -> Result<(), String> {
    let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if name == "raw" {
        return Err("`raw` is where single packages are, and no profile".to_owned());
    }
    if begins && is_plain && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    Err(format!(
        "the name of a profile has small letters of ASCII, digits and `-`, begins with a letter, and is no longer than {LONGEST_NAME}"
    ))
}

/// Which actions are meant: those of a package, or of all whose ids begin so, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    /// The id, with its dialect or without.
    id: String,
    /// Whether ids that only begin so are meant too.
    is_beginning: bool,
    /// The one action.
    action: Option<String>,
}

impl Which {
    /// Reads `ID`, `ID#ACTION`, `BEGINNING*` or `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, action) = match text.split_once('#') {
            Some((id, action)) if !action.is_empty() => (id, Some(action.to_owned())),
            Some(_) => return None,
            None => (text, None),
        };
        let (id, is_beginning) = match id.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (id, false),
        };
        let is_written = !id.contains('*') && id.chars().all(|c| !c.is_control() && c != ' ');
        (is_written && (is_beginning || !id.is_empty())).then(|| Self {
            id: id.to_owned(),
            is_beginning,
            action,
        })
    }

    /// Whether an action of a package is meant. An id with a dialect before it is none without.
    pub fn is(&self, canonical: &str, action: &str) -> bool {
        self.action.as_deref().is_none_or(|one| one == action) && self.is_of(canonical)
    }

    /// The one action that is meant, where it is one.
    pub fn action(&self) -> Option<&str> {
        self.action.as_deref()
    }

    /// Whether something of a package may be meant.
    pub fn is_of(&self, canonical: &str) -> bool {
        let has_dialect =
            self.id.split_once(':').is_some_and(|(name, _)| Dialect::named(name).is_some());
        let bare = canonical.split_once(':').map_or(canonical, |(_, bare)| bare);
        let id = if has_dialect { canonical } else { bare };
        if self.is_beginning { id.starts_with(&self.id) } else { id == self.id }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (star, sharp) = (if self.is_beginning { "*" } else { "" }, self.action.as_deref());
        write!(out, "{}{star}", self.id)?;
        sharp.map_or(Ok(()), |action| write!(out, "#{action}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_their_beginnings_and_single_actions_are_meant() {
        for (which, canonical, action, is_meant) in [
            ("acme.mail", "mcpkg:acme.mail", "send", true),
            ("mcpkg:acme.mail", "mcpkg:acme.mail", "send", true),
            ("jumith:acme.mail", "mcpkg:acme.mail", "send", false),
            ("acme.*", "mcpkg:acme.mail", "send", true),
            ("acme.*", "mcpkg:acme", "send", false),
            ("mcpkg:*", "mcpkg:acme.mail", "send", true),
            ("*", "mcpkg:acme.mail", "send", true),
            ("acme.mail#send", "mcpkg:acme.mail", "send", true),
            ("acme.mail#send", "mcpkg:acme.mail", "read", false),
            ("tool:x.y", "jumith:tool:x.y", "run", true),
        ] {
            let read = Which::parse(which).unwrap();
            assert_eq!(read.is(canonical, action), is_meant, "{which} {canonical}#{action}");
            assert_eq!(read.to_string(), which);
        }
        for wrong in ["", "a*b", "a b", "a#", "#send"] {
            assert_eq!(Which::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_profile_holds_all_of_a_package_where_it_names_no_single_action() {
        let profile = |which: &str| {
            let tools = vec![Which::parse("other").unwrap(), Which::parse(which).unwrap()];
            Profile { tools, pinned: Vec::new() }
        };
        for (which, is_all) in [
            ("acme.mail", true),
            ("mcpkg:acme.mail", true),
            ("acme.*", true),
            ("*", true),
            ("acme.mail#send", false),
            ("acme.*#send", false),
            ("*#send", false),
            ("acme", false),
        ] {
            assert_eq!(profile(which).holds_all_of("mcpkg:acme.mail"), is_all, "{which}");
        }
    }

    #[test]
    fn a_profile_is_called_what_can_stand_in_an_address() {
        for good in ["coding", "a", "team-1"] {
            assert!(check_profile(good).is_ok(), "{good}");
        }
        for wrong in ["", "raw", "Coding", "1a", "a/b", "a.b", &"a".repeat(33)] {
            assert!(check_profile(wrong).is_err(), "{wrong}");
        }
    }
}
