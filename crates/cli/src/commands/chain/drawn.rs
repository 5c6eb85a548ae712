//! A chain as a drawing: a column for each round of steps, an arrow for each answer that another step reads.

use super::look::{Look, Seen};
use crate::printer::line;
use crate::xml::escaped;

const BOX: (f64, f64) = (230.0, 74.0);
const GAP: (f64, f64) = (70.0, 26.0);
const MARGIN: (f64, f64) = (30.0, 60.0);

/// The most letters of a text in a box.
const MOST_LETTERS: usize = 30;

/// A drawing of a chain.
pub(super) fn draw(look: &Look) -> String {
    let places = places(look);
    let right = places.iter().map(|place| place.0 + BOX.0).fold(0.0, f64::max);
    let below = places.iter().map(|place| place.1 + BOX.1).fold(0.0, f64::max);
    let (wide, high) = (right + MARGIN.0, below + MARGIN.0);
    let title = line(&format!("{} {}", look.id, look.version));
    let mut body =
        format!("<text x=\"{}\" y=\"32\" class=\"title\">{}</text>\n", MARGIN.0, escaped(&title));
    for (at, one) in look.steps.iter().enumerate() {
        for before in &one.after {
            body += &arrow(places[*before], places[at]);
        }
    }
    for (one, place) in look.steps.iter().zip(&places) {
        body += &step(one, *place);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" role=\"img\">\n\
         <title>{}</title>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#666\"/></marker></defs>\n\
         <style>text{{font:13px sans-serif;fill:#333}}.title{{font-size:16px;font-weight:bold}}.name{{font-weight:bold}}.small{{fill:#666;font-size:11px}}\
         .step{{fill:#eef4fa;stroke:#2a6fb0}}.missing{{fill:#fbeceb;stroke:#b8322a;stroke-dasharray:5 3}}.flow{{fill:none;stroke:#666}}</style>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"#fff\"/>\n{body}</svg>\n",
        escaped(&title)
    )
}

/// Where the box of each step is.
fn places(look: &Look) -> Vec<(f64, f64)> {
    let mut filled: Vec<f64> = Vec::new();
    let mut place = |one: &Seen| {
        if filled.len() <= one.round {
            filled.resize(one.round + 1, 0.0);
        }
        let row = filled[one.round];
        filled[one.round] += 1.0;
        #[expect(clippy::cast_precision_loss, reason = "a chain has few steps")]
        let column = one.round as f64;
        (MARGIN.0 + column * (BOX.0 + GAP.0), MARGIN.1 + row * (BOX.1 + GAP.1))
    };
    look.steps.iter().map(&mut place).collect()
}

fn step(one: &Seen, (x, y): (f64, f64)) -> String {
    let class = if one.tool.is_some() { "step" } else { "missing" };
    let (width, height) = BOX;
    let words = |at: f64, class: &str, words: &str| {
        let (x, y, words) = (x + 12.0, y + at, escaped(&short(&line(words))));
        format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{words}</text>\n")
    };
    let takes = one.step.sources().into_iter().map(|(to, from)| format!("{to} ← {from}"));
    let manner: Vec<_> = takes.chain(one.manner()).collect();
    format!(
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n"
    ) + &words(24.0, "name", &one.step.name)
        + &words(43.0, "", &one.step.tool)
        + &words(61.0, "small", &manner.join("; "))
}

/// An arrow from the right of one box to the left of another.
fn arrow((from_x, from_y): (f64, f64), (to_x, to_y): (f64, f64)) -> String {
    let (x, y) = (from_x + BOX.0, from_y + BOX.1 / 2.0);
    let (end_x, end_y) = (to_x - 2.0, to_y + BOX.1 / 2.0);
    let bend = x + GAP.0 / 2.0;
    format!(
        "<path class=\"flow\" d=\"M{x} {y}C{bend} {y} {bend} {end_y} {end_x} {end_y}\" marker-end=\"url(#tip)\"/>\n"
    )
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
