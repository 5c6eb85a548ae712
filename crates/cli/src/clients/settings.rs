//! The settings of a client on the disk: read, shown as they would be, and written only over what was read.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use import::config::{MAX_FILE, read_json, read_toml};
use import::edit::{Form, Ours};
use import::{Config, Unreadable};
use similar::TextDiff;

use crate::exit::{Exit, Failure};
use crate::output::{self, Beside};
use crate::printer::escaped;

/// The most letters of a line that is shown; some files are one line.
const LONGEST: usize = 500;

/// Who may read a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone.
    Owner,
    /// Whom the owner lets read new files.
    Usual,
}

/// A file of a client, as it was read.
#[derive(Debug)]
pub(crate) struct Settings {
    path: PathBuf,
    form: Form,
    text: String,
}

impl Settings {
    /// Reads them from a file that is there.
    pub(crate) fn read(path: &Path, form: &Form) -> Result<Self, Failure> {
        let bytes = read(path)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::invalid(format!("`{}` is no text", path.display())))?;
        Ok(Self { path: path.to_owned(), form: form.clone(), text })
    }

    /// Those of a file that is not there.
    pub(crate) fn absent(path: &Path, form: &Form) -> Self {
        Self { path: path.to_owned(), form: form.clone(), text: String::new() }
    }

    /// What the file holds.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the file says nothing at all.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim_start_matches('\u{feff}').trim().is_empty()
    }

    /// The servers in them.
    pub(crate) fn entries(&self) -> Result<Config, Failure> {
        self.entries_of(&self.text).map_err(|why| self.broken(&why))
    }

    /// The servers that would be in them.
    fn entries_of(&self, text: &str) -> Result<Config, Unreadable> {
        match &self.form {
            Form::Json(path) => read_json(text.as_bytes(), path),
            Form::Toml => read_toml(text.as_bytes()),
        }
    }

    /// What to say of settings that nobody can read.
    pub(crate) fn broken(&self, why: &Unreadable) -> Failure {
        Failure::invalid(format!("`{}` cannot be read", self.path.display())).cause(why)
    }

    /// Refuses to write what would not be read as it is meant: with these entries, and every other as it was.
    pub(crate) fn check(&self, after: &str, ours: &[Ours]) -> Result<(), Failure> {
        let names: Vec<_> = ours.iter().map(|one| one.name.as_str()).collect();
        let after = self.check_others(after, &names)?;
        let is_there = |one: &Ours| {
            let found = after.entries.iter().find(|entry| entry.name == one.name);
            let entry = found.and_then(|entry| entry.entry.as_ref().ok());
            entry.is_some_and(|entry| one.is_started_by(entry))
        };
        if ours.iter().all(is_there) { Ok(()) } else { Err(self.misread()) }
    }

    /// Refuses to write what would be read with other entries but those of these names; all that would be read.
    pub(crate) fn check_others(&self, after: &str, names: &[&str]) -> Result<Config, Failure> {
        let before = if self.is_blank() { Config::default() } else { self.entries()? };
        let after = self.entries_of(after).map_err(|_| self.misread())?;
        let others = |config: &Config| -> Vec<_> {
            let entries = config.entries.iter().cloned();
            let others = entries.filter(|one| !names.contains(&one.name.as_str()));
            others.map(|one| (one.name, one.entry)).collect()
        };
        if others(&before) == others(&after) { Ok(after) } else { Err(self.misread()) }
    }

    fn misread(&self) -> Failure {
        let shown = self.path.display();
        let message = format!("`{shown}` would not be read as it is meant, and is left as it is");
        Failure::new(Exit::Bug, message)
    }

    /// What to say where somebody else was faster.
    fn changed(&self) -> Failure {
        let shown = self.path.display();
        let message = format!("`{shown}` was changed meanwhile, and is left as it is");
        Failure::new(Exit::Conflict, message)
    }

    /// Makes the file, unless somebody else has made it since.
    pub(crate) fn make(&self, text: &str, readers: Readers) -> Result<(), Failure> {
        match readers {
            Readers::Owner => output::keep_secret(&self.path, text.as_bytes()),
            Readers::Usual => output::keep(&self.path, text.as_bytes()),
        }
    }

    /// Removes the file, unless somebody else has changed it since it was read.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        self.check_unchanged()?;
        std::fs::remove_file(&self.path).map_err(|error| {
            let message = format!("failed to remove `{}`", self.path.display());
            Failure::new(Exit::Unavailable, message).cause(error)
        })
    }

    /// Writes other text in their place, with the mode of the file, unless somebody else has changed it since it was read.
    pub(crate) fn write(&self, after: &str) -> Result<(), Failure> {
        let path = &self.path;
        let mut beside = Beside::like(path)?;
        let failed = |error| {
            Failure::new(Exit::Unavailable, format!("failed to write `{}`", path.display()))
                .cause(error)
        };
        let mut file = beside.file();
        file.write_all(after.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
        drop(file);
        self.check_unchanged()?;
        beside.replace()
    }

    /// Refuses a file that is not what was read.
    fn check_unchanged(&self) -> Result<(), Failure> {
        if read(&self.path)? == self.text.as_bytes() { Ok(()) } else { Err(self.changed()) }
    }

    /// What would change, line by line, without the secrets of anybody.
    pub(crate) fn difference(&self, after: &str) -> String {
        let mut hidden = [self.text.clone(), after.to_owned()];
        let secrets: Vec<String> = [&self.text, after]
            .iter()
            .filter_map(|text| self.entries_of(text).ok())
            .flat_map(|config| config.entries)
            .filter_map(|found| found.entry.ok())
            .flat_map(|entry| import::secret::values(&entry))
            .collect();
        for text in &mut hidden {
            for secret in &secrets {
                // As a file writes it, which may be with escapes.
                let written = serde_json::Value::from(secret.as_str()).to_string();
                let written = written.trim_matches('"');
                *text = text.replace(written, "…").replace(secret.as_str(), "…");
            }
        }
        let [before, after] = &hidden;
        let difference = TextDiff::from_lines(before, after);
        let path = self.path.display().to_string();
        let whole = difference.unified_diff().context_radius(2).header(&path, &path).to_string();
        whole.lines().map(|line| shown(line) + "\n").collect()
    }
}

/// Reads a file, but no more than is ever taken and one byte.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::unread(path.display(), error);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A line of a difference as it is shown.
fn shown(line: &str) -> String {
    let line = escaped(&import::secret::masked(line));
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &tempfile::TempDir, text: &str) -> Settings {
        let path = folder.path().join("mcp.json");
        std::fs::write(&path, text).unwrap();
        Settings::read(&path, &Form::Json(vec!["mcpServers".to_owned()])).unwrap()
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder, "{}");
        std::fs::write(&settings.path, "{\"theirs\": 1}").unwrap();
        let failure = settings.write("{\"ours\": 1}").unwrap_err();
        assert_eq!(failure.exit, Exit::Conflict);
        assert_eq!(std::fs::read_to_string(&settings.path).unwrap(), "{\"theirs\": 1}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_of_a_file_stays() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder, "{}");
        for mode in [0o600, 0o640, 0o664] {
            std::fs::set_permissions(&settings.path, std::fs::Permissions::from_mode(mode))
                .unwrap();
            settings.write("{}").unwrap();
            let found = std::fs::metadata(&settings.path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
        }
    }

    #[test]
    fn what_would_change_is_shown_without_secrets_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let before = "{\n  \"token\": \"s3cret\",\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"--api-key\", \"s3cret\"]}}\n}\n";
        let settings = settings(&folder, before);
        let shown = settings.difference(&before.replace('x', &"y".repeat(1000)));
        assert!(
            shown.contains("-  \"mcpServers\"") && shown.contains("+  \"mcpServers\""),
            "{shown}"
        );
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= LONGEST + 1), "{shown}");
    }
}
