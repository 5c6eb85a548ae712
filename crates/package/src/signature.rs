//! Signatures over all files of a package, kept in `meta/signature.sig`.
//!
//! What is signed is the list of every other file with its size and digest, so
//! adding, removing, renaming or changing any file breaks the signature, and the
//! list says which. A statement that covers named files only is *partial*, and
//! counts as no signature at all.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Digest, FileDigest, Listing};
use crate::key::{PrivateKey, PublicKey};
use crate::limits::Limits;

/// Where signatures are kept.
pub const PATH: &str = "meta/signature.sig";

/// What the file says it is.
const FORMAT: &str = "haft-signature-1";
/// What every signed message begins with, so that it can be no other kind of message.
const DOMAIN: &str = "haft package signature 1\n";
/// The largest signature file.
pub const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The most signatures in a file.
const MAX_SIGNATURES: usize = 64;
/// How many differences are named; the rest is counted.
const MAX_NAMED: usize = 20;

/// What is known of a package's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none that Haft knows.
    Unsigned,
    /// Every signature fits, and one covers every file.
    Valid,
    /// Every signature fits, but none covers every file.
    Partial,
    /// A signature does not fit: something was changed.
    Invalid,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            State::Unsigned => "unsigned",
            State::Valid => "valid",
            State::Partial => "partial",
            State::Invalid => "invalid",
        }
    }
}

/// What the signatures of a package come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All together.
    pub state: State,
    /// Each signature that could be read.
    pub signatures: Vec<Signed>,
    /// What is wrong, naming the files.
    pub faults: Vec<String>,
}

/// One signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The key it names.
    pub key: PublicKey,
    /// What it comes to by itself.
    pub state: State,
}

impl Verdict {
    fn unsigned() -> Self {
        Self { state: State::Unsigned, signatures: Vec::new(), faults: Vec::new() }
    }

    fn broken(fault: &str) -> Self {
        let faults = vec![format!("`{PATH}` {fault}")];
        Self { state: State::Invalid, signatures: Vec::new(), faults }
    }

    /// The keys whose signature covers every file and fits.
    pub fn signers(&self) -> impl Iterator<Item = PublicKey> {
        let counts = self.state == State::Valid;
        self.signatures
            .iter()
            .filter(move |signed| counts && signed.state == State::Valid)
            .map(|signed| signed.key)
    }
}

/// Holds the signatures of a package against its files. The list may name the
/// signature file itself; `content` is what stands in it.
pub fn check(listing: &Listing, content: Option<&[u8]>) -> Verdict {
    let Some(content) = content else { return Verdict::unsigned() };
    let files = listing.without(PATH);
    let file = match read(content) {
        Ok(file) => file,
        Err(Unread::Damaged) => return Verdict::broken("is damaged"),
        Err(Unread::Foreign) => {
            let fault = format!("`{PATH}` is of a scheme that Haft does not know");
            return Verdict { faults: vec![fault], ..Verdict::unsigned() };
        }
    };
    let mut verdict = Verdict { state: State::Partial, ..Verdict::unsigned() };
    for statement in &file.statements {
        let Some(covered) = statement.listing() else { return Verdict::broken("is damaged") };
        let mut faults = differences(&covered, &files, statement.covers);
        let covers_all = covered.files().len() == files.files().len();
        let message = message(statement.covers, &covered);
        for one in &statement.signatures {
            let Some((key, signature)) = one.read() else { return Verdict::broken("is damaged") };
            let fits = key.has_signed(&message, &signature);
            if !fits {
                faults.push(format!("the signature by {key} does not fit"));
            }
            let state = match (fits && faults.is_empty(), covers_all) {
                (false, _) => State::Invalid,
                (true, true) => State::Valid,
                (true, false) => State::Partial,
            };
            verdict.signatures.push(Signed { key, state });
        }
        verdict.faults.extend(faults);
    }
    let has = |state| verdict.signatures.iter().any(|signed: &Signed| signed.state == state);
    verdict.state = if has(State::Invalid) || !verdict.faults.is_empty() {
        State::Invalid
    } else if has(State::Valid) {
        State::Valid
    } else if has(State::Partial) {
        verdict.faults.push("the signature covers only a part of the files".to_owned());
        State::Partial
    } else {
        State::Unsigned
    };
    verdict
}

/// Adds a signature over all files, and gives what the signature file then holds.
/// Earlier signatures are kept; they must fit, which [`check`] says.
pub fn sign(listing: &Listing, earlier: Option<&[u8]>, key: &PrivateKey) -> String {
    let files = listing.without(PATH);
    let earlier = earlier.and_then(|content| read(content).ok());
    let mut file = earlier.unwrap_or(File { format: FORMAT.to_owned(), statements: Vec::new() });
    let signature = One {
        key: key.public().to_string(),
        signature: STANDARD.encode(key.sign(&message(Covers::Package, &files))),
    };
    let is_same = |statement: &&mut Statement| {
        statement.covers == Covers::Package && statement.listing().as_ref() == Some(&files)
    };
    match file.statements.iter_mut().find(is_same) {
        Some(statement) => {
            statement.signatures.retain(|one| one.key != signature.key);
            statement.signatures.push(signature);
        }
        None => file.statements.push(Statement {
            covers: Covers::Package,
            files: files.files().iter().map(Line::of).collect(),
            signatures: vec![signature],
        }),
    }
    serde_json::to_string_pretty(&file).expect("a signature file is plain data") + "\n"
}

/// What a signature is made over.
fn message(covers: Covers, files: &Listing) -> Vec<u8> {
    let covers = match covers {
        Covers::Package => "covers package\n",
        Covers::Files => "covers files\n",
    };
    format!("{DOMAIN}{covers}{}", files.canonical()).into_bytes()
}

/// What differs between the files that were signed and those that are there.
fn differences(signed: &Listing, there: &Listing, covers: Covers) -> Vec<String> {
    let mut faults = Vec::new();
    let mut added: BTreeMap<Digest, Vec<&str>> = BTreeMap::new();
    for file in there.files().iter().rev().filter(|file| signed.get(&file.path).is_none()) {
        added.entry(file.sha256).or_default().push(&file.path);
    }
    for file in signed.files() {
        match there.get(&file.path) {
            Some(found) if found == file => {}
            Some(_) => faults.push(format!("`{}` was changed", file.path)),
            None => match added.get_mut(&file.sha256).and_then(Vec::pop) {
                Some(other) => faults.push(format!("`{}` was renamed to `{other}`", file.path)),
                None => faults.push(format!("`{}` was removed", file.path)),
            },
        }
    }
    if covers == Covers::Package {
        let mut new: Vec<&str> = added.into_values().flatten().collect();
        new.sort_unstable();
        faults.extend(new.iter().map(|path| format!("`{path}` was added")));
    }
    if faults.len() > MAX_NAMED {
        let more = faults.len() - MAX_NAMED;
        faults.truncate(MAX_NAMED);
        faults.push(format!("and {more} more differences"));
    }
    faults
}

enum Unread {
    /// It was ours.
    Damaged,
    /// It never was.
    Foreign,
}

fn read(content: &[u8]) -> Result<File, Unread> {
    // Another version says so itself, and is no damage.
    let format = serde_json::from_slice::<Value>(content).ok().map(|file| file["format"].clone());
    let names_ours = content.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes());
    let looks_ours = format.map_or(names_ours, |format| format == FORMAT);
    let unread = || if looks_ours { Unread::Damaged } else { Unread::Foreign };
    if content.len() as u64 > MAX_FILE {
        return Err(unread());
    }
    let file: File = serde_json::from_slice(content).map_err(|_| unread())?;
    let signatures: usize = file.statements.iter().map(|s| s.signatures.len()).sum();
    let most_lines = Limits::DEFAULT.entries;
    let is_sound = file.format == FORMAT
        && (1..=MAX_SIGNATURES).contains(&signatures)
        && file.statements.len() <= MAX_SIGNATURES
        && file.statements.iter().all(|statement| statement.files.len() <= most_lines);
    if is_sound { Ok(file) } else { Err(unread()) }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    statements: Vec<Statement>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    covers: Covers,
    files: Vec<Line>,
    signatures: Vec<One>,
}

/// What a statement speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Covers {
    /// The package: these files and no others.
    Package,
    /// These files, whatever stands beside them.
    Files,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    size: u64,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    key: String,
    signature: String,
}

impl Statement {
    /// The files it names; nothing when a line is no file.
    fn listing(&self) -> Option<Listing> {
        let files: Option<Vec<_>> = self.files.iter().map(Line::read).collect();
        let listing = Listing::new(files?);
        let is_unique = listing.files().windows(2).all(|pair| pair[0].path != pair[1].path);
        is_unique.then_some(listing)
    }
}

impl Line {
    fn of(file: &FileDigest) -> Self {
        Self { path: file.path.clone(), size: file.size, sha256: file.sha256.to_string() }
    }

    fn read(&self) -> Option<FileDigest> {
        manifest::path::check_path(&self.path).ok()?;
        let sha256 = Digest::parse(&self.sha256)?;
        Some(FileDigest { path: self.path.clone(), size: self.size, sha256 })
    }
}

impl One {
    fn read(&self) -> Option<(PublicKey, [u8; 64])> {
        let key = PublicKey::parse(&self.key).ok()?;
        Some((key, STANDARD.decode(&self.signature).ok()?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(files: &[(&str, &str)]) -> Listing {
        let file = |(path, content): &(&str, &str)| FileDigest {
            path: (*path).to_owned(),
            size: content.len() as u64,
            sha256: Digest::of(content.as_bytes()),
        };
        Listing::new(files.iter().map(file).collect())
    }

    const FILES: [(&str, &str); 3] = [("manifest.json", "{}"), ("a.py", "a"), ("b/c", "c")];

    fn state(files: &[(&str, &str)], signature: &str) -> (State, String) {
        let verdict = check(&listing(files), Some(signature.as_bytes()));
        (verdict.state, verdict.faults.join("; "))
    }

    /// A statement over some files only, as another program might make it.
    fn partial(files: &[(&str, &str)], key: &PrivateKey) -> String {
        let listing = listing(files);
        let signature = STANDARD.encode(key.sign(&message(Covers::Files, &listing)));
        let one = One { key: key.public().to_string(), signature };
        let files = listing.files().iter().map(Line::of).collect();
        let statement = Statement { covers: Covers::Files, files, signatures: vec![one] };
        let file = File { format: FORMAT.to_owned(), statements: vec![statement] };
        serde_json::to_string(&file).unwrap()
    }

    #[test]
    fn a_signature_holds_for_the_files_it_was_made_over() {
        let key = PrivateKey::generate().unwrap();
        let signature = sign(&listing(&FILES), None, &key);
        let verdict = check(&listing(&FILES), Some(signature.as_bytes()));
        assert_eq!((verdict.state, verdict.faults.len()), (State::Valid, 0));
        assert_eq!(verdict.signers().collect::<Vec<_>>(), [key.public()]);
        assert_eq!(check(&listing(&FILES), None).state, State::Unsigned);
    }

    #[test]
    fn any_change_breaks_it_and_the_file_is_named() {
        let key = PrivateKey::generate().unwrap();
        let signature = sign(&listing(&FILES), None, &key);
        let [manifest, a, c] = FILES;
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[manifest, a, c, ("evil", "x")], "`evil` was added"),
            (&[manifest, c], "`a.py` was removed"),
            (&[manifest, ("z.py", "a"), c], "`a.py` was renamed to `z.py`"),
            (&[manifest, ("a.py", "b"), c], "`a.py` was changed"),
        ];
        for (files, fault) in cases {
            assert_eq!(state(files, &signature), (State::Invalid, fault.to_owned()));
        }
    }

    #[test]
    fn several_keys_can_sign_and_one_broken_signature_breaks_all() {
        let (a, b) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let first = sign(&listing(&FILES), None, &a);
        let both = sign(&listing(&FILES), Some(first.as_bytes()), &b);
        let verdict = check(&listing(&FILES), Some(both.as_bytes()));
        assert_eq!(verdict.signers().collect::<Vec<_>>(), [a.public(), b.public()]);
        // Signing twice with one key is signing once.
        assert_eq!(sign(&listing(&FILES), Some(first.as_bytes()), &a), first);
        let forged = both.replace(
            &b.public().to_string(),
            &PrivateKey::generate().unwrap().public().to_string(),
        );
        let verdict = check(&listing(&FILES), Some(forged.as_bytes()));
        assert_eq!((verdict.state, verdict.signers().count()), (State::Invalid, 0));
    }

    #[test]
    fn a_signature_over_some_files_is_partial() {
        let key = PrivateKey::generate().unwrap();
        let some = partial(&FILES[..1], &key);
        assert_eq!(state(&FILES, &some).0, State::Partial);
        assert_eq!(check(&listing(&FILES), Some(some.as_bytes())).signers().count(), 0);
        // What it does cover must fit all the same.
        assert_eq!(state(&[("manifest.json", "[]"), ("a.py", "a")], &some).0, State::Invalid);
        // It cannot be passed off as one over the package.
        let raised = some.replace("\"covers\":\"files\"", "\"covers\":\"package\"");
        assert_eq!(state(&FILES[..1], &raised).0, State::Invalid);
    }

    #[test]
    fn what_is_damaged_is_invalid_and_what_is_foreign_is_unsigned() {
        let key = PrivateKey::generate().unwrap();
        let signature = sign(&listing(&FILES), None, &key);
        for damaged in [
            signature.replace("\"covers\"", "\"cover\""),
            signature.replace("ed25519:", "ed25519;"),
            signature[..signature.len() / 2].to_owned(),
            signature.replace("a.py", "../a.py"),
        ] {
            assert_eq!(state(&FILES, &damaged).0, State::Invalid, "{damaged}");
        }
        assert_eq!(state(&FILES, "-----BEGIN PGP SIGNATURE-----").0, State::Unsigned);
        assert_eq!(state(&FILES, "").0, State::Unsigned);
        let newer = signature.replace("haft-signature-1", "haft-signature-2");
        assert_eq!(state(&FILES, &newer).0, State::Unsigned);
    }
}
