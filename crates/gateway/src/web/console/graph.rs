//! The steps of a chain, drawn: what one reads of another, from left to right.

use std::fmt::Write;

use manifest::chain::{Flow, Step};
use manifest::inert::{escaped, short};
use manifest::model::Package;

use crate::shelf::Stock;

/// A box, and the room between two.
const BOX: (f64, f64) = (200.0, 58.0);
const GAP: (f64, f64) = (44.0, 16.0);
const MARGIN: f64 = 8.0;
const LETTERS: usize = 26;

/// A chain as it is shown.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) svg: String,
    /// The same in words, a line for each step.
    pub(super) words: Vec<String>,
    /// The tools that are not here.
    pub(super) missing: Vec<String>,
}

/// Draws a chain; nothing where a package is none that can be followed.
pub(super) fn draw(package: &Package, stock: &Stock) -> Option<Graph> {
    let flow = Flow::of(package)?.ok()?;
    let is_here = |step: &Step| stock.package(&step.tool).is_some();
    let missing: Vec<_> =
        flow.steps.iter().filter(|step| !is_here(step)).map(|step| step.tool.clone()).collect();
    Some(Graph { svg: svg(&flow, &is_here), words: words(&flow), missing })
}

fn words(flow: &Flow) -> Vec<String> {
    let line = |(step, after): (&Step, &Vec<usize>)| {
        let before: Vec<_> = after.iter().map(|at| flow.steps[*at].name.as_str()).collect();
        let after = if before.is_empty() {
            "at once".to_owned()
        } else {
            format!("after {}", before.join(" and "))
        };
        let action = step.action.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}: {}{action}, {after}", step.name, step.tool)
    };
    flow.steps.iter().zip(&flow.after).map(line).collect()
}

fn svg(flow: &Flow, is_here: &dyn Fn(&Step) -> bool) -> String {
    let places = places(flow);
    let far = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).fold(0.0, f64::max);
    let (width, height) =
        (far(|place| place.0) + BOX.0 + MARGIN, far(|place| place.1) + BOX.1 + MARGIN);
    let mut svg = format!(
        "<svg class=\"graph\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" aria-hidden=\"true\">"
    );
    for (to, after) in flow.after.iter().enumerate() {
        for from in after {
            let ((x, y), (end_x, end_y)) = (places[*from], places[to]);
            let (x, y, end_y) = (x + BOX.0, y + BOX.1 / 2.0, end_y + BOX.1 / 2.0);
            let bend = x + GAP.0 / 2.0;
            let _ = write!(
                svg,
                "<path class=\"flow\" d=\"M{x} {y}C{bend} {y} {bend} {end_y} {end_x} {end_y}\"/>"
            );
            let _ = write!(svg, "<path class=\"tip\" d=\"M{end_x} {end_y}l-7 -4v8z\"/>");
        }
    }
    for (step, (x, y)) in flow.steps.iter().zip(&places) {
        let class = if is_here(step) { "step" } else { "missing" };
        let (wide, high) = BOX;
        let (name, tool) =
            (escaped(&short(&step.name, LETTERS)), escaped(&short(&step.tool, LETTERS)));
        let (at, upper, lower) = (x + 12.0, y + 24.0, y + 44.0);
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" rx=\"6\"/>\
             <text class=\"name\" x=\"{at}\" y=\"{upper}\">{name}</text><text x=\"{at}\" y=\"{lower}\">{tool}</text>"
        );
    }
    svg + "</svg>"
}

/// Where each step is drawn: a column for each round, those of one round beneath each other.
fn places(flow: &Flow) -> Vec<(f64, f64)> {
    let mut rounds: Vec<usize> = Vec::with_capacity(flow.steps.len());
    for after in &flow.after {
        rounds.push(after.iter().map(|one| rounds[*one] + 1).max().unwrap_or(0));
    }
    let mut filled = vec![0_u16; rounds.len() + 1];
    let place = |round: &usize| {
        let row = filled[*round];
        filled[*round] += 1;
        let column = u16::try_from(*round).unwrap_or(u16::MAX);
        (MARGIN + f64::from(column) * (BOX.0 + GAP.0), MARGIN + f64::from(row) * (BOX.1 + GAP.1))
    };
    rounds.iter().map(place).collect()
}
