//! The growth as a picture: both axes by tens, each line in its own unit.

use std::fmt::Write;

use crate::Row;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 56.0;
/// The powers of ten at the ends of the axes.
const TOOLS: (f64, f64) = (3.0, 6.0);
const COST: (f64, f64) = (-2.0, 4.0);

/// What a line is called, its colour, and its figure of a row.
type Line = (&'static str, &'static str, fn(&Row) -> f64);

/// A picture of all rows.
pub(crate) fn picture(rows: &[Row]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\" aria-label=\"What a registry costs as it grows\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (power, label) in (3..).zip(["1k", "10k", "100k", "1M"]) {
        let at = x(10_f64.powi(power));
        line(&mut svg, (at, y(10_f64.powf(COST.0))), (at, y(10_f64.powf(COST.1))), "#ddd");
        text(&mut svg, (at - 10.0, HEIGHT - MARGIN + 16.0), "#333", label);
    }
    for (power, label) in (-2..).zip(["0.01", "0.1", "1", "10", "100", "1000", "10000"]) {
        let at = y(10_f64.powi(power));
        line(&mut svg, (MARGIN, at), (WIDTH - 160.0, at), "#ddd");
        text(&mut svg, (8.0, at + 4.0), "#333", label);
    }
    text(&mut svg, (WIDTH / 2.0 - 100.0, HEIGHT - 14.0), "#333", "tools");
    let lines: [Line; 4] = [
        ("publishes a second", "#7a3ea8", |row| row.publishes),
        ("memory, MB", "#1f6fb2", |row| row.memory),
        ("start, s", "#b2571f", |row| row.start),
        ("search p50, ms", "#2a7d46", |row| row.search),
    ];
    for (name, color, figure) in lines {
        let points: Vec<String> = rows
            .iter()
            .map(|row| format!("{:.1},{:.1}", x(row.tools as f64), y(figure(row))))
            .collect();
        let _infallible = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        for row in rows {
            let (at, height) = (x(row.tools as f64), y(figure(row)));
            let _infallible = writeln!(
                svg,
                "<circle cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"3\" fill=\"{color}\"/>"
            );
        }
        if let Some(last) = rows.last() {
            text(&mut svg, (x(last.tools as f64) + 8.0, y(figure(last)) + 4.0), color, name);
        }
    }
    svg + "</svg>\n"
}

fn x(tools: f64) -> f64 {
    let part = (tools.log10() - TOOLS.0) / (TOOLS.1 - TOOLS.0);
    MARGIN + part * (WIDTH - 160.0 - MARGIN)
}

fn y(cost: f64) -> f64 {
    let part = (cost.log10() - COST.0) / (COST.1 - COST.0);
    HEIGHT - MARGIN - part * (HEIGHT - MARGIN - 20.0)
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _infallible = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, at: (f64, f64), color: &str, text: &str) {
    let _infallible =
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{text}</text>", at.0, at.1);
}
