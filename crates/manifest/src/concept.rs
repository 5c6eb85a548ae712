//! What a field is about, independent of the dialect that writes it.
//!
//! A conversion asks of every field it meets: does the target have a place for
//! this? What has none is a loss, and is listed.

/// How much the loss of something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It protects the owner.
    Safety,
    /// The tool may behave differently.
    Behaviour,
    /// People read it.
    Cosmetic,
}

macro_rules! concepts {
    ($($variant:ident $weight:ident $words:literal)*) => {
        /// What a field is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Concept {
            /// Belongs to what encloses it.
            Part,
            $(#[doc = $words] $variant,)*
        }

        impl Concept {
            /// Every concept but [`Concept::Part`].
            pub const ALL: &[Concept] = &[$(Concept::$variant,)*];

            /// The concept in words.
            pub fn words(self) -> &'static str {
                match self {
                    Concept::Part => "a part of something else",
                    $(Concept::$variant => $words,)*
                }
            }

            /// How much its loss matters.
            pub fn weight(self) -> Weight {
                match self {
                    Concept::Part => Weight::Cosmetic,
                    $(Concept::$variant => Weight::$weight,)*
                }
            }
        }
    };
}

concepts! {
    FormatVersion Cosmetic "the version of the format"
    Id Behaviour "the id"
    Namespace Behaviour "the namespace"
    Version Behaviour "the version"
    Kind Behaviour "the kind of capability"
    DisplayName Cosmetic "the display name"
    Summary Cosmetic "the summary"
    Description Cosmetic "the description"
    Homepage Cosmetic "the homepage"
    Author Cosmetic "the author"
    Publisher Cosmetic "the publisher"
    License Cosmetic "the licence"
    Tags Cosmetic "the tags"
    Support Cosmetic "where to get help"
    Links Cosmetic "other pages about it"
    Pictures Cosmetic "icons and screenshots"
    Translations Cosmetic "its translations"
    Acquire Behaviour "how the tool is acquired"
    Origin Safety "where the tool comes from, and its digest"
    RuntimeKind Behaviour "the kind of runtime"
    WorkingFolder Behaviour "the working folder"
    Run Behaviour "how the tool is run"
    McpServer Behaviour "an MCP server that is started here"
    Systems Behaviour "the systems it runs on"
    HostNotes Behaviour "notes for particular hosts"
    Endpoint Behaviour "the endpoint"
    Headers Behaviour "request headers"
    Auth Safety "how requests are authenticated"
    AuthHints Cosmetic "hints on obtaining credentials"
    Implementations Behaviour "several implementations to choose from"
    Requirements Behaviour "what an implementation requires"
    Chain Behaviour "a chain of other tools"
    Env Behaviour "environment variables asked of the owner"
    EnvPassthrough Behaviour "environment variables passed on"
    EnvPrompt Cosmetic "how a variable is asked for"
    EnvKind Behaviour "what values a setting takes"
    EnvDefault Behaviour "the value of a setting nobody has given"
    Secrets Safety "the secrets it needs"
    SecretRefs Safety "where its secrets are kept"
    Scopes Safety "scopes and their rationale"
    Permissions Safety "permissions"
    Sandbox Safety "the kind of sandbox"
    Resources Safety "limits of cpu and memory"
    Timeout Behaviour "the time limit"
    Trust Safety "the declared trust"
    Actions Behaviour "the action"
    Discovery Behaviour "whether there is more than it lists"
    Prompts Behaviour "the prompts it offers"
    Input Behaviour "the input schema"
    Output Behaviour "the output schema"
    OutputFormat Behaviour "the output format"
    SideEffects Safety "side effects"
    Idempotent Behaviour "whether it can be repeated"
    ScopesUsed Safety "which scopes an action uses"
    ErrorEnvelope Behaviour "the shape of errors"
    Approval Safety "whether a call needs approval"
    Examples Cosmetic "examples"
    Docs Cosmetic "short notes for agents"
    Telemetry Cosmetic "telemetry of the runtime"
    Tests Behaviour "package tests"
    Smoke Safety "the smoke test"
    KillSwitch Safety "the kill switch"
    Verify Behaviour "the verification suite"
    DataBoundary Safety "the data boundary"
    Cost Safety "the cost"
    Payment Safety "whether it uses payment"
    Enabled Behaviour "whether it is enabled"
    Oauth Safety "whether it needs OAuth onboarding"
    Channel Behaviour "the execution channel"
    Files Behaviour "the bundled files"
    Signature Safety "who signed the manifest"
    Digest Safety "digests of the package"
}
