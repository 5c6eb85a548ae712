//! The first line of a script, and what it tells of one that was not executed.

use std::fmt;
use std::io::Read;
use std::path::Path;

/// As much of a file as its first line is looked for in.
const HEAD: u64 = 256;

/// What stands after `#!` in the first line of a script.
pub(crate) fn first_line(path: &Path) -> Option<String> {
    let head = head(path)?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Why a program that is there was not executed, as far as it can be read in its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Its first line asks for a program that is not inside the walls.
    Interpreter(String),
    /// Its first line ends with a carriage return, and a name that ends so is asked for.
    CarriageReturn,
    /// It has no first line that asks for a program, and is none itself.
    NoFirstLine,
    /// It is a program, and not of this machine.
    Foreign,
}

impl Obstacle {
    /// Its code, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Interpreter(_) => "interpreter",
            Self::CarriageReturn => "carriage-return",
            Self::NoFirstLine => "no-first-line",
            Self::Foreign => "foreign",
        }
    }

    /// Puts what can be read in a program in place of what the system says of it, where that explains it.
    #[cfg(target_os = "linux")]
    pub(crate) fn explaining(program: &Path, said: std::io::Error) -> std::io::Error {
        match Self::of(program, &said) {
            Some(obstacle) => std::io::Error::new(said.kind(), obstacle),
            None => said,
        }
    }

    #[cfg(target_os = "linux")]
    fn of(program: &Path, said: &std::io::Error) -> Option<Self> {
        use rustix::io::Errno;
        match Errno::from_io_error(said)? {
            Errno::NOENT => {
                let line = first_line(program)?;
                if line.ends_with('\r') {
                    return Some(Self::CarriageReturn);
                }
                line.split_whitespace().next().map(|name| Self::Interpreter(name.to_owned()))
            }
            Errno::NOEXEC if head(program)?.starts_with(b"\x7fELF") => Some(Self::Foreign),
            Errno::NOEXEC => Some(Self::NoFirstLine),
            _ => None,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interpreter(name) => {
                write!(f, "its first line asks for `{name}`, which is not inside the walls")
            }
            Self::CarriageReturn => f.write_str(
                "its first line ends with a carriage return, and what it asks for is not inside the walls",
            ),
            Self::NoFirstLine => f.write_str("it has no first line such as `#!/bin/sh`"),
            Self::Foreign => f.write_str("it is made for another processor or system"),
        }
    }
}

impl std::error::Error for Obstacle {}
