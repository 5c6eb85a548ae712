//! A call of a tool of an MCP server, as it is planned.

use std::ffi::OsString;
use std::path::{MAIN_SEPARATOR, Path};
use std::sync::{Arc, OnceLock};

use egress::Rules;
use egress::http::{HeaderMap, Url};
use manifest::dialect::Dialect;
use manifest::model::{Entry, Input, InputKind, Invocation};
use policy::Allowance;
use sandbox::Confinement;
use serde_json::{Value, json};

use super::owner::Owner;
use super::{Asked, unavailable};
use crate::blocked::{self, Blocked, Why};
use crate::confine::{self, Inside, Walls};
use crate::error::{CallError, Kind};
use crate::login::Bearer;
use crate::surface::Surface;

/// A request to an MCP server, whatever the arguments are.
#[derive(Clone, Debug)]
pub(crate) struct Mcp {
    /// Whose it is.
    pub(crate) owner: Owner,
    /// Where the server is; a plan that is taken again shares it.
    pub(crate) place: Arc<Place>,
    /// What the server is remembered under; no secret is in it.
    pub(crate) name: String,
    /// Who the owner signed in as, once that is known.
    pub(crate) bearer: Option<Bearer>,
    /// The name of the tool there.
    pub(crate) tool: String,
    /// Bytes of one message.
    pub(crate) longest: u64,
    /// What may be written down of how it is started or reached.
    pub(crate) shown: Vec<String>,
    /// What the owner approved of, where they did: a server that offers something else is not called.
    pub(crate) surface: Option<Surface>,
    /// All that makes one process different from another, once that was written out.
    pub(crate) key: Arc<OnceLock<String>>,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a process inside the walls.
    Process {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// The walls.
        walls: Box<Walls>,
    },
    /// On the network.
    Url {
        /// Its address.
        url: Url,
        /// Headers that its package sets for every request.
        headers: HeaderMap,
        /// What may be reached.
        rules: Rules,
    },
    /// Where a registry says.
    Registry {
        /// The registry's address.
        url: Url,
        /// What the registry calls the server.
        server: Option<String>,
        /// What may be reached.
        rules: Rules,
    },
}

impl Mcp {
    /// Whether the server is nothing that we start.
    pub(crate) fn is_remote(&self) -> bool {
        !matches!(*self.place, Place::Process { .. })
    }

    /// A request over the network as one JSON value, for people and programs.
    pub(super) fn to_value(&self, allowance: &Allowance) -> Value {
        let (Place::Url { url, rules, .. } | Place::Registry { url, rules, .. }) = &*self.place
        else {
            return Value::Null;
        };
        let hosts: Vec<_> = rules.iter().map(ToString::to_string).collect();
        json!({
            "runs": "an MCP server on the network",
            "url": url.as_str(),
            "tool": self.tool,
            "hosts": hosts,
            "timeout_ms": allowance.timeout_ms,
            "output": allowance.output,
        })
    }
}

impl Asked<'_> {
    /// Plans a request to a server that is a process.
    pub(super) fn mcp_process(
        &self,
        argv: &[String],
        cwd: Option<&str>,
        env: &[(String, String)],
    ) -> Result<Mcp, CallError> {
        let start = self.start(argv)?;
        let (name, rest) =
            start.split_first().ok_or_else(|| unavailable("its command is empty"))?;
        let mut shown = vec![self.filled(name, Sink::Argument)?.concat()];
        for argument in rest {
            let filled = self.filled(argument, Sink::Argument)?;
            // A flag whose value nobody set is not given either.
            let is_flag = |word: &String| argument.strip_prefix('{') == Some(&format!("{word}}}"));
            if filled.is_empty() && shown.len() > 1 && shown.last().is_some_and(is_flag) {
                shown.pop();
            }
            shown.extend(filled);
        }
        let program = self.program(&shown[0])?;
        let mut whole: Vec<_> = shown.iter().map(OsString::from).collect();
        whole[0] = program.path.clone().into_os_string();
        let folder = match cwd {
            Some(cwd) => self.beneath(cwd)?,
            None => self.tool.root.clone(),
        };
        let own = self.variables.iter().map(|(name, one)| (name.clone(), one.value.clone()));
        let mut variables: Vec<_> = match self.tool.package.dialect {
            // The settings of a bundle reach its server only where the manifest puts them.
            Dialect::Mcpb => Vec::new(),
            _ => own.collect(),
        };
        for (name, template) in env {
            variables.push((name.clone(), self.filled(template, Sink::Variable)?.join(",")));
        }
        let inside = Inside { folder, variables, program: &program };
        let allowance = &self.decision.allowance;
        let walls = confine::walls(self.tool, allowance, inside, self.settings)?;
        let place = Place::Process { argv: whole, walls: Box::new(walls) };
        // It is remembered by what the manifest says: where a package lies may change with each call.
        Ok(Mcp { shown, ..self.mcp(place, argv.to_vec())? })
    }

    /// Plans a request to a server on the network.
    pub(super) fn mcp_url(
        &self,
        url: &str,
        headers: &[(String, String)],
    ) -> Result<Mcp, CallError> {
        let rules = confine::rules(&self.decision.allowance)?;
        let (shown, url) = (vec![url.to_owned()], address(&self.address_in_braces(url)?)?);
        let headers = self.headers_in_braces(headers, &url)?;
        self.mcp(Place::Url { url, headers, rules }, shown)
    }

    /// Plans a request to a server that a registry knows.
    pub(super) fn mcp_registry(&self, url: &str, server: Option<&str>) -> Result<Mcp, CallError> {
        let rules = confine::rules(&self.decision.allowance)?;
        let (shown, server) = (vec![url.to_owned()], server.map(str::to_owned));
        self.mcp(Place::Registry { url: address(url)?, server, rules }, shown)
    }

    pub(super) fn mcp(&self, place: Place, shown: Vec<String>) -> Result<Mcp, CallError> {
        let tool = match (&self.action.invocation, &self.implementation.entry) {
            (Invocation::McpTool { tool_name }, _) | (_, Entry::McpTool { tool_name, .. }) => {
                tool_name.clone()
            }
            (other, _) => {
                let message = format!("a tool of a server cannot be called by {}", other.words());
                return Err(unavailable(&message));
            }
        };
        let longest = self.decision.allowance.output;
        let package = &self.tool.package;
        let name = match &place {
            Place::Process { .. } => {
                format!("{} {} {shown:?}", package.canonical_id(), package.raw_sha256)
            }
            Place::Url { url, .. } => url.to_string(),
            Place::Registry { url, server, .. } => format!("{url} {server:?} {tool}"),
        };
        let owner = match &place {
            Place::Process { argv, walls } => {
                let folder = &walls.confinement.folder;
                let files = argv.iter().map(|argument| folder.join(argument));
                Owner::of(self.tool, files, Some(&walls.confinement))
            }
            Place::Url { .. } | Place::Registry { .. } => Owner::of(self.tool, [], None),
        };
        let surface = self.tool.surface.clone();
        let key = Arc::default();
        let place = Arc::new(place);
        Ok(Mcp { owner, place, name, bearer: None, tool, longest, shown, surface, key })
    }

    /// Fills in the `${…}` of a bundle; a setting that holds several values becomes several texts where it
    /// stands alone. A server.json has braces instead, and other dialects have nothing of this kind.
    pub(super) fn filled(&self, template: &str, sink: Sink) -> Result<Vec<String>, CallError> {
        match self.tool.package.dialect {
            Dialect::Mcpb => {}
            Dialect::ServerJson => {
                let alone = template.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                if let Some(name) = alone.filter(|name| self.is_asked_for(name)) {
                    return self.setting(name, sink);
                }
                return self.in_braces(template, sink).map(|text| vec![text]);
            }
            _ => return Ok(vec![template.to_owned()]),
        }
        let alone = template.strip_prefix("${user_config.").and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = alone.filter(|name| !name.contains('}')) {
            return self.setting(name, sink);
        }
        let mut text = String::new();
        let mut rest = template;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            text.push_str(&rest[..start]);
            let name = &rest[start + 2..start + length];
            match (name.strip_prefix("user_config."), self.known(name)) {
                (Some(setting), _) => text += &self.setting(setting, sink)?.join(","),
                (None, Some(value)) => text += &value,
                // What the format does not know stays as it is.
                (None, None) => text += &rest[start..=start + length],
            }
            rest = &rest[start + length + 1..];
        }
        text.push_str(rest);
        Ok(vec![text])
    }

    /// What the owner set, or the default.
    fn setting(&self, name: &str, sink: Sink) -> Result<Vec<String>, CallError> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        let Some((_, variable)) = found else { return Ok(Vec::new()) };
        if variable.is_secret && sink == Sink::Argument {
            let message =
                format!("`{name}` is a secret, and arguments can be seen by other processes");
            return Err(CallError::new(Kind::Denied, message));
        }
        let is_list = self.tool.package.inputs.iter().any(|one| one.name == name && one.multiple);
        let listed = is_list.then(|| serde_json::from_str::<Vec<String>>(&variable.value).ok());
        let values = listed.flatten().unwrap_or_else(|| vec![variable.value.clone()]);
        // A default may speak of the owner's folders.
        let fill = |value: String| {
            ["HOME", "DESKTOP", "DOCUMENTS", "DOWNLOADS"].iter().fold(value, |value, name| {
                match self.known(name) {
                    Some(known) => value.replace(&format!("${{{name}}}"), &known),
                    None => value,
                }
            })
        };
        Ok(values.into_iter().map(fill).collect())
    }

    /// The files and folders that it is told of as settings and does not see.
    pub(super) fn unseen(&self, walls: &Confinement) -> Vec<Blocked> {
        let inputs = self.tool.package.inputs.iter();
        let is_path = |input: &&Input| {
            matches!(input.kind, InputKind::Folder | InputKind::File) && !input.secret
        };
        let values = inputs
            .filter(is_path)
            .flat_map(|input| self.setting(&input.name, Sink::Variable).unwrap_or_default());
        let is_unseen = |path: &String| {
            let path = Path::new(path);
            path.is_absolute() && !blocked::sees(walls, path)
        };
        let unseen = values.filter(is_unseen);
        unseen.map(|asked| Blocked { asked, why: Why::Hidden }).collect()
    }

    /// What a host fills in by itself.
    fn known(&self, name: &str) -> Option<String> {
        let home = self.settings.user_home.as_deref();
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let below_home = |name: &str| text(&home?.join(name));
        match name {
            "__dirname" => text(&self.tool.root),
            "HOME" => text(home?),
            "DESKTOP" => below_home("Desktop"),
            "DOCUMENTS" => below_home("Documents"),
            "DOWNLOADS" => below_home("Downloads"),
            "pathSeparator" | "/" => Some(MAIN_SEPARATOR.to_string()),
            _ => None,
        }
    }
}

/// An address as the package writes it.
fn address(text: &str) -> Result<Url, CallError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    url.ok_or_else(|| unavailable(&format!("`{text}` is no address of a server")))
}

/// Where a value goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sink {
    Argument,
    Variable,
}
