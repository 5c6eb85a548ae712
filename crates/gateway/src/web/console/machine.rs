//! How strong the walls are here, which runtimes there are, and what to mend.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::Console;
use super::frame::{Frame, Part, page, sentence};
use super::visit::Visit;
use crate::steward::Deed;

/// A part of the walls, or a runtime.
#[derive(Debug)]
struct Row {
    name: String,
    is_there: bool,
    words: String,
}

#[derive(Template)]
#[template(path = "machine.html")]
struct MachinePage {
    frame: Frame,
    level: String,
    meaning: &'static str,
    /// What the policy wants, where it can be read.
    required: Option<String>,
    is_enough: bool,
    walls: Vec<Row>,
    remedies: Vec<String>,
    runtimes: Vec<Row>,
    home: String,
    is_private: bool,
    faults: Vec<String>,
    trouble: Option<String>,
    version: &'static str,
}

pub(super) async fn show(State(console): State<Arc<Console>>, visit: Visit) -> Response {
    let (told, trouble) = match console.deed(Deed::Doctor).await {
        Ok(told) => (told, None),
        Err(trouble) => (Value::Null, Some(sentence(&trouble.message))),
    };
    let stock = console.gateway.stock().await;
    let here = Here {
        level: stock.host.level().to_string(),
        required: stock.trouble.is_none().then(|| stock.policy.sandbox.level.to_string()),
        home: stock.home.display().to_string(),
    };
    let frame = Frame::new(&console, &visit, Part::Machine, "Machine").await;
    page(&MachinePage { trouble, ..told_of(frame, &told, here) })
}

/// What is known here without the doctor.
#[derive(Debug)]
struct Here {
    level: String,
    required: Option<String>,
    home: String,
}

/// The page of what the doctor told.
fn told_of(frame: Frame, told: &Value, here: Here) -> MachinePage {
    let sandbox = &told["sandbox"];
    let level = sandbox["level"].as_str().map_or(here.level, str::to_owned);
    let texts = |value: &Value| {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let wall = |(name, found): (&String, &Value)| Row {
        name: name.replace('_', " "),
        is_there: found["works"] == true,
        words: found["kind"].as_str().or(found["cause"].as_str()).unwrap_or_default().to_owned(),
    };
    let runtime = |(name, found): (&String, &Value)| {
        let text = |key: &str| found[key].as_str().unwrap_or_default();
        let inside =
            if found["inside"] == false { "; it does not start inside the walls" } else { "" };
        let words = if found.is_null() {
            "not here".to_owned()
        } else {
            format!("{} at {}{inside}", text("version"), text("path"))
        };
        Row { name: name.clone(), is_there: !found.is_null(), words }
    };
    let rows = |value: &Value, row: &dyn Fn((&String, &Value)) -> Row| {
        value.as_object().into_iter().flatten().map(row).collect::<Vec<_>>()
    };
    let home = &told["home"];
    MachinePage {
        frame,
        meaning: meaning(&level),
        is_enough: here.required.as_ref().is_some_and(|required| level >= *required),
        level,
        required: here.required,
        walls: rows(&sandbox["primitives"], &wall),
        remedies: texts(&sandbox["remedies"]),
        runtimes: rows(&told["runtimes"], &runtime),
        home: here.home,
        is_private: home["private"] != false,
        faults: texts(&home["faults"]),
        trouble: None,
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// What a level means, in plain words.
fn meaning(level: &str) -> &'static str {
    match level {
        "L3" => {
            "Tools see only what you granted: other files, processes and hosts are not there for them. Memory, time and processes are counted by the kernel."
        }
        "L2" => {
            "Tools see only what you granted: other files, processes and hosts are not there for them. Memory and time are watched by us, since the kernel does not count them here."
        }
        "L1" => "Files and system calls are held; tools see which other processes there are.",
        _ => "There are no walls here: a tool could do whatever you can.",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn walls_that_are_too_weak_are_told_with_what_mends_them() {
        let told = json!({
            "sandbox": {
                "level": "L1",
                "primitives": { "control_groups": { "works": false, "cause": "no delegation" } },
                "remedies": ["set `kernel.unprivileged_userns_clone` to 1"],
            },
            "runtimes": { "python3": { "version": "3.12", "path": "/usr/bin/python3", "inside": false }, "uv": null },
            "home": { "private": false, "faults": ["`mcpkg:a` was changed"] },
        });
        let here = || Here {
            level: "L3".to_owned(),
            required: Some("L2".to_owned()),
            home: "/home/somebody/.mcp".to_owned(),
        };
        let shown = told_of(Frame::bare("Machine"), &told, here()).render().unwrap();
        for words in [
            "<h1>Walls L1</h1>",
            "no local tool is started",
            "no delegation",
            "<li><bdi>set `kernel.unprivileged_userns_clone` to 1</bdi></li>",
            "3.12 at /usr/bin/python3; it does not start inside the walls",
            "not here",
            "Others can change it",
            "<li><bdi>`mcpkg:a` was changed</bdi></li>",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        // Where the doctor cannot be had, what is known here still is.
        let shown = told_of(Frame::bare("Machine"), &Value::Null, here()).render().unwrap();
        assert!(shown.contains("<h1>Walls L3</h1>") && shown.contains("that is so"), "{shown}");
        // What nobody can read wants nothing.
        let unread = Here { required: None, ..here() };
        let shown = told_of(Frame::bare("Machine"), &Value::Null, unread).render().unwrap();
        assert!(shown.contains("nothing is called") && !shown.contains("that is so"), "{shown}");
    }
}
