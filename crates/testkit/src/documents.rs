//! Documents made from a shape: valid ones, up to the borders of every limit.

use manifest::shape::{Bounds, Choice, List, Object, Presence, Rule, Shape, Unknown};
use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::draws::{Draws, made, numbers};
use crate::mutations::{Vocabulary, mutate};
use crate::words::{STRANGE_KEYS, TEXTS, text_within};

/// How many choices a document is made from.
const MOST_DRAWS: usize = 500;

/// Valid documents of a shape.
pub fn documents(shape: &'static Shape) -> impl Strategy<Value = Value> {
    made(MOST_DRAWS, |draws| document(shape, Rules::Kept, draws))
}

/// Documents of a shape with a few faults in them; some faults are none.
pub fn mutants(shape: &'static Shape) -> impl Strategy<Value = Value> {
    let vocabulary = Vocabulary::of(shape);
    (numbers(MOST_DRAWS), numbers(32)).prop_map(move |(document_draws, fault_draws)| {
        let mut draws = Draws::new(&fault_draws);
        let rules = draws.pick(&[Rules::Kept, Rules::Tempted]);
        let faults = match rules {
            Rules::Kept => 1 + draws.below(3),
            Rules::Tempted => draws.below(3),
        };
        let mut document = document(shape, rules, &mut Draws::new(&document_draws));
        for _ in 0..faults {
            mutate(&mut document, &vocabulary, &mut draws);
        }
        document
    })
}

/// Whether what must hold between fields does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// It does.
    Kept,
    /// It may, or may not.
    Tempted,
}

/// A document of a shape; it is valid when the rules are kept.
pub fn document(shape: &Shape, rules: Rules, draws: &mut Draws<'_>) -> Value {
    match shape {
        Shape::Anything => anything(draws, 2),
        Shape::Text(limits) => text_within(limits, draws).into(),
        Shape::Flag => draws.once_in(2).into(),
        Shape::Integer(bounds) => integer(*bounds, draws),
        Shape::Number(bounds) => number(*bounds, draws),
        Shape::Word(words) => draws.pick(words).into(),
        Shape::List(limits) => list(limits, rules, draws),
        Shape::Object(object) => Value::Object(members(object, rules, draws)),
        Shape::Map(inner) => (0..draws.below(3))
            .map(|_| (draws.pick(&TEXTS).to_owned(), document(inner, rules, draws)))
            .collect(),
        Shape::Choice(choice) => alternative(choice, rules, draws),
        Shape::Schema => {
            draws.pick(&[json!({}), json!({"type": "object"}), json!({"type": 3, "propertis": {}})])
        }
        Shape::Nullable(_) if draws.once_in(4) => Value::Null,
        Shape::Nullable(inner) | Shape::Ruled(inner) => document(inner, rules, draws),
    }
}

/// Any JSON value, so many levels deep.
pub fn anything(draws: &mut Draws<'_>, depth: usize) -> Value {
    match draws.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => draws.once_in(2).into(),
        2 => draws.pick(&[json!(0), json!(1), json!(1.0), json!(-1), json!(1.5), json!(1e300)]),
        3 => draws.pick(&TEXTS).into(),
        4 => u64::MAX.into(),
        5 => (0..draws.below(4)).map(|_| anything(draws, depth - 1)).collect(),
        _ => (0..draws.below(4))
            .map(|_| (draws.pick(&TEXTS).to_owned(), anything(draws, depth - 1)))
            .collect(),
    }
}

fn integer(bounds: Bounds, draws: &mut Draws<'_>) -> Value {
    let low = bounds.min.unwrap_or(-3.0);
    let high = bounds.max.unwrap_or(9.0e15);
    let number = draws.pick(&[low, low + 1.0, f64::midpoint(low, high).floor(), high]);
    // `30.0` and `3e1` are whole numbers too.
    if draws.once_in(5) { number.into() } else { whole(number) }
}

fn number(bounds: Bounds, draws: &mut Draws<'_>) -> Value {
    let low = bounds.min.or(bounds.above.map(|above| above + 0.001)).unwrap_or(-1.5);
    let high = bounds.max.unwrap_or(1e300);
    let number = draws.pick(&[low, (low + 1.0).min(high), f64::midpoint(low, high), high]);
    if number.fract() == 0.0 && number.abs() < 9.1e15 && draws.once_in(2) {
        whole(number)
    } else {
        number.into()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the caller has a small whole number")]
fn whole(number: f64) -> Value {
    (number as i64).into()
}

fn list(limits: &List, rules: Rules, draws: &mut Draws<'_>) -> Value {
    let most = limits.max.unwrap_or(limits.min + 3);
    let length = match draws.below(8) {
        0..=6 => (limits.min + draws.below(3)).min(most),
        // Full to the border, of the simplest elements: that keeps it small.
        _ => return vec![document(&limits.item, rules, &mut Draws::new(&[])); most].into(),
    };
    (0..length).map(|_| document(&limits.item, rules, draws)).collect()
}

fn members(object: &Object, rules: Rules, draws: &mut Draws<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    for field in &object.fields {
        if field.presence != Presence::Optional || draws.once_in(3) {
            members.insert(field.name.to_owned(), document(&field.shape, rules, draws));
        }
    }
    if object.unknown != Unknown::Refuse && draws.once_in(4) {
        let key = draws.pick(&STRANGE_KEYS).to_owned();
        members.insert(key, anything(draws, 1));
    }
    // What one rule adds another may forbid, so they are gone through until all are content.
    for _ in 0..object.rules.len() {
        for rule in &object.rules {
            obey(rule, object, &mut members, draws);
        }
    }
    if rules == Rules::Tempted {
        object.rules.iter().for_each(|rule| tempt(rule, object, &mut members, draws));
    }
    members
}

fn alternative(choice: &Choice, rules: Rules, draws: &mut Draws<'_>) -> Value {
    let branch = &choice.branches[draws.below(choice.branches.len())];
    let mut members = members(&branch.object, rules, draws);
    let place = if draws.once_in(3) { members.len() } else { 0 };
    members.shift_insert(place, choice.tag.to_owned(), branch.name.into());
    Value::Object(members)
}

/// Mends what breaks a rule between fields.
fn obey(rule: &Rule, object: &Object, members: &mut Map<String, Value>, draws: &mut Draws<'_>) {
    match rule {
        Rule::ExactlyOne(names) => {
            let mut present = names.iter().filter(|name| members.contains_key(**name));
            let chosen = present.next().copied().unwrap_or_else(|| draws.pick(names));
            for name in names.iter().filter(|name| **name != chosen) {
                members.shift_remove(*name);
            }
            fill(chosen, object, members, draws);
        }
        Rule::Excludes(name, others) => {
            if members.contains_key(*name) && others.iter().any(|o| members.contains_key(*o)) {
                members.shift_remove(*name);
            }
        }
        Rule::AnyOf(names, ..) => {
            if !names.iter().any(|name| members.get(*name).is_some_and(is_filled)) {
                fill(names[0], object, members, draws);
            }
        }
        Rule::Needs(field, word, other) => {
            if members.get(*field).and_then(Value::as_str) == Some(word) {
                fill(other, object, members, draws);
            }
        }
        Rule::NeedsList { path, among, field, .. } => {
            let first = members.get(path[0]);
            let decides = path[1..].iter().try_fold(first, |node, key| Some(node?.get(key)));
            let word = decides.flatten().and_then(Value::as_str);
            if word.is_some_and(|word| among.contains(&word)) {
                fill(field, object, members, draws);
            }
        }
    }
}

/// Puts the fields a rule speaks of there, takes them away, or empties them.
fn tempt(rule: &Rule, object: &Object, members: &mut Map<String, Value>, draws: &mut Draws<'_>) {
    let named: Vec<&str> = match rule {
        Rule::ExactlyOne(names) | Rule::AnyOf(names, ..) => names.to_vec(),
        Rule::Excludes(name, others) => others.iter().copied().chain([*name]).collect(),
        Rule::Needs(field, word, other) => {
            members.insert((*field).to_owned(), (*word).into());
            vec![other]
        }
        Rule::NeedsList { field, .. } => vec![field],
    };
    for name in named {
        match draws.below(4) {
            0 => {}
            1 => fill(name, object, members, draws),
            2 => drop(members.shift_remove(name)),
            _ => drop(members.insert(name.to_owned(), json!([]))),
        }
    }
}

/// Puts a field there, and something in it.
fn fill(name: &str, object: &Object, members: &mut Map<String, Value>, draws: &mut Draws<'_>) {
    if members.get(name).is_some_and(is_filled) {
        return;
    }
    let field = object.fields.iter().find(|field| field.name == name);
    let shape = &field.unwrap_or_else(|| panic!("a rule names `{name}`, which is no field")).shape;
    let value = match shape {
        Shape::List(limits) => {
            vec![document(&limits.item, Rules::Kept, draws); limits.min.max(1)].into()
        }
        _ => document(shape, Rules::Kept, draws),
    };
    members.insert(name.to_owned(), value);
}

fn is_filled(value: &Value) -> bool {
    value.as_array().is_none_or(|items| !items.is_empty())
}
