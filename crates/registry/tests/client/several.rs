//! Several registries at once.

use registry::catalog::{Catalog, Place as CatalogPlace};
use registry::client::many::Place;
use registry::client::{Client, FindError, Question, Remote, Source};
use serde_json::json;

use crate::stand_in::{Desk, Packed, Reply, StandIn, wait};

fn registry(ids: &'static [&'static str]) -> StandIn {
    StandIn::new(move |asked, _| {
        if !asked.path.contains("/search") {
            let is_there = ids.iter().any(|id| asked.path.contains(id));
            if !is_there {
                return Reply::new(404, r#"{"error":{"code":"TOOL_NOT_FOUND","message":"none"}}"#);
            }
            return Reply::json(&Packed::new(1).describe);
        }
        let number = |name: &str| -> usize {
            let rest = asked.path.split(&format!("{name}=")).nth(1).unwrap();
            rest.split('&').next().unwrap().parse().unwrap()
        };
        let results: Vec<_> = ids
            .iter()
            .skip(number("offset"))
            .take(number("limit"))
            .map(|id| json!({"id": id, "name": id, "version": "1.0.0", "summary": "x"}))
            .collect();
        Reply::json(&json!({"results": results, "total": ids.len()}))
    })
}

fn client(desk: &Desk, registries: &[(&str, &StandIn)]) -> Client {
    let source = |(name, registry): &(&str, &StandIn)| {
        let remote = Remote::new(name, desk.fetcher(&registry.url, None));
        Source::Registry(Box::new(remote))
    };
    Client::new(registries.iter().map(source).collect())
}

fn shown(client: &Client, offset: usize, limit: usize) -> Vec<String> {
    let question = Question { words: "x".to_owned(), offset, limit, ..Question::default() };
    let results = wait(client.search(&question)).unwrap();
    results.results.iter().map(|one| format!("{}/{}", one.registry, one.found.id)).collect()
}

#[test]
fn what_each_finds_best_comes_first_and_priorities_decide_among_equals() {
    let (one, two) = (registry(&["a", "b", "c"]), registry(&["x", "a"]));
    let desk = Desk::new();
    let client = client(&desk, &[("first", &one), ("second", &two)]);
    let all = ["first/a", "second/x", "first/b", "second/a", "first/c"];
    assert_eq!(shown(&client, 0, 20), all);
    assert_eq!(shown(&client, 0, 2), all[..2]);
    assert_eq!(shown(&client, 2, 2), all[2..4]);
    assert_eq!(shown(&client, 5, 2), [""; 0]);
}

#[test]
fn whoever_is_not_looked_through_to_the_end_is_told_of() {
    let many: Vec<String> = (0..1_200).map(|number| format!("demo.t{number}")).collect();
    let many: Vec<&'static str> = many.into_iter().map(|id| &*id.leak()).collect();
    let (desk, large, small) = (Desk::new(), registry(many.leak()), registry(&["a"]));
    let both = client(&desk, &[("large", &large), ("small", &small)]);
    let warned = |offset| {
        let question = Question { words: "x".to_owned(), offset, limit: 50, ..Question::default() };
        let results = wait(both.search(&question)).unwrap();
        results.warnings.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(warned(900), [""; 0]);
    assert_eq!(warned(1_150), ["large"]);
}

#[test]
fn one_alone_pages_by_itself() {
    let (desk, one) = (Desk::new(), registry(&["a", "b", "c"]));
    let client = client(&desk, &[("only", &one)]);
    assert_eq!(shown(&client, 1, 1), ["only/b"]);
    assert!(one.paths()[0].contains("offset=1"));
}

#[test]
fn one_that_does_not_answer_is_told_of_and_does_not_hide_the_others() {
    let (desk, one) = (Desk::new(), registry(&["a"]));
    let broken = StandIn::new(|_, _| Reply::new(500, ""));
    let both = client(&desk, &[("broken", &broken), ("first", &one)]);
    let question = Question { words: "x".to_owned(), limit: 5, ..Question::default() };
    let results = wait(both.search(&question)).unwrap();
    assert_eq!((results.results.len(), results.failed.len()), (1, 1));
    assert_eq!(results.failed[0].0, "broken");
    let alone = client(&desk, &[("broken", &broken)]);
    assert!(matches!(wait(alone.search(&question)), Err(FindError::Failed(..))));
    assert!(matches!(wait(Client::default().search(&question)), Err(FindError::NoRegistries)));
}

#[test]
fn an_id_in_two_registries_is_nobodys() {
    let desk = Desk::new();
    let (one, two, none) = (registry(&["demo.echo"]), registry(&["demo.echo"]), registry(&[]));
    let broken = StandIn::new(|_, _| Reply::new(500, ""));
    let find = |client: &Client| match wait(client.find("demo.echo", None)) {
        Ok(Place::Registry(remote, _)) => format!("in {}", remote.name()),
        Ok(Place::Catalog(..)) => "in a catalog".to_owned(),
        Err(error) => error.to_string(),
    };
    let both = client(&desk, &[("one", &one), ("two", &two)]);
    assert_eq!(find(&both), "it is found in `one` and in `two`");
    assert_eq!(find(&client(&desk, &[("none", &none), ("two", &two)])), "in two");
    assert_eq!(find(&client(&desk, &[("none", &none)])), "no registry has it");
    // Whoever does not answer may be the one that is meant.
    let unsure = client(&desk, &[("broken", &broken), ("two", &two)]);
    assert_eq!(find(&unsure), "`broken` did not answer, and may have it");
}

/// Whoever has the id and not the version, or has taken all of them back, is the one that is meant all the same.
#[test]
fn an_id_is_not_taken_over_by_a_version_that_its_registry_lacks() {
    let desk = Desk::new();
    let lacking = StandIn::new(|_, _| {
        Reply::new(404, r#"{"error":{"code":"VERSION_NOT_FOUND","message":"none"}}"#)
    });
    let squatting = StandIn::new(|_, _| {
        let mut describe = Packed::new(1).describe;
        describe["version"] = "9.9.9".into();
        Reply::json(&describe)
    });
    let find = |client: &Client, version| match wait(client.find("demo.echo", version)) {
        Ok(Place::Registry(remote, _)) => format!("in {}", remote.name()),
        Ok(Place::Catalog(catalog, _)) => format!("in {}", catalog.name()),
        Err(error) => error.to_string(),
    };
    let alone = client(&desk, &[("corp", &lacking)]);
    let both = client(&desk, &[("corp", &lacking), ("public", &squatting)]);
    for version in [None, Some("9.9.9")] {
        assert_eq!(find(&alone, version), "`corp` has it, but offers no such version");
        assert_eq!(find(&both, version), "it is found in `corp` and in `public`");
    }
    let examples = || {
        let folder = CatalogPlace::Folder(testkit::repo().join("examples"));
        Source::Catalog(Box::new(Catalog::new("examples", folder)))
    };
    let public = Remote::new("public", desk.fetcher(&squatting.url, None));
    let mixed = Client::new(vec![examples(), Source::Registry(Box::new(public))]);
    assert_eq!(find(&mixed, Some("9.9.9")), "it is found in `examples` and in `public`");
    let catalog = Client::new(vec![examples()]);
    assert_eq!(find(&catalog, None), "in examples");
    assert_eq!(find(&catalog, Some("9.9.9")), "`examples` has it, but offers no such version");
}
