//! How a tool reaches the machine and how it is run.

use super::Json;

/// How a tool reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named as the dialects name them")]
pub enum Acquire {
    /// With the package itself.
    Bundle,
    /// As a Python package.
    Pip { package: String, version_spec: Option<String> },
    /// As a Node package.
    Npm { package: String, version_spec: Option<String> },
    /// From a repository.
    Git { url: String, reference: String, subpath: Option<String>, layout: Option<String> },
    /// As a container image.
    Container { image: String },
    /// As one file; the digest is empty where nobody knows it.
    Url { url: String, sha256: String },
    /// It is there already; the locator says how to see that.
    Preinstalled { locator: Json },
    /// From a path on this machine.
    LocalPath { path: Option<String> },
    /// There is nothing to acquire.
    Nothing,
}

/// One way to run a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implementation {
    /// Its id in the package.
    pub id: String,
    /// Language it is written in.
    pub language: Option<String>,
    /// What runs it.
    pub runtime: Option<String>,
    /// Systems it runs on; none means all.
    pub platforms: Vec<String>,
    /// What is started or reached.
    pub entry: Entry,
    /// How long one call may take.
    pub timeout_ms: Option<u64>,
    /// What must be there, verbatim.
    pub requirements: Option<Json>,
}

/// What is started or reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named as the dialects name them")]
pub enum Entry {
    /// A command.
    Argv { argv: Vec<String>, cwd: Option<String>, runtime: Option<String> },
    /// An MCP server as a process, with the variables that are set for it.
    McpStdio { argv: Vec<String>, cwd: Option<String>, env: Vec<(String, String)> },
    /// An MCP server on the network, with the headers of every request; what the owner is asked for stands in braces.
    McpHttp { url: String, headers: Vec<(String, String)> },
    /// An HTTP API.
    Http { base: String, method: Option<String> },
    /// A Node module.
    NodeModule { main: String, export: Option<String> },
    /// A Python function.
    PythonCallable { callable: String },
    /// A tool of a server that a registry knows.
    McpTool { registry_url: String, server_id: Option<String>, tool_name: String },
    /// A server the host already runs.
    KnownServer { server_id: String },
    /// An agent on the network.
    A2a { endpoint: String },
    /// The author does not say.
    Undeclared,
}

impl Entry {
    /// Whether it is started here, and not asked elsewhere.
    pub fn is_process(&self) -> bool {
        matches!(
            self,
            Entry::Argv { .. }
                | Entry::PythonCallable { .. }
                | Entry::NodeModule { .. }
                | Entry::McpStdio { .. }
        )
    }

    /// Whether it is an MCP server on the network, or a registry leads to one.
    pub fn is_server_elsewhere(&self) -> bool {
        matches!(self, Entry::McpHttp { .. } | Entry::McpTool { .. })
    }
}

/// How an action is called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named as the dialects name them")]
pub enum Invocation {
    /// Arguments after the entry, filled in from the input.
    Subcommand { argv_template: Vec<String> },
    /// The input as JSON on standard input.
    StdinJson { argv_template: Vec<String> },
    /// The input as JSON, as the last argument and on standard input.
    ArgvJson,
    /// A request.
    Http { method: String, path: String, headers: Vec<(String, String)> },
    /// A tool of the MCP server.
    McpTool { tool_name: String },
    /// `execute` of a Node tool object.
    NodeExecute,
    /// A call of a Python function.
    PythonCall,
    /// A message to an agent.
    A2aSend,
    /// The steps of a chain.
    Chain,
    /// The texts of `args` after the entry, and `stdin` on standard input.
    Script,
    /// The author does not say.
    Undeclared,
}

impl Invocation {
    /// What it is, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Subcommand { .. } => "arguments (`subcommand`)",
            Self::StdinJson { .. } => "JSON on standard input (`stdin-json`)",
            Self::ArgvJson => "JSON as an argument",
            Self::Http { .. } => "a request (`http`)",
            Self::McpTool { .. } => "a tool of an MCP server (`mcp-tool`)",
            Self::NodeExecute => "`execute` of a Node tool",
            Self::PythonCall => "a call of a Python function",
            Self::A2aSend => "a message to an agent",
            Self::Chain => "the steps of a chain",
            Self::Script => "arguments and standard input",
            Self::Undeclared => "what it leaves unsaid",
        }
    }
}

/// The steps of a tool that is made of other tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The steps, in the order of the document.
    pub steps: Vec<Step>,
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Id of the tool it calls.
    pub tool: String,
    /// Everything about it, verbatim.
    pub definition: Json,
}
