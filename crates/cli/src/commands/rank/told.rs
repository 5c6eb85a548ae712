//! Ranked tools, as a table, in words and for programs.

use prove::rank::{Dimension, Term};
use serde_json::{Value, json};

use super::{Place, Ranked};
use crate::commands::installed::table;
use crate::printer::{Printer, line};

/// The table: the score, each term, and what is wrong.
pub(super) fn table_of(ranked: &[Ranked]) -> String {
    let value =
        |term: &Term| term.value.map_or_else(|| "?".to_owned(), |value| format!("{value:.2}"));
    let rows = ranked.iter().map(|one| {
        let [correctness, latency, cost, safety, resilience] =
            one.score.terms.each_ref().map(value);
        [
            format!("{:.4}", one.score.total),
            line(&one.candidate.id),
            line(&one.candidate.version),
            line(&place(one)),
            correctness,
            latency,
            cost,
            safety,
            resilience,
            flags(one).join(", "),
        ]
    });
    table(
        [
            "SCORE",
            "TOOL",
            "VERSION",
            "WHERE",
            "CORRECT",
            "LATENCY",
            "COST",
            "SAFETY",
            "RESILIENT",
            "",
        ],
        rows,
    )
}

/// What every term of every score is made of.
pub(super) fn explained(ranked: &[Ranked]) -> String {
    let mut text = String::new();
    for one in ranked {
        text += &format!("\n{} {}\n", line(&one.candidate.id), line(&one.candidate.version));
        for term in &one.score.terms {
            let name = term.dimension.name();
            let why = because(one, term.dimension).unwrap_or("not known, so it counts 0");
            let value = term.value.unwrap_or(0.0);
            text += &format!(
                "  {:.4} = {:.2} × {value:.4}  {name:<11} {}\n",
                term.worth(),
                term.weight,
                line(why)
            );
        }
        text += &format!("  {:.4}\n", one.score.total);
    }
    text
}

/// What the table has no room for.
pub(super) fn notes(ranked: &[Ranked], total: usize, printer: Printer) {
    for one in ranked {
        let id = line(&one.candidate.id);
        for words in &one.candidate.worse {
            printer.warn(&format!("`{id}` is {}", line(words)));
        }
        if !one.unmet.is_empty() {
            let reasons = line(&one.unmet.join("; "));
            printer.note(&format!("`{id}` does not meet `[rank]` of your policy: {reasons}"));
        }
    }
    if total > ranked.len() {
        printer.note(&format!("{} of {}", ranked.len(), super::super::count(total as u64, "tool")));
    }
}

/// The same for programs.
pub(super) fn in_json(ranked: &[Ranked], wanted: &[String], total: usize) -> Value {
    let term = |one: &Ranked, term: &Term| {
        json!({
            "dimension": term.dimension.name(),
            "value": term.value,
            "weight": term.weight,
            "worth": rounded(term.worth()),
            "because": because(one, term.dimension),
        })
    };
    let tool = |one: &Ranked| {
        let candidate = &one.candidate;
        let terms: Vec<_> = one.score.terms.iter().map(|each| term(one, each)).collect();
        let unknown: Vec<_> = one.score.unknown().map(Dimension::name).collect();
        json!({
            "id": candidate.id,
            "version": candidate.version,
            "installed": candidate.place == Place::Installed,
            "registry": match &candidate.place {
                Place::Installed => None,
                Place::Registry(name) => Some(name),
            },
            "enabled": candidate.enabled,
            "score": rounded(one.score.total),
            "terms": terms,
            "unknown": unknown,
            "unmet": one.unmet,
            "regressions": candidate.worse,
        })
    };
    let tools: Vec<_> = ranked.iter().map(tool).collect();
    json!({ "capabilities": wanted, "tools": tools, "total": total })
}

/// Without the rest that adding fractions leaves.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

fn because(one: &Ranked, dimension: Dimension) -> Option<&str> {
    let known = one.candidate.because.iter().find(|(name, _)| *name == dimension.name());
    known.map(|(_, words)| words.as_str())
}

fn place(one: &Ranked) -> String {
    match &one.candidate.place {
        Place::Installed => "installed".to_owned(),
        Place::Registry(name) => name.clone(),
    }
}

fn flags(one: &Ranked) -> Vec<&'static str> {
    [
        (!one.candidate.worse.is_empty(), "got worse"),
        (!one.candidate.enabled, "disabled"),
        (!one.unmet.is_empty(), "left out"),
    ]
    .into_iter()
    .filter_map(|(is_so, word)| is_so.then_some(word))
    .collect()
}
