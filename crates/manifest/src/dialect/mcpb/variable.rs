//! The `${…}` of a manifest, which the host fills in.

/// What the host fills in by itself: the bundle's folder, the owner's folders, the separator.
const KNOWN: [&str; 7] =
    ["__dirname", "HOME", "DESKTOP", "DOCUMENTS", "DOWNLOADS", "pathSeparator", "/"];

/// One `${…}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable<'t> {
    /// Something the host knows by itself.
    Host(&'t str),
    /// `${user_config.NAME}`: what the owner was asked for.
    Setting(&'t str),
    /// `${arguments.NAME}`: what a prompt is given.
    Argument(&'t str),
    /// Nothing the format knows, braces and all; the host leaves it as it stands.
    Unknown(&'t str),
}

impl Variable<'_> {
    /// As it is written.
    pub(super) fn written(self) -> String {
        match self {
            Variable::Host(name) => format!("${{{name}}}"),
            Variable::Setting(name) => format!("${{user_config.{name}}}"),
            Variable::Argument(name) => format!("${{arguments.{name}}}"),
            Variable::Unknown(whole) => whole.to_owned(),
        }
    }
}

/// Every `${…}` of a text, in order.
pub(super) fn variables(text: &str) -> Vec<Variable<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            found.push(Variable::Unknown(&rest[start..]));
            break;
        };
        let whole = &rest[start..=start + length];
        found.push(variable(whole));
        rest = &rest[start + length + 1..];
    }
    found
}

fn variable(whole: &str) -> Variable<'_> {
    let name = &whole[2..whole.len() - 1];
    let after = |prefix: &str| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
    if KNOWN.contains(&name) {
        Variable::Host(name)
    } else if let Some(setting) = after("user_config.") {
        Variable::Setting(setting)
    } else if let Some(argument) = after("arguments.") {
        Variable::Argument(argument)
    } else {
        Variable::Unknown(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_apart() {
        use Variable::{Argument, Host, Setting, Unknown};
        let table = [
            ("no variable, $5 and {}", vec![]),
            (
                "${__dirname}${/}a${pathSeparator}",
                vec![Host("__dirname"), Host("/"), Host("pathSeparator")],
            ),
            (
                "--key=${user_config.a.b} ${arguments.topic}",
                vec![Setting("a.b"), Argument("topic")],
            ),
            (
                "${PATH}:${user_config.}${user_config}",
                vec![Unknown("${PATH}"), Unknown("${user_config.}"), Unknown("${user_config}")],
            ),
            ("é${HOME}${ne", vec![Host("HOME"), Unknown("${ne")]),
        ];
        for (text, expected) in table {
            assert_eq!(variables(text), expected, "{text}");
            assert!(variables(text).iter().all(|variable| text.contains(&variable.written())));
        }
    }
}
