//! The tools behind the steps of a chain, found and bounded before anything runs.

use std::collections::HashMap;
use std::sync::Arc;

use manifest::chain::{Flow, Step};
use manifest::model::Action;

use crate::call::Tool;
use crate::error::{CallError, Kind};

/// How deep chains may be in one another.
pub const DEEPEST: usize = 8;

/// How many steps a chain may have, those of the chains in it counted wherever they are called.
pub const MOST_TOGETHER: usize = 512;

/// A chain whose steps lead to tools.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Its steps.
    pub flow: Flow,
    /// For each step what it calls.
    pub targets: Vec<Target>,
    /// How deep chains are in it, itself included.
    deep: usize,
    /// How many steps there are, those of the chains in it included.
    together: usize,
}

/// What a step calls.
#[derive(Clone, Debug)]
pub struct Target {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The name of its action.
    pub action: String,
}

impl Target {
    /// The action.
    pub fn action(&self) -> Option<&Action> {
        self.tool.action(&self.action)
    }

    /// The chain that the tool is, where it is one.
    pub(crate) fn chain(&self) -> Option<&Arc<Linked>> {
        self.tool.links.as_ref()?.as_ref().ok()
    }
}

impl Linked {
    /// Every step with what it calls, in the order of the document.
    pub fn steps(&self) -> impl Iterator<Item = (&Step, &Target)> {
        self.flow.steps.iter().zip(&self.targets)
    }

    /// The tool of a package that is called somewhere in it.
    pub fn tool(&self, package: &str) -> Option<&Arc<Tool>> {
        self.targets.iter().find_map(|target| {
            let is_it = target.tool.package.canonical_id() == package;
            if is_it { Some(&target.tool) } else { target.chain()?.tool(package) }
        })
    }
}

/// Finds the tools behind the steps of a chain, and of the chains among them. `find` knows tools by the id that a step
/// names. A tool that is no chain has nothing to be found.
pub fn link(
    tool: &Tool,
    find: &mut dyn FnMut(&str) -> Result<Tool, CallError>,
) -> Option<Result<Arc<Linked>, CallError>> {
    tool.package.chain.as_ref()?;
    let path = vec![tool.package.canonical_id()];
    Some(Linking { find, path, known: HashMap::new() }.link(tool))
}

struct Linking<'f> {
    find: &'f mut dyn FnMut(&str) -> Result<Tool, CallError>,
    /// The chains around the one that is looked at, and itself.
    path: Vec<String>,
    /// What was found, by the id that a step names.
    known: HashMap<String, Arc<Tool>>,
}

impl Linking<'_> {
    fn link(&mut self, tool: &Tool) -> Result<Arc<Linked>, CallError> {
        let flow = Flow::of(&tool.package)
            .ok_or_else(|| bad("it has no steps"))?
            .map_err(|error| bad(error.to_string()))?;
        let (mut targets, mut deep, mut together) = (Vec::new(), 1, 0_usize);
        for step in &flow.steps {
            let target = self.target(step)?;
            let inner = target.chain().map_or((0, 0), |inner| (inner.deep, inner.together));
            deep = deep.max(1 + inner.0);
            together = together.saturating_add(1 + inner.1);
            if self.path.len() + inner.0 > DEEPEST {
                return Err(self.too_deep());
            }
            if together > MOST_TOGETHER {
                let message = format!(
                    "`{}` has more than {MOST_TOGETHER} steps, those of the chains in it included",
                    tool.package.id
                );
                return Err(bad(message));
            }
            targets.push(target);
        }
        Ok(Arc::new(Linked { flow, targets, deep, together }))
    }

    fn target(&mut self, step: &Step) -> Result<Target, CallError> {
        let tool = match self.known.get(&step.tool) {
            Some(known) => Arc::clone(known),
            None => self.look_up(step)?,
        };
        let action = action_of(step, &tool)?.name.clone();
        Ok(Target { tool, action })
    }

    fn look_up(&mut self, step: &Step) -> Result<Arc<Tool>, CallError> {
        let mut tool = (self.find)(&step.tool).map_err(|error| {
            let Step { name, tool, .. } = step;
            let message = format!("the step `{name}` calls `{tool}`: {}", error.message);
            CallError { message, ..error }.with("tool", tool.as_str())
        })?;
        if tool.package.chain.is_some() {
            let id = tool.package.canonical_id();
            if self.path.contains(&id) {
                let round: Vec<_> = self.path.iter().map(String::as_str).chain([&*id]).collect();
                let message = format!("the chain leads back to itself: {}", round.join(" → "));
                return Err(bad(message).with("cycle", round));
            }
            if self.path.len() >= DEEPEST {
                return Err(self.too_deep());
            }
            self.path.push(id);
            let inner = self.link(&tool)?;
            self.path.pop();
            tool.links = Some(Ok(inner));
        }
        let tool = Arc::new(tool);
        self.known.insert(step.tool.clone(), Arc::clone(&tool));
        Ok(tool)
    }

    fn too_deep(&self) -> CallError {
        let round = self.path.join(" → ");
        bad(format!("chains are in one another more than {DEEPEST} deep: {round} → …"))
    }
}

/// The action that a step calls: the one that it names, or the only one.
fn action_of<'t>(step: &Step, tool: &'t Tool) -> Result<&'t Action, CallError> {
    let (name, id) = (&step.name, &step.tool);
    match (&step.action, tool.package.actions.as_slice()) {
        (Some(wanted), _) => tool.action(wanted).ok_or_else(|| {
            let message = format!("the step `{name}` calls `{wanted}`, which `{id}` does not have");
            CallError::new(Kind::Unknown, message)
        }),
        (None, [only]) => Ok(only),
        (None, several) => Err(bad(format!(
            "the step `{name}` does not say which of the {} actions of `{id}` it calls; its `action` says so",
            several.len()
        ))),
    }
}

fn bad(message: impl Into<String>) -> CallError {
    CallError::new(Kind::BadChain, message)
}

#[cfg(test)]
mod tests {
    use manifest::document::{Options, read};
    use manifest::model::Trust;
    use policy::Consent;
    use serde_json::json;

    use super::*;

    /// A tool, or a chain of these.
    fn tool(id: &str, steps: &[&str]) -> Tool {
        let mut manifest = json!({
            "toolId": id, "name": id, "version": "1.0.0", "description": "A test.",
            "capabilities": ["test"], "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
        });
        if steps.is_empty() {
            manifest["endpoint"] = json!({"type": "local", "command": "true"});
        } else {
            let step = |(at, tool): (usize, &&str)| json!({"step": format!("s{at}"), "tool": tool});
            manifest["chain"] = steps.iter().enumerate().map(step).collect();
        }
        let (_, mut packages) = read(manifest.to_string().as_bytes(), &Options::default()).unwrap();
        Tool {
            package: packages.remove(0),
            root: "/".into(),
            place: "/".into(),
            consent: Consent::ByPath,
            source_trust: Trust::Local,
            given: crate::Given::default(),
            surface: None,
            brought: crate::Brought::default(),
            links: None,
            digest: None,
        }
    }

    fn linked(all: &[(&str, &[&str])], first: &str) -> Result<Arc<Linked>, CallError> {
        let mut find = |id: &str| {
            let found = all.iter().find(|(known, _)| *known == id);
            let missing = || CallError::new(Kind::Unknown, "it is not installed");
            found.map(|(id, steps)| tool(id, steps)).ok_or_else(missing)
        };
        let first = find(first)?;
        link(&first, &mut find).unwrap()
    }

    #[test]
    fn the_tools_of_a_chain_are_found_and_those_of_the_chains_in_it() {
        let all: &[(&str, &[&str])] =
            &[("a.a.a", &["b.b.b", "c.c.c"]), ("b.b.b", &["c.c.c"]), ("c.c.c", &[])];
        let linked = linked(all, "a.a.a").unwrap();
        assert_eq!((linked.deep, linked.together), (2, 3));
        assert!(linked.targets[0].chain().is_some() && linked.targets[1].chain().is_none());
        assert!(linked.tool("mcpkg:c.c.c").is_some() && linked.tool("mcpkg:d.d.d").is_none());
        assert!(link(&tool("x.x.x", &[]), &mut |_| Err(bad("none"))).is_none());
    }

    #[test]
    fn what_is_not_there_is_named_with_the_step_that_wants_it() {
        let error = linked(&[("a.a.a", &["x.x.x"])], "a.a.a").unwrap_err();
        assert_eq!(error.kind, Kind::Unknown);
        assert_eq!(error.message, "the step `s0` calls `x.x.x`: it is not installed");
    }

    #[test]
    fn a_chain_that_leads_back_to_itself_is_refused() {
        let all: &[(&str, &[&str])] =
            &[("a.a.a", &["b.b.b"]), ("b.b.b", &["c.c.c"]), ("c.c.c", &["a.a.a"])];
        let error = linked(all, "a.a.a").unwrap_err();
        assert_eq!(error.kind, Kind::BadChain);
        let round = "mcpkg:a.a.a → mcpkg:b.b.b → mcpkg:c.c.c → mcpkg:a.a.a";
        assert_eq!(error.message, format!("the chain leads back to itself: {round}"));
    }

    #[test]
    fn chains_in_one_another_are_refused_from_a_depth_on_wherever_they_were_seen_first() {
        let names: Vec<String> = (0..10).map(|number| format!("n.n.{number}")).collect();
        let nexts: Vec<Vec<&str>> = names.iter().skip(1).map(|name| vec![name.as_str()]).collect();
        let mut all: Vec<(&str, &[&str])> =
            names.iter().map(String::as_str).zip(nexts.iter().map(Vec::as_slice)).collect();
        all.push(("n.n.9", &[]));
        // Nine chains and a tool, and eight and a tool.
        assert!(linked(&all, "n.n.0").unwrap_err().message.contains("more than 8 deep"));
        assert_eq!(linked(&all, "n.n.1").unwrap().deep, 8);
        let first: &[&str] = &["n.n.2", "n.n.1"];
        all.push(("first.a.a", first));
        let error = linked(&all, "first.a.a").unwrap_err();
        assert!(error.message.contains("more than 8 deep"), "{error}");
    }

    #[test]
    fn steps_that_multiply_are_refused() {
        let eight: &[&str] = &["c.c.0"; 8];
        let more: &[&str] = &["c.c.1"; 8];
        let most: &[&str] = &["c.c.2"; 8];
        let all = [("c.c.0", &["t.t.t"][..]), ("c.c.1", eight), ("c.c.2", more), ("c.c.3", most)];
        let all: Vec<_> = all.into_iter().chain([("t.t.t", &[][..])]).collect();
        assert_eq!(linked(&all, "c.c.2").unwrap().together, 136);
        let error = linked(&all, "c.c.3").unwrap_err();
        assert!(error.message.contains("more than 512 steps"), "{error}");
    }

    #[test]
    fn of_several_actions_a_step_names_one() {
        let mut many = tool("t.t.t", &[]);
        let mut second = many.package.actions[0].clone();
        second.name = "second".to_owned();
        many.package.actions.push(second);
        let step = |written: serde_json::Value| Step::read(&written).unwrap();
        let unsaid = action_of(&step(json!({"step": "s", "tool": "t.t.t"})), &many).unwrap_err();
        assert!(unsaid.message.contains("which of the 2 actions"), "{unsaid}");
        let said = step(json!({"step": "s", "tool": "t.t.t", "action": "second"}));
        assert_eq!(action_of(&said, &many).unwrap().name, "second");
        let other = step(json!({"step": "s", "tool": "t.t.t", "action": "third"}));
        assert_eq!(action_of(&other, &many).unwrap_err().kind, Kind::Unknown);
    }
}
