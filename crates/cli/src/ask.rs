//! Questions to the person at the terminal.

use std::fs::File;
use std::io::{BufRead, IsTerminal, Read, Write};

use host::Said;
use zeroize::Zeroizing;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::printer::line;

/// The longest passphrase.
const MAX_PASSPHRASE: u64 = 4096;

/// The longest answer to a question.
const LONGEST_ANSWER: u64 = 64;

/// The longest value that is typed to be seen.
const LONGEST_VALUE: u64 = 4096;

/// How often somebody is asked whose answers are none.
const MOST_QUESTIONS: usize = 3;

/// What to do where the passphrase of the vault is needed and nobody can be asked.
pub(crate) const AT_TERMINAL: &str =
    "run it at a terminal, without --non-interactive: it is asked for there";

/// Whether somebody can be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// At the terminal.
    Terminal,
    /// Nobody: every question is a failure.
    Nobody,
}

/// What the owner may say to a call, beside no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Yes, this time.
    Once,
    /// That, or yes whenever its arguments are these.
    Always,
    /// Yes, and it is not asked here again.
    FromNowOn,
}

impl Ask {
    pub(crate) fn new(non_interactive: bool) -> Self {
        if non_interactive { Ask::Nobody } else { Ask::Terminal }
    }

    /// Asks twice for the passphrase of a new key, without showing it.
    pub(crate) fn new_passphrase(self, name: &str) -> Result<Zeroizing<String>, Failure> {
        let hint = "--passphrase-stdin reads it from standard input; --no-passphrase does without";
        self.twice(
            &format!("Passphrase for `{name}`: "),
            hint,
            "--no-passphrase keeps the key unsealed",
        )
    }

    /// Asks twice for a new passphrase of the vault, without showing it.
    pub(crate) fn new_vault_passphrase(self) -> Result<Zeroizing<String>, Failure> {
        let hint = "--passphrase-stdin reads it from standard input";
        self.twice("New passphrase for the vault: ", hint, "--remove takes the passphrase away")
    }

    fn twice(self, prompt: &str, hint: &str, empty: &str) -> Result<Zeroizing<String>, Failure> {
        let passphrase = self.secret(prompt, hint)?;
        if passphrase.is_empty() {
            return Err(Failure::invalid("the passphrase is empty").hint(empty));
        }
        let again = self.secret("Once more: ", hint)?;
        if *passphrase == *again {
            Ok(passphrase)
        } else {
            Err(Failure::invalid("the two passphrases differ").hint("nothing was made; try again"))
        }
    }

    /// Asks for the passphrase of a key, without showing it.
    pub(crate) fn passphrase(self, name: &str) -> Result<Zeroizing<String>, Failure> {
        self.secret(
            &format!("Passphrase for `{name}`: "),
            "--passphrase-stdin reads it from standard input",
        )
    }

    /// Asks for the passphrase of the vault, without showing it. Only a terminal is asked: what stands on standard
    /// input was put there by whoever runs the program.
    pub(crate) fn vault_passphrase(self, prompt: &str) -> Result<Zeroizing<String>, Failure> {
        self.secret(prompt, AT_TERMINAL)
    }

    /// Whether there is a terminal this program was started at.
    pub(crate) fn has_terminal() -> bool {
        Ask::Terminal.terminal().is_some()
    }

    /// Asks for a value, without showing it.
    pub(crate) fn value(self, name: &str) -> Result<Zeroizing<String>, Failure> {
        self.secret(&format!("Value of `{name}`: "), "it can also be given on standard input")
    }

    /// Asks for a value that everybody may see.
    pub(crate) fn shown_value(self, name: &str) -> Result<String, Failure> {
        self.line_of(&format!("Value of `{}` = ", line(name)), LONGEST_VALUE)
    }

    /// Reads a passphrase from standard input, up to the end of its line.
    #[expect(clippy::unused_self, reason = "whoever reads an answer is asked through this")]
    pub(crate) fn passphrase_from_stdin(self) -> Result<Zeroizing<String>, Failure> {
        // With room for all of it from the start, no copy is left behind by growing.
        let room = usize::try_from(MAX_PASSPHRASE).unwrap_or_default();
        let mut text = Zeroizing::new(String::with_capacity(room));
        let read = std::io::stdin().lock().take(MAX_PASSPHRASE).read_to_string(&mut text);
        read.map_err(|error| {
            Failure::new(Exit::Unavailable, "failed to read standard input").cause(error)
        })?;
        let line = Zeroizing::new(text.lines().next().unwrap_or_default().to_owned());
        if line.is_empty() {
            return Err(Failure::invalid("the passphrase on standard input is empty"));
        }
        Ok(line)
    }

    /// Whether anybody can be asked.
    pub(crate) fn is_possible(self) -> bool {
        self.terminal().is_some()
    }

    /// Asks about a call. Nobody says anything where nobody can be asked.
    pub(crate) fn choose(self, question: &str, offer: Offer) -> Option<Said> {
        let choices = match offer {
            Offer::Once => "y: once, N: no",
            Offer::Always => "y: once, a: always with exactly these arguments, N: no",
            Offer::FromNowOn => "y: yes, and do not ask again about this action here, N: no",
        };
        let said = self.until_clear(question, choices, |answer| match (answer, offer) {
            ("y" | "yes", Offer::FromNowOn) => Some(Said::Always),
            ("y" | "yes", Offer::Once | Offer::Always) => Some(Said::Once),
            ("a" | "always", Offer::Always) => Some(Said::Always),
            _ => is_no(answer).then_some(Said::No),
        });
        Some(said.ok()?.unwrap_or(Said::No))
    }

    /// Asks for a yes; nobody to ask is a failure.
    pub(crate) fn yes_or_no(self, question: &str) -> Result<bool, Failure> {
        let said = self.until_clear(question, "y/N", |answer| match answer {
            "y" | "yes" => Some(true),
            _ => is_no(answer).then_some(false),
        });
        Ok(said?.unwrap_or(false))
    }

    /// Asks for one of several names; none where none of the answers is one.
    pub(crate) fn one_of(self, question: &str, names: &[&str]) -> Result<Option<String>, Failure> {
        let shown: Vec<_> = names.iter().map(|name| line(name)).collect();
        let mut question = format!("{question} [{}] ", shown.join(", "));
        for _ in 0..MOST_QUESTIONS {
            let answer = self.line(&question)?;
            if let Some(name) = names.iter().find(|name| **name == answer) {
                return Ok(Some((*name).to_owned()));
            }
            question = format!("`{}` is none of them: [{}] ", line(&answer), shown.join(", "));
        }
        Ok(None)
    }

    /// Asks until an answer is one of those that are taken. None, and it is told that this is a no, where none of the
    /// first few is.
    fn until_clear<A>(
        self,
        question: &str,
        choices: &str,
        read: impl Fn(&str) -> Option<A>,
    ) -> Result<Option<A>, Failure> {
        let mut question = question.to_owned();
        for _ in 0..MOST_QUESTIONS {
            let answer = self.line(&format!("{question} [{choices}] "))?;
            if let Some(clear) = read(&answer.to_lowercase()) {
                return Ok(Some(clear));
            }
            question = format!("`{}` is no answer that is taken.", line(&answer));
        }
        let _ = self
            .terminal()
            .and_then(|mut terminal| writeln!(terminal, "{question} Taken as no.").ok());
        Ok(None)
    }

    /// Asks for a short answer.
    fn line(self, question: &str) -> Result<String, Failure> {
        self.line_of(question, LONGEST_ANSWER)
    }

    /// Asks for a line. What is worked on may be on standard input, so the answer is not.
    fn line_of(self, question: &str, longest: u64) -> Result<String, Failure> {
        let nobody = || Failure::new(Exit::Denied, "the owner has to be asked, and nobody can be");
        let mut terminal = self.terminal().ok_or_else(nobody)?;
        forget_typed(&terminal);
        write!(terminal, "{question}").map_err(|_| nobody())?;
        let mut answer = String::new();
        let read = std::io::BufReader::new(&terminal).take(longest).read_line(&mut answer);
        read.map_err(|_| nobody())?;
        if !answer.ends_with('\n') {
            // The rest of a long line is no command for the shell that comes after us.
            forget_typed(&terminal);
        }
        Ok(answer.trim().to_owned())
    }

    /// The terminal, where somebody can be asked at one.
    fn terminal(self) -> Option<File> {
        let Ask::Terminal = self else { return None };
        File::options().read(true).write(true).open("/dev/tty").ok()
    }

    fn secret(self, prompt: &str, hint: &str) -> Result<Zeroizing<String>, Failure> {
        let nobody = |cause: Option<std::io::Error>| {
            let failure = Failure::invalid("it has to be typed, and nobody can be asked");
            let failure = match cause {
                Some(cause) => failure.cause(cause),
                None => failure,
            };
            failure.hint(hint.to_owned())
        };
        let is_terminal = std::io::stderr().is_terminal() || std::io::stdin().is_terminal();
        match self {
            Ask::Terminal if is_terminal => {
                interrupt::keep_terminal();
                rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(|error| match error
                    .kind()
                {
                    std::io::ErrorKind::Interrupted => interrupt::cancelled(),
                    _ => nobody(Some(error)),
                })
            }
            Ask::Terminal | Ask::Nobody => Err(nobody(None)),
        }
    }
}

/// Whether an answer is a no, as no answer is.
fn is_no(answer: &str) -> bool {
    matches!(answer, "" | "n" | "no")
}

/// Forgets what was typed before a question was there to be read: it is no answer to it.
fn forget_typed(terminal: &File) {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush);
    #[cfg(not(unix))]
    let _ = terminal;
}
