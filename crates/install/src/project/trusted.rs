//! The homes of projects that the owner trusts, each as it was then.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use package::digest::Digest;
use serde::{Deserialize, Serialize};

use super::Project;
use crate::error::{Doing, HomeError};
use crate::home::Home;
use crate::pinned::Sha256;

/// The file in the user's home that says which projects are trusted.
pub const NAME: &str = "projects.json";
/// The longest that is read.
const MOST: u64 = 4 << 20;
/// The most projects.
const MOST_PROJECTS: usize = 10_000;

/// The homes of projects that are trusted, by their paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    version: u32,
    projects: Vec<TrustedProject>,
}

/// The home of one project, as it was when it was trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedProject {
    /// Where it is.
    pub path: String,
    /// What stood for its catalogs and its lockfile.
    pub digest: Sha256,
    /// When it was trusted, in milliseconds since 1970.
    pub since: i64,
}

/// How the home of a project stands with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is trusted as it is.
    Trusted,
    /// It was trusted, and is another one now.
    Changed,
    /// Nobody trusts it.
    Unknown,
}

impl Default for Trusted {
    fn default() -> Self {
        Self { version: 1, projects: Vec::new() }
    }
}

impl Trusted {
    /// Those of a user's home.
    pub fn load(home: &Home) -> Result<Self, HomeError> {
        let path = home.path().join(NAME);
        let doing = Doing::Read(path.clone());
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened.map_err(|cause| doing.failed(cause))?,
        };
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).map_err(|cause| doing.failed(cause))?;
        let broken = |why: String| HomeError::Broken { path: path.clone(), why };
        let trusted: Self =
            serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if trusted.version != 1 {
            return Err(broken(format!("it is of version {}, and this is for 1", trusted.version)));
        }
        Ok(trusted)
    }

    /// All of them, by path.
    pub fn projects(&self) -> &[TrustedProject] {
        &self.projects
    }

    /// How a project stands.
    pub fn standing(&self, project: &Project) -> Standing {
        self.standing_of(project.folder(), project.digest())
    }

    fn standing_of(&self, folder: &Path, digest: Digest) -> Standing {
        match self.projects.iter().find(|one| Path::new(&one.path) == folder) {
            Some(one) if one.digest.0 == digest => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    /// Trusts a project as it is.
    pub fn trust(home: &Home, project: &Project, now: i64) -> Result<(), HomeError> {
        let path = project.folder().to_str().map(str::to_owned);
        let folder = project.folder().to_owned();
        let path = path.ok_or_else(|| HomeError::Broken {
            path: folder.clone(),
            why: "its path is no text, and cannot be written down".to_owned(),
        })?;
        let digest = Sha256(project.digest());
        Self::change(home, |projects| {
            projects.retain(|one| one.path != path);
            if projects.len() >= MOST_PROJECTS {
                let why = format!("{MOST_PROJECTS} projects are trusted, and no more fit");
                return Err(HomeError::Broken { path: folder, why });
            }
            projects.push(TrustedProject { path, digest, since: now });
            projects.sort_by(|a, b| a.path.cmp(&b.path));
            Ok(())
        })
    }

    /// Trusts the project at a path no more; whether it was trusted.
    pub fn forget(home: &Home, folder: &Path) -> Result<bool, HomeError> {
        let mut was_there = false;
        Self::change(home, |projects| {
            let before = projects.len();
            projects.retain(|one| Path::new(&one.path) != folder);
            was_there = projects.len() < before;
            Ok(())
        })?;
        Ok(was_there)
    }

    /// Changes the list while nobody else changes the home, and by way of its journal.
    fn change(
        home: &Home,
        change: impl FnOnce(&mut Vec<TrustedProject>) -> Result<(), HomeError>,
    ) -> Result<(), HomeError> {
        let held = home.lock()?;
        let before = Self::load(home)?;
        let mut trusted = before.clone();
        change(&mut trusted.projects)?;
        if trusted == before {
            return Ok(());
        }
        let mut bytes = serde_json::to_vec_pretty(&trusted).expect("a list is plain data");
        bytes.push(b'\n');
        let mut draft = home.draft()?;
        draft.file(NAME, &bytes)?;
        draft.commit()?;
        drop(held);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_trusted_as_it_was_and_no_longer_than_that() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::at(place.path().join("home"));
        let folder = place.path().join("p/.mcp");
        std::fs::create_dir_all(&folder).unwrap();
        let project = || Project::read(&folder).unwrap();
        let standing = || Trusted::load(&home).unwrap().standing(&project());
        assert_eq!(standing(), Standing::Unknown);
        Trusted::trust(&home, &project(), 1).unwrap();
        assert_eq!(standing(), Standing::Trusted);
        std::fs::write(folder.join("haft.lock"), "{\"version\": 1, \"packages\": []}").unwrap();
        assert_eq!(standing(), Standing::Changed);
        Trusted::trust(&home, &project(), 2).unwrap();
        assert_eq!(Trusted::load(&home).unwrap().projects().len(), 1);
        assert_eq!(Trusted::forget(&home, &folder).ok(), Some(true));
        assert_eq!(Trusted::forget(&home, &folder).ok(), Some(false));
        assert_eq!(standing(), Standing::Unknown);
    }
}
