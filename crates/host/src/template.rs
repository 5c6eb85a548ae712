//! Templates filled in: arguments, paths and headers.
//!
//! One pass: what was put in is never looked at again. One element stays one element, and a
//! value cannot become an option, another segment of a path, or another header.

use std::collections::BTreeSet;

use manifest::dialect::install_manifest::{Piece, Reference, pieces};
use serde_json::Value;

use crate::error::{CallError, Kind, Missing};

/// What templates are filled from.
pub(crate) struct Values<'v> {
    /// The input, defaults applied.
    pub(crate) input: &'v Value,
    /// Variables by name: the value, and whether it is a secret.
    pub(crate) variables: &'v [(String, Variable)],
}

impl Values<'_> {
    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, variable)| variable)
    }
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) value: String,
    pub(crate) is_secret: bool,
}

/// An argument of a process is shorter: Linux takes so much for one, with the byte that ends it.
pub(crate) const LONGEST_ARGUMENT: usize = 128 << 10;

/// Refuses an argument that no process can be given.
pub(crate) fn check_length(argument: &str, places: &[&str]) -> Result<(), CallError> {
    if argument.len() < LONGEST_ARGUMENT {
        return Ok(());
    }
    let places: Vec<_> = places.iter().map(|place| format!("`{place}`")).collect();
    let message = format!(
        "{} of the input is too long: an argument has less than {} KiB",
        places.join(" with "),
        LONGEST_ARGUMENT >> 10
    );
    Err(CallError::new(Kind::BadInput, message).with("longest", LONGEST_ARGUMENT))
}

/// Fills in arguments. One whose optional value is absent is dropped, and a lone flag before it.
pub(crate) fn arguments(
    templates: &[String],
    values: &Values<'_>,
) -> Result<Vec<String>, CallError> {
    let mut filled: Vec<(String, Origin)> = Vec::new();
    let mut options_ended = false;
    for template in templates {
        let parts = pieces(template);
        let is_literal = parts.iter().all(|piece| matches!(piece, Piece::Literal(_)));
        if is_literal {
            options_ended |= template == "--";
            filled.push((template.clone(), Origin::Template));
            continue;
        }
        let Some(text) = fill(&parts, values, Sink::Argument)? else {
            if filled.last().is_some_and(is_lone_flag) {
                filled.pop();
            }
            continue;
        };
        let mut places: Vec<_> = inputs(template).into_iter().collect();
        if places.is_empty() {
            places.push(template);
        }
        check_length(&text, &places)?;
        let begins_with_value = matches!(parts.first(), Some(Piece::Reference(_)));
        if begins_with_value && text.starts_with('-') && text.len() > 1 && !options_ended {
            let message = format!(
                "`{template}` would be filled with an option: values that begin with `-` are refused here"
            );
            return Err(CallError::new(Kind::BadInput, message));
        }
        filled.push((text, Origin::Value));
    }
    Ok(filled.into_iter().map(|(text, _)| text).collect())
}

/// Fills in what starts a tool. It is never without its program: what that is filled from cannot be absent.
pub(crate) fn command(templates: &[String], values: &Values<'_>) -> Result<Vec<String>, CallError> {
    let Some((program, rest)) = templates.split_first() else { return Ok(Vec::new()) };
    let mut filled = arguments(std::slice::from_ref(program), values)?;
    if filled.is_empty() {
        return Err(missing(program, values));
    }
    filled.extend(arguments(rest, values)?);
    Ok(filled)
}

#[derive(PartialEq)]
enum Origin {
    Template,
    Value,
}

/// A flag that only announces the next argument.
fn is_lone_flag((text, origin): &(String, Origin)) -> bool {
    *origin == Origin::Template && text.starts_with('-') && text != "--" && !text.contains('=')
}

/// Fills in a path of a URL, and says which places of the input it took, as `a.b`.
pub(crate) fn path(
    template: &str,
    values: &Values<'_>,
) -> Result<(String, BTreeSet<String>), CallError> {
    let parts = pieces(template);
    let taken = inputs(template).into_iter().map(str::to_owned).collect();
    let text = fill(&parts, values, Sink::Path)?.ok_or_else(|| missing(template, values))?;
    // A value that is a whole segment could lead out of the folder it was meant for, and without one the folder
    // itself would be meant.
    let is_odd = |segment: &str| matches!(segment, "" | "." | "..");
    let before: Vec<_> = template.split(['/', '?']).filter(|part| is_odd(part)).collect();
    let after: Vec<_> = text.split(['/', '?']).filter(|part| is_odd(part)).collect();
    if before.len() != after.len() {
        let message =
            format!("a value would lead `{template}` elsewhere: it is empty, `.` or `..`");
        return Err(CallError::new(Kind::BadInput, message));
    }
    Ok((text, taken))
}

/// Fills in the value of a header; `None` when an optional value is absent.
pub(crate) fn header(template: &str, values: &Values<'_>) -> Result<Option<String>, CallError> {
    fill(&pieces(template), values, Sink::Header)
}

/// Fills in a whole address. A value that it begins with may be an address itself, and any other stays within its
/// segment.
pub(crate) fn address(template: &str, values: &Values<'_>) -> Result<String, CallError> {
    let rest = match pieces(template).first() {
        Some(Piece::Reference(_)) => template.split_once('}').map_or("", |(_, rest)| rest),
        _ => template,
    };
    let begin = &template[..template.len() - rest.len()];
    Ok(whole_text(begin, values)? + &path(rest, values)?.0)
}

/// Fills in any other text; `None` when an optional value is absent.
pub(crate) fn text(template: &str, values: &Values<'_>) -> Result<Option<String>, CallError> {
    fill(&pieces(template), values, Sink::Text)
}

/// Fills in a text that cannot do without its values.
pub(crate) fn whole_text(template: &str, values: &Values<'_>) -> Result<String, CallError> {
    text(template, values)?.ok_or_else(|| missing(template, values))
}

/// Where a value goes, which says what it must not hold.
#[derive(Clone, Copy, PartialEq)]
enum Sink {
    Argument,
    Path,
    Header,
    Text,
}

/// Fills in one template; `None` when a value is absent.
fn fill(parts: &[Piece<'_>], values: &Values<'_>, sink: Sink) -> Result<Option<String>, CallError> {
    let mut text = String::new();
    for piece in parts {
        let reference = match piece {
            Piece::Literal(literal) | Piece::Nonsense(literal) => {
                text.push_str(literal);
                continue;
            }
            Piece::Reference(reference) => reference,
        };
        let value = match reference {
            Reference::Input(path) => match look_up(values.input, path) {
                Some(value) => render(value),
                None => return Ok(None),
            },
            Reference::Env(name) | Reference::Bare(name) => match values.variable(name) {
                Some(variable) if variable.is_secret && sink == Sink::Argument => {
                    let message = format!(
                        "`{name}` is a secret, and arguments can be seen by other processes"
                    );
                    return Err(CallError::new(Kind::Denied, message));
                }
                Some(variable) => variable.value.clone(),
                None => return Ok(None),
            },
        };
        check(&value, reference, sink)?;
        match sink {
            Sink::Path => percent_encode(&value, &mut text),
            Sink::Argument | Sink::Header | Sink::Text => text.push_str(&value),
        }
    }
    Ok(Some(text))
}

fn look_up<'v>(input: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('.').try_fold(input, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })?;
    (!found.is_null()).then_some(found)
}

/// Text as it is, everything else as JSON.
fn render(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn check(value: &str, of: &Reference<'_>, sink: Sink) -> Result<(), CallError> {
    let (is_bad, limit): (fn(char) -> bool, _) = match sink {
        Sink::Argument => (|c| c == '\0', "no argument can have"),
        Sink::Path => (char::is_control, "no path of a URL can have"),
        Sink::Header => (
            |c| c != '\t' && !matches!(c, ' '..='~'),
            "no header is sent with: only letters, digits and signs of ASCII are",
        ),
        Sink::Text => return Ok(()),
    };
    if !value.contains(is_bad) {
        return Ok(());
    }
    let holds = |whose: &str| {
        let message = format!("{whose} holds a character that {limit}");
        CallError::new(Kind::BadInput, message)
    };
    Err(match of {
        Reference::Input(path) => holds(&format!("`{path}` of the input")),
        Reference::Env(name) | Reference::Bare(name) => {
            holds(&format!("the value of `{name}`")).with("name", *name)
        }
    })
}

/// Refuses the value of a variable that no header can have.
pub(crate) fn check_in_header(name: &str, value: &str) -> Result<(), CallError> {
    check(value, &Reference::Env(name), Sink::Header)
}

fn percent_encode(value: &str, into: &mut String) {
    use std::fmt::Write;
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// The places of the input that a template is filled from, as `a.b`.
pub(crate) fn inputs(template: &str) -> BTreeSet<&str> {
    let places = pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Reference(Reference::Input(path)) => Some(path),
        _ => None,
    });
    places.collect()
}

/// What a path or a program cannot do without: of the input, else of the variables.
fn missing(template: &str, values: &Values<'_>) -> CallError {
    let lacking = inputs(template).into_iter().filter(|path| look_up(values.input, path).is_none());
    let lacking: Vec<_> = lacking.map(|path| format!("`{path}`")).collect();
    if !lacking.is_empty() {
        let message =
            format!("the input has no {}, which the request needs", lacking.join(" and no "));
        return CallError::new(Kind::BadInput, message);
    }
    let unset = pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Reference(Reference::Env(name) | Reference::Bare(name)) => Some(name),
        _ => None,
    });
    let unset = unset.filter(|name| values.variable(name).is_none());
    let unset = unset.map(|name| Missing { is_secret: false, ..Missing::secret(name) });
    CallError::missing(&unset.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with<T>(input: &Value, run: impl FnOnce(&Values<'_>) -> T) -> T {
        let variable = |name: &str, value: &str, is_secret| {
            (name.to_owned(), Variable { value: value.to_owned(), is_secret })
        };
        let variables =
            [variable("REGION", "${input.text}", false), variable("KEY", "s3cret", true)];
        run(&Values { input, variables: &variables })
    }

    fn argv(templates: &[&str], input: &Value) -> Result<Vec<String>, CallError> {
        let templates: Vec<String> = templates.iter().map(|one| (*one).to_owned()).collect();
        with(input, |values| arguments(&templates, values))
    }

    #[test]
    fn scalars_are_json_and_text_is_text() {
        let input = json!({"text": "a b;$(x)`", "n": 3, "on": true, "deep": {"x": ["p", "q"]}});
        let filled = argv(
            &[
                "run",
                "${input.text}",
                "--n=${input.n}",
                "${input.on}",
                "${input.deep.x.1}",
                "${input.deep}",
            ],
            &input,
        );
        let expected = ["run", "a b;$(x)`", "--n=3", "true", "q", r#"{"x":["p","q"]}"#];
        assert_eq!(filled.unwrap(), expected);
    }

    #[test]
    fn an_absent_value_drops_its_argument_and_a_lone_flag_before_it() {
        let input = json!({"text": "x", "gone": null});
        let filled =
            argv(&["a", "--min", "${input.min}", "--max=${input.max}", "${input.text}"], &input);
        assert_eq!(filled.unwrap(), ["a", "x"]);
        let filled = argv(&["a", "--level=3", "${input.gone}", "--", "${input.gone}", "z"], &input);
        assert_eq!(filled.unwrap(), ["a", "--level=3", "--", "z"]);
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        for text in ["-rf", "--exec=x"] {
            let input = json!({ "text": text });
            assert_eq!(argv(&["a", "${input.text}"], &input).unwrap_err().kind, Kind::BadInput);
            assert_eq!(argv(&["a", "--", "${input.text}"], &input).unwrap(), ["a", "--", text]);
            let filled = argv(&["a", "--text=${input.text}"], &input).unwrap();
            assert_eq!(filled, ["a".to_owned(), format!("--text={text}")]);
        }
        assert_eq!(argv(&["${input.text}"], &json!({"text": "-"})).unwrap(), ["-"]);
        let input = json!({"text": -5});
        assert!(argv(&["${input.text}"], &input).is_err());
    }

    #[test]
    fn an_argument_that_is_too_long_is_told_by_its_place() {
        let long = "a".repeat(LONGEST_ARGUMENT - "--text=".len());
        let input = json!({"text": &long[1..], "deep": {"x": long}});
        assert!(argv(&["--text=${input.text}"], &input).is_ok());
        for (template, told) in [
            ("--text=${input.deep.x}", "`deep.x`"),
            ("${input.text}${input.deep.x}", "`deep.x` with `text`"),
        ] {
            let error = argv(&[template], &input).unwrap_err();
            let message =
                format!("{told} of the input is too long: an argument has less than 128 KiB");
            assert_eq!((error.kind, error.message), (Kind::BadInput, message));
        }
    }

    #[test]
    fn nothing_is_filled_in_twice_and_no_secret_becomes_an_argument() {
        let input = json!({"text": "${env.KEY}"});
        assert_eq!(argv(&["${input.text}"], &input).unwrap(), ["${env.KEY}"]);
        assert_eq!(argv(&["${env.REGION}"], &input).unwrap(), ["${input.text}"]);
        assert_eq!(argv(&["${env.KEY}"], &input).unwrap_err().kind, Kind::Denied);
        assert_eq!(argv(&["${KEY}"], &input).unwrap_err().kind, Kind::Denied);
        assert!(argv(&["${input.text}"], &json!({"text": "a\0b"})).is_err());
    }

    #[test]
    fn a_command_is_filled_in_as_arguments_are_and_never_without_its_program() {
        let start = |templates: &[&str]| {
            let templates: Vec<String> = templates.iter().map(|one| (*one).to_owned()).collect();
            with(&json!({}), |values| command(&templates, values))
        };
        let filled = start(&["run", "--in=${env.REGION}", "--level", "${env.NONE}", "x"]);
        assert_eq!(filled.unwrap(), ["run", "--in=${input.text}", "x"]);
        assert_eq!(start(&["${env.REGION}", "x"]).unwrap(), ["${input.text}", "x"]);
        let error = start(&["${env.NONE}", "x"]).unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::MissingInput, "missing variable: NONE"));
        assert_eq!(start(&["run", "--key=${env.KEY}"]).unwrap_err().kind, Kind::Denied);
    }

    #[test]
    fn a_value_stays_within_its_segment() {
        let fill = |template: &str, text: &str| {
            with(&json!({"id": text}), |values| path(template, values))
        };
        let (filled, taken) = fill("/items/${input.id}/x", "a/b?c=d#e%2f").unwrap();
        assert_eq!(filled, "/items/a%2Fb%3Fc%3Dd%23e%252f/x");
        assert_eq!(taken.into_iter().collect::<Vec<_>>(), ["id"]);
        for text in ["..", ".", ""] {
            assert!(fill("/items/${input.id}", text).is_err(), "{text}");
            assert!(fill("/items/${input.id}/x", text).is_err(), "{text}");
        }
        assert!(fill("/items/.${input.id}", ".").is_err());
        assert!(fill("/items/${input.id}", "a\nb").is_err());
    }

    #[test]
    fn an_address_may_be_a_value_and_holds_others_in_their_segments() {
        let variable = |name: &str, value: &str| {
            (name.to_owned(), Variable { value: value.to_owned(), is_secret: false })
        };
        let variables = [variable("SITE", "https://a.test/v1"), variable("ID", "x/y?z")];
        let values = Values { input: &json!({}), variables: &variables };
        let fill = |template: &str| address(template, &values);
        assert_eq!(fill("${SITE}/of/${env.ID}").unwrap(), "https://a.test/v1/of/x%2Fy%3Fz");
        assert_eq!(
            fill("https://b.test/${ID}?a=${ID}").unwrap(),
            "https://b.test/x%2Fy%3Fz?a=x%2Fy%3Fz"
        );
        assert_eq!(fill("${SITE}").unwrap(), "https://a.test/v1");
        for template in ["${GONE}/x", "https://b.test/${GONE}"] {
            assert_eq!(fill(template).unwrap_err().message, "missing variable: GONE");
        }
        assert_eq!(text("a ${ID}\n", &values).unwrap().unwrap(), "a x/y?z\n");
        assert_eq!(text("a ${GONE}", &values).unwrap(), None);
    }

    #[test]
    fn what_a_path_cannot_do_without_is_named() {
        let told = |template: &str| {
            with(&json!({"id": "a", "gone": null}), |values| path(template, values).unwrap_err())
        };
        let error = told("/items/${input.gone}/${input.id}/${input.deep.x}/${env.NONE}");
        assert_eq!(error.kind, Kind::BadInput);
        assert_eq!(
            error.message,
            "the input has no `deep.x` and no `gone`, which the request needs"
        );
        let error = told("/items/${input.id}/${env.NONE}");
        assert_eq!((error.kind, &*error.message), (Kind::MissingInput, "missing variable: NONE"));
    }

    #[test]
    fn a_value_stays_within_its_header() {
        let fill =
            |text: &str| with(&json!({"id": text}), |values| header("Bearer ${input.id}", values));
        assert_eq!(fill("abc").unwrap().as_deref(), Some("Bearer abc"));
        for text in ["a\r\nX-Evil: 1", "a\nb", "a\0"] {
            assert!(fill(text).is_err(), "{text:?}");
        }
        let secret = with(&json!({}), |values| header("Bearer ${env.KEY}", values));
        assert_eq!(secret.unwrap().as_deref(), Some("Bearer s3cret"));
    }
}
