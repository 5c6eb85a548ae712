//! What of a package can be found.

use crate::common::{index_of, keys};
use manifest::document::{Options, read};
use manifest::model::Package;
use search::{Entry, EntryError, Facet, Field, Query, limits};

const MANIFEST: &str = r#"{
  "toolId": "acme.weather.forecast", "name": "Weather Forecast", "version": "1.0.0",
  "description": "Tells whether it will rain.", "capabilities": ["meteorology", "Travel"],
  "endpoint": { "type": "http", "method": "GET", "url": "https://api.example.com/forecast" },
  "input_schema": { "type": "object", "properties": {
    "cityName": { "type": "string", "description": "The municipality that is asked for" },
    "window": { "type": "object", "properties": { "daysAhead": { "type": "integer" } } } } },
  "output_schema": { "type": "object" },
  "auth": { "type": "none" }, "tests": [], "examples": [],
  "meta": { "publisher": { "id": "acme", "name": "Acme" }, "license": "MIT" }
}"#;

fn package() -> Package {
    let (_, packages) = read(MANIFEST.as_bytes(), &Options::default()).unwrap();
    packages.into_iter().next().unwrap()
}

#[test]
fn every_part_of_a_package_finds_it_and_says_where() {
    let index = index_of([Entry::of_package("k", &package()).unwrap()]);
    for (text, field) in [
        ("forecasts", Field::Name),
        ("acme", Field::Name),
        ("meteorology", Field::Tags),
        ("city", Field::Parameters),
        ("days", Field::Parameters),
        ("municipalities", Field::ParameterTexts),
    ] {
        let query = Query::new(text);
        assert_eq!(keys(&index.search(&query)), ["k"], "{text}");
        let told = index.explain(&query, "k").unwrap();
        let fields: Vec<Field> = told.words[0].fields.iter().map(|field| field.field).collect();
        assert!(fields.contains(&field), "{text} is in {fields:?}");
    }
    let told = index.explain(&Query::new("rain"), "k").unwrap();
    assert!(matches!(told.words[0].fields[0].field, Field::Summary | Field::Description));
}

#[test]
fn a_package_is_filtered_by_what_it_is() {
    let index = index_of([Entry::of_package("k", &package()).unwrap()]);
    for (facet, value) in [
        (Facet::Capability, "travel"),
        (Facet::Tag, "meteorology"),
        (Facet::Kind, "tool"),
        (Facet::Dialect, "mcpkg"),
        (Facet::Namespace, "acme"),
        (Facet::Provider, "acme"),
        (Facet::Trust, package().trust.name()),
    ] {
        let query = |value| Query::new("").filter(facet, value).unwrap();
        assert_eq!(index.search(&query(value)).total, 1, "{facet:?}");
        assert_eq!(index.search(&query("other")).total, 0, "{facet:?}");
    }
}

#[test]
fn every_example_is_found_by_its_name() {
    let mut count = 0;
    for example in testkit::examples() {
        let bytes = std::fs::read(&example).unwrap();
        let Ok((_, packages)) = read(&bytes, &Options::default()) else { continue };
        for package in packages {
            let index = index_of([Entry::of_package(&package.canonical_id(), &package).unwrap()]);
            let name = package.name.as_deref().unwrap_or(&package.id);
            assert_eq!(index.search(&Query::new(name)).total, 1, "{}", example.display());
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

#[test]
fn what_strangers_write_too_long_is_passed_over_and_a_key_is_not() {
    let mut package = package();
    package.tags = (0..500).map(|n| format!("tag{n}")).chain(["t".repeat(10_000)]).collect();
    let entry = Entry::of_package("k", &package).unwrap();
    let index = index_of([entry]);
    let tag = |value: &str| Query::new("").filter(Facet::Tag, value).unwrap();
    assert_eq!(index.search(&tag("tag63")).total, 1);
    assert_eq!(index.search(&tag("tag64")).total, 0, "the limit is {}", limits::FACET_VALUES);
    assert_eq!(Entry::of_package("", &package), Err(EntryError::NoKey));
}
