//! Calls and latencies over time, drawn; with a text that says the same, and the numbers themselves.

use std::fmt::Write;

use ledger::Time;
use ledger::state::metrics::Span;
use prove::columns::Columns;

use super::moment::{grouped, latency, percent, quantile, quantile_said};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 150.0;
/// The room on the left, for numbers, on the right, above and below.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 24.0;

/// Two drawings of the same time.
#[derive(Debug)]
pub(super) struct Plots {
    /// The latencies of calls that went well.
    pub(super) latency: Plot,
    /// How many calls there were, and how many failed.
    pub(super) calls: Plot,
    pub(super) rows: Vec<Row>,
    /// What a column is: `hour`, `day`.
    pub(super) unit: &'static str,
}

/// A drawing, and what it says.
#[derive(Debug)]
pub(super) struct Plot {
    /// Markup that is made of numbers alone.
    pub(super) svg: String,
    pub(super) words: String,
}

/// The numbers of one column.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) begins: String,
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) p50: String,
    pub(super) p95: String,
}

/// Draws what was counted of a package; nothing where nothing was.
pub(super) fn draw(spans: &[Span], now: Time) -> Option<Plots> {
    let columns = Columns::whole(spans, now);
    let told: Vec<_> = columns.columns.iter().filter(|one| one.calls > 0).collect();
    let (first, last) = (told.first()?, told.last()?);
    let unit = columns.unit();
    let row = |one: &&Span| Row {
        begins: begins(one.begins, unit),
        calls: one.calls,
        failed: one.failed,
        p50: quantile(&one.latencies, 50),
        p95: quantile(&one.latencies, 95),
    };
    let (calls, failed) =
        told.iter().fold((0, 0), |(calls, failed), one| (calls + one.calls, failed + one.failed));
    let most = told.iter().max_by_key(|one| one.calls)?;
    let success = if calls == 0 { 0.0 } else { 1.0 - number(failed) / number(calls) };
    let noun = if calls == 1 { "call" } else { "calls" };
    let peak = if told.len() == 1 {
        format!("all in the {unit} of {}", begins(most.begins, unit))
    } else {
        let calls = grouped(most.calls);
        format!("most in the {unit} of {}, {calls}", begins(most.begins, unit))
    };
    let calls_words = format!(
        "{} {noun}, {} of them failed ({} went well); {peak}.",
        grouped(calls),
        grouped(failed),
        percent(success)
    );
    let said = |one: &Span, percent| quantile_said(&one.latencies, percent);
    let latency_words = if told.len() == 1 {
        format!("Half of the calls took {}, 95 of 100 {}.", said(first, 50), said(first, 95))
    } else {
        format!(
            "Half of the calls took {} in the first {unit} and {} in the last, 95 of 100 {} and {}.",
            said(first, 50),
            said(last, 50),
            said(first, 95),
            said(last, 95)
        )
    };
    Some(Plots {
        latency: Plot { svg: latencies(&columns), words: latency_words },
        calls: Plot { svg: bars(&columns), words: calls_words },
        rows: told.iter().rev().take(48).map(row).collect(),
        unit,
    })
}

/// A small line without words, of how long calls took in each column; nothing where there are not two to be told apart.
pub(super) fn spark(spans: &[Span], now: Time) -> Option<String> {
    let columns = Columns::lately(spans, now).columns;
    let values: Vec<_> = columns
        .iter()
        .map(|one| one.latencies.percentile(95).map(|time| time.as_secs_f64()))
        .collect();
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 || values.iter().flatten().count() < 2 {
        return None;
    }
    let step = 140.0 / number(values.len().max(2) as u64 - 1);
    let mut path = String::new();
    let mut is_drawing = false;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let (x, y) = (step * number(at as u64), 25.0 - value / most * 22.0);
        let _ = write!(path, "{}{x:.1} {y:.1}", if is_drawing { 'L' } else { 'M' });
        if !is_drawing {
            // A line of one point is none.
            let _ = write!(path, "h.1");
        }
        is_drawing = true;
    }
    Some(format!(
        "<svg class=\"spark\" viewBox=\"0 0 140 28\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
    ))
}

fn latencies(columns: &Columns) -> String {
    let quantile =
        |one: &Span, percent| one.latencies.percentile(percent).map(|time| time.as_secs_f64());
    let most = columns.columns.iter().filter_map(|one| quantile(one, 95)).fold(0.0, f64::max);
    let slowest = columns.columns.iter().filter_map(|one| one.latencies.percentile(95)).max();
    let mut svg = field(columns, &slowest.map_or_else(String::new, latency));
    for (percent, class) in [(95, "p95"), (50, "p50")] {
        let points: Vec<_> =
            columns.columns.iter().map(|one| quantile(one, percent)).enumerate().collect();
        // Where nothing was called, the line is broken.
        for run in points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()) {
            let mut places = run
                .iter()
                .filter_map(|(at, value)| Some((middle(*at, columns), height((*value)?, most))));
            if let ([_], Some((x, y))) = (run, places.next()) {
                let _ =
                    write!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
                continue;
            }
            let places = run
                .iter()
                .filter_map(|(at, value)| Some((middle(*at, columns), height((*value)?, most))));
            let places: Vec<_> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", places.join(" "));
        }
    }
    svg + "</svg>"
}

fn bars(columns: &Columns) -> String {
    let most = columns.columns.iter().map(|one| one.calls).max().unwrap_or_default();
    let mut svg = field(columns, &grouped(most));
    let wide = (step(columns) * 0.8).max(1.0);
    for (at, one) in columns.columns.iter().enumerate().filter(|(_, one)| one.calls > 0) {
        let x = middle(at, columns) - wide / 2.0;
        let (top, failed) =
            (height(number(one.calls), number(most)), height(number(one.failed), number(most)));
        for (class, from, to) in [("well", top, failed), ("failed", failed, HEIGHT - BOTTOM)] {
            if to > from {
                let high = to - from;
                let _ = write!(
                    svg,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{from:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"/>"
                );
            }
        }
    }
    svg + "</svg>"
}

/// The beginning of a drawing: its axes, what its top stands for, and when it begins and ends.
fn field(columns: &Columns, most: &str) -> String {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let unit = columns.unit();
    let at = |one: Option<&Span>| one.map(|one| begins(one.begins, unit)).unwrap_or_default();
    let (first, last) = (at(columns.columns.first()), at(columns.columns.last()));
    let below = HEIGHT - 8.0;
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">\
         <path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
         <text x=\"{}\" y=\"{}\" class=\"end\">{most}</text><text x=\"{}\" y=\"{bottom}\" class=\"end\">0</text>\
         <text x=\"{LEFT}\" y=\"{below}\">{first}</text><text x=\"{right}\" y=\"{below}\" class=\"end\">{last}</text>",
        LEFT - 6.0,
        TOP + 8.0,
        LEFT - 6.0,
    )
}

fn begins(time: Time, unit: &str) -> String {
    let exact = time.to_string();
    let (day, hour) = (exact.get(5..10).unwrap_or_default(), exact.get(11..16).unwrap_or_default());
    if unit == "hour" {
        format!("{day} {hour}")
    } else {
        exact.get(..10).unwrap_or_default().to_owned()
    }
}

fn step(columns: &Columns) -> f64 {
    (WIDTH - LEFT - RIGHT) / number(columns.columns.len().max(1) as u64)
}

fn middle(at: usize, columns: &Columns) -> f64 {
    LEFT + step(columns) * (number(at as u64) + 0.5)
}

fn height(value: f64, most: f64) -> f64 {
    let part = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - part)
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn in pixels")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn spans(count: u32, now: Time) -> Vec<Span> {
        let hour = Duration::from_hours(1);
        let span = |at: u32| {
            let mut span = Span {
                begins: now.minus(hour * at),
                lasts: hour,
                calls: 4,
                failed: 1,
                ..Span::default()
            };
            span.latencies.add(usize::try_from(at % 20).unwrap(), 3);
            span
        };
        (0..count).rev().map(span).collect()
    }

    #[test]
    fn a_drawing_is_bounded_and_says_in_words_what_it_shows() {
        let now = Time::from_unix_millis(1_793_923_200_000);
        let plots = draw(&spans(3_000, now), now).unwrap();
        assert!(plots.latency.svg.len() < 100_000 && plots.calls.svg.len() < 100_000);
        for svg in [&plots.latency.svg, &plots.calls.svg] {
            assert!(
                !svg.contains("NaN") && !svg.contains("inf") && !svg.contains("style="),
                "{svg}"
            );
        }
        assert!(plots.calls.svg.contains("class=\"failed\""));
        assert!(
            plots.calls.words.contains("12,000 calls, 3,000 of them failed (75.0 % went well)"),
            "{}",
            plots.calls.words
        );
        assert!(plots.latency.words.contains("95 of 100"));
        assert_eq!(plots.unit, "day");
        assert!(plots.rows.len() <= 48);
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let now = Time::from_unix_millis(1_793_923_200_000);
        assert!(draw(&[], now).is_none() && spark(&[], now).is_none());
        let one = spans(1, now);
        let drawn = draw(&one, now).unwrap();
        assert!(drawn.latency.svg.contains("<circle"));
        assert!(
            drawn
                .calls
                .words
                .starts_with("4 calls, 1 of them failed (75.0 % went well); all in the hour of ")
        );
        assert!(spark(&one, now).is_none() && spark(&spans(2, now), now).is_some());
    }
}
