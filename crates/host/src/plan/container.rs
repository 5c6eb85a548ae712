//! A call of a tool that is a container image, as it is planned.
//!
//! The image is found, and nothing is unpacked: that is for [`prepare`], when the call may be made.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use image::{Code, Found, ImageError, Reference, Store};
use manifest::dialect::Dialect;
use manifest::model::{Acquire, Entry, Invocation};
use policy::ContainerWay;
use sandbox::runtime::Program;
use serde_json::{Value, json};

use super::engine::Engine;
use super::mcp::{Place, Sink};
use super::{Asked, Plan, Process, Way, unavailable};
use crate::choose::is_in_an_image;
use crate::confine::{self, Inside, Walls};
use crate::error::{CallError, Kind};
use crate::run::leash::Leash;
use crate::template;

/// The image that a call runs in, inside our own walls.
#[derive(Clone, Debug)]
pub(crate) struct InImage {
    reference: Reference,
    store: Store,
    /// Where it is looked for besides the store.
    places: Vec<PathBuf>,
    /// Where it was found.
    from: PathBuf,
    /// The program, as it was named; where it is depends on the files of the image.
    program: String,
    /// Where programs are looked for inside.
    search: String,
    /// What the image would have and is not given.
    user: Option<String>,
}

/// What is started in an image, whoever starts it.
pub(super) struct Command {
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// The arguments that may be written down.
    pub(super) shown: Vec<String>,
    pub(super) stdin: Vec<u8>,
}

impl InImage {
    /// What is told of it.
    pub(super) fn to_value(&self) -> Value {
        let mut told = json!({
            "reference": self.reference.to_string(),
            "from": self.from.display().to_string(),
        });
        if let Some(user) = &self.user {
            told["user_not_kept"] = user.as_str().into();
        }
        told
    }
}

/// How long the image of a call may take to be unpacked. This happens once, before the time of the call begins: were it a part
/// of that time, an image that takes longer could never be called.
const UNPACKING: Duration = Duration::from_mins(10);

/// Unpacks the image of a call, unless that is done, and finds its program there.
pub(crate) fn prepare(plan: &mut Plan, leash: &Leash) -> Result<(), CallError> {
    let Some(inside) = &plan.image else { return Ok(()) };
    let InImage { reference, store, places, program, search, .. } = inside;
    let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
    let found = store.find(&reference.digest, &places).map_err(|error| refused(&error))?;
    let found = found.ok_or_else(|| unavailable(&format!("`{reference}` is gone")))?;
    let until = Instant::now() + UNPACKING;
    let is_called_off = || leash.is_called_off() || Instant::now() > until;
    let image = store.unpack(found, &is_called_off).map_err(|error| match error.code() {
        Some(Code::CalledOff) if leash.is_called_off() => CallError::called_off(),
        Some(Code::CalledOff) => {
            let minutes = UNPACKING.as_secs() / 60;
            let message = format!(
                "to unpack the image `{reference}` took longer than {minutes} minutes, which is the most it may"
            );
            CallError::new(Kind::TimedOut, message)
        }
        _ => refused(&error),
    })?;
    let (argv, walls) = match &mut plan.way {
        Way::Process(one) => {
            let one = Arc::make_mut(one);
            (&mut one.argv, &mut one.walls)
        }
        Way::Mcp(one) => match Arc::make_mut(&mut one.place) {
            Place::Process { argv, walls } => (argv, &mut **walls),
            Place::Url { .. } | Place::Registry { .. } => return Ok(()),
        },
        Way::Worker(_) | Way::Http(_) | Way::A2a(_) | Way::Engine(_) | Way::Chain(_) => {
            return Ok(());
        }
    };
    let folder = walls.confinement.folder.to_string_lossy();
    let path = image.program(program, search, &folder).ok_or_else(|| {
        unavailable(&format!("there is no program `{program}` in the image `{reference}`"))
    })?;
    if let Some(first) = argv.first_mut() {
        *first = path.into_os_string();
    }
    walls.confinement.root = Some(image.root);
    Ok(())
}

impl Asked<'_> {
    /// Plans a call of a tool that is an image; `None` where it is none.
    pub(super) fn in_an_image(&self) -> Result<Option<(Way, Option<InImage>)>, CallError> {
        let package = &self.tool.package;
        let Acquire::Container { image } = &package.acquire else {
            return match self.implementation.runtime.as_deref() {
                Some("container") => Err(unavailable("it names no image that it would run in")),
                _ => Ok(None),
            };
        };
        if !is_in_an_image(package, self.implementation) {
            return Ok(None);
        }
        let reference = Reference::parse(image);
        let reference = reference.map_err(|error| refused(&error).with("image", &**image))?;
        let mut why_not = Vec::new();
        for way in &self.settings.policy.containers.order {
            match way {
                ContainerWay::Image => match self.find(&reference)? {
                    Some(found) => return self.inside(&reference, &found).map(Some),
                    None => why_not.push(self.nowhere(&reference)),
                },
                ContainerWay::Engine => match self.by_an_engine(&reference)? {
                    Ok(engine) => {
                        let engine = Engine { instead: why_not, ..engine };
                        return Ok(Some((Way::Engine(Box::new(engine)), None)));
                    }
                    Err(why) => why_not.push(why),
                },
            }
        }
        let message = match why_not.as_slice() {
            [] => "the policy allows no way to run an image (`containers.order`)".to_owned(),
            reasons => format!("the image `{reference}` cannot be run: {}", reasons.join("; ")),
        };
        let error = CallError::new(Kind::Unavailable, message);
        let error = error.with("image", reference.to_string()).with("ways", why_not);
        Err(match self.images() {
            Some(images) => error.with("images", images),
            None => error,
        })
    }

    /// Where images are looked for that need no engine, where the policy has that way.
    pub(super) fn images(&self) -> Option<String> {
        let has_way = self.settings.policy.containers.order.contains(&ContainerWay::Image);
        has_way.then(|| self.settings.home.join("images").display().to_string())
    }

    fn store(&self) -> Store {
        Store::at(self.settings.home.join("images"))
    }

    /// Where images are looked for besides the store: among the files of the package, and among what was acquired for it.
    fn places(&self) -> Vec<PathBuf> {
        std::iter::once(&self.tool.root).chain(&self.tool.brought.folder).cloned().collect()
    }

    fn find(&self, reference: &Reference) -> Result<Option<Found>, CallError> {
        let places = self.places();
        let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        let found = self.store().find(&reference.digest, &places);
        found.map_err(|error| refused(&error))
    }

    fn nowhere(&self, reference: &Reference) -> String {
        format!(
            "`{}` and `{}` hold neither an OCI layout nor an archive with the manifest or the index {} (an archive of `docker save` that has neither is known by the id of its image)",
            self.tool.root.display(),
            self.settings.home.join("images").display(),
            reference.digest
        )
    }

    fn inside(
        &self,
        reference: &Reference,
        found: &Found,
    ) -> Result<(Way, Option<InImage>), CallError> {
        let settings = found.settings();
        let (argv, cwd) = match &self.implementation.entry {
            Entry::Argv { argv, cwd, .. } | Entry::McpStdio { argv, cwd, .. } => (&**argv, cwd),
            _ => (&[][..], &None),
        };
        let engine = self.behind_image(argv)?;
        let started = engine.as_ref().map(|behind| match behind.as_slice() {
            [] => Vec::new(),
            behind => [settings.entrypoint.as_slice(), behind].concat(),
        });
        let command = self.command(started.as_deref().unwrap_or(argv), settings)?;
        let program = command.argv[0].clone();
        let folder = folder(settings.folder.as_deref(), cwd.as_deref())?;
        let mut walls = self.image_walls(reference, settings, folder)?;
        let search = variable(&walls, "PATH");
        // The variables of a server are those of the manifest too.
        if let Entry::McpStdio { env, .. } = &self.implementation.entry {
            for (name, value) in env {
                set(&mut walls, name, value);
            }
        }
        let whole: Vec<_> = command.argv.into_iter().map(OsString::from).collect();
        let way = match &self.implementation.entry {
            Entry::McpStdio { .. } => {
                let place = Place::Process { argv: whole, walls: Box::new(walls) };
                Way::Mcp(Box::new(self.mcp(place, command.shown)?))
            }
            _ => Way::Process(Arc::new(Process {
                argv: whole,
                shown: command.shown,
                stdin: command.stdin,
                walls,
            })),
        };
        let image = InImage {
            reference: reference.clone(),
            store: self.store(),
            places: self.places(),
            from: found.path().to_owned(),
            program,
            search,
            user: settings.user.clone(),
        };
        Ok((way, Some(image)))
    }

    /// What an image is given where a server.json has an engine run it: the words behind its name.
    pub(super) fn behind_image(&self, argv: &[String]) -> Result<Option<Vec<String>>, CallError> {
        let package = &self.tool.package;
        let (Dialect::ServerJson, Acquire::Container { image }) =
            (package.dialect, &package.acquire)
        else {
            return Ok(None);
        };
        let Some(at) = argv.iter().position(|word| word == image) else { return Ok(None) };
        let mut behind = Vec::new();
        for word in &argv[at + 1..] {
            behind.extend(self.filled(word, Sink::Argument)?);
        }
        Ok(Some(behind))
    }

    /// What is started: what the manifest says, or else the image; then what the action adds.
    pub(super) fn command(
        &self,
        argv: &[String],
        settings: &image::Settings,
    ) -> Result<Command, CallError> {
        let added = self.added()?;
        let start = match (argv, settings.entrypoint.as_slice(), added.argv.as_slice()) {
            ([], [], _) => settings.command.clone(),
            // As engines have it: what an action adds takes the place of the image's own arguments.
            ([], entrypoint, []) => [entrypoint, &settings.command].concat(),
            ([], entrypoint, _) => entrypoint.to_vec(),
            (argv, ..) => argv.to_vec(),
        };
        if start.first().is_none_or(String::is_empty) {
            return Err(unavailable("neither the manifest nor the image says what is started"));
        }
        let shown = [start.as_slice(), &added.shown].concat();
        // What an image says of itself is no template.
        let start = if argv.is_empty() { start } else { self.start(argv)? };
        Ok(Command { argv: [start, added.argv].concat(), shown, stdin: added.stdin })
    }

    /// What an action adds to what is started.
    pub(super) fn added(&self) -> Result<Command, CallError> {
        let (template, stdin) = match &self.action.invocation {
            Invocation::Subcommand { argv_template } => (argv_template.as_slice(), Vec::new()),
            Invocation::StdinJson { argv_template } => (argv_template.as_slice(), self.stdin()),
            Invocation::McpTool { .. } => (&[][..], Vec::new()),
            other => {
                let message = format!("a command cannot be called by {}", other.words());
                return Err(unavailable(&message));
            }
        };
        let argv = template::arguments(template, &self.values())?;
        Ok(Command { argv, shown: template.to_vec(), stdin })
    }

    /// The walls of every process, around the files of an image.
    pub(super) fn image_walls(
        &self,
        reference: &Reference,
        settings: &image::Settings,
        folder: PathBuf,
    ) -> Result<Walls, CallError> {
        // It is in the image, so nothing of the machine is granted for it.
        let program = Program {
            path: PathBuf::new(),
            needs: Vec::new(),
            links: Vec::new(),
            search: Vec::new(),
        };
        let given = self.variables.iter().map(|(name, one)| (name.clone(), one.value.clone()));
        let inside =
            Inside { folder: folder.clone(), variables: given.collect(), program: &program };
        let mut walls = confine::walls(self.tool, &self.decision.allowance, inside, self.settings)?;
        let confinement = &mut walls.confinement;
        confinement.root = Some(self.store().root_of(&reference.digest));
        confinement.required = confinement.required.max(sandbox::Level::L2);
        confinement.folder = folder;
        for (name, value) in &settings.environment {
            let is_there = walls.confinement.environment.iter().any(|(known, _)| known == &**name);
            let is_given = self.variables.iter().any(|(known, _)| known == name);
            // Where the programs of an image are, only the image knows.
            let counts = !is_there || (name == "PATH" && !is_given);
            if counts && !name.contains('\0') && !value.contains('\0') {
                set(&mut walls, name, value);
            }
        }
        Ok(walls)
    }
}

/// The folder that a program of an image starts in: the manifest's, from the image's own.
pub(super) fn folder(image: Option<&str>, manifest: Option<&str>) -> Result<PathBuf, CallError> {
    let folder = Path::new("/").join(image.unwrap_or_default()).join(manifest.unwrap_or_default());
    let mut plain = PathBuf::from("/");
    for part in folder.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => plain.push(part),
            Component::ParentDir | Component::Prefix(_) => {
                let message = format!("`{}` is no plain folder of an image", folder.display());
                return Err(CallError::new(Kind::Denied, message));
            }
        }
    }
    Ok(plain)
}

fn variable(walls: &Walls, name: &str) -> String {
    let found = walls.confinement.environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
}

fn set(walls: &mut Walls, name: &str, value: &str) {
    let environment = &mut walls.confinement.environment;
    match environment.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value.into(),
        None => environment.push((name.into(), value.into())),
    }
}

/// Why an image is not run.
fn refused(error: &ImageError) -> CallError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    match error.code() {
        Some(Code::NotPinned) => {
            let way_out = "write `NAME@sha256:…` with the digest of the image that was tested";
            CallError::new(Kind::Denied, format!("{message}; {way_out}"))
                .with("refusal", "not-pinned")
        }
        Some(code) => CallError::new(Kind::Denied, message).with("refusal", code.name()),
        None => CallError::new(Kind::Unavailable, message),
    }
}
