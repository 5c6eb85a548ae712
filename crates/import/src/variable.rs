//! The `${…}` of clients' settings: what they stand for.

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// It stands for itself.
    Literal(&'t str),
    /// `${NAME}`, `${NAME:-default}` or `${env:NAME}`: a variable of the owner's.
    Variable(&'t str, Option<&'t str>),
    /// `${input:id}`: what the client asks for.
    Input(&'t str),
    /// `${userHome}`: the owner's folder.
    Home,
    /// `${workspaceFolder}`: the folder of the project.
    Project,
    /// Something else that a client fills in, as it is written.
    Unknown(&'t str),
}

/// The parts of a text, in order. What is no `${…}` is literal; so is one that does not end.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    // One client takes a variable without braces, where it is the whole value.
    if let Some(name) = text.strip_prefix('$')
        && is_upper_name(name)
    {
        return vec![Piece::Variable(name, None)];
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        if start > 0 {
            found.push(Piece::Literal(&rest[..start]));
        }
        found.push(piece(&rest[start..=start + length]));
        rest = &rest[start + length + 1..];
    }
    if !rest.is_empty() {
        found.push(Piece::Literal(rest));
    }
    found
}

fn piece(whole: &str) -> Piece<'_> {
    let inner = &whole[2..whole.len() - 1];
    match inner {
        "userHome" | "HOME" => return Piece::Home,
        "workspaceFolder" => return Piece::Project,
        _ => {}
    }
    if let Some(id) = inner.strip_prefix("input:").filter(|id| !id.is_empty()) {
        return Piece::Input(id);
    }
    let named = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    if is_name(name) { Piece::Variable(name, default) } else { Piece::Unknown(whole) }
}

/// Whether a text is the name of a variable.
pub fn is_name(text: &str) -> bool {
    text.len() <= 128
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_upper_name(text: &str) -> bool {
    is_name(text) && !text.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_s_variables_are_told_apart() {
        use Piece::{Home, Input, Literal, Project, Unknown, Variable};
        for (text, expected) in [
            ("plain $5 {x}", vec![Literal("plain $5 {x}")]),
            ("Bearer ${TOKEN}", vec![Literal("Bearer "), Variable("TOKEN", None)]),
            ("${A:-b:c}${env:X}", vec![Variable("A", Some("b:c")), Variable("X", None)]),
            ("${input:my-key}!", vec![Input("my-key"), Literal("!")]),
            ("${userHome}/a", vec![Home, Literal("/a")]),
            ("${workspaceFolder}", vec![Project]),
            ("${command:x.y}", vec![Unknown("${command:x.y}")]),
            ("$API_KEY", vec![Variable("API_KEY", None)]),
            ("$price", vec![Literal("$price")]),
            ("${open", vec![Literal("${open")]),
            ("", vec![]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
