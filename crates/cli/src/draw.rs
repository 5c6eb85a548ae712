//! Draws a finding with its source line and a caret.

use std::path::Path;

use manifest::document::Report;
use manifest::finding::{Finding, Severity};
use manifest::json::{Place, Places};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthChar;

use crate::exit::Failure;
use crate::printer::{Printer, Style, escaped, is_unsafe};

/// How much of a line is shown on either side of the place.
const WINDOW: usize = 100;

/// A finding as text, ready to print.
pub(crate) fn draw(
    finding: &Finding,
    path: &str,
    text: &str,
    places: &Places<'_>,
    printer: Printer,
) -> String {
    let Place { line, column } = places.of(finding.span);
    let (style, word) = match finding.severity {
        Severity::Error => (Style::Error, "error"),
        Severity::Warning => (Style::Warning, "warning"),
    };
    let head = printer.paint(style, &format!("{word}[{}]", finding.code));
    let message = printer.paint(Style::Strong, &escaped(&finding.message).replace('\n', " "));
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    let bar = printer.paint(Style::Faint, "|");
    let arrow = printer.paint(Style::Faint, "-->");
    let pointer = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!("  {}", escaped(&shortened(pointer))),
    };
    let mut drawn =
        format!("{head}: {message}\n{gutter}{arrow} {}:{line}:{column}{pointer}\n", escaped(path));
    let excerpt = excerpt(finding, text);
    if !excerpt.shown.trim().is_empty() {
        let carets = printer.paint(style, &"^".repeat(excerpt.width));
        drawn += &format!(
            "{gutter} {bar}\n{} {bar} {}\n{gutter} {bar} {}{carets}\n",
            printer.paint(Style::Faint, &number),
            excerpt.shown,
            " ".repeat(excerpt.indent)
        );
    }
    if let Some(help) = &finding.help {
        drawn +=
            &format!("{gutter} {} help: {}\n", printer.paint(Style::Faint, "="), escaped(help));
    }
    drawn
}

struct Excerpt {
    shown: String,
    indent: usize,
    width: usize,
}

/// The part of the source line around a finding. A minified file is one line of a megabyte.
fn excerpt(finding: &Finding, text: &str) -> Excerpt {
    let start = floor(text, finding.span.start as usize);
    let end = floor(text, finding.span.end as usize).max(start);
    // Never look further than what can be shown: there may be thousands of findings.
    let near = floor(text, start.saturating_sub(WINDOW));
    let far = floor(text, (start + WINDOW).min(text.len()));
    let line_start = text[near..start].rfind('\n').map(|at| near + at + 1);
    let line_end = text[start..far].find('\n').map(|at| start + at);
    let middle = if near == 0 { 0 } else { floor(text, start - WINDOW / 2) };
    let from = line_start.unwrap_or(middle);
    let to = line_end.unwrap_or(far);
    let lead = if line_start.is_none() && near > 0 { "…" } else { "" };
    let tail = if line_end.is_none() && far < text.len() { "…" } else { "" };
    let before = visible(&text[from..start]);
    let marked = visible(&text[start..end.min(to)]);
    let after = visible(&text[end.min(to)..to]);
    Excerpt {
        indent: width(lead) + width(&before),
        width: width(&marked).max(1),
        shown: format!("{lead}{before}{marked}{after}{tail}"),
    }
}

/// The nearest character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push(' '),
            '\r' => {}
            c if is_unsafe(c) => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

fn shortened(pointer: &str) -> String {
    match pointer.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &pointer[..end]),
        None => pointer.to_owned(),
    }
}

/// A finding for programs.
pub(crate) fn to_value(finding: &Finding, places: &Places<'_>) -> Value {
    let place = places.of(finding.span);
    json!({
        "code": finding.code.name(),
        "severity": finding.severity,
        "pointer": finding.pointer,
        "line": place.line,
        "column": place.column,
        "message": finding.message,
        "help": finding.help,
    })
}

/// Shows what is wrong with a manifest and gives the failure that ends the command.
pub(crate) fn refused(path: &Path, bytes: &[u8], report: &Report, printer: Printer) -> Failure {
    let text = String::from_utf8_lossy(bytes);
    let places = Places::new(&text);
    let shown = path.to_string_lossy();
    for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        printer.wrong(&draw(finding, &shown, &text, &places, printer));
    }
    let findings = report.findings.iter().map(|finding| to_value(finding, &places)).collect();
    Failure::invalid(format!("`{shown}` is not valid")).findings(findings)
}
