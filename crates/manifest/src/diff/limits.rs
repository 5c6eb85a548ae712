//! The walls a tool asks for, and its limits.

use std::cmp::Ordering;

use super::Class;
use super::changes::{Changes, Topic};
use super::words::quoted;
use crate::concept::Concept;
use crate::model::{Resources, Sandbox};

/// How long a call may take where the author says nothing.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// Weaker walls are put before the owner.
pub(super) fn sandbox(changes: &mut Changes, old: Option<Sandbox>, new: Option<Sandbox>) {
    let strength = |sandbox| match sandbox {
        None => (0, "undeclared"),
        Some(Sandbox::Process) => (1, "process"),
        Some(Sandbox::Container) => (2, "container"),
    };
    let (old, new) = (strength(old), strength(new));
    if old != new {
        let class = if new < old { Class::NeedsReview } else { Class::Additive };
        changes.about("sandbox").replaced(class, Concept::Sandbox, old.1, new.1);
    }
}

/// More of the machine is put before the owner.
pub(super) fn resources(changes: &mut Changes, old: &Resources, new: &Resources) {
    let Resources { cpu, memory } = old;
    amount(&mut changes.about("cpu"), cpu.as_deref(), new.cpu.as_deref(), cores);
    amount(&mut changes.about("memory"), memory.as_deref(), new.memory.as_deref(), bytes);
}

fn amount(
    topic: &mut Topic<'_>,
    old: Option<&str>,
    new: Option<&str>,
    read: fn(&str) -> Option<f64>,
) {
    let (class, message) = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            let (before, after) = (quoted(old), quoted(new));
            let order = read(old).zip(read(new)).and_then(|(old, new)| new.partial_cmp(&old));
            match order {
                Some(Ordering::Greater) => {
                    (Class::NeedsReview, format!("was raised from {before} to {after}"))
                }
                Some(Ordering::Less) => {
                    (Class::Additive, format!("was lowered from {before} to {after}"))
                }
                Some(Ordering::Equal) => {
                    (Class::Cosmetic, format!("{before} is written {after} now"))
                }
                None => (Class::NeedsReview, format!("{before} and {after} cannot be compared")),
            }
        }
        (Some(old), None) => (Class::NeedsReview, format!("the limit {} is gone", quoted(old))),
        (None, Some(new)) => (Class::Additive, format!("is limited to {} now", quoted(new))),
        (Some(_), Some(_)) | (None, None) => return,
    };
    topic.tell(class, Concept::Resources, message);
}

/// A longer limit is kept in check by policy; a shorter one may cut off calls that used to end.
pub(super) fn timeout(topic: &mut Topic<'_>, old: Option<u64>, new: Option<u64>) {
    let words = |limit: Option<u64>| match limit {
        Some(limit) => format!("`{limit} ms`"),
        None => format!("undeclared, which is `{DEFAULT_TIMEOUT_MS} ms`,"),
    };
    let effective = |limit: Option<u64>| limit.unwrap_or(DEFAULT_TIMEOUT_MS);
    let class = match effective(new).cmp(&effective(old)) {
        Ordering::Less => Class::NeedsReview,
        Ordering::Greater => Class::Additive,
        Ordering::Equal if old == new => return,
        Ordering::Equal => Class::Cosmetic,
    };
    let message = format!("the time limit was {} and is now {}", words(old), words(new));
    topic.tell(class, Concept::Timeout, message.trim_end_matches(','));
}

/// A number of cores: `2`, `0.5`, `500m`.
fn cores(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(thousandths) => Some(thousandths.parse::<f64>().ok()? / 1000.0),
        None => text.parse().ok(),
    }
}

/// A number of bytes: `256Mi`, `1G`, `512MB`.
fn bytes(text: &str) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = match unit {
        "" | "B" => 1.0,
        "K" | "k" | "KB" | "kB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(text[..text.len() - unit.len()].parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(tell: impl FnOnce(&mut Changes)) -> Option<Class> {
        let mut changes = Changes::default();
        tell(&mut changes);
        changes.in_order().first().map(|change| change.class)
    }

    #[test]
    fn amounts_are_compared_as_numbers() {
        let table = [
            ("1", "256Mi", "1", "1Gi", Some(Class::NeedsReview)),
            ("1", "1Gi", "1", "512MB", Some(Class::Additive)),
            ("1", "1Gi", "1", "1024Mi", Some(Class::Cosmetic)),
            ("1", "1GB", "1", "1Gi", Some(Class::NeedsReview)),
            ("500m", "1G", "2", "1G", Some(Class::NeedsReview)),
            ("2", "1G", "1500m", "1G", Some(Class::Additive)),
            ("500m", "1G", "0.5", "1G", Some(Class::Cosmetic)),
            ("2", "1G", "2", "1G", None),
        ];
        for (cpu, memory, new_cpu, new_memory, expected) in table {
            let limits = |cpu: &str, memory: &str| Resources {
                cpu: Some(cpu.into()),
                memory: Some(memory.into()),
            };
            let (old, new) = (limits(cpu, memory), limits(new_cpu, new_memory));
            assert_eq!(class(|on| resources(on, &old, &new)), expected, "{old:?} {new:?}");
        }
        let limited = Resources { memory: Some("1Gi".into()), ..Resources::default() };
        let unlimited = Resources::default();
        assert_eq!(class(|on| resources(on, &limited, &unlimited)), Some(Class::NeedsReview));
        assert_eq!(class(|on| resources(on, &unlimited, &limited)), Some(Class::Additive));
    }

    #[test]
    fn weaker_walls_need_review() {
        let (process, container) = (Some(Sandbox::Process), Some(Sandbox::Container));
        assert_eq!(class(|on| sandbox(on, container, process)), Some(Class::NeedsReview));
        assert_eq!(class(|on| sandbox(on, process, None)), Some(Class::NeedsReview));
        assert_eq!(class(|on| sandbox(on, process, container)), Some(Class::Additive));
    }

    #[test]
    fn a_shorter_time_limit_needs_review_and_the_default_said_aloud_is_cosmetic() {
        let class = |old, new| class(|on| timeout(&mut on.about("time limit"), old, new));
        assert_eq!(class(Some(5_000), Some(1_000)), Some(Class::NeedsReview));
        assert_eq!(class(None, Some(1_000)), Some(Class::NeedsReview));
        assert_eq!(class(None, Some(60_000)), Some(Class::Additive));
        assert_eq!(class(None, Some(30_000)), Some(Class::Cosmetic));
        assert_eq!(class(None, None), None);
    }
}
