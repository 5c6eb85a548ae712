//! What should be here already.

use manifest::model::Json;
use sandbox::runtime;

use super::command::Command;
use super::error::AcquireError;
use super::workshop::Workshop;

/// Says by its end whether a module can be imported.
const QUESTION: &str =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";

/// What a locator looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Locator {
    Module(String),
    Program(String),
    Server(String),
}

/// What would be run.
pub(super) fn commands(locator: &Json) -> Result<Vec<Command>, AcquireError> {
    Ok(match read(locator)? {
        Locator::Module(module) => vec![asking(&module)],
        Locator::Program(_) | Locator::Server(_) => Vec::new(),
    })
}

/// Refuses what is not here.
pub(super) async fn check(workshop: &Workshop<'_>, locator: &Json) -> Result<(), AcquireError> {
    match read(locator)? {
        Locator::Module(module) => {
            let asked = workshop.run(&asking(&module), &workshop.bench()?).await;
            asked.map(drop).map_err(|error| match error {
                AcquireError::Failed { .. } => AcquireError::Absent {
                    what: format!("the Python module `{module}`"),
                    why: "`python3` does not find it inside the walls",
                },
                other => other,
            })
        }
        Locator::Program(name) => {
            let (search, folder) = (&workshop.sources.search, workshop.folder);
            if runtime::is_there(name.as_ref(), search, folder) {
                return Ok(());
            }
            let what = format!("the program `{name}`");
            Err(AcquireError::Absent { what, why: "no folder of `PATH` has it" })
        }
        Locator::Server(id) => {
            if workshop.sources.servers.contains(&id) {
                return Ok(());
            }
            let what = format!("the MCP server `{id}`");
            Err(AcquireError::Absent { what, why: "none of that id is known here" })
        }
    }
}

fn asking(module: &str) -> Command {
    Command::new(["python3", "-I", "-c", QUESTION, module])
}

fn read(locator: &Json) -> Result<Locator, AcquireError> {
    let value = locator.value();
    let text = |field: &str| value.get(field).and_then(|text| text.as_str()).map(str::to_owned);
    let refuse = |why| AcquireError::Place { place: locator.text().to_owned(), why };
    let found = match text("kind").as_deref() {
        Some("python-module") => text("module").filter(|one| is_module(one)).map(Locator::Module),
        Some("binary-on-path") => {
            text("binary").filter(|one| is_program(one)).map(Locator::Program)
        }
        Some("mcp-server-id") => text("server_id").map(Locator::Server),
        _ => return Err(refuse("it names no kind of thing that is known")),
    };
    found.ok_or_else(|| refuse("what it names can be neither a module nor a program"))
}

fn is_module(text: &str) -> bool {
    let is_part = |part: &str| {
        part.chars().next().is_some_and(|letter| letter.is_alphabetic() || letter == '_')
            && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    text.split('.').all(is_part)
}

fn is_program(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['-', '.']) && !text.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(text: &str) -> Option<Locator> {
        let tree = manifest::json::parse(text);
        read(&Json::of(&tree.root.unwrap(), text)).ok()
    }

    #[test]
    fn a_locator_names_a_module_a_program_or_a_server() {
        let module = located(r#"{"kind":"python-module","module":"a.b_c"}"#);
        assert_eq!(module, Some(Locator::Module("a.b_c".to_owned())));
        for bad in [
            r#"{"kind":"python-module","module":"-c"}"#,
            r#"{"kind":"python-module","module":"a..b"}"#,
            r#"{"kind":"binary-on-path","binary":"/bin/sh"}"#,
            r#"{"kind":"binary-on-path","binary":""}"#,
            r#"{"kind":"other"}"#,
        ] {
            assert_eq!(located(bad), None, "{bad}");
        }
    }
}
