//! `policy.toml` of the home, as it is on the disk.

use std::path::{Path, PathBuf};

use policy::policy::Fault;
use policy::{Judges, Policy, PolicyError};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::home::Home;
use crate::hosts;
use crate::printer::line;

/// The kind of failure that a file is which cannot be read.
pub(crate) const NO_POLICY: &str = "invalid_policy";

/// What holds while the file cannot be read.
const MEANWHILE: &str =
    "until it is mended nothing is called, granted or approved; taking back works";

/// The file, and what it says.
pub(crate) struct PolicyFile {
    pub(crate) path: PathBuf,
    /// Its text; an absent file has none.
    pub(crate) text: Option<String>,
    /// The policy, which is the default one where there is no file.
    pub(crate) said: Result<Policy, PolicyError>,
}

impl PolicyFile {
    /// Reads the file of a home.
    pub(crate) fn read(home: &Home) -> Result<Self, Failure> {
        let path = home.path().join("policy.toml");
        let text = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { path, text: None, said: Ok(Policy::default()) });
            }
            Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
                return Err(no_policy(&path).cause(error));
            }
            Err(error) => {
                return Err(Failure::unread(path.display(), error));
            }
        };
        let text = String::from_utf8(text).map_err(|error| {
            let lines = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|b| *b == b'\n');
            let detail = format!("line {}: this is not UTF-8 text", lines.count());
            no_policy(&path).detail(detail)
        })?;
        let said = Policy::parse_with(&text, &Judges { host, server });
        Ok(Self { path, text: Some(text), said })
    }

    /// The policy, or all that is wrong with it.
    pub(crate) fn policy(self) -> Result<Policy, Failure> {
        let path = self.path;
        self.said.map_err(|error| {
            let told = error.faults.iter().map(Fault::to_string);
            let faults = error.faults.iter().map(to_value).collect();
            no_policy(&path).details(told).listed("faults", faults)
        })
    }
}

/// Something that is wrong, for programs.
fn to_value(fault: &Fault) -> Value {
    let Fault { line, column, key, message } = fault;
    json!({ "line": line, "column": column, "key": key, "message": message })
}

/// What to say of a file that is none.
fn no_policy(path: &Path) -> Failure {
    let message = format!("`{}` is no policy", path.display());
    Failure::invalid(message).kind(NO_POLICY).hint(MEANWHILE)
}

/// Refuses a host that no rule can be made of: a call would find out too late.
fn host(text: &str) -> Result<(), String> {
    hosts::parse(text).map(drop).map_err(|wrong| format!("`{}` is no host: {wrong}", line(text)))
}

/// Refuses a Vault server that no token would be sent to: it goes over TLS, or does not leave this machine.
fn server(address: &str) -> Result<(), String> {
    if vault::kv::is_address(address) {
        return Ok(());
    }
    Err(format!(
        "`{}`: write https://HOST or https://HOST:PORT; http:// leads only to this machine",
        line(address)
    ))
}
