//! A tool as the hub of the Jumith world takes it: one file, and a form that says what it is.
//!
//! That hub takes Python alone, which its own clients do not run. So does this registry, beside modules for
//! Node; such a tool is found and described, and its bundle is refused as one with another runtime.

use std::fmt;

use manifest::path::check_path;
use package::archive::{Archive, Trailer};
use package::limits::Limits;
use package::refusal::ReadError;
use package::write::{Packed, Writer};
use registry::identity::PREFIX;
use serde_json::{Value, json};

use crate::stored::{PYTHON, read_manifest};
use crate::upload::{Upload, UploadError};

/// The longest description, in characters.
const DESCRIPTION: usize = 4_000;
/// The longest summary that is made from it.
const SUMMARY: usize = 120;
/// What a tool is called in its package.
const MANIFEST: &str = "tool.json";

/// What the form of the hub says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubForm {
    /// What the tool is to be called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Whether it spends money.
    pub uses_payment: bool,
    /// Whether each call needs the owner's word.
    pub requires_approval: bool,
    /// Names of secrets, with commas or on lines of their own.
    pub required_secrets: String,
    /// What the file is called.
    pub file_name: String,
    /// The file.
    pub file: Vec<u8>,
}

/// Why a form is no tool.
#[derive(Debug)]
pub enum FormError {
    /// These are missing or empty.
    Missing(Vec<&'static str>),
    /// Nothing of the name can stand in an id, or only behind a dot.
    Name,
    /// The name has a letter that no id has. Without it two names could become one.
    Letter(char),
    /// This is too long.
    Long(&'static str),
    /// The file has a name that none in a package may have.
    FileName(String),
    /// The file is neither Python nor a module for Node.
    Kind,
    /// What was made of it is no package that may be published.
    Upload(UploadError),
}

impl fmt::Display for FormError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormError::Missing(fields) => {
                write!(out, "Missing required fields: {}", fields.join(", "))
            }
            FormError::Name => out.write_str("Tool name produced an invalid id"),
            FormError::Letter(letter) => write!(
                out,
                "`{letter}` has no place in an id: write the name with letters from a to z and digits"
            ),
            FormError::Long(field) => write!(out, "`{field}` is too long"),
            FormError::FileName(name) => write!(out, "`{name}` is no name a file may have"),
            FormError::Kind => out.write_str("Tool file must be a .py, .js, .mjs or .cjs file"),
            FormError::Upload(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for FormError {}

impl HubForm {
    /// The id that the tool gets: the name in small letters, with dots for spaces, without what has no place there.
    pub fn id(&self) -> Result<String, FormError> {
        let mut missing = Vec::new();
        for (field, is_there) in [
            ("name", !self.name.trim().is_empty()),
            ("description", !self.description.trim().is_empty()),
            ("file", !self.file.is_empty()),
        ] {
            if !is_there {
                missing.push(field);
            }
        }
        if !missing.is_empty() {
            return Err(FormError::Missing(missing));
        }
        let name = self.name.to_lowercase();
        if let Some(letter) = name.chars().find(|c| c.is_alphanumeric() && !c.is_ascii()) {
            return Err(FormError::Letter(letter));
        }
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
        let words = name.split_whitespace().map(|word| word.chars().filter(is_kept).collect());
        let words: Vec<String> = words.filter(|word: &String| !word.is_empty()).collect();
        let slug = words.join(".");
        if slug.is_empty() || slug.starts_with('.') {
            return Err(FormError::Name);
        }
        Ok(format!("{PREFIX}{slug}"))
    }

    /// The package of this version.
    pub fn upload(&self, version: &str, limits: &Limits) -> Result<Upload, FormError> {
        let id = self.id()?;
        if self.description.chars().count() > DESCRIPTION {
            return Err(FormError::Long("description"));
        }
        let file = self.file_name.as_str();
        let runtime = match file.rsplit_once('.').map(|(_, kind)| kind.to_ascii_lowercase()) {
            Some(kind) if kind == "py" => PYTHON,
            Some(kind) if ["js", "mjs", "cjs"].contains(&kind.as_str()) => "node",
            _ => return Err(FormError::Kind),
        };
        if file.contains('/') || check_path(file).is_err() || file == MANIFEST {
            return Err(FormError::FileName(file.chars().take(80).collect()));
        }
        let manifest = self.manifest(&id, version, runtime);
        let bytes = self.packed(&manifest).map_err(FormError::Upload)?;
        let archive = Archive::from_bytes(bytes.clone(), Trailer::Refused, limits)
            .map_err(|error| FormError::Upload(error.into()))?;
        let text = manifest.to_string().into_bytes();
        let package = read_manifest(&text, &id)
            .ok_or_else(|| FormError::Upload(UploadError::Invalid(Vec::new())))?;
        let mut upload = Upload::of_package(bytes, &archive, &package, MANIFEST.to_owned(), text)
            .map_err(FormError::Upload)?;
        runtime.clone_into(&mut upload.describe.entry.runtime);
        Ok(upload)
    }

    fn manifest(&self, id: &str, version: &str, runtime: &str) -> Value {
        let description = self.description.trim();
        let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let summary = if line.chars().count() <= SUMMARY {
            line
        } else {
            line.chars().take(SUMMARY - 3).chain("...".chars()).collect()
        };
        let secrets = self.required_secrets.split(['\n', ',']).map(str::trim);
        let secrets: Vec<&str> = secrets.filter(|name| !name.is_empty()).collect();
        json!({
            "id": id,
            "name": id.trim_start_matches(PREFIX),
            "version": version,
            "summary": summary,
            "description": description,
            "tags": [],
            "provider": "community",
            "entry": {"runtime": runtime, "main": self.file_name},
            "schema": {
                "input": {"type": "object", "properties": {}},
                "output": {"type": "object", "properties": {}},
            },
            "usesPayment": self.uses_payment,
            "requiresApproval": self.requires_approval,
            "requiredSecrets": secrets,
        })
    }

    fn packed(&self, manifest: &Value) -> Result<Vec<u8>, UploadError> {
        let text = format!("{manifest:#}\n");
        let mut files =
            [(self.file_name.as_str(), self.file.as_slice()), (MANIFEST, text.as_bytes())];
        files.sort_unstable();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        let failed = |error| UploadError::Refused(ReadError::Disk(error));
        for (path, content) in files {
            writer.add(&Packed::compress(path, content, false)).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        Ok(bytes)
    }
}

/// The version after these: the highest with its last number raised.
pub fn next_version<'v>(versions: impl IntoIterator<Item = &'v str>) -> String {
    let known = versions.into_iter().filter_map(|text| semver::Version::parse(text).ok());
    match known.max() {
        None => "1.0.0".to_owned(),
        Some(highest) => {
            semver::Version::new(highest.major, highest.minor, highest.patch.saturating_add(1))
                .to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_id_as_the_hub_makes_it() {
        let form = |name: &str| HubForm {
            name: name.to_owned(),
            description: "Adds".to_owned(),
            file: vec![1],
            ..HubForm::default()
        };
        assert_eq!(form(" Add  Two Numbers! ").id().ok().as_deref(), Some("tool:add.two.numbers"));
        assert_eq!(form("e-mail_send").id().ok().as_deref(), Some("tool:e-mail_send"));
        assert!(matches!(form("!!!").id(), Err(FormError::Name)));
        assert!(matches!(form("..").id(), Err(FormError::Name)));
        assert!(matches!(form(".hidden").id(), Err(FormError::Name)));
        assert_eq!(form("!!! add & two").id().ok().as_deref(), Some("tool:add.two"));
        for name in ["Größe", "日本語 tool", "٣ tools"] {
            assert!(matches!(form(name).id(), Err(FormError::Letter(_))), "{name}");
        }
        let empty = HubForm::default().id();
        assert!(matches!(empty, Err(FormError::Missing(fields)) if fields.len() == 3));
    }

    #[test]
    fn the_next_version_is_one_higher() {
        assert_eq!(next_version([]), "1.0.0");
        assert_eq!(next_version(["1.2.9", "1.2.10", "0.9.0", "junk"]), "1.2.11");
    }
}
