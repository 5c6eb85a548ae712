//! The formats.

/// A format that other systems read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Tools of `OpenAI`'s chat completions.
    Openai,
    /// Tools of `OpenAI`'s responses.
    OpenaiResponses,
    /// Tools of Anthropic's messages.
    Anthropic,
    /// What an MCP server answers to `tools/list`.
    Mcp,
    /// A tools.json, with a program for each tool.
    Agentcli,
    /// Tool definitions as mcpkg hosts hand them to a model.
    Mcpkg,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] = [
        Format::Openai,
        Format::OpenaiResponses,
        Format::Anthropic,
        Format::Mcp,
        Format::Agentcli,
        Format::Mcpkg,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Openai => "openai",
            Format::OpenaiResponses => "openai-responses",
            Format::Anthropic => "anthropic",
            Format::Mcp => "mcp",
            Format::Agentcli => "agentcli",
            Format::Mcpkg => "mcpkg",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}
