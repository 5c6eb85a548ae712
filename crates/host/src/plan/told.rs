//! A plan, as it is told and written down. No value of a variable is in it.

use std::path::PathBuf;

use policy::{Reason, Verdict};
use serde_json::{Value, json};

use super::mcp::Place;
use super::outlook::Outlook;
use super::{Plan, Way, Worker};
use crate::confine::Walls;
use crate::request::Http;

impl Plan {
    /// The command without what is only known to this call, and the names of the variables it is given.
    pub(crate) fn shown(&self) -> (Vec<String>, Vec<String>) {
        let (argv, walls) = match &self.way {
            Way::Process(one) => (&one.shown, &one.walls),
            Way::Worker(one) => (&one.shown, &one.walls),
            Way::Mcp(one) => match &*one.place {
                Place::Process { walls, .. } => (&one.shown, &**walls),
                Place::Url { .. } | Place::Registry { .. } => {
                    return (one.shown.clone(), Vec::new());
                }
            },
            Way::Http(one) => {
                return (vec![one.method.to_string(), one.shown.clone()], Vec::new());
            }
            Way::A2a(one) => return (vec![one.endpoint.to_string()], Vec::new()),
            Way::Engine(one) => return (one.shown.clone(), one.names.clone()),
            // What its steps run is written down with them.
            Way::Chain(_) => return (Vec::new(), Vec::new()),
        };
        let names = walls.confinement.environment.iter();
        let argv = argv.iter().map(|word| self.redactor.text(word)).collect();
        (argv, names.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    /// The plan as one JSON value, for people and programs.
    pub fn to_value(&self) -> Value {
        let (verdict, why) = match (self.refusal(), &self.decision.verdict) {
            (Some(error), _) => ("denied", Some(error.message.clone())),
            (None, Verdict::Allowed) => ("allowed", None),
            (None, Verdict::Ask(question)) => ("ask", Some(question.why.words().into_owned())),
            (None, Verdict::Denied(denial)) => ("denied", Some(denial.to_string())),
        };
        // The walls of an engine are its own, and a chain has those of its steps.
        let has_no_walls = matches!(self.way, Way::Engine(_) | Way::Chain(_));
        let is_said = |reason: &&Reason| !(has_no_walls && reason.rule == "walls");
        let reasons = self.decision.reasons.iter().filter(is_said);
        let mut reasons: Vec<Value> = reasons.map(|one| one.to_string().into()).collect();
        // Who refuses besides the policy's own rules is among them too.
        let refusing = self.refusal().and_then(|error| error.details["reasons"].as_array());
        for one in refusing.into_iter().flatten() {
            if !reasons.contains(one) {
                reasons.push(one.clone());
            }
        }
        let mut document = json!({
            "package": self.package,
            "decision": verdict,
            "because": why,
            "reasons": reasons,
            "implementation": self.implementation,
        });
        let told = match &self.way {
            Way::Process(one) => {
                self.process_to_value("a process for this call", &one.shown, &one.walls)
            }
            Way::Worker(one) => {
                let way = "a process that serves calls";
                let mut told = self.process_to_value(way, &one.shown, &one.walls);
                told["loads"] = one.loaded();
                told
            }
            Way::Mcp(one) => match &*one.place {
                Place::Process { walls, .. } => {
                    let mut told = self.process_to_value("an MCP server", &one.shown, walls);
                    told["tool"] = one.tool.as_str().into();
                    told
                }
                Place::Url { .. } | Place::Registry { .. } => {
                    one.to_value(&self.decision.allowance)
                }
            },
            Way::Http(one) => self.request_to_value(one),
            Way::A2a(one) => one.to_value(&self.decision.allowance),
            Way::Engine(one) => one.to_value(),
            Way::Chain(_) => json!({
                "runs": "a chain of other tools",
                "steps": self.outlook.iter().flat_map(Outlook::steps).collect::<Vec<_>>(),
                "timeout_ms": self.decision.allowance.timeout_ms,
            }),
        };
        if let Some(image) = &self.image {
            document["image"] = image.to_value();
        }
        if let (Value::Object(members), Value::Object(more)) = (&mut document, told) {
            members.extend(self.outlook.iter().flat_map(Outlook::to_value));
            members.extend(more);
        }
        document
    }

    fn request_to_value(&self, request: &Http) -> Value {
        let mut names: Vec<_> = request.headers.keys().map(ToString::to_string).collect();
        if request.account.is_some() {
            names.push("authorization".to_owned());
        }
        let hosts: Vec<_> = request.rules.iter().map(ToString::to_string).collect();
        json!({
            "runs": "an HTTP request",
            "method": request.method.as_str(),
            "url": request.shown,
            "headers": names,
            "hosts": hosts,
            "timeout_ms": self.decision.allowance.timeout_ms,
            "output": self.decision.allowance.output,
        })
    }

    fn process_to_value(&self, way: &str, argv: &[String], walls: &Walls) -> Value {
        let confinement = &walls.confinement;
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        let names: Vec<_> =
            confinement.environment.iter().map(|(name, _)| name.to_string_lossy()).collect();
        let hosts: Vec<_> = walls.rules.iter().map(ToString::to_string).collect();
        let argv: Vec<_> = argv.iter().map(|word| self.redactor.text(word)).collect();
        let level = json!({
            "required": confinement.required.to_string(),
            "here": self.outlook.as_ref().map(|outlook| outlook.level.to_string()),
        });
        json!({
            "runs": way,
            "argv": argv,
            "walls": {
                "level": level,
                "read": paths(&confinement.readable),
                "write": paths(&confinement.writable),
                "hidden": paths(&confinement.hidden),
                "hosts": hosts,
                "devices": paths(&confinement.devices),
                "environment": names,
                "folder": confinement.folder.display().to_string(),
                "timeout_ms": self.decision.allowance.timeout_ms,
                "memory": self.decision.allowance.memory,
                // As manifests write it: 1 is one processor. None means all there are.
                "cpu": self.decision.allowance.cpu_share.map(|share| f64::from(share) / 100.0),
                "processes": self.decision.allowance.processes,
                "scratch": self.decision.allowance.scratch,
                "output": self.decision.allowance.output,
            },
        })
    }
}

impl Worker {
    /// What it loads, as the package names it.
    fn loaded(&self) -> Value {
        let named = ["main", "export", "callable"];
        named.iter().filter_map(|name| Some((*name, self.load.get(name)?.clone()))).collect()
    }
}
