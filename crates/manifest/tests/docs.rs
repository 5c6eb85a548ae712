//! The pages in `docs/` say what the code says.
//!
//! Tables of fields and of finding codes are written from the code between two
//! markers; `HAFT_UPDATE=1 cargo test -p manifest --test docs` writes them anew.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;

use manifest::companion;
use manifest::concept::Concept;
use manifest::convert::carries;
use manifest::dialect::{
    Dialect, agentcli, capability, install_manifest, jumith, mcpb, mcpkg, server_json, skill,
};
use manifest::finding::{Code, Severity, Stage};
use manifest::index;
use manifest::shape::{Bounds, Field, Object, Presence, Shape, Text};
use testkit::docs::check_part;

fn fields(shape: &Shape) -> String {
    let mut table =
        String::from("| field | must | what it may be | what it is for |\n|---|---|---|---|\n");
    rows(shape, "", &mut table);
    table
}

fn rows(shape: &Shape, at: &str, table: &mut String) {
    match shape {
        Shape::Nullable(inner) | Shape::Ruled(inner) => rows(inner, at, table),
        Shape::List(list) => rows(&list.item, &format!("{at}[]"), table),
        Shape::Map(inner) => rows(inner, &format!("{at}.*"), table),
        Shape::Object(object) => object_rows(object, at, table),
        Shape::Choice(choice) => {
            let names: Vec<_> =
                choice.branches.iter().map(|branch| format!("`{}`", branch.name)).collect();
            let place = joined(at, choice.tag);
            writeln!(table, "| `{place}` | yes | {} | {} |", names.join(", "), choice.about)
                .unwrap();
            for branch in &choice.branches {
                object_rows(&branch.object, &format!("{at}<{}>", branch.name), table);
            }
        }
        _ => {}
    }
}

fn object_rows(object: &Object, at: &str, table: &mut String) {
    for Field { name, about, presence, shape, .. } in &object.fields {
        let place = joined(at, name);
        let must = if *presence == Presence::Optional { "" } else { "yes" };
        writeln!(table, "| `{place}` | {must} | {} | {about} |", words(shape)).unwrap();
        rows(shape, &place, table);
    }
}

fn joined(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn words(shape: &Shape) -> String {
    match shape {
        Shape::Anything => "anything".into(),
        Shape::Text(text) => text_words(text),
        Shape::Flag => "true or false".into(),
        Shape::Integer(bounds) => format!("whole number{}", limits(*bounds)),
        Shape::Number(bounds) => format!("number{}", limits(*bounds)),
        Shape::Word(all) => {
            all.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Shape::List(list) => match (list.min, list.max) {
            (0, None) => "list".into(),
            (0, Some(max)) => format!("list, at most {max}"),
            (min, _) => format!("list, at least {min}"),
        },
        Shape::Object(_) | Shape::Choice(_) => "object".into(),
        Shape::Map(_) => "object with keys of your own".into(),
        Shape::Schema => "JSON Schema".into(),
        Shape::Nullable(inner) => format!("{}, or null", words(inner)),
        Shape::Ruled(inner) => words(inner),
    }
}

fn text_words(Text { min, max, pattern, format }: &Text) -> String {
    let mut words = String::from("text");
    match (min, max) {
        (0, Some(max)) => write!(words, ", at most {max}").unwrap(),
        (1, None) => words.push_str(", not empty"),
        (min, Some(max)) => write!(words, ", {min} to {max}").unwrap(),
        _ => {}
    }
    if let Some(pattern) = pattern {
        write!(words, ", `{}`", pattern.text.replace('|', "\\|")).unwrap();
    }
    if let Some(format) = format {
        write!(words, ", should be an {}", format.noun()).unwrap();
    }
    words
}

fn limits(bounds: Bounds) -> String {
    match bounds {
        Bounds { min: Some(min), max: Some(max), .. } => format!(", {min} to {max}"),
        Bounds { min: Some(min), .. } => format!(", at least {min}"),
        Bounds { above: Some(above), .. } => format!(", above {above}"),
        _ => String::new(),
    }
}

#[test]
fn dialect_pages_list_every_field() {
    use install_manifest::Version::V0_4;
    check_part("dialects/install-manifest.md", "fields", &fields(install_manifest::shape(V0_4)));
    check_part("dialects/install-manifest.md", "index", &fields(index::shape()));
    check_part("dialects/agentcli.md", "fields", &fields(agentcli::shape()));
    check_part("dialects/mcpkg.md", "fields", &fields(mcpkg::shape(mcpkg::Version::V0_2)));
    check_part("dialects/mcpkg.md", "test", &fields(mcpkg::test_shape()));
    check_part("dialects/capability.md", "fields", &fields(capability::shape()));
    check_part("dialects/jumith.md", "fields", &fields(jumith::shape()));
    check_part("dialects/jumith.md", "bundle", &fields(jumith::bundle_shape()));
    check_part("dialects/mcpb.md", "fields", &fields(mcpb::shape(mcpb::Version::V0_4)));
    check_part("dialects/server-json.md", "fields", &fields(server_json::shape()));
    check_part("skills.md", "fields", &fields(skill::shape()));
    check_part("dialects/companion.md", "fields", &fields(companion::shape()));
}

#[test]
fn the_page_of_findings_lists_every_code() {
    let mut written = String::new();
    for (stage, title) in [
        (Stage::Bytes, "The bytes"),
        (Stage::Structure, "The structure"),
        (Stage::Schemas, "Schemas, and what they judge"),
        (Stage::Meaning, "The meaning"),
    ] {
        writeln!(written, "\n### {title}\n\n| code | severity | what it means |\n|---|---|---|")
            .unwrap();
        for code in Code::ALL.iter().filter(|code| code.stage() == stage) {
            let severity = if code.severity() == Severity::Error { "error" } else { "warning" };
            writeln!(written, "| `{code}` | {severity} | {} |", code.about()).unwrap();
        }
    }
    check_part("findings.md", "codes", &written);
}

#[test]
fn the_page_on_converting_says_what_each_dialect_carries() {
    let mut written = String::from(
        "| | loss | install-manifest | agentcli | mcpkg | capability | jumith |\n|---|---|---|---|---|---|---|\n",
    );
    for concept in Concept::ALL.iter().filter(|concept| **concept != Concept::FormatVersion) {
        let cell = |dialect: &Dialect| if carries(*dialect, *concept) { " yes |" } else { " |" };
        let cells: String = Dialect::TARGETS.iter().map(cell).collect();
        let weight = format!("{:?}", concept.weight()).to_lowercase();
        writeln!(written, "| {} | {weight} |{cells}", concept.words()).unwrap();
    }
    check_part("converting.md", "carried", &written);
}
