//! What must hold for any bytes that may be the settings of a client, or a document of operations.

use std::path::{Path, PathBuf};

use import::config::{USUAL, read_json, read_toml};
use import::edit::{Form, Ours, replaced, restored, served, taken};
use import::jsonc::blanked;
use import::openapi::{self, MOST_ACTIONS, Wanted};
use import::{Around, Config, Draft, Kind, Machine, of_entry, plain_name, recognise};
use proptest::prelude::{prop_assert, prop_assert_eq};

use super::Kept;

/// A machine on which everything is a file.
struct Everywhere;

impl Machine for Everywhere {
    fn at(&self, path: &Path) -> Option<(Kind, PathBuf)> {
        path.is_absolute().then(|| (Kind::File, path.to_owned()))
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/ann".into())
    }
}

/// Settings: nothing moves where comments are blanked; what is made of a server is valid and holds none of its secrets; what
/// was replaced comes back as it was.
pub fn import_config(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    prop_assert_eq!(blanked(text).len(), text.len());
    if let Err(why) = recognise(bytes) {
        prop_assert!(!why.is_empty());
    }
    let paths = USUAL.map(|path| path.iter().map(|&key| key.to_owned()).collect::<Vec<_>>());
    let mut forms: Vec<_> = paths.into_iter().map(Form::Json).collect();
    forms.push(Form::Toml);
    for form in forms {
        let read = match &form {
            Form::Json(path) => read_json(bytes, path),
            Form::Toml => read_toml(bytes),
        };
        match read {
            Ok(config) => check_config(text, &form, &config)?,
            Err(why) => prop_assert!(!why.to_string().is_empty()),
        }
    }
    Ok(())
}

fn check_config(text: &str, form: &Form, config: &Config) -> Kept {
    let around = Around { inputs: &config.inputs, folder: Some("/srv"), machine: &Everywhere };
    let mut ours = Vec::new();
    for found in &config.entries {
        let Ok(entry) = &found.entry else { continue };
        if served(entry).is_none() {
            let (name, program) = (found.name.clone(), "/opt/haft".to_owned());
            ours.push(Ours { name, program, id: "mcpb:x".to_owned(), home: None });
        }
        match of_entry(&plain_name(&found.name), entry, &around) {
            Ok(draft) => check_draft(&draft)?,
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
    let Ok(swapped) = replaced(text, form, &ours) else { return Ok(()) };
    let names: Vec<_> = ours.into_iter().map(|one| one.name).collect();
    let mut back = swapped;
    for (name, was) in taken(text, form, &names).unwrap_or_default() {
        back = restored(&back, &was, form, &name).unwrap_or_default();
    }
    match form {
        // In TOML the places of tables may change, and what they say does not.
        Form::Toml => {
            let count = read_toml(back.as_bytes()).map(|config| config.entries.len()).ok();
            prop_assert_eq!(count, Some(config.entries.len()));
        }
        Form::Json(_) => prop_assert_eq!(back, text.to_owned()),
    }
    Ok(())
}

fn check_draft(draft: &Draft) -> Kept {
    for (path, bytes) in &draft.files {
        let text = String::from_utf8_lossy(bytes);
        for (name, secret) in &draft.secrets {
            // A secret of a few letters may stand in any text.
            let is_long = secret.expose().len() >= 12;
            prop_assert!(!is_long || !text.contains(secret.expose()), "`{}` in {}", name, path);
        }
    }
    prop_assert!(draft.package.version.is_some());
    Ok(())
}

/// A document: what is made of it is valid and no larger than a package may be.
pub fn import_openapi(bytes: &[u8]) -> Kept {
    let Ok(document) = openapi::read(bytes) else { return Ok(()) };
    if !openapi::is_openapi(&document) {
        return Ok(());
    }
    let typed = Wanted { base_url: Some("https://a.example".to_owned()), ..Wanted::default() };
    for wanted in [Wanted::default(), typed] {
        match openapi::draft(&document, &wanted) {
            Ok(draft) => {
                prop_assert!((1..=MOST_ACTIONS).contains(&draft.package.actions.len()));
                prop_assert!(draft.package.smoke.is_some() && draft.secrets.is_empty());
            }
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
    Ok(())
}
