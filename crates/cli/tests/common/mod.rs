//! What the tests of the verbs share.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and this is no library"
)]

use std::path::PathBuf;

/// What came of a run.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// The result.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

impl Ran {
    /// The result as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs `haft` at the root of the repository.
pub fn haft(arguments: &[&str]) -> Ran {
    run_in(&repository(), arguments, None)
}

/// Runs `haft` in a folder, perhaps with something on its standard input.
pub fn run_in(folder: &std::path::Path, arguments: &[&str], stdin: Option<&[u8]>) -> Ran {
    let mut command = assert_cmd::Command::cargo_bin("haft").unwrap();
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("SOURCE_DATE_EPOCH");
    if let Some(bytes) = stdin {
        command.write_stdin(bytes.to_vec());
    }
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().expect("haft ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
