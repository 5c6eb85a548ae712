//! Calls and latencies over time, drawn as SVG.

use ledger::Time;
use ledger::state::metrics::Span;
use prove::columns::Columns;

use super::Known;
use super::told::{milliseconds, time};
use crate::printer::line;
use crate::xml::escaped;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 460.0;
/// The room on the left, for numbers, and on the right.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
/// Where the upper and the lower field begin, and how high each is.
const UPPER: f64 = 60.0;
const LOWER: f64 = 270.0;
const FIELD: f64 = 150.0;

/// A drawing of a package: latencies above, calls below.
pub(super) fn draw(known: &Known, now: Time) -> String {
    let columns = Columns::whole(&known.spans, now);
    let first = columns.columns.first().map(|one| one.begins.to_string()).unwrap_or_default();
    let total = known.total();
    let failed = match total.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let title = format!("{}: {} calls{failed}", line(&known.package), total.calls);
    let mut body =
        format!("{}{}{}", text(LEFT, 28.0, "title", &title), latencies(&columns), calls(&columns));
    body += &text(LEFT, HEIGHT - 12.0, "small", &format!("from {first} to {now}"));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{}</title>\n\
         <style>text{{font:13px sans-serif;fill:#333}}.title{{font-size:16px;font-weight:bold}}.small{{fill:#666;font-size:11px}}\
         .axis{{stroke:#bbb}}.p50,.p95{{fill:none;stroke-width:2}}.p50{{stroke:#2a6fb0}}.p95{{stroke:#d07a1f}}\
         .well{{fill:#7fa8c9}}.failed{{fill:#b8322a}}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n{body}</svg>\n",
        escaped(&title)
    )
}

fn latencies(columns: &Columns) -> String {
    let quantile = |one: &Span, percent| one.latencies.percentile(percent).map(milliseconds);
    let most = columns.columns.iter().filter_map(|one| quantile(one, 95)).fold(0.0, f64::max);
    let slowest = columns.columns.iter().filter_map(|one| one.latencies.percentile(95)).max();
    let label = slowest.map_or_else(|| "no latencies".to_owned(), time);
    let mut drawn = field(UPPER, &label, "latency: p50 blue, p95 orange");
    for (percent, class) in [(50, "p50"), (95, "p95")] {
        // Where nothing was called, the line is broken.
        let points: Vec<_> =
            columns.columns.iter().map(|one| quantile(one, percent)).enumerate().collect();
        for run in points.split(|(_, value)| value.is_none()).filter(|run| !run.is_empty()) {
            let places = run.iter().filter_map(|(at, value)| {
                let (x, y) = (middle(*at, columns), height(UPPER, (*value)?, most));
                Some(format!("{x:.1},{y:.1}"))
            });
            let places: Vec<_> = places.collect();
            // A line of one point is none.
            if let [only] = places.as_slice() {
                let (x, y) = only.split_once(',').unwrap_or_default();
                drawn += &format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>\n");
            } else {
                let places = places.join(" ");
                drawn += &format!("<polyline class=\"{class}\" points=\"{places}\"/>\n");
            }
        }
    }
    drawn
}

fn calls(columns: &Columns) -> String {
    let most = columns.columns.iter().map(|one| one.calls).max().unwrap_or_default();
    let words = format!("calls by {}: well blue, failed red", columns.unit());
    let mut drawn = field(LOWER, &most.to_string(), &words);
    let wide = step(columns) * 0.8;
    for (at, one) in columns.columns.iter().enumerate().filter(|(_, one)| one.calls > 0) {
        let x = middle(at, columns) - wide / 2.0;
        let (top, failed) = (
            height(LOWER, number(one.calls), number(most)),
            height(LOWER, number(one.failed), number(most)),
        );
        for (class, from, to) in [("well", top, failed), ("failed", failed, LOWER + FIELD)] {
            if to > from {
                drawn += &format!(
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{from:.1}\" width=\"{wide:.1}\" height=\"{:.1}\"/>\n",
                    to - from
                );
            }
        }
    }
    drawn
}

/// A field with its axes, what its top stands for, and what is drawn in it.
fn field(top: f64, most: &str, words: &str) -> String {
    let (bottom, right) = (top + FIELD, WIDTH - RIGHT);
    format!(
        "<path class=\"axis\" d=\"M{LEFT} {top}V{bottom}H{right}\" fill=\"none\"/>\n{}{}",
        text(LEFT, top - 6.0, "small", words),
        text(6.0, top + 10.0, "small", most)
    )
}

fn text(x: f64, y: f64, class: &str, words: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{}</text>\n", escaped(words))
}

fn step(columns: &Columns) -> f64 {
    (WIDTH - LEFT - RIGHT) / number(columns.columns.len().max(1) as u64)
}

fn middle(at: usize, columns: &Columns) -> f64 {
    LEFT + step(columns) * (number(at as u64) + 0.5)
}

fn height(top: f64, value: f64, most: f64) -> f64 {
    let part = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    top + FIELD * (1.0 - part)
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn in pixels")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ledger::state::metrics::Metrics;

    use super::*;

    #[test]
    fn a_drawing_is_bounded_and_holds_no_text_of_a_package_as_markup() {
        let hour = Duration::from_hours(1);
        let now = Time::from_unix_millis(1_793_923_200_000);
        let mut spans = Vec::new();
        for at in 0..3_000_u32 {
            let mut span = Span {
                begins: now.minus(hour * at),
                lasts: hour,
                calls: 3,
                failed: 1,
                ..Span::default()
            };
            span.latencies.add(usize::try_from(at).unwrap() % 20, 2);
            spans.push(span);
        }
        spans.reverse();
        let known = Known {
            package: "mcpkg:<script>&\u{1b}[2J\"".into(),
            metrics: vec![Metrics { calls: 9, failed: 3, ..Metrics::default() }],
            spans,
            tested: Vec::new(),
            regressions: Vec::new(),
        };
        let drawn = draw(&known, now);
        assert!(drawn.len() < 100_000, "{}", drawn.len());
        assert!(drawn.contains("mcpkg:&lt;script&gt;&amp;") && !drawn.contains("<script"));
        assert!(!drawn.contains('\u{1b}') && drawn.contains("9 calls, 3 failed"));
        assert!(drawn.contains("class=\"p95\"") && drawn.contains("class=\"failed\""));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let known = Known {
            package: "x".into(),
            metrics: Vec::new(),
            spans: Vec::new(),
            tested: Vec::new(),
            regressions: Vec::new(),
        };
        let drawn = draw(&known, Time::default());
        assert!(drawn.contains("0 calls") && !drawn.contains("NaN"), "{drawn}");
    }
}
