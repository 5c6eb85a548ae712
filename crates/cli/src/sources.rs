//! Where this machine's own package managers have their packages, and what the owner's policy says of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use egress::Rule;
use egress::http::Url;
use install::acquire::{Bringer, Images, Index, Manager, Reach, Requirement, Sources};
use manifest::model::{Acquire, Entry, Implementation, Package};
use policy::{ContainerWay, Policy, SourceRules};

use crate::exit::Failure;
use crate::printer::line;

/// Whatever is acquired for a package beside its own files.
#[derive(Debug)]
pub(crate) struct Needed<'p> {
    pub(crate) acquire: &'p Acquire,
    pub(crate) packages: Vec<Requirement>,
}

/// The implementations whose packages are had: the first that could be started here, since another may want what nobody has or
/// another version of the same; all of them where none could.
fn wanted(all: &[Implementation]) -> &[Implementation] {
    let search = std::env::var_os("PATH").unwrap_or_default();
    match all.iter().position(|one| host::could_start(one, &search)) {
        Some(first) => std::slice::from_ref(&all[first]),
        None => all,
    }
}

impl<'p> Needed<'p> {
    /// What a package needs; nothing where it brings everything itself.
    pub(crate) fn of(package: &'p Package) -> Result<Option<Self>, Failure> {
        // What only runs elsewhere needs nothing here.
        let is_elsewhere = |entry: &Entry| {
            matches!(entry, Entry::Http { .. } | Entry::A2a { .. }) || entry.is_server_elsewhere()
        };
        let ways = &package.implementations;
        if !ways.is_empty() && ways.iter().all(|one| is_elsewhere(&one.entry)) {
            return Ok(None);
        }
        let bad =
            |error: install::acquire::BadRequirement| Failure::invalid(line(&error.to_string()));
        let mut packages = Vec::new();
        for one in wanted(ways) {
            packages.extend(Requirement::of_implementation(one).map_err(bad)?);
        }
        for text in &package.dependencies {
            packages.push(Requirement::of_companion(text).map_err(bad)?);
        }
        let has_own = match &package.acquire {
            Acquire::Pip { .. }
            | Acquire::Npm { .. }
            | Acquire::Git { .. }
            | Acquire::Container { .. }
            | Acquire::Url { .. }
            | Acquire::Preinstalled { .. } => true,
            Acquire::Bundle | Acquire::LocalPath { .. } | Acquire::Nothing => false,
        };
        let needed = Self { acquire: &package.acquire, packages };
        Ok((has_own || !needed.packages.is_empty()).then_some(needed))
    }

    fn is_of(&self, manager: Manager) -> bool {
        let own = match self.acquire {
            Acquire::Pip { .. } => manager == Manager::Pip,
            Acquire::Npm { .. } => manager == Manager::Npm,
            _ => false,
        };
        own || self.packages.iter().any(|one| one.manager() == manager)
    }

    /// Where it is had: as this machine's own package managers are set, unless the policy says otherwise. Only those are
    /// asked that are needed.
    pub(crate) fn sources(
        &self,
        rules: &SourceRules,
        reach: Reach,
        servers: Vec<String>,
    ) -> Result<Sources, Failure> {
        let mut sources = Sources {
            search: std::env::var_os("PATH").unwrap_or_default(),
            servers: servers.into_iter().collect(),
            reach,
            certificates: trusted_certificates(rules),
            ..Sources::default()
        };
        if self.is_of(Manager::Pip) {
            if let Some(said) =
                said("pip3", &["config", "list"]).or_else(|| said("pip", &["config", "list"]))
            {
                sources.take_pip(&said);
            }
            if !rules.pip.is_empty() {
                sources.pip = indexes(&rules.pip)?;
            }
        }
        if self.is_of(Manager::Npm) {
            take_npm(&mut sources);
            if let Some(npm) = &rules.npm {
                sources.npm = indexes(std::slice::from_ref(npm))?.pop();
            }
        }
        if matches!(self.acquire, Acquire::Git { .. })
            && let Some(said) = said("git", &["config", "--get-regexp", r"^url\..*\.insteadof$"])
        {
            sources.take_git(&said);
        }
        if let Some(path) = &rules.certificates {
            sources.certificates = Some(path.into());
        }
        sources.hosts = rules.hosts.iter().filter_map(|host| Rule::parse(host).ok()).collect();
        for name in &rules.run_scripts {
            let requirement = Requirement::of_companion(name);
            let requirement = requirement.map_err(|error| Failure::invalid(error.to_string()))?;
            sources.trusted.insert((requirement.manager(), requirement.name().to_owned()));
        }
        Ok(sources)
    }
}

/// Refuses what nothing could be had by.
pub(crate) fn check(rules: &SourceRules) -> Result<(), Failure> {
    indexes(&rules.pip)?;
    indexes(rules.npm.as_slice())?;
    for host in &rules.hosts {
        Rule::parse(host).map_err(|error| {
            let message = format!("`{}` in `[sources] hosts` is no host", line(host));
            Failure::invalid(message).cause(error)
        })?;
    }
    for name in &rules.run_scripts {
        Requirement::of_companion(name).map_err(|error| Failure::invalid(error.to_string()))?;
    }
    match &rules.certificates {
        Some(path) if !Path::new(path).is_file() => {
            let message =
                format!("there is no file `{}`, which `[sources] certificates` names", line(path));
            Err(Failure::invalid(message))
        }
        _ => Ok(()),
    }
}

/// Where container images are had: by us, unless the policy leaves images to an engine.
pub(crate) fn images(policy: &Policy, home: &Path) -> Result<Images, Failure> {
    let by_us = policy.containers.order.contains(&ContainerWay::Image);
    let mirror = policy.sources.images.as_slice();
    Ok(Images {
        mirror: indexes(mirror)?.pop(),
        folder: Some(home.join("images")),
        by: if by_us { Bringer::Us } else { Bringer::Engine },
    })
}

fn indexes(addresses: &[String]) -> Result<Vec<Index>, Failure> {
    let index = |text: &String| {
        let url = Url::parse(text).map_err(|error| {
            let message =
                format!("`{}` below `[sources]` in policy.toml is no address", line(text));
            Failure::invalid(message).cause(error)
        });
        let is_fetched = |url: &Url| matches!(url.scheme(), "http" | "https");
        match url? {
            url if is_fetched(&url) => Ok(Index::at(url)),
            _ => {
                let message = format!(
                    "`{}` below `[sources]` in policy.toml is neither https nor http",
                    line(text)
                );
                Err(Failure::invalid(message))
            }
        }
    };
    addresses.iter().map(index).collect()
}

/// The certificates that are trusted too: those that the policy names, else those that this machine's programs are told of.
pub(crate) fn trusted_certificates(rules: &SourceRules) -> Option<PathBuf> {
    rules.certificates.as_ref().map(PathBuf::from).or_else(told_certificates)
}

fn told_certificates() -> Option<PathBuf> {
    ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

/// What npm is set to: the files it reads, the nearest last, then its variables.
fn take_npm(sources: &mut Sources) {
    let variable = |name: &str| std::env::var(name).ok();
    let named = |name: &str| {
        variable(&format!("npm_config_{name}"))
            .or_else(|| variable(&format!("NPM_CONFIG_{}", name.to_ascii_uppercase())))
    };
    let home = std::env::home_dir();
    let global = named("globalconfig").map(PathBuf::from).or_else(|| {
        let prefix = said("npm", &["prefix", "-g"])?;
        Some(PathBuf::from(prefix.trim()).join("etc/npmrc"))
    });
    let user = named("userconfig").map(PathBuf::from).or_else(|| Some(home?.join(".npmrc")));
    // The one that npm has by itself stands in no file.
    let mut text = match said("npm", &["config", "get", "registry"]) {
        Some(registry) => format!("registry={}\n", registry.trim()),
        None => String::new(),
    };
    for file in [global, user].into_iter().flatten() {
        // One that is not there says nothing.
        text.push_str(&std::fs::read_to_string(file).unwrap_or_default());
        text.push('\n');
    }
    for key in ["registry", "cafile"] {
        if let Some(value) = named(key) {
            text.push_str(&format!("{key}={value}\n"));
        }
    }
    sources.take_npmrc(&text, &variable);
}

/// What a program of this machine says of its settings. One that is missing or fails says nothing. It is asked from where
/// no project is, whose settings are not the owner's.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
