//! Settings of git, as far as they name other files: where hooks lie, and further settings.

/// One setting that leads to another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leads {
    /// The folder of the hooks.
    Hooks(Vec<u8>),
    /// A file with further settings.
    Include(Vec<u8>),
}

/// Where the settings in a text lead, in their order. A condition on an include is taken as met. Git
/// does nothing at all where it cannot read a line, so what comes after one does not count.
pub(crate) fn read(text: &[u8]) -> Vec<Leads> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut found = Vec::new();
    let _ = Reader { rest: text }.read(&mut found);
    found
}

/// A line that git cannot read.
struct Malformed;

/// What is left of a text.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn read(&mut self, found: &mut Vec<Leads>) -> Result<(), Malformed> {
        let mut section = Vec::new();
        while let Some(byte) = self.skip_to_word() {
            match byte {
                b'#' | b';' => self.skip_line(),
                b'[' => section = self.section()?,
                byte if byte.is_ascii_alphabetic() => {
                    let key = self.key();
                    let value = self.value()?;
                    match (section.as_slice(), key.as_slice()) {
                        (b"core", b"hookspath") => found.extend(value.map(Leads::Hooks)),
                        (b"include" | b"includeif", b"path") => {
                            found.extend(value.map(Leads::Include));
                        }
                        _ => {}
                    }
                }
                _ => return Err(Malformed),
            }
        }
        Ok(())
    }

    /// The next byte. Git reads a line's end of two bytes as one.
    fn next(&mut self) -> Option<u8> {
        if let Some(rest) = self.rest.strip_prefix(b"\r\n") {
            self.rest = rest;
            return Some(b'\n');
        }
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn peek(&self) -> Option<u8> {
        if self.rest.starts_with(b"\r\n") { Some(b'\n') } else { self.rest.first().copied() }
    }

    /// Passes over blanks; what comes then, still unread.
    fn skip_to_word(&mut self) -> Option<u8> {
        while self.peek()?.is_ascii_whitespace() {
            self.next();
        }
        self.peek()
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// The name of a section, in lower case and without what is in quotes after it.
    fn section(&mut self) -> Result<Vec<u8>, Malformed> {
        self.next();
        let mut name = Vec::new();
        loop {
            match self.next().ok_or(Malformed)? {
                b']' => return Ok(name),
                byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                    name.push(byte.to_ascii_lowercase());
                }
                // The old way to write a part of a section.
                b'.' => return self.old_part(name),
                b' ' | b'\t' => return self.part(name),
                _ => return Err(Malformed),
            }
        }
    }

    fn part(&mut self, name: Vec<u8>) -> Result<Vec<u8>, Malformed> {
        loop {
            match self.next().ok_or(Malformed)? {
                b' ' | b'\t' => {}
                b'"' => break,
                _ => return Err(Malformed),
            }
        }
        loop {
            match self.next().ok_or(Malformed)? {
                b'"' => break,
                b'\n' => return Err(Malformed),
                b'\\' if matches!(self.next(), None | Some(b'\n')) => return Err(Malformed),
                _ => {}
            }
        }
        if self.next() == Some(b']') { Ok(with_part(name)) } else { Err(Malformed) }
    }

    fn old_part(&mut self, name: Vec<u8>) -> Result<Vec<u8>, Malformed> {
        loop {
            match self.next().ok_or(Malformed)? {
                b']' => return Ok(with_part(name)),
                byte if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => {}
                _ => return Err(Malformed),
            }
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let mut key = Vec::new();
        while let Some(byte) =
            self.peek().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        {
            key.push(byte.to_ascii_lowercase());
            self.next();
        }
        key
    }

    /// What stands after the name of a setting; `None` where there is nothing.
    fn value(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.next();
        }
        match self.next() {
            None | Some(b'\n') => return Ok(None),
            Some(b'#' | b';') => {
                self.skip_line();
                return Ok(None);
            }
            Some(b'=') => {}
            Some(_) => return Err(Malformed),
        }
        let (mut value, mut is_quoted) = (Vec::new(), false);
        // Blanks at the end do not count, unless they are in quotes.
        let mut end = 0;
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return Err(Malformed),
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => {
                    is_quoted = !is_quoted;
                    end = value.len();
                }
                Some(b'\\') => {
                    match self.next() {
                        Some(b'\n') => continue,
                        Some(b't') => value.push(b'\t'),
                        Some(b'b') => value.push(8),
                        Some(b'n') => value.push(b'\n'),
                        Some(byte @ (b'\\' | b'"')) => value.push(byte),
                        _ => return Err(Malformed),
                    }
                    end = value.len();
                }
                Some(byte) if byte.is_ascii_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                Some(byte) => {
                    value.push(byte);
                    end = value.len();
                }
            }
        }
        value.truncate(end);
        Ok(Some(value))
    }
}

/// A section with a part is another one, except where the part is a condition.
fn with_part(mut name: Vec<u8>) -> Vec<u8> {
    if name != b"includeif" {
        name.push(b'.');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(path: &str) -> Leads {
        Leads::Hooks(path.as_bytes().to_vec())
    }

    #[test]
    fn hooks_are_found_however_they_are_written() {
        for (text, path) in [
            ("[core]\n\thooksPath = .githooks\n", ".githooks"),
            ("[CORE]\r\n\tHOOKSPATH=.githooks\r\n", ".githooks"),
            ("\u{feff}[core] hooksPath = a/b # where they are", "a/b"),
            ("[core]\nhooksPath = \"with space \" ; so\n", "with space "),
            ("[core]\nhooksPath = a\\\n  b\n", "a  b"),
            ("[core]\nhooksPath = a\"b#c\"d\\\\\n", "ab#cd\\"),
            ("[user]\nname = x\n[core]\nbare\n; a word\nhooksPath = a  \t\n", "a"),
        ] {
            assert_eq!(read(text.as_bytes()), [hooks(path)], "{text:?}");
        }
    }

    #[test]
    fn other_settings_lead_nowhere_and_includes_do_whatever_their_condition() {
        let text = b"[core \"x\"]\nhooksPath = a\n[core.y]\nhooksPath = b\n[alias]\nhookspath = c\n[core]\nhooksPath\n\
            [include]\npath = d\n[includeIf \"gitdir:~/x\"]\npath = \"e\"\n[include \"x\"]\npath = f\n";
        let include = |path: &str| Leads::Include(path.as_bytes().to_vec());
        assert_eq!(read(text), [include("d"), include("e")]);
    }

    #[test]
    fn what_git_cannot_read_leads_nowhere() {
        for text in [
            "[core\n]",
            "[core \"x]\n",
            "= x",
            "[core]\nhooksPath x\n",
            "[core]\na = \"b\n",
            "[core]\na = \\x\n",
            "[co re]\n",
            "[core]\n1a = b\n",
        ] {
            let text = format!("[core]\nhooksPath = a\n{text}\n[core]\nhooksPath = b\n");
            assert_eq!(read(text.as_bytes()), [hooks("a")], "{text:?}");
        }
    }
}
