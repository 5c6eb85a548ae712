//! Catalogs: at an address, in a file, in a folder, behind a well-known index.

use manifest::model::Trust;
use registry::catalog::{Catalog, Place};
use registry::client::{FetchError, Question};
use serde_json::{Value, json};

use crate::stand_in::{Desk, Reply, StandIn, wait};

fn example(path: &str) -> Vec<u8> {
    std::fs::read(testkit::repo().join("examples").join(path)).unwrap()
}

fn names(catalog: &Catalog, words: &str) -> Vec<String> {
    let question = Question { words: words.to_owned(), limit: 20, ..Question::default() };
    let page = wait(catalog.search(&question)).unwrap();
    page.results.into_iter().map(|found| found.name).collect()
}

fn check_untrusted(catalog: &Catalog) {
    let mut packages = wait(catalog.packages()).unwrap().peekable();
    assert!(packages.peek().is_some());
    for package in packages {
        assert_eq!(package.trust, Trust::Untrusted, "{}", package.id);
    }
}

#[test]
fn a_catalog_at_an_address_is_searched_and_kept() {
    let desk = Desk::new();
    let body = example("capability/catalog/manifest.base.json");
    let served = body.clone();
    let site = StandIn::new(move |_, _| Reply::new(200, served.clone()).with("etag", "\"1\""));
    let url = format!("{}/catalog.json", site.url);
    let catalog = Catalog::new("c", Place::Address(desk.fetcher(&url, None)));
    let first = wait(catalog.packages()).unwrap().next().unwrap().clone();
    check_untrusted(&catalog);
    assert!(names(&catalog, &first.id).contains(&first.id));
    assert!(wait(catalog.find(&first.id)).unwrap().is_some());
    assert!(wait(catalog.find("no.such")).unwrap().is_none());
    assert_eq!(site.paths(), ["/catalog.json"], "it is read once");
    let desk = desk.offline();
    let kept = Catalog::new("c", Place::Address(desk.fetcher(&url, None)));
    assert!(wait(kept.find(&first.id)).unwrap().is_some());
    let file = desk.folder.path().join("catalog.json");
    std::fs::write(&file, body).unwrap();
    let file = Catalog::new("f", Place::File(file));
    check_untrusted(&file);
    assert!(wait(file.find(&first.id)).unwrap().is_some());
}

#[test]
fn a_catalog_is_read_to_its_end_at_one_place() {
    let desk = Desk::new();
    let whole: Value =
        serde_json::from_slice(&example("capability/catalog/manifest.base.json")).unwrap();
    let first = whole["capabilities"][0].clone();
    let page = move |name: &str| {
        let mut entry = first.clone();
        entry["id"] = name.into();
        Reply::json(&json!({"version": "0.1", "capabilities": [entry]}))
    };
    let site = StandIn::new(move |asked, _| {
        if asked.header("if-none-match").is_some() {
            return Reply::new(304, "");
        }
        let tagged = |name: &str| page(name).with("etag", "\"1\"");
        match asked.path.as_str() {
            "/catalog.json" => tagged("demo.one").with("link", "<?after=one>; rel=\"next\""),
            "/catalog.json?after=one" => tagged("demo.two").with("link", "</two>; rel=next"),
            "/two" => tagged("demo.three"),
            "/astray.json" => tagged("demo.one").with("link", "<http://127.0.0.1:1/>; rel=next"),
            "/circle.json" => tagged("demo.one").with("link", "</circle.json>; rel=next"),
            other => panic!("{other}"),
        }
    });
    let read = |desk: &Desk, path: &str| {
        let fetcher = desk.fetcher(&format!("{}{path}", site.url), None);
        let catalog = Catalog::new("c", Place::Address(fetcher));
        let ids: Vec<_> = wait(catalog.packages()).unwrap().map(|one| one.id.clone()).collect();
        (ids, wait(catalog.warnings()).unwrap().join("\n"))
    };
    let all = ["demo.one", "demo.three", "demo.two"].map(str::to_owned).to_vec();
    assert_eq!(read(&desk, "/catalog.json"), (all.clone(), String::new()));
    assert_eq!(read(&desk, "/catalog.json"), (all.clone(), String::new()), "nothing has changed");
    let (ids, warnings) = read(&desk, "/astray.json");
    assert_eq!(ids, ["demo.one"]);
    assert!(warnings.contains("127.0.0.1:1"), "{warnings}");
    let (ids, warnings) = read(&desk, "/circle.json");
    assert_eq!(ids, ["demo.one"]);
    assert!(warnings.contains("it goes on"), "{warnings}");
    assert_eq!(read(&desk.offline(), "/catalog.json"), (all, String::new()), "it is kept whole");
}

#[test]
fn a_catalog_that_others_could_change_on_the_way_is_none() {
    let desk = Desk::new();
    for place in [Place::Address, Place::WellKnown] {
        let fetcher = desk.fetcher("http://192.0.2.1/catalog.json", None);
        let catalog = Catalog::new("c", place(fetcher));
        let error = wait(catalog.packages()).map(|_| ()).unwrap_err();
        assert!(matches!(error, FetchError::Catalog(_)), "{error}");
    }
}

#[test]
fn a_folder_is_a_catalog_of_what_is_in_it() {
    let folder = testkit::repo().join("examples");
    let catalog = Catalog::new("examples", Place::Folder(folder));
    check_untrusted(&catalog);
    assert!(
        names(&catalog, "echo").contains(&"demo.echo".to_owned()),
        "{:?}",
        names(&catalog, "echo")
    );
    let question = Question {
        words: String::new(),
        filters: vec![("dialect".to_owned(), "mcpkg".to_owned())],
        limit: 100,
        ..Question::default()
    };
    let page = wait(catalog.search(&question)).unwrap();
    assert!(page.total >= 3, "{page:?}");
    let mut in_beta = question.clone();
    in_beta.filters.push(("channel".to_owned(), "beta".to_owned()));
    assert_eq!(wait(catalog.search(&in_beta)).unwrap(), page, "a catalog has no channels");
    let nowhere = Catalog::new("n", Place::Folder("no/such/folder".into()));
    assert!(wait(nowhere.packages()).is_err());
}

fn index(entries: &[(&str, &str)]) -> Value {
    let entry = |(id, url): &(&str, &str)| json!({"id": id, "manifest_url": url, "manifest_version": "0.2", "status": "active"});
    json!({
        "version": "1", "generated_at": "2026-01-01T00:00:00Z",
        "publisher": {"kind": "https", "id": "acme", "display_name": "Acme"},
        "manifests": entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

#[test]
fn an_index_yields_its_manifests_and_one_bad_entry_is_a_warning() {
    let desk = Desk::new();
    let site = StandIn::new(|asked, _| match asked.path.as_str() {
        "/.well-known/install-manifests.json" => Reply::json(&index(&[
            ("word-count", "/word-count.json"),
            ("slug-maker", "/word-count.json?again"),
            ("gone", "/gone.json"),
            ("inside", "https://127.0.0.1:1/a.json"),
            ("metadata", "https://169.254.169.254/latest"),
            ("plain", "http://example.com/a.json"),
        ])),
        "/gone.json" => Reply::new(404, ""),
        _ => Reply::new(200, example("install-manifest/word-count/manifest.json")),
    });
    let catalog = Catalog::new("acme", Place::WellKnown(desk.fetcher(&site.url, None)));
    let ids: Vec<_> = wait(catalog.packages()).unwrap().map(|one| one.id.clone()).collect();
    assert_eq!(ids, ["word-count"]);
    check_untrusted(&catalog);
    let warnings = wait(catalog.warnings()).unwrap();
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    for id in ["slug-maker", "gone", "inside", "metadata", "plain"] {
        assert!(warnings.iter().any(|text| text.contains(id)), "{id}: {warnings:?}");
    }
}

#[test]
fn an_index_is_read_to_its_end_at_one_place() {
    let desk = Desk::new();
    let manifest = |id: &str| {
        let text = example("install-manifest/word-count/manifest.json");
        let mut manifest: Value = serde_json::from_slice(&text).unwrap();
        manifest["tool"]["id"] = id.into();
        Reply::json(&manifest)
    };
    let site = StandIn::new(move |asked, _| {
        let page = |id: &str, url: &str| Reply::json(&index(&[(id, url)]));
        match asked.path.as_str() {
            "/install-manifests.json" => {
                page("one", "/m/one").with("link", "<?after=one>; rel=\"next\"")
            }
            "/install-manifests.json?after=one" => {
                page("two", "/m/two").with("link", "</more>; rel=next")
            }
            // What was listed before is not replaced by a later page.
            "/more" => Reply::json(&index(&[("one", "/m/other"), ("three", "/m/three")])),
            "/astray/install-manifests.json" => {
                page("one", "/m/one").with("link", "<http://127.0.0.1:1/>; rel=next")
            }
            "/circle/install-manifests.json" => {
                page("one", "/m/one").with("link", "</circle/install-manifests.json>; rel=next")
            }
            "/broken/install-manifests.json" => {
                page("one", "/m/one").with("link", "</gone>; rel=next")
            }
            other => other.strip_prefix("/m/").map_or_else(|| Reply::new(404, ""), manifest),
        }
    });
    let read = |path: &str| {
        let fetcher = desk.fetcher(&format!("{}{path}/install-manifests.json", site.url), None);
        let catalog = Catalog::new("c", Place::WellKnown(fetcher));
        let packages = wait(catalog.packages())?;
        let ids: Vec<_> = packages.map(|one| one.id.clone()).collect();
        Ok::<_, FetchError>((ids, wait(catalog.warnings())?.join("\n")))
    };
    let (ids, warnings) = read("").unwrap();
    assert_eq!(ids, ["one", "three", "two"]);
    assert!(warnings.contains("`one` is there already"), "{warnings}");
    assert!(!site.paths().contains(&"/m/other".to_owned()));
    let (ids, warnings) = read("/astray").unwrap();
    assert_eq!(ids, ["one"]);
    assert!(warnings.contains("127.0.0.1:1"), "{warnings}");
    let (ids, warnings) = read("/circle").unwrap();
    assert_eq!(ids, ["one"]);
    assert!(warnings.contains("it goes on"), "{warnings}");
    assert!(read("/broken").is_err(), "half an index is not taken for a whole one");
}

#[test]
fn what_is_no_index_is_refused() {
    for body in ["{}", "[]", "{\"version\":\"1\",\"manifests\":{}}", "\u{0}"] {
        let desk = Desk::new();
        let site = StandIn::new(move |_, _| Reply::new(200, body));
        let catalog = Catalog::new("acme", Place::WellKnown(desk.fetcher(&site.url, None)));
        let error = wait(catalog.packages()).map(|_| ()).unwrap_err();
        assert!(matches!(error, FetchError::Catalog(_)), "{error}");
    }
}
