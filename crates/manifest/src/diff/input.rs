//! The variables and secrets the tool is given.

use std::collections::BTreeMap;

use super::Class;
use super::changes::{Changes, Topic};
use super::words::{both, quoted};
use crate::concept::Concept;
use crate::model::{Input, InputKind, InputSource};

/// Compares what the tool is given; inputs are matched by name.
pub(super) fn compare(changes: &mut Changes, old: &[Input], new: &[Input]) {
    let by_name = |inputs| -> BTreeMap<&str, &Input> {
        let inputs: &[Input] = inputs;
        inputs.iter().map(|input| (input.name.as_str(), input)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    for (name, input) in &before {
        let mut topic = changes.about(subject(input));
        match after.get(name) {
            Some(now) => changed(&mut topic, input, now),
            None => topic.tell(Class::Additive, Concept::Env, "is not asked for any more"),
        }
    }
    for (_, input) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        added(&mut changes.about(subject(input)), input);
    }
}

fn subject(input: &Input) -> String {
    format!("{} {}", if input.secret { "secret" } else { "variable" }, input.name)
}

fn added(topic: &mut Topic<'_>, input: &Input) {
    let (class, message) = match (input.required, input.secret, input.source) {
        (true, _, _) => (Class::Breaking, "is new and required"),
        (false, true, _) => (Class::NeedsReview, "is a new secret, though an optional one"),
        (false, false, InputSource::Caller) => {
            (Class::NeedsReview, "is now handed on from the caller, and may well hold a secret")
        }
        (false, false, InputSource::Owner) => (Class::Additive, "is new and optional"),
    };
    topic.tell(class, Concept::Env, message);
}

fn changed(topic: &mut Topic<'_>, old: &Input, new: &Input) {
    let Input {
        name: _,
        kind,
        multiple,
        secret,
        required,
        prompt,
        validation_regex,
        default,
        obtain_url,
        reference,
        source,
    } = old;
    match (*secret, new.secret) {
        (true, false) => {
            topic.tell(Class::NeedsReview, Concept::Env, "is no longer treated as a secret");
        }
        (false, true) => topic.tell(Class::NeedsReview, Concept::Env, "is a secret now"),
        (true, true) | (false, false) => {}
    }
    match (*required, new.required) {
        (false, true) => topic.tell(Class::Breaking, Concept::Env, "is required now"),
        (true, false) => topic.tell(Class::Additive, Concept::Env, "is optional now"),
        (true, true) | (false, false) => {}
    }
    if *kind != new.kind {
        // The value the owner gave may be none of the new kind.
        let class = if is_wider(*kind, new.kind) { Class::Additive } else { Class::Breaking };
        let message = format!("took {} and now takes {}", kind_words(*kind), kind_words(new.kind));
        topic.tell(class, Concept::Env, message);
    }
    match (*multiple, new.multiple) {
        (true, false) => topic.tell(Class::Breaking, Concept::Env, "takes one value only now"),
        (false, true) => topic.tell(Class::Additive, Concept::Env, "takes several values now"),
        (true, true) | (false, false) => {}
    }
    if let Some(words) = moved("its prompt", prompt.as_deref(), new.prompt.as_deref()) {
        topic.tell(Class::Cosmetic, Concept::Env, words);
    }
    if let Some(words) =
        moved("its pattern", validation_regex.as_deref(), new.validation_regex.as_deref())
    {
        // The value the owner gave may not match another pattern.
        let class = if new.validation_regex.is_none() { Class::Additive } else { Class::Breaking };
        topic.tell(class, Concept::Env, words);
    }
    if let Some(words) = moved("its default", default.as_deref(), new.default.as_deref()) {
        topic.tell(class_of_default(default.as_deref(), new), Concept::Env, words);
    }
    if let Some(words) =
        moved("where a value is to be had", obtain_url.as_deref(), new.obtain_url.as_deref())
    {
        // An owner who follows it types a secret there.
        let class = if new.secret { Class::NeedsReview } else { Class::Cosmetic };
        topic.tell(class, Concept::Env, words);
    }
    if let Some(words) = moved("where it is kept", reference.as_deref(), new.reference.as_deref()) {
        topic.tell(Class::NeedsReview, Concept::Env, words);
    }
    match (source, new.source) {
        (InputSource::Owner, InputSource::Caller) => {
            topic.tell(Class::NeedsReview, Concept::Env, "comes from the caller now");
        }
        (InputSource::Caller, InputSource::Owner) => {
            topic.tell(Class::NeedsReview, Concept::Env, "is asked of the owner now");
        }
        (InputSource::Owner, InputSource::Owner) | (InputSource::Caller, InputSource::Caller) => {}
    }
}

/// Without its default, a required variable must be asked for; another address is another party.
fn class_of_default(old: Option<&str>, new: &Input) -> Class {
    let is_address = |text: Option<&str>| text.is_some_and(|text| text.contains("://"));
    if new.default.is_none() && new.required {
        Class::Breaking
    } else if is_address(old) || is_address(new.default.as_deref()) {
        Class::NeedsReview
    } else {
        Class::Additive
    }
}

/// Whether every value of the old kind is one of the new.
fn is_wider(old: InputKind, new: InputKind) -> bool {
    match (old, new) {
        (
            InputKind::Number { min: old_min, max: old_max },
            InputKind::Number { min: new_min, max: new_max },
        ) => {
            new_min.is_none_or(|new| old_min.is_some_and(|old| new <= old))
                && new_max.is_none_or(|new| old_max.is_some_and(|old| new >= old))
        }
        (old, new) => old == new,
    }
}

fn kind_words(kind: InputKind) -> String {
    match kind {
        InputKind::Text => "a text".to_owned(),
        InputKind::Number { min: None, max: None } => "a number".to_owned(),
        InputKind::Number { min: Some(min), max: None } => format!("a number of at least {min}"),
        InputKind::Number { min: None, max: Some(max) } => format!("a number of at most {max}"),
        InputKind::Number { min: Some(min), max: Some(max) } => {
            format!("a number from {min} to {max}")
        }
        InputKind::Flag => "yes or no".to_owned(),
        InputKind::Folder => "a folder".to_owned(),
        InputKind::File => "a file".to_owned(),
    }
}

fn moved(what: &str, old: Option<&str>, new: Option<&str>) -> Option<String> {
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            let (old, new) = both(old, new);
            Some(format!("{what} was {old} and is now {new}"))
        }
        (Some(old), None) => Some(format!("{what} was {} and is not said any more", quoted(old))),
        (None, Some(new)) => Some(format!("{what} is {} now", quoted(new))),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Compares the packages a tool needs beside it: each is a stranger's code of its own.
pub(super) fn dependencies(changes: &mut Changes, old: &[String], new: &[String]) {
    for name in new.iter().filter(|name| !old.contains(name)) {
        changes.about("dependencies").added(Class::NeedsReview, Concept::Requirements, name);
    }
    for name in old.iter().filter(|name| !new.contains(name)) {
        changes.about("dependencies").removed(Class::Additive, Concept::Requirements, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable() -> Input {
        Input { secret: false, required: false, ..Input::secret("REGION") }
    }

    fn class(old: &[Input], new: &[Input]) -> Option<Class> {
        let mut changes = Changes::default();
        compare(&mut changes, old, new);
        changes.in_order().first().map(|change| change.class)
    }

    #[test]
    fn each_new_input_is_classed_by_what_it_asks() {
        let optional_secret = Input { required: false, ..Input::secret("KEY") };
        let handed_on = Input { source: InputSource::Caller, ..variable() };
        let table = [
            (Input::secret("KEY"), Class::Breaking),
            (Input { required: true, ..variable() }, Class::Breaking),
            (optional_secret, Class::NeedsReview),
            (handed_on, Class::NeedsReview),
            (variable(), Class::Additive),
        ];
        for (input, expected) in table {
            assert_eq!(class(&[], std::slice::from_ref(&input)), Some(expected), "{input:?}");
            assert_eq!(class(std::slice::from_ref(&input), &[]), Some(Class::Additive));
        }
    }

    #[test]
    fn each_changed_field_is_classed() {
        let base = || Input { default: Some("eu".into()), ..variable() };
        let secret = Input::secret("REGION");
        let some = |text: &str| Some(text.to_owned());
        let table = [
            (base(), Input { secret: true, ..base() }, Class::NeedsReview),
            (Input { secret: true, ..base() }, base(), Class::NeedsReview),
            (base(), Input { required: true, ..base() }, Class::Breaking),
            (Input { required: true, ..base() }, base(), Class::Additive),
            (base(), Input { prompt: some("where?"), ..base() }, Class::Cosmetic),
            (base(), Input { validation_regex: some("^e"), ..base() }, Class::Breaking),
            (Input { validation_regex: some("^e"), ..base() }, base(), Class::Additive),
            (base(), Input { default: some("us"), ..base() }, Class::Additive),
            (base(), Input { default: None, ..base() }, Class::Additive),
            (base(), Input { default: some("https://evil.test"), ..base() }, Class::NeedsReview),
            (
                Input { required: true, ..base() },
                Input { required: true, default: None, ..base() },
                Class::Breaking,
            ),
            (base(), Input { obtain_url: some("https://a.test"), ..base() }, Class::Cosmetic),
            (
                secret.clone(),
                Input { obtain_url: some("https://a.test"), ..secret.clone() },
                Class::NeedsReview,
            ),
            (
                Input { reference: some("vault://a#b"), ..secret.clone() },
                Input { reference: some("vault://a#c"), ..secret },
                Class::NeedsReview,
            ),
            (base(), Input { source: InputSource::Caller, ..base() }, Class::NeedsReview),
            (base(), Input { kind: InputKind::Flag, ..base() }, Class::Breaking),
            (base(), Input { multiple: true, ..base() }, Class::Additive),
            (Input { multiple: true, ..base() }, base(), Class::Breaking),
        ];
        for (old, new, expected) in table {
            let found = class(std::slice::from_ref(&old), std::slice::from_ref(&new));
            assert_eq!(found, Some(expected), "{old:?} {new:?}");
        }
    }

    #[test]
    fn narrower_bounds_break_and_wider_ones_do_not() {
        let number = |min, max| Input { kind: InputKind::Number { min, max }, ..variable() };
        let table = [
            ((Some(1.0), None), (Some(0.0), None), Class::Additive),
            ((Some(1.0), Some(9.0)), (None, None), Class::Additive),
            ((None, None), (Some(0.0), None), Class::Breaking),
            ((None, Some(9.0)), (None, Some(8.0)), Class::Breaking),
        ];
        for ((min, max), (new_min, new_max), expected) in table {
            let found = class(&[number(min, max)], &[number(new_min, new_max)]);
            assert_eq!(found, Some(expected), "{min:?} {max:?} {new_min:?} {new_max:?}");
        }
    }
}
