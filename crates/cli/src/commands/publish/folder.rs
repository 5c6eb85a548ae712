//! A folder, published in one go: checked, packed, tested, signed, sent.
//!
//! What is tested is what is sent: signing copies every file as it is, and adds the signature.

use std::path::{Path, PathBuf};

use clap::Args;
use host::Said;
use manifest::dialect::Dialect;
use registry::client::Remote;

use super::{PublishArgs, send, tell, tested};
use crate::ask::Ask;
use crate::commands::pack::{self, PackArgs};
use crate::commands::sign::{self, SignArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::printer::{Printer, line};
use crate::{shell, tools};

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub(super) struct FolderArgs {
    /// Of a folder: the key that signs it [default: the only one you have]
    #[arg(long, value_name = "NAME", conflicts_with = "no_sign")]
    key: Option<String>,
    /// Of a folder: publish it without a signature
    #[arg(long)]
    no_sign: bool,
    /// Of a folder: publish it without running its tests
    #[arg(long)]
    no_test: bool,
    /// Of a folder: tools that the steps of a chain may call in its tests without being installed, at this path; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Publish this file, folder or pattern although it looks like a secret; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(super) allow_file: Vec<String>,
    /// Of a folder: approve the calls of its tests that need your word
    #[arg(long)]
    approve: bool,
    /// Read the passphrase of the key from standard input instead of asking
    #[arg(long)]
    passphrase_stdin: bool,
}

impl FolderArgs {
    /// Refuses what means nothing for a file, which is published as it is.
    pub(super) fn check_unused(&self, file: &Path) -> Result<(), Failure> {
        let used = [
            (self.key.is_some(), "--key"),
            (self.no_sign, "--no-sign"),
            (self.no_test, "--no-test"),
            (self.approve, "--approve"),
            (!self.with.is_empty(), "--with"),
            (self.passphrase_stdin, "--passphrase-stdin"),
        ];
        match used.into_iter().find(|(is_used, _)| *is_used) {
            Some((_, flag)) => {
                let message = format!("{flag} is about a folder, and `{}` is none", file.display());
                Err(Failure::invalid(message).hint("a file is published as it is"))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn run(
    args: &PublishArgs,
    remote: &Remote,
    home: &Home,
    ask: Ask,
    json_wanted: bool,
    printer: Printer,
) -> Outcome {
    let folder = &args.folder;
    let room = tools::room(home)?;
    let file = room.path().join("package.mcpkg");
    let packing =
        PackArgs::archive(&args.path, file.clone(), &folder.allow_file, args.id.as_deref());
    let made = pack::make(&packing, printer)?;
    let (id, version) = (line(&made.package.id), line(&made.package.semver()));
    printer.note(&format!("Packed {id} {version}"));
    // A key that is not there is told before anything is run, but after what is no package.
    let key = if folder.no_sign { None } else { Some(key(folder, home)?) };
    let tested = if folder.no_test {
        printer.warn("its tests were not run, because of --no-test");
        None
    } else {
        let id = args.id.as_deref().unwrap_or(&made.package.id);
        let given = folder.approve.then_some(Said::Once);
        let tested = tested::run((&file, &args.path), id, &folder.with, given, home, ask, printer)?;
        if !tested.is_good() {
            return tested.refuse(json_wanted, printer);
        }
        Some(tested)
    };
    // Nobody is asked for a passphrase for what is not published.
    match &key {
        Some(key) => {
            let signing = SignArgs::new_package(&file, key, folder.passphrase_stdin);
            sign::sign(&signing, home, ask, printer)?;
            printer.note(&format!("Signed as {}", line(key)));
        }
        None => printer.warn("it is not signed, because of --no-sign"),
    }
    // A tools.json is called as its folder is, as when it is packed or called.
    let id = (made.package.dialect == Dialect::Agentcli).then_some(made.package.id.as_str());
    let under = (id, args.channel);
    let published = send(remote, &file, under, tested.as_ref(), json_wanted, printer)?;
    tell(&published, args, tested.map(|tested| tested.json()), json_wanted, printer)
}

/// The key that signs: the one that was named, or the only one there is.
fn key(folder: &FolderArgs, home: &Home) -> Result<String, Failure> {
    if let Some(name) = &folder.key {
        home.private(name)?;
        return Ok(name.clone());
    }
    let own: Vec<_> = home.trusted(Printer::silent())?.into_iter().filter(|key| key.own).collect();
    match own.as_slice() {
        [one] => Ok(one.name.clone()),
        [] => Err(Failure::new(Exit::NotFound, "there is no key of yours to sign with")
            .hint("`haft key new NAME` makes one; --no-sign publishes without a signature")),
        several => {
            let names: Vec<_> = several.iter().map(|key| shell::word(&key.name)).collect();
            Err(Failure::invalid("there are several keys of yours, and one signs")
                .hint(format!("name it with --key: {}", names.join(", "))))
        }
    }
}
