//! Whether a value is one that an input takes: of its kind, within its bounds, as its pattern says.

use std::path::Path;
use std::time::Instant;

use manifest::model::{Input, InputKind};

use super::described::MOST_TOLD;
use crate::clip;
use crate::judge::{PATIENCE, TooLong, matches};

/// What is wrong with a value, in words that follow on "its value" and repeat nothing of it. What the manifest
/// itself gives is not doubted here.
pub fn misfit(input: &Input, value: &str) -> Option<String> {
    if input.default.as_deref() == Some(value) {
        return None;
    }
    let listed = input.multiple.then(|| serde_json::from_str::<Vec<String>>(value).ok()).flatten();
    let wrong = match listed {
        Some(values) => values.iter().find_map(|one| wrong_with(input, one)),
        None => wrong_with(input, value),
    }?;
    let asked = input.prompt.as_deref().map(|prompt| clip::start(prompt, MOST_TOLD));
    let asked = asked.map(|prompt| format!("; the manifest asks for: {prompt}"));
    Some(wrong + &asked.unwrap_or_default())
}

fn wrong_with(input: &Input, value: &str) -> Option<String> {
    if value.contains('\0') {
        return Some("holds a NUL, which no program can be given".to_owned());
    }
    let kind = match input.kind {
        InputKind::Text => None,
        InputKind::Number { min, max } => wrong_number(value, min, max),
        InputKind::Flag => {
            (!matches!(value, "true" | "false")).then(|| "is neither true nor false".to_owned())
        }
        InputKind::Folder => wrong_path(value, "folder", Path::is_dir),
        InputKind::File => wrong_path(value, "file", Path::is_file),
    };
    kind.or_else(|| unmatched(input.validation_regex.as_deref()?, value))
}

fn wrong_number(value: &str, min: Option<f64>, max: Option<f64>) -> Option<String> {
    let number: Option<f64> = value.trim().parse().ok();
    let Some(number) = number.filter(|number| number.is_finite()) else {
        return Some("is no number".to_owned());
    };
    let below = min.filter(|min| number < *min).map(|min| format!("is below {min}"));
    below.or_else(|| max.filter(|max| number > *max).map(|max| format!("is above {max}")))
}

/// A path must lead to what it should; one that begins with a variable is looked at once that is filled in.
fn wrong_path(value: &str, what: &str, is_there: fn(&Path) -> bool) -> Option<String> {
    let path = Path::new(value);
    match () {
        () if value.starts_with("${") => None,
        () if !path.is_absolute() => Some(format!("is not the whole path of a {what}")),
        () if !is_there(path) => Some(format!("is the path of no {what}")),
        () => None,
    }
}

fn unmatched(pattern: &str, value: &str) -> Option<String> {
    let shown = clip::start(pattern, MOST_TOLD);
    match matches(pattern, value, Instant::now() + PATIENCE) {
        Ok(true) => None,
        Ok(false) => Some(format!("does not match `{shown}`")),
        Err(TooLong) => Some(format!("takes too long to be held against `{shown}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_its_kind_within_its_bounds_and_as_its_pattern_says() {
        let number = InputKind::Number { min: Some(1.0), max: Some(200.0) };
        let pattern = |text: &str| Input {
            validation_regex: Some(text.into()),
            prompt: Some("Sides.".into()),
            ..Input::secret("X")
        };
        let of = |kind| Input { kind, ..Input::secret("X") };
        let several = |kind| Input { multiple: true, ..of(kind) };
        for (input, value, wrong) in [
            (of(InputKind::Text), "a\nb", None),
            (of(InputKind::Text), "a\0b", Some("holds a NUL, which no program can be given")),
            (of(number), "20", None),
            (of(number), "1x", Some("is no number")),
            (of(number), "NaN", Some("is no number")),
            (of(number), "0.5", Some("is below 1")),
            (of(number), "201", Some("is above 200")),
            (of(InputKind::Flag), "false", None),
            (of(InputKind::Flag), "yes", Some("is neither true nor false")),
            (of(InputKind::Folder), "/", None),
            (of(InputKind::Folder), "${HOME}/Documents", None),
            (of(InputKind::Folder), "here", Some("is not the whole path of a folder")),
            (of(InputKind::Folder), "/no/such", Some("is the path of no folder")),
            (of(InputKind::File), "/", Some("is the path of no file")),
            (several(number), r#"["1","2"]"#, None),
            (several(number), r#"["1","300"]"#, Some("is above 200")),
            (several(number), "300", Some("is above 200")),
            (pattern("^[2-9]$"), "7", None),
            (
                pattern("^[2-9]$"),
                "1x",
                Some("does not match `^[2-9]$`; the manifest asks for: Sides."),
            ),
        ] {
            assert_eq!(misfit(&input, value).as_deref(), wrong, "{value}");
        }
        let default = Input { default: Some("~/x".into()), ..of(InputKind::Folder) };
        assert_eq!(misfit(&default, "~/x"), None, "the manifest's own is not doubted");
    }
}
