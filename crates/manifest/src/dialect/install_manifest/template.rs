//! Templates: texts with `${…}` in them.

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text that stands for itself.
    Literal(&'t str),
    /// A reference to be filled in.
    Reference(Reference<'t>),
    /// A `${…}` that means nothing, or one that never ends.
    Nonsense(&'t str),
}

/// What a template refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'t> {
    /// `${input.path}`: a value of the input.
    Input(&'t str),
    /// `${env.NAME}`: a variable.
    Env(&'t str),
    /// `${NAME}`: a variable, as the first version wrote it.
    Bare(&'t str),
}

/// The pieces of a template, in order.
pub fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find("${") {
        if start > 0 {
            pieces.push(Piece::Literal(&rest[..start]));
        }
        let Some(length) = rest[start..].find('}') else {
            pieces.push(Piece::Nonsense(&rest[start..]));
            return pieces;
        };
        let whole = &rest[start..=start + length];
        pieces.push(
            reference(&whole[2..whole.len() - 1]).map_or(Piece::Nonsense(whole), Piece::Reference),
        );
        rest = &rest[start + length + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

fn reference(name: &str) -> Option<Reference<'_>> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if let Some(path) = name.strip_prefix("input.") {
        let is_segment =
            |segment: &str| !segment.is_empty() && !segment.contains(['$', '{', '}', ' ', '\n']);
        return path.split('.').all(is_segment).then_some(Reference::Input(path));
    }
    if let Some(name) = name.strip_prefix("env.") {
        return is_name(name).then_some(Reference::Env(name));
    }
    is_name(name).then_some(Reference::Bare(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_taken_apart() {
        assert_eq!(
            pieces("a${input.to.name}b${env.KEY}${VAR}"),
            [
                Piece::Literal("a"),
                Piece::Reference(Reference::Input("to.name")),
                Piece::Literal("b"),
                Piece::Reference(Reference::Env("KEY")),
                Piece::Reference(Reference::Bare("VAR")),
            ]
        );
        assert_eq!(pieces("${oops"), [Piece::Nonsense("${oops")]);
        assert_eq!(pieces("${input.}"), [Piece::Nonsense("${input.}")]);
        assert_eq!(pieces("$5 and {}"), [Piece::Literal("$5 and {}")]);
    }
}
