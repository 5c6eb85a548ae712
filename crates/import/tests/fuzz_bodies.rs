//! The bodies of the fuzz targets, over damaged settings and documents.

use testkit::bytes::damaged;
use testkit::draws::holds;
use testkit::fuzz;

const DESKTOP: &str = r#"{ // mine
  "mcpServers": {
    "weather": {"command": "node", "args": ["/srv/w.js", "${PORT:-80}"], "env": {"API_KEY": "a-long-secret-value", "MODE": "fast"}},
    "docs": {"type": "http", "url": "https://a.example/mcp?x=${X}", "headers": {"Authorization": "Bearer a-long-secret-value"}},
    "npm": {"command": "npx", "args": ["-y", "@scope/pkg@1.2.3", "--x"]},
    "pip": {"command": "uvx", "args": ["--from", "X==1.0", "y"], "env": {"TOKEN": "${input:key}"}},
  }, /* and */ "inputs": [{"id": "key", "password": true}],
}"#;

const CODEX: &str = "model = \"x\" # mine\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\"]\n[mcp_servers.files.env]\nAPI_KEY = \"a-long-secret-value\"\n\n[mcp_servers.docs]\nurl = \"https://a.example\"\nbearer_token_env_var = \"T\"\n";

const SHOP: &str = "openapi: 3.0.3\ninfo: {title: Shop, version: 1.0.0}\nservers: [{url: 'https://a.example/{v}', variables: {v: {default: v1}}}]\nsecurity: [{key: []}]\npaths:\n  /pets/{id}:\n    parameters: [{$ref: '#/components/parameters/Id'}]\n    get: {operationId: getPet, responses: {'200': {description: ok}}}\n    put:\n      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}\n      responses: {}\n  /pets: {get: {responses: {}}}\ncomponents:\n  parameters: {Id: {name: id, in: path, required: true, schema: {type: string}}}\n  schemas: {Pet: {type: object, properties: {name: {type: string, nullable: true, pattern: '^a+$'}, friend: {$ref: '#/components/schemas/Pet'}}}}\n  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}\n";

#[test]
fn damaged_settings_are_read_without_harm() {
    for seed in [DESKTOP, CODEX] {
        fuzz::import_config(seed.as_bytes()).unwrap();
        holds(1500, &damaged(seed.as_bytes().to_vec()), |bytes| fuzz::import_config(&bytes));
    }
}

#[test]
fn damaged_documents_are_read_without_harm() {
    let json = import::openapi::read(SHOP.as_bytes()).unwrap().to_string();
    for seed in [SHOP, &json] {
        fuzz::import_openapi(seed.as_bytes()).unwrap();
        holds(1500, &damaged(seed.as_bytes().to_vec()), |bytes| fuzz::import_openapi(&bytes));
    }
}
