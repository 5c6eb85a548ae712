//! What a gateway has done for it by the program that runs it: what is installed is found, and what the owner's policy wants
//! done is done.

use std::fmt;
use std::path::PathBuf;

use host::violation::Violation;
use host::{Settings, Tool};

/// What a gateway has done for it.
pub trait Steward: fmt::Debug + Send + Sync + 'static {
    /// The files that say what is installed and what is allowed. When one of them is another, all of it is read anew.
    fn files(&self) -> Vec<PathBuf>;

    /// What the host has to know, or why that cannot be said.
    fn settings(&self) -> Result<Settings, String>;

    /// What is installed.
    fn packages(&self) -> Result<Vec<Package>, String>;

    /// Does what the owner wants done about a tool that reached for what it was not given.
    fn violated(&self, tool: &Tool, violation: &Violation);
}

/// A package that is installed.
#[derive(Clone, Debug)]
pub struct Package {
    /// With its dialect.
    pub id: String,
    /// The version that is active, where it has one.
    pub version: Option<String>,
    /// Whether it is switched on.
    pub is_enabled: bool,
    /// As it is called, or why it cannot be.
    pub tool: Result<Tool, String>,
    /// The files that it is made of: when one of them is another, it is no longer what was agreed to.
    pub files: Vec<PathBuf>,
}
