use manifest::model::{Entry, Invocation, SideEffects};
use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pet Store", "version": "1.0.27", "description": "Pets.\nAnd more."},
        "servers": [{"url": "https://{region}.pets.example/v1", "variables": {"region": {"default": "eu"}}}],
        "security": [{"key": []}],
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets", "tags": ["pets"], "summary": "Lists pets.",
                    "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
                    "responses": {"200": {"description": "ok", "content": {"application/json": {}}}}},
                "post": {"operationId": "createPet", "tags": ["pets"],
                    "parameters": [{"name": "dry-run", "in": "query", "required": true, "schema": {"type": "boolean"}}, {"name": "x", "in": "query"}],
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                    "responses": {"201": {"description": "made"}}},
            },
            "/pets/{pet-id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {"security": [{"bearer": []}], "responses": {}, "parameters": [{"name": "X-Trace", "in": "header", "schema": {"type": "string"}}]},
                "delete": {"operationId": "remove", "responses": {"204": {"description": "gone"}}},
            },
            "/upload": {"post": {"operationId": "upload", "requestBody": {"required": true, "content": {"multipart/form-data": {}}}, "responses": {}}},
        },
        "components": {
            "parameters": {"Id": {"name": "pet-id", "in": "path", "required": true, "schema": {"type": "string"}}},
            "schemas": {"Pet": {"allOf": [
                {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "id": {"type": "integer", "readOnly": true}}},
                {"properties": {"tag": {"type": "string", "nullable": true}}}]}},
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "k"},
            },
        },
    })
}

fn made(document: &Value) -> Draft {
    draft(document, &Wanted::default()).unwrap()
}

#[test]
fn operations_become_actions() {
    let made = made(&document());
    assert_eq!(made.package.canonical_id(), "install-manifest:pet-store");
    assert!(made.package.semver().starts_with("1.0.27-import.x"));
    assert_eq!(
        made.package.implementations[0].entry,
        Entry::Http { base: "https://eu.pets.example/v1".to_owned(), method: None }
    );
    let told: Vec<_> = made
        .package
        .actions
        .iter()
        .map(|action| {
            let Invocation::Http { method, path, headers } = &action.invocation else { panic!() };
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            (
                action.name.as_str(),
                format!("{method} {path}"),
                headers.join(", "),
                action.side_effects,
            )
        })
        .collect();
    let (read, write, destructive) =
        (Some(SideEffects::Read), Some(SideEffects::Write), Some(SideEffects::Destructive));
    assert_eq!(
        told,
        [
            ("list_pets", "GET /pets".to_owned(), "X-Key: ${env.KEY}".to_owned(), read),
            (
                "create_pet",
                "POST /pets?dry-run=${input.dry_run}".to_owned(),
                "X-Key: ${env.KEY}".to_owned(),
                write
            ),
            (
                "get_pets_pet_id",
                "GET /pets/${input.pet_id}".to_owned(),
                "X-Trace: ${env.HEADER_X_TRACE}, Authorization: Bearer ${env.BEARER_TOKEN}"
                    .to_owned(),
                read
            ),
            (
                "remove",
                "DELETE /pets/${input.pet_id}".to_owned(),
                "X-Key: ${env.KEY}".to_owned(),
                destructive
            ),
        ]
    );
    let input = made.package.actions[1].input.as_ref().unwrap().value();
    assert_eq!(
        input,
        json!({
            "type": "object", "required": ["dry_run", "name"], "additionalProperties": false,
            "properties": {"dry_run": {"type": "boolean"}, "name": {"type": "string"}, "tag": {"type": ["string", "null"]}},
        })
    );
    let inputs: Vec<_> = made
        .package
        .inputs
        .iter()
        .map(|one| (one.name.as_str(), one.secret, one.required))
        .collect();
    assert_eq!(
        inputs,
        [("KEY", true, true), ("HEADER_X_TRACE", false, false), ("BEARER_TOKEN", true, true)]
    );
    assert_eq!(made.package.smoke.as_ref().unwrap().value()["action"], "list_pets");
    for words in ["left out: POST /upload: its body is no JSON", "POST /pets: left out: `x`"] {
        assert!(
            made.warnings.iter().any(|one| one.starts_with(words)),
            "{words}: {:?}",
            made.warnings
        );
    }
}

#[test]
fn what_is_meant_can_be_named() {
    let names = |wanted: Wanted| -> Result<Vec<String>, String> {
        Ok(draft(&document(), &wanted)?.package.actions.into_iter().map(|one| one.name).collect())
    };
    let list = |text: &str| vec![text.to_owned()];
    assert_eq!(
        names(Wanted { tags: list("pets"), ..Wanted::default() }).unwrap(),
        ["list_pets", "create_pet"]
    );
    assert_eq!(
        names(Wanted { paths: list("/pets"), methods: list("GET"), ..Wanted::default() }).unwrap(),
        ["list_pets"]
    );
    assert_eq!(
        names(Wanted { operations: list("listPets"), ..Wanted::default() }).unwrap(),
        ["list_pets"]
    );
    assert!(
        names(Wanted { operations: list("nope"), ..Wanted::default() })
            .unwrap_err()
            .contains("`nope`")
    );
    assert!(
        names(Wanted { tags: list("nope"), ..Wanted::default() })
            .unwrap_err()
            .contains("none of its 5")
    );
    assert!(
        names(Wanted { operations: list("remove"), ..Wanted::default() })
            .unwrap_err()
            .contains("--smoke")
    );
    let tried = Wanted {
        paths: list("/pets/*"),
        methods: list("get"),
        smoke: Some("get_pets_pet_id".to_owned()),
        smoke_input: Some(json!({"pet_id": "1"})),
        ..Wanted::default()
    };
    let made = draft(&document(), &tried).unwrap();
    assert_eq!(made.package.smoke.unwrap().value()["arguments"], json!({"pet_id": "1"}));
}

#[test]
fn examples_of_the_document_are_what_it_is_tried_with() {
    let mut document = document();
    document["paths"] = json!({"/p/{id}": {"get": {"security": [], "responses": {}, "parameters": [{"name": "id", "in": "path", "required": true, "example": "a1", "schema": {"type": "string"}}]}}});
    let made = made(&document);
    assert_eq!(made.package.smoke.unwrap().value()["arguments"], json!({"id": "a1"}));
    assert!(made.package.inputs.is_empty());
    assert_eq!(made.package.kill_switch.unwrap().value(), json!({"kind": "none"}));
}

#[test]
fn too_many_operations_are_refused_until_some_are_named() {
    let mut document = document();
    for number in 0..100 {
        document["paths"][format!("/n{number}")] = json!({"get": {"responses": {}}});
    }
    let refused = draft(&document, &Wanted::default()).unwrap_err();
    assert!(refused.contains("105 operations") && refused.contains("--include-tag"), "{refused}");
}

#[test]
fn keys_in_addresses_and_servers_that_are_none_are_refused() {
    let mut keyed = document();
    keyed["security"] = json!([{"query": []}]);
    keyed["paths"] = json!({"/a": {"get": {"responses": {}}}});
    assert!(draft(&keyed, &Wanted::default()).unwrap_err().contains("would stand in addresses"));
    let mut relative = document();
    relative["servers"] = json!([{"url": "/v1"}]);
    assert!(draft(&relative, &Wanted::default()).unwrap_err().contains("--base-url"));
    let typed = Wanted { base_url: Some("http://127.0.0.1:9/api".to_owned()), ..Wanted::default() };
    assert_eq!(draft(&relative, &typed).unwrap().private_host.as_deref(), Some("127.0.0.1:9"));
    let mut private = document();
    private["servers"] = json!([{"url": "http://169.254.169.254/latest"}]);
    assert_eq!(draft(&private, &Wanted::default()).unwrap().private_host, None, "nobody typed it");
    for bad in ["ftp://a.example", "https://ann:pw@a.example"] {
        private["servers"] = json!([{"url": bad}]);
        assert!(draft(&private, &Wanted::default()).is_err(), "{bad}");
    }
    assert!(
        draft(&json!({"swagger": "2.0", "info": {}, "paths": {}}), &Wanted::default())
            .unwrap_err()
            .contains("3.1")
    );
}

#[test]
fn names_are_portable_and_unique() {
    let mut document = document();
    document["security"] = json!([]);
    document["paths"] = json!({
        "/a": {"get": {"operationId": "get-User.Name", "responses": {}}, "post": {"operationId": "get_user_name", "responses": {}}},
        "/b": {"get": {"operationId": "123", "responses": {}}, "post": {"operationId": "日本", "responses": {}}},
    });
    let names: Vec<_> = made(&document).package.actions.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["get_user_name", "get_user_name_2", "do_123", "do"]);
}

#[test]
fn both_notations_are_the_same_document() {
    let text = "openapi: 3.1.0\ninfo: {title: T, version: 2}\nservers: [{url: 'https://a.example'}]\npaths:\n  /x:\n    get: {operationId: x, responses: {}}\n";
    let one = draft(&read(text.as_bytes()).unwrap(), &Wanted::default()).unwrap();
    let json = r#"{"openapi": "3.1.0", "info": {"title": "T", "version": 2}, "servers": [{"url": "https://a.example"}], "paths": {"/x": {"get": {"operationId": "x", "responses": {}}}}}"#;
    let other = draft(&read(json.as_bytes()).unwrap(), &Wanted::default()).unwrap();
    assert_eq!(one.files, other.files);
    assert_eq!(one.package.id, "api-t");
}
