//! The ways a document goes wrong.

use manifest::shape::{Object, Shape};
use serde_json::{Map, Value, json};

use crate::draws::Draws;
use crate::words::{STRANGE_KEYS, TEXTS};

/// The words of a format: a fault is most treacherous when it is a known word in the wrong place.
#[derive(Clone, Debug)]
pub struct Vocabulary(Vec<&'static str>);

impl Vocabulary {
    /// The keys and fixed words of a shape.
    pub fn of(shape: &Shape) -> Self {
        let mut words = vec!["a"];
        gather(shape, &mut words);
        words.sort_unstable();
        words.dedup();
        Self(words)
    }

    /// These words.
    pub fn from_words(words: &[&'static str]) -> Self {
        Self(words.to_vec())
    }
}

fn gather(shape: &Shape, words: &mut Vec<&'static str>) {
    let mut fields = |object: &Object| {
        for field in &object.fields {
            words.push(field.name);
            gather(&field.shape, words);
        }
    };
    match shape {
        Shape::Word(known) => words.extend(known),
        Shape::List(limits) => gather(&limits.item, words),
        Shape::Object(object) => fields(object),
        Shape::Choice(choice) => {
            choice.branches.iter().for_each(|branch| fields(&branch.object));
            words.push(choice.tag);
            words.extend(choice.branches.iter().map(|branch| branch.name));
        }
        Shape::Map(inner) | Shape::Nullable(inner) | Shape::Ruled(inner) => gather(inner, words),
        Shape::Anything
        | Shape::Text(_)
        | Shape::Flag
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::Schema => {}
    }
}

/// Makes one change somewhere in a document.
pub fn mutate(document: &mut Value, vocabulary: &Vocabulary, draws: &mut Draws<'_>) {
    let mut places = Vec::new();
    list_places(document, &mut String::new(), &mut places);
    let place = draws.pick(&places);
    let stranger = random_key(vocabulary, draws);
    let value = document.pointer_mut(&place).expect("the place was listed");
    if draws.once_in(4) {
        return *value = other_value(vocabulary, draws);
    }
    match value {
        Value::Object(members) => mutate_members(members, &stranger, vocabulary, draws),
        Value::Array(items) => mutate_items(items, vocabulary, draws),
        Value::String(text) => mutate_text(text, vocabulary, draws),
        Value::Number(_) => *value = other_number(value, draws),
        Value::Bool(flag) => *value = if draws.once_in(2) { json!("true") } else { json!(!*flag) },
        Value::Null => *value = other_value(vocabulary, draws),
    }
}

fn list_places(value: &Value, place: &mut String, places: &mut Vec<String>) {
    places.push(place.clone());
    let length = place.len();
    let mut beneath = |step: &str, inner: &Value| {
        place.push('/');
        place.push_str(step);
        list_places(inner, place, places);
        place.truncate(length);
    };
    match value {
        Value::Object(members) => {
            for (key, inner) in members {
                beneath(&key.replace('~', "~0").replace('/', "~1"), inner);
            }
        }
        // Lists filled to the border are many times the same.
        Value::Array(items) => {
            items.iter().take(4).enumerate().for_each(|(at, item)| beneath(&at.to_string(), item));
        }
        _ => {}
    }
}

fn random_key(vocabulary: &Vocabulary, draws: &mut Draws<'_>) -> String {
    let keys = if draws.once_in(2) { vocabulary.0.as_slice() } else { &STRANGE_KEYS };
    draws.pick(keys).to_owned()
}

fn other_value(vocabulary: &Vocabulary, draws: &mut Draws<'_>) -> Value {
    match draws.below(12) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!(true),
        4 => json!(0),
        5 => json!(""),
        6 => json!(1.5),
        7 => json!([null]),
        8 => json!([[]]),
        9 => json!({(random_key(vocabulary, draws)): draws.pick(&TEXTS)}),
        10 => draws.pick(&vocabulary.0).into(),
        _ => draws.pick(&TEXTS).into(),
    }
}

fn mutate_members(
    members: &mut Map<String, Value>,
    stranger: &str,
    vocabulary: &Vocabulary,
    draws: &mut Draws<'_>,
) {
    let keys: Vec<String> = members.keys().cloned().collect();
    if keys.is_empty() || draws.once_in(3) {
        members.insert(stranger.to_owned(), other_value(vocabulary, draws));
        return;
    }
    let key = draws.pick(&keys);
    match draws.below(4) {
        0 => drop(members.shift_remove(&key)),
        1 => drop(members.insert(key, Value::Null)),
        // A typo, or another word: the key is lost, and its value stands under another.
        change => {
            let value = members.shift_remove(&key).expect("the key was listed");
            let mut other = key;
            if change == 2 {
                mutate_text(&mut other, vocabulary, draws);
            } else {
                stranger.clone_into(&mut other);
            }
            members.insert(other, value);
        }
    }
}

fn mutate_items(items: &mut Vec<Value>, vocabulary: &Vocabulary, draws: &mut Draws<'_>) {
    match draws.below(6) {
        0 => items.clear(),
        1 => {
            items.pop();
        }
        2 => items.extend(items.first().cloned()),
        3 => items.reverse(),
        4 => items.push(other_value(vocabulary, draws)),
        _ => {
            let again = items.first().cloned().unwrap_or(Value::Null);
            let most = draws.pick(&[5, 17, 33, 65, 257]);
            items.resize(most, again);
        }
    }
}

fn mutate_text(text: &mut String, vocabulary: &Vocabulary, draws: &mut Draws<'_>) {
    match draws.below(8) {
        0..=3 => change_letters(text, draws),
        4 => *text = draws.pick(&vocabulary.0).to_owned(),
        5 => *text = text.to_uppercase(),
        6 => {
            let times = draws.pick(&[1, 64, 81, 281, 801, 4001]);
            *text = draws.pick(&["a", "é", "\u{1f600}"]).repeat(times);
        }
        _ => *text = draws.pick(&TEXTS).to_owned(),
    }
}

/// Puts a letter in somewhere, takes one out, or cuts the text off.
pub fn change_letters(text: &mut String, draws: &mut Draws<'_>) {
    const INSERTED: [&str; 24] = [
        "a", "A", "0", "-", ".", "_", "/", ":", " ", "\n", "\r", "\t", "+", "#", "?", "*", "@",
        "é", "İ", "٣", "\u{2028}", "\u{85}", "\u{feff}", "\u{0}",
    ];
    let boundaries: Vec<usize> =
        text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = draws.pick(&boundaries);
    match draws.below(4) {
        0 => text.truncate(at),
        1 => text.insert_str(at, draws.pick(&INSERTED)),
        2 => text.push_str(draws.pick(&INSERTED)),
        _ if at < text.len() => drop(text.remove(at)),
        _ => {}
    }
}

fn other_number(value: &Value, draws: &mut Draws<'_>) -> Value {
    let number = value.as_f64().unwrap_or_default();
    match draws.below(9) {
        0 => json!(0),
        1 => json!(-1),
        2 => json!(number + 1.0),
        3 => json!(number - 1.0),
        4 => json!(number + 0.25),
        5 => json!(number - 0.25),
        6 => json!(-0.0),
        7 => json!(u64::MAX),
        _ => json!(draws.pick(&[1e300, -1e300, 1e-300])),
    }
}
