//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;
use crate::printer::ColorChoice;

/// Packs, signs, checks, converts and confines the tools AI agents use.
#[derive(Parser, Debug)]
#[command(name = "haft", version, arg_required_else_help = true, term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 a tool failed or ran past a limit, 2 invalid input, 3 not found, 4 refused by policy or review, 5 conflict, 6 cannot be read, written or run, 70 our bug, 130 told to stop before it was done."
)]
pub(crate) struct Haft {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args, Debug)]
pub(crate) struct Global {
    /// The owner's home: keys, and what is installed [default: `HAFT_HOME`, or ~/.mcp]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global")]
    pub(crate) home: Option<PathBuf>,
    /// A state that several homes share, in `PostgreSQL`, instead of the home's own [default: `HAFT_STATE`]
    #[arg(long, global = true, value_name = "URL", help_heading = "Global")]
    pub(crate) state: Option<String>,
    /// Ask nobody: a question is a failure
    #[arg(long, global = true, help_heading = "Global")]
    pub(crate) non_interactive: bool,
    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = "Global")]
    pub(crate) json: bool,
    /// Say nothing beside the result and errors
    #[arg(long, short, global = true, help_heading = "Global")]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global"
    )]
    pub(crate) color: ColorChoice,
}

#[derive(Subcommand, Debug)]
// What belongs to one verb is only made when that verb is typed.
#[command(defer = true)]
pub(crate) enum Command {
    /// Make a new package that works
    Init(commands::init::InitArgs),
    /// Find everything that is wrong with manifests
    Validate(commands::validate::ValidateArgs),
    /// Write a manifest in another dialect, and list what is lost
    Convert(commands::convert::ConvertArgs),
    /// Show what changed between two versions, and how much it matters
    Diff(commands::diff::DiffArgs),
    /// Write tool definitions for other systems
    Export(commands::export::ExportArgs),
    /// Make one file of a package, the same bytes every time
    Pack(commands::pack::PackArgs),
    /// Show what a package holds and says, without unpacking it
    Inspect(commands::inspect::InspectArgs),
    /// Write a package's files into a fresh folder, whole or not at all
    Unpack(commands::unpack::UnpackArgs),
    /// Make, list and trust keys
    Key(commands::key::KeyArgs),
    /// Vouch for every file of a package
    Sign(commands::sign::SignArgs),
    /// Check that a key you trust vouches for every file of a package
    Verify(commands::verify::VerifyArgs),
    /// Print the JSON Schema of a dialect
    Schema(commands::schema::SchemaArgs),
    /// Write a well-known index of install-manifests below a folder, over the old one
    Index(commands::index::IndexArgs),
    /// Publish a package in a registry: a file, or a folder that passes its tests
    Publish(commands::publish::PublishArgs),
    /// Take back a published version, so that nobody chooses it any more
    Yank(commands::yank::YankArgs),
    /// Find tools in registries
    Search(commands::search::SearchArgs),
    /// Show the card of a package: who made it, what it wants, what will run
    Show(commands::install::ShowArgs),
    /// Install a package once you accept its card
    Install(commands::install::InstallArgs),
    /// Make packages of what clients and documents describe, and install them
    Import(commands::import::ImportArgs),
    /// Let a client start haft, and find there what is installed
    Connect(commands::connect::ConnectArgs),
    /// List what is installed
    List(commands::installed::ListArgs),
    /// Show how a package came here, and whether it still is what it was
    Status(commands::installed::PackageArgs),
    /// Let a package be called again
    Enable(commands::installed::PackageArgs),
    /// Keep a package from being called
    Disable(commands::installed::PackageArgs),
    /// Make worthless what a package was given, and keep it from being called
    Revoke(commands::revoke::RevokeArgs),
    /// Make the version active again that was before this one
    Rollback(commands::installed::PackageArgs),
    /// Take a package away
    Remove(commands::installed::RemoveArgs),
    /// Take everything away that was installed
    Reset(commands::installed::ResetArgs),
    /// Bring what a lockfile says into this home
    Sync(commands::sync::SyncArgs),
    /// Look for newer versions of what is installed, and take them
    Update(commands::update::UpdateArgs),
    /// Write down exactly what is installed
    Lock(commands::installed::LockArgs),
    /// Let the home of a project count, as it is now
    Trust(commands::trust::TrustArgs),
    /// Call a tool, inside the walls and as far as you allow it
    Call(commands::call::CallArgs),
    /// Show what chains of tools do, and find the better of two
    Chain(commands::chain::ChainArgs),
    /// Serve every installed tool to a client on standard input and output
    Mcp(commands::mcp::McpArgs),
    /// Try everything: a registry, the gateway and the console, with tools in them, on this machine
    Up(commands::up::UpArgs),
    /// Serve every installed tool over HTTP, until it is stopped
    Serve(commands::serve::ServeArgs),
    /// Print an address that signs you in to the console of `haft serve`, once
    Console(commands::console::ConsoleArgs),
    /// Make, list and remove the tokens of the gateway
    Token(commands::token::TokenArgs),
    /// Rank the tools of a capability, with each term of their scores
    Rank(commands::rank::RankArgs),
    /// Show how often, how fast and how well tools were called, and what got worse
    Metrics(commands::metrics::MetricsArgs),
    /// Run the tests of a package, inside the walls
    Test(commands::test::TestArgs),
    /// Let a package have something: a host, a folder, a device, a variable
    Grant(commands::grant::GrantArgs),
    /// Take back what was granted
    Ungrant(commands::grant::UngrantArgs),
    /// Say what may be called without being asked again
    Approve(commands::approve::ApproveArgs),
    /// Keep values that tools need and nobody else may see
    Secret(commands::secret::SecretArgs),
    /// Sign in for one package: to its server or agent, or where you say
    Login(commands::login::LoginArgs),
    /// Sign out, and give the tokens back
    Logout(commands::login::LogoutArgs),
    /// Show and check your policy
    Policy(commands::policy::PolicyArgs),
    /// Show what was called, and check that the log of it is whole
    Audit(commands::audit::AuditArgs),
    /// Run any program inside the walls
    Sandbox(commands::sandbox::SandboxArgs),
    /// Name registries, serve one, and say who may publish in it
    Registry(commands::registry::RegistryArgs),
    /// Show how strong the walls are here, which runtimes there are, and what to mend
    Doctor(commands::doctor::DoctorArgs),
}
