//! The objects of OpenAPI, field by field.

use super::parts::{
    Kind, Part, Row, alternatives, anything_named, bare, description, each, entries, flag, leaf,
    named, one, rows, summary,
};
use super::{METHODS, Version};
use crate::finding::Code;
use crate::shape::{Rule, Shape, list, list_within, may, must, text, word};

/// What objects of a kind may hold.
#[expect(clippy::too_many_lines, reason = "a table reads better in one piece")]
pub(super) fn part(kind: Kind, version: Version) -> Part {
    let is_later = version >= Version::V3_1;
    let later = |row: Row| is_later.then_some(row);
    let with = |mut fields: Vec<Row>, more: Vec<Option<Row>>| {
        fields.extend(more.into_iter().flatten());
        rows(fields)
    };
    match kind {
        Kind::Document => document(version),
        Kind::Information => with(
            vec![
                leaf(must("title", "The name of the interface.", text())),
                leaf(must("version", "The version of the interface, not of OpenAPI.", text())),
                description(),
                leaf(may("termsOfService", "Page with the terms.", text())),
                one("contact", "Whom to ask.", Kind::Contact),
                one("license", "Under which licence it is offered.", Kind::License),
            ],
            vec![later(summary())],
        ),
        Kind::Contact => rows(vec![
            leaf(may("name", "Name.", text())),
            leaf(may("url", "Page.", text())),
            leaf(may("email", "Address.", text())),
        ]),
        Kind::License => with(
            vec![
                leaf(must("name", "Name of the licence.", text())),
                leaf(may("url", "Its text.", text())),
            ],
            vec![later(leaf(may("identifier", "SPDX expression.", text())))],
        )
        .rule(Rule::Excludes("identifier", &["url"])),
        Kind::Server => rows(vec![
            leaf(must("url", "Where it is reached; may hold `{variables}`.", text())),
            description(),
            named("variables", "What the variables may be.", Kind::Variable),
        ]),
        Kind::Variable => rows(vec![
            leaf(must("default", "What it is unless chosen otherwise.", text())),
            leaf(may("enum", "What it may be.", list_within(usize::from(is_later), None, text()))),
            description(),
        ]),
        Kind::Paths | Kind::Callback => entries(Kind::PathItem),
        Kind::PathItem => path_item(),
        Kind::Operation => operation(version),
        Kind::ExternalDocs => rows(vec![leaf(must("url", "The page.", text())), description()]),
        Kind::Parameter => parameter(),
        Kind::RequestBody => rows(vec![
            named("content", "The body, by media type.", Kind::MediaType).required(),
            description(),
            flag("required", "Whether there must be a body."),
        ]),
        Kind::MediaType => rows(vec![
            one("schema", "What the content may be.", Kind::Schema),
            leaf(may("example", "An example.", Shape::Anything)),
            named("examples", "Examples, by name.", Kind::Example),
            named("encoding", "How each property is written.", Kind::Encoding),
        ])
        .rule(Rule::Excludes("example", &["examples"])),
        Kind::Encoding => rows(vec![
            leaf(may("contentType", "Media type of the property.", text())),
            named("headers", "Headers of the property.", Kind::Header),
            leaf(may("style", "How it is written.", word(&STYLES))),
            flag("explode", "Whether lists are written apart."),
            flag("allowReserved", "Whether reserved characters stay as they are."),
        ]),
        Kind::Responses => entries(Kind::Response),
        Kind::Response => rows(vec![
            leaf(must("description", "When this answer is given.", text())),
            named("headers", "Its headers.", Kind::Header),
            named("content", "Its body, by media type.", Kind::MediaType),
            named("links", "What can be called next.", Kind::Link),
        ]),
        Kind::Example => rows(vec![
            summary(),
            description(),
            leaf(may("value", "The example.", Shape::Anything)),
            leaf(may("externalValue", "Where the example is.", text())),
        ])
        .rule(Rule::Excludes("value", &["externalValue"])),
        Kind::Link => rows(vec![
            leaf(may("operationRef", "The operation, by reference.", text())),
            leaf(may("operationId", "The operation, by name.", text())),
            leaf(may("parameters", "What it is called with.", anything_named())),
            leaf(may("requestBody", "Its body.", Shape::Anything)),
            description(),
            one("server", "Where it is called.", Kind::Server),
        ])
        .rule(Rule::Excludes("operationRef", &["operationId"])),
        Kind::Header => {
            let style = leaf(may("style", "How it is written.", word(&["simple"])));
            rows(described(style)).rule(EITHER).rule(Rule::Excludes("example", &["examples"]))
        }
        Kind::Tag => rows(vec![
            leaf(must("name", "Name of the tag.", text())),
            description(),
            one("externalDocs", "More about it.", Kind::ExternalDocs),
        ]),
        Kind::Components => with(
            vec![
                named("schemas", "Schemas.", Kind::Schema),
                named("responses", "Responses.", Kind::Response),
                named("parameters", "Parameters.", Kind::Parameter),
                named("examples", "Examples.", Kind::Example),
                named("requestBodies", "Request bodies.", Kind::RequestBody),
                named("headers", "Headers.", Kind::Header),
                named("securitySchemes", "Ways to authenticate.", Kind::SecurityScheme),
                named("links", "Links.", Kind::Link),
                named("callbacks", "Callbacks.", Kind::Callback),
            ],
            vec![later(named("pathItems", "Path items.", Kind::PathItem))],
        ),
        Kind::SecurityScheme => security_scheme(version),
        Kind::Flows => rows(vec![
            one("implicit", "The implicit flow.", Kind::ImplicitFlow),
            one("password", "The password flow.", Kind::PasswordFlow),
            one("clientCredentials", "The client credentials flow.", Kind::ClientFlow),
            one("authorizationCode", "The authorisation code flow.", Kind::CodeFlow),
        ]),
        Kind::ImplicitFlow => flow(&["authorizationUrl"]),
        Kind::PasswordFlow | Kind::ClientFlow => flow(&["tokenUrl"]),
        Kind::CodeFlow => flow(&["authorizationUrl", "tokenUrl"]),
        Kind::Requirement => bare(Shape::Map(Box::new(list(text())))),
        Kind::Reference => with(
            vec![leaf(must("$ref", "What is meant.", text()))],
            vec![later(summary()), later(description())],
        ),
        Kind::Schema => bare(Shape::Anything),
    }
}

/// Every way to write a list or an object into a string.
const STYLES: [&str; 7] =
    ["matrix", "label", "form", "simple", "spaceDelimited", "pipeDelimited", "deepObject"];

const EITHER: Rule = Rule::ExactlyOne(&["schema", "content"]);

fn document(version: Version) -> Part {
    let paths = one("paths", "What can be called.", Kind::Paths);
    let mut fields = vec![
        leaf(must("openapi", "The version of OpenAPI: `3.0.3` or `3.1.0`.", text())),
        one("info", "What the interface is.", Kind::Information).required(),
        each("servers", "Where it is reached.", Kind::Server),
        one("components", "Parts that others refer to.", Kind::Components),
        each("security", "How calls are authenticated.", Kind::Requirement),
        each("tags", "Words to group operations by.", Kind::Tag),
        one("externalDocs", "More about it.", Kind::ExternalDocs),
    ];
    if version == Version::V3_0 {
        fields.push(paths.required());
        return rows(fields);
    }
    fields.extend([
        paths,
        named("webhooks", "What it calls itself.", Kind::PathItem),
        leaf(may("jsonSchemaDialect", "The dialect of its schemas.", text())),
    ]);
    let nothing = "neither `paths`, `components` nor `webhooks` says what the interface is";
    let any = &["paths", "components", "webhooks"];
    rows(fields).rule(Rule::AnyOf(any, Code::MissingField, nothing))
}

fn path_item() -> Part {
    let mut fields = vec![
        leaf(may("$ref", "The path item that is meant.", text())),
        summary(),
        description(),
        each("servers", "Where it is reached.", Kind::Server),
        each("parameters", "Parameters of every operation.", Kind::Parameter),
    ];
    fields.extend(METHODS.map(|method| one(method, "An operation.", Kind::Operation)));
    rows(fields)
}

fn operation(version: Version) -> Part {
    let responses = one("responses", "What it answers.", Kind::Responses);
    rows(vec![
        leaf(may("tags", "Words to group it by.", list(text()))),
        summary(),
        description(),
        one("externalDocs", "More about it.", Kind::ExternalDocs),
        leaf(may("operationId", "Its name, unique in the document.", text())),
        each("parameters", "What goes into path, query, headers and cookies.", Kind::Parameter),
        one("requestBody", "What is sent.", Kind::RequestBody),
        if version == Version::V3_0 { responses.required() } else { responses },
        named("callbacks", "What it calls back.", Kind::Callback),
        flag("deprecated", "Whether it should no longer be used."),
        each("security", "How calls are authenticated.", Kind::Requirement),
        each("servers", "Where it is reached.", Kind::Server),
    ])
}

/// What parameters and headers have in common.
fn described(style: Row) -> Vec<Row> {
    vec![
        description(),
        flag("required", "Whether it must be given."),
        flag("deprecated", "Whether it should no longer be used."),
        flag("allowEmptyValue", "Whether it may be empty."),
        style,
        flag("explode", "Whether lists are written apart."),
        flag("allowReserved", "Whether reserved characters stay as they are."),
        one("schema", "What it may be.", Kind::Schema),
        named("content", "What it may be, when it is a document of a media type.", Kind::MediaType),
        leaf(may("example", "An example.", Shape::Anything)),
        named("examples", "Examples, by name.", Kind::Example),
    ]
}

fn parameter() -> Part {
    let within = |styles: &[&'static str]| {
        let mut fields = described(leaf(may("style", "How it is written.", word(styles))));
        fields.insert(0, leaf(must("name", "Its name.", text())));
        fields
    };
    let places = vec![
        ("path", within(&["matrix", "label", "simple"])),
        ("query", within(&["form", "spaceDelimited", "pipeDelimited", "deepObject"])),
        ("header", within(&["simple"])),
        ("cookie", within(&["form"])),
    ];
    alternatives("in", places, || vec![EITHER, Rule::Excludes("example", &["examples"])])
}

fn security_scheme(version: Version) -> Part {
    let with = |mut fields: Vec<Row>| {
        fields.push(description());
        fields
    };
    let mut kinds = vec![
        (
            "apiKey",
            with(vec![
                leaf(must("name", "Name of the header, parameter or cookie.", text())),
                leaf(must("in", "Where the key goes.", word(&["query", "header", "cookie"]))),
            ]),
        ),
        (
            "http",
            with(vec![
                leaf(must("scheme", "Scheme of the Authorization header.", text())),
                leaf(may("bearerFormat", "What a token looks like.", text())),
            ]),
        ),
        ("oauth2", with(vec![one("flows", "The flows it offers.", Kind::Flows).required()])),
        (
            "openIdConnect",
            with(vec![leaf(must("openIdConnectUrl", "Where it is described.", text()))]),
        ),
    ];
    if version >= Version::V3_1 {
        kinds.push(("mutualTLS", with(Vec::new())));
    }
    alternatives("type", kinds, Vec::new)
}

fn flow(addresses: &[&'static str]) -> Part {
    let address = |name: &&'static str| leaf(must(name, "An address of the flow.", text()));
    let mut fields: Vec<_> = addresses.iter().map(address).collect();
    fields.push(leaf(may("refreshUrl", "Where tokens are renewed.", text())));
    let scopes = Shape::Map(Box::new(text()));
    fields.push(leaf(must("scopes", "The scopes there are, and what each is for.", scopes)));
    rows(fields)
}
