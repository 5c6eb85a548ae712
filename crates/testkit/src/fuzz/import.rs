//! What must hold for any bytes that may be the settings of a client, or a document of operations.

use std::path::{Path, PathBuf};

use import::config::{MAX_ENTRIES, USUAL, read_json, read_toml};
use import::edit::{Form, Ours, Serves, added, replaced, restored, serves, taken, without};
use import::jsonc::blanked;
use import::openapi::{self, MOST_ACTIONS, Wanted};
use import::{Around, Config, Draft, Kind, Machine, Unreadable, of_entry, plain_name, recognise};
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
/// was replaced comes back as it was, and what was added is gone without a trace.
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
        match entries(text, &form) {
            Ok(config) => {
                check_config(text, &form, &config)?;
                check_added(text, &form, &config)?;
            }
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
        if serves(entry).is_none() {
            ours.push(of_ours(&found.name, Serves::Package("mcpb:x".to_owned())));
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

fn check_added(text: &str, form: &Form, config: &Config) -> Kept {
    let ours = of_ours("one more", Serves::Installed { profile: None });
    let names = |config: &Config| -> Vec<_> {
        config.entries.iter().map(|found| found.name.clone()).collect()
    };
    let before = names(config);
    if before.contains(&ours.name) {
        return Ok(());
    }
    let Ok(more) = added(text, form, &ours) else { return Ok(()) };
    let Ok(config) = entries(&more, form) else {
        // One too many.
        prop_assert_eq!(before.len(), MAX_ENTRIES);
        return Ok(());
    };
    let found = config.entries.iter().find(|found| found.name == ours.name);
    let entry = found.and_then(|found| found.entry.as_ref().ok());
    prop_assert!(entry.is_some_and(|entry| ours.is_started_by(entry)), "{}", more);
    let back = without(&more, form, &ours.name).unwrap_or_default();
    prop_assert_eq!(&entries(&back, form).map(|config| names(&config)), &Ok(before.clone()));
    // What it had to be put into stays.
    if matches!(form, Form::Json(_)) && !before.is_empty() {
        prop_assert_eq!(back, text.to_owned());
    }
    Ok(())
}

fn of_ours(name: &str, serves: Serves) -> Ours {
    Ours { name: name.to_owned(), program: "/opt/haft".to_owned(), serves, home: None }
}

fn entries(text: &str, form: &Form) -> Result<Config, Unreadable> {
    match form {
        Form::Json(path) => read_json(text.as_bytes(), path),
        Form::Toml => read_toml(text.as_bytes()),
    }
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
