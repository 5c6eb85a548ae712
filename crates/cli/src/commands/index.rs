//! `haft index`: a static well-known index of install-manifests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use manifest::dialect::{Dialect, Form};
use manifest::document::{Options, read};
use manifest::index::{Listed, MAX_ENTRIES, Publisher, write};
use manifest::model::Package;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::printer::Printer;
use crate::time::utc;
use crate::{disk, output};

/// Where the index stands, below the folder that is served.
const PLACE: &str = ".well-known/install-manifests.json";

#[derive(Args, Debug)]
pub(crate) struct IndexArgs {
    /// The folder that is served; its install-manifests are listed
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The address at which the folder is served
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// Who publishes it, as KIND:ID; `github:owner/repo`, `https:host` or `atproto:did` [default: https and the host of the address]
    #[arg(long, value_name = "KIND:ID")]
    publisher: Option<String>,
    /// The signed record that holds the index; for an atproto publisher
    #[arg(long, value_name = "AT-URI")]
    atproto_record_uri: Option<String>,
    /// The name people see [default: the publisher's id]
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
}

pub(crate) fn run(args: &IndexArgs, json_wanted: bool, printer: Printer) -> Outcome {
    if !args.dir.is_dir() {
        return Err(Failure::new(Exit::NotFound, format!("`{}` is no folder", args.dir.display())));
    }
    let publisher = publisher(args)?;
    let place = args.dir.join(PLACE);
    let found = manifests(&args.dir, &place, printer)?;
    if found.is_empty() {
        return Err(Failure::new(
            Exit::NotFound,
            format!("no install-manifests below `{}`", args.dir.display()),
        ));
    }
    if found.len() > MAX_ENTRIES {
        return Err(Failure::invalid(format!(
            "{} manifests; an index lists at most {MAX_ENTRIES}",
            found.len()
        )));
    }
    let listed: Vec<_> = found
        .iter()
        .map(|(path, package)| Listed {
            package,
            url: format!("{}/{}", args.base_url.trim_end_matches('/'), path),
        })
        .collect();
    let mut document = write(&publisher, &now(), &listed);
    if let Some(uri) = &args.atproto_record_uri {
        document["publisher"]["atproto_record_uri"] = uri.as_str().into();
    }
    keep_states(&mut document, &place)?;
    let mut bytes = serde_json::to_vec_pretty(&document)
        .map_err(|error| Failure::new(Exit::Bug, "failed to write JSON").cause(error))?;
    bytes.push(b'\n');
    let report = manifest::document::check(&bytes, &Options::default());
    if let Some(finding) = report.findings.first() {
        return Err(Failure::invalid(format!("the index would not be valid: {}", finding.message))
            .hint(format!("at {}", finding.pointer)));
    }
    output::replace(&place, &bytes)?;
    if json_wanted {
        printer.json(&json!({"path": place.to_string_lossy(), "manifests": listed.len()}))?;
    } else {
        printer.result(&format!("{}\n", place.display()))?;
    }
    let noun = if listed.len() == 1 { "manifest" } else { "manifests" };
    printer.note(&format!("listed {} {noun} of {}", listed.len(), publisher.display_name));
    Ok(Exit::Done)
}

/// The valid install-manifests below a folder, with their paths from there; a bad one is a warning.
fn manifests(
    dir: &Path,
    place: &Path,
    printer: Printer,
) -> Result<Vec<(String, Package)>, Failure> {
    let mut found: Vec<(String, Package)> = Vec::new();
    let mut by_id: HashMap<String, String> = HashMap::new();
    for file in disk::document_files(dir, Some(Dialect::InstallManifest))? {
        if file == place {
            continue;
        }
        let relative = file.strip_prefix(dir).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let bytes = disk::read(&file)?;
        match read(&bytes, &Options::default()) {
            Ok((report, packages))
                if report.dialect == Some(Dialect::InstallManifest)
                    && report.form == Some(Form::Manifest) =>
            {
                for package in packages {
                    if let Some(other) = by_id.insert(package.id.clone(), relative.clone()) {
                        let message =
                            format!("`{relative}` and `{other}` both have the id `{}`", package.id);
                        return Err(Failure::new(Exit::Conflict, message)
                            .hint("an index lists each id once"));
                    }
                    found.push((encoded(&relative), package));
                }
            }
            Err(report) if report.dialect == Some(Dialect::InstallManifest) => {
                printer.warn(&format!(
                    "`{relative}` is not valid and is left out; `haft validate` says why"
                ));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn publisher(args: &IndexArgs) -> Result<Publisher, Failure> {
    let (kind, id) = match &args.publisher {
        Some(text) => match text.split_once(':') {
            Some((kind, id))
                if ["github", "https", "atproto"].contains(&kind) && !id.is_empty() =>
            {
                (kind.to_owned(), id.to_owned())
            }
            _ => {
                return Err(Failure::invalid(format!("`{text}` is no publisher"))
                    .hint("write github:owner/repo, https:host or atproto:did"));
            }
        },
        None => {
            let rest = args
                .base_url
                .strip_prefix("https://")
                .or_else(|| args.base_url.strip_prefix("http://"));
            let host = rest.and_then(|rest| rest.split('/').next()).filter(|host| !host.is_empty());
            let host = host.ok_or_else(|| {
                Failure::invalid(format!("`{}` is no http address", args.base_url))
            })?;
            ("https".to_owned(), host.to_owned())
        }
    };
    let display_name = args.display_name.clone().unwrap_or_else(|| id.clone());
    Ok(Publisher { kind, id, display_name })
}

/// What a publisher said about the state of a manifest stays said.
fn keep_states(document: &mut Value, place: &Path) -> Result<(), Failure> {
    let Ok(bytes) = std::fs::read(place) else { return Ok(()) };
    let before: Value = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::invalid(format!(
            "the index at `{}` cannot be read, so the states in it would be lost",
            place.display()
        ))
        .cause(error)
        .hint("mend it, or remove it")
    })?;
    let Some(entries) = document["manifests"].as_array_mut() else { return Ok(()) };
    for entry in entries {
        let old = before["manifests"]
            .as_array()
            .and_then(|old| old.iter().find(|old| old["id"] == entry["id"]));
        for field in ["status", "deprecated_in_favor_of"] {
            if let Some(value) = old.and_then(|old| old.get(field)) {
                entry[field] = value.clone();
            }
        }
    }
    Ok(())
}

/// A path as it stands in an address.
fn encoded(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// The time as RFC 3339 writes it; `SOURCE_DATE_EPOCH` makes an index that can be made again.
fn now() -> String {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = fixed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    });
    utc(i64::try_from(seconds).unwrap_or(i64::MAX))
}
