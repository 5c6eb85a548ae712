//! What the owner is asked for: kinds, bounds, defaults.

use std::collections::HashMap;

use super::templates::check_default;
use super::warning;
use crate::dialect::rules::Judge;
use crate::finding::{Code, Finding};
use crate::json::{Member, Node, Path, Value};

/// The declared settings.
pub(super) struct Settings<'n, 't> {
    members: &'n [Member<'t>],
    by_name: HashMap<&'n str, Setting>,
}

/// What a template needs to know of a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) is_secret: bool,
    pub(super) is_multiple: bool,
}

impl<'n, 't> Settings<'n, 't> {
    pub(super) fn of(document: &'n Node<'t>) -> Self {
        let members = document.get("user_config").map_or(&[][..], Node::members);
        let by_name = members.iter().map(|member| {
            let is = |key| member.value.get(key).and_then(Node::as_bool) == Some(true);
            let setting = Setting { is_secret: is("sensitive"), is_multiple: is("multiple") };
            (member.key.as_ref(), setting)
        });
        Self { members, by_name: by_name.collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<Setting> {
        self.by_name.get(name).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'n str> {
        self.members.iter().map(|member| member.key.as_ref())
    }

    /// Finds what is wrong with each setting by itself.
    pub(super) fn check(&self, judge: &mut Judge<'_>) {
        let root = Path::ROOT;
        let list = root.key("user_config");
        for member in self.members {
            let path = list.key(&member.key);
            check_bounds(&member.value, path, judge);
            if let Some(default) = member.value.get("default") {
                check_value(&member.value, default, path.key("default"), judge);
            }
        }
    }
}

fn check_bounds(setting: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let (Some(min), Some(max)) = (bound(setting, "min"), setting.get("max")) else { return };
    if max.as_number().is_some_and(|max| max.as_f64() < min) {
        let message = format!("is below `min`, which is {min}: no number fits both");
        let pointer = path.key("max").pointer();
        judge.push(warning(Finding::new(Code::OutOfRange, pointer, max.span, message)));
    }
}

fn bound(setting: &Node<'_>, key: &str) -> Option<f64> {
    Some(setting.get(key)?.as_number()?.as_f64())
}

fn check_value(setting: &Node<'_>, default: &Node<'_>, path: Path<'_>, judge: &mut Judge<'_>) {
    let is = |key| setting.get(key).and_then(Node::as_bool) == Some(true);
    if !is_value(default) {
        let message = "must be a text, a number, true or false, or a list of texts";
        judge.push(Finding::new(Code::WrongType, path.pointer(), default.span, message));
    } else if is("sensitive") {
        let is_empty = default.as_text() == Some("") || is_empty_list(default);
        if !is_empty {
            let message = "a secret has a default, which everybody who has the bundle can read; it is not used";
            let finding = Finding::new(Code::SecretDefault, path.pointer(), default.span, message);
            judge.push(warning(finding.help("drop `default`")));
        }
    } else {
        if let Some(message) = mismatch(setting, default, is("multiple")) {
            judge.push(Finding::new(Code::DefaultMismatch, path.pointer(), default.span, message));
        }
        check_default(default, path, judge);
    }
}

fn is_value(default: &Node<'_>) -> bool {
    match &default.value {
        Value::Text(_) | Value::Number(_) | Value::Bool(_) => true,
        Value::List(items) => items.iter().all(|item| item.as_text().is_some()),
        Value::Null | Value::Object(_) => false,
    }
}

fn is_empty_list(default: &Node<'_>) -> bool {
    matches!(&default.value, Value::List(items) if items.is_empty())
}

/// Why a default is none of the values the setting takes.
fn mismatch(setting: &Node<'_>, default: &Node<'_>, is_multiple: bool) -> Option<String> {
    let kind = setting.text_at("type")?;
    let takes = match (kind, &default.value) {
        (_, Value::List(_)) if is_multiple => return None,
        (_, Value::List(_)) => {
            return Some(
                "the default is a list, and one value is asked for; it is not used".into(),
            );
        }
        ("number", Value::Number(number)) => {
            let number = number.as_f64();
            return match (bound(setting, "min"), bound(setting, "max")) {
                (Some(min), _) if number < min => {
                    Some(format!("the default is {number}, below the smallest allowed, {min}"))
                }
                (_, Some(max)) if number > max => {
                    Some(format!("the default is {number}, above the largest allowed, {max}"))
                }
                _ => None,
            };
        }
        ("boolean", Value::Bool(_)) | ("string" | "directory" | "file", Value::Text(_)) => {
            return None;
        }
        ("number", _) => "a number",
        ("boolean", _) => "true or false",
        ("string", _) => "a text",
        ("directory" | "file", _) => "a path",
        _ => return None,
    };
    let found = default.type_name();
    Some(format!("the setting takes {takes}, and the default is a {found}"))
}
