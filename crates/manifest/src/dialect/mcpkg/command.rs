//! One command string, split into arguments. There is no shell.
//!
//! Blanks separate; single quotes keep everything; double quotes keep
//! everything but `\"` and `\\`; outside quotes a backslash takes the next
//! character as it is. `;`, `|`, `$` and backticks are letters like any other.

/// Why a command string cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// Nothing but blanks.
    Empty,
    /// A quote that is never closed.
    OpenQuote(char),
    /// A backslash at the very end.
    DanglingBackslash,
    /// A character no argument can hold.
    Nul,
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandError::Empty => out.write_str("the command is empty"),
            CommandError::OpenQuote(quote) => {
                write!(out, "the command has a `{quote}` that is never closed")
            }
            CommandError::DanglingBackslash => out.write_str("the command ends in a backslash"),
            CommandError::Nul => out.write_str("the command holds a NUL character"),
        }
    }
}

impl std::error::Error for CommandError {}

/// Splits a command string.
pub fn split_command(command: &str) -> Result<Vec<String>, CommandError> {
    if command.contains('\0') {
        return Err(CommandError::Nul);
    }
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => arguments.extend(current.take()),
            '\\' => {
                let next = characters.next().ok_or(CommandError::DanglingBackslash)?;
                current.get_or_insert_default().push(next);
            }
            quote @ ('"' | '\'') => {
                let argument = current.get_or_insert_default();
                loop {
                    match characters.next().ok_or(CommandError::OpenQuote(quote))? {
                        closing if closing == quote => break,
                        '\\' if quote == '"' => {
                            match characters.next().ok_or(CommandError::OpenQuote(quote))? {
                                escaped @ ('"' | '\\') => argument.push(escaped),
                                other => argument.extend(['\\', other]),
                            }
                        }
                        other => argument.push(other),
                    }
                }
            }
            other => current.get_or_insert_default().push(other),
        }
    }
    arguments.extend(current);
    if arguments.is_empty() { Err(CommandError::Empty) } else { Ok(arguments) }
}

/// The command string that splits into these arguments.
pub(crate) fn join_command(arguments: &[String]) -> String {
    let is_plain = |argument: &str| {
        !argument.is_empty() && !argument.contains([' ', '\t', '\n', '\r', '\\', '"', '\''])
    };
    let quoted = |argument: &String| {
        if is_plain(argument) {
            argument.clone()
        } else {
            format!("\"{}\"", argument.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_without_a_shell() {
        let split = |text| split_command(text).unwrap();
        assert_eq!(split("node ./a.js"), ["node", "./a.js"]);
        assert_eq!(split(r#"a "b c" 'd "e' f\ g """#), ["a", "b c", "d \"e", "f g", ""]);
        assert_eq!(split("a; rm -rf `x` $(y) | z"), ["a;", "rm", "-rf", "`x`", "$(y)", "|", "z"]);
        assert_eq!(split_command("  "), Err(CommandError::Empty));
        assert_eq!(split_command("a 'b"), Err(CommandError::OpenQuote('\'')));
        assert_eq!(split_command("a\\"), Err(CommandError::DanglingBackslash));
    }

    #[test]
    fn joining_undoes_splitting() {
        let arguments: Vec<String> =
            ["a", "", "b c", "d\"e", "f\\g", "'h'", "\n"].map(str::to_owned).to_vec();
        assert_eq!(split_command(&join_command(&arguments)).unwrap(), arguments);
    }
}
