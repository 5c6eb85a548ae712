//! What is installed, and how it does.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ledger::state::metrics::Metrics;

use super::Console;
use super::frame::{Frame, Part, page};
use super::link;
use super::moment::{count, grouped, percent, quantile};
use super::timeline::Tone;
use super::visit::Visit;
use crate::shelf::{Shelved, Stock};
use crate::steward::Standing;

/// A package as a line of a table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) address: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) standing: &'static str,
    pub(super) tone: Tone,
    pub(super) trust: &'static str,
    pub(super) actions: String,
    pub(super) calls: String,
    pub(super) success: String,
    pub(super) p95: String,
}

impl Row {
    fn new(package: &Shelved, measured: Option<&Metrics>) -> Self {
        let tool = package.tool.as_ref().ok();
        let (standing, tone) = standing(package);
        let dash = || "–".to_owned();
        let well = measured.filter(|one| one.calls > 0);
        Self {
            id: package.id.clone(),
            address: link::tool(&package.id),
            name: name(package),
            version: package.version.clone().unwrap_or_default(),
            standing,
            tone,
            trust: package.trust.name(),
            actions: tool.map_or_else(dash, |tool| tool.package.actions.len().to_string()),
            calls: grouped(measured.map_or(0, |one| one.calls)),
            success: well.and_then(Metrics::success).map_or_else(dash, percent),
            p95: well.map_or_else(dash, |one| quantile(&one.latencies, 95)),
        }
    }
}

/// Everything that is installed, with what was counted of it.
pub(super) fn rows(stock: &Stock, measured: &[Metrics]) -> Vec<Row> {
    let mut by_package: HashMap<String, Metrics> = HashMap::new();
    for one in measured {
        by_package.entry(one.series.package.clone()).or_default().join(one);
    }
    stock.packages.iter().map(|one| Row::new(one, by_package.get(&one.id))).collect()
}

/// What people call a package.
pub(super) fn name(package: &Shelved) -> String {
    let own = package.tool.as_ref().ok().and_then(|tool| tool.package.name.clone());
    own.unwrap_or_else(|| package.id.clone())
}

/// How a package stands, in a word.
pub(super) fn standing(package: &Shelved) -> (&'static str, Tone) {
    match (package.standing, &package.tool) {
        (Standing::Revoked, _) => ("revoked", Tone::Stop),
        (Standing::Unconfirmed, _) => ("revoked, not confirmed", Tone::Warn),
        (Standing::Disabled, _) => ("disabled", Tone::Plain),
        (Standing::Enabled, Err(_)) => ("cannot be called", Tone::Stop),
        (Standing::Enabled, Ok(_)) => ("enabled", Tone::Good),
    }
}

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    rows: Vec<Row>,
    heading: String,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let stock = console.gateway.stock().await;
    let measured = stock.host.records().state.metrics(None).await.unwrap_or_default();
    let rows = rows(&stock, &measured);
    let heading = match rows.len() {
        0 => "Nothing is installed".to_owned(),
        many => format!("{} installed", count(many, "tool")),
    };
    page(&ToolsPage {
        frame: Frame::new(&console, &visit, Part::Tools, "Tools").await,
        rows,
        heading,
    })
}
