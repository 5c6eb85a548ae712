//! The keywords of JSON Schema 2020-12, as data.

/// What the value of a keyword must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A schema.
    Schema,
    /// A list of schemas, not empty.
    Schemas,
    /// An object of schemas.
    SchemaMap,
    /// An object of schemas under patterns.
    PatternMap,
    /// An object whose values are schemas or lists of names (the old `dependencies`).
    Dependencies,
    /// A whole number, not negative.
    Count,
    /// A number.
    Number,
    /// A number above zero.
    Positive,
    /// A flag.
    Flag,
    /// A string.
    Text,
    /// A list of different strings.
    Names,
    /// An object of lists of different strings.
    NamesMap,
    /// A type, or a list of different types.
    Types,
    /// A list.
    List,
    /// Anything.
    Any,
    /// A regular expression.
    Regex,
    /// A reference to a schema.
    Ref,
    /// The address of the schema; it has no fragment.
    Id,
    /// A name by which references find the schema.
    Anchor,
    /// An object of flags.
    Flags,
}

/// The types a value can have.
pub(super) const TYPES: [&str; 7] =
    ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Every keyword of the draft, those kept from older ones included.
pub(super) const KEYWORDS: [(&str, Kind); 65] = [
    ("type", Kind::Types),
    ("properties", Kind::SchemaMap),
    ("description", Kind::Text),
    ("required", Kind::Names),
    ("items", Kind::Schema),
    ("enum", Kind::List),
    ("const", Kind::Any),
    ("default", Kind::Any),
    ("additionalProperties", Kind::Schema),
    ("minimum", Kind::Number),
    ("maximum", Kind::Number),
    ("exclusiveMinimum", Kind::Number),
    ("exclusiveMaximum", Kind::Number),
    ("multipleOf", Kind::Positive),
    ("minLength", Kind::Count),
    ("maxLength", Kind::Count),
    ("pattern", Kind::Regex),
    ("format", Kind::Text),
    ("minItems", Kind::Count),
    ("maxItems", Kind::Count),
    ("uniqueItems", Kind::Flag),
    ("prefixItems", Kind::Schemas),
    ("contains", Kind::Schema),
    ("minContains", Kind::Count),
    ("maxContains", Kind::Count),
    ("minProperties", Kind::Count),
    ("maxProperties", Kind::Count),
    ("patternProperties", Kind::PatternMap),
    ("propertyNames", Kind::Schema),
    ("dependentRequired", Kind::NamesMap),
    ("dependentSchemas", Kind::SchemaMap),
    ("allOf", Kind::Schemas),
    ("anyOf", Kind::Schemas),
    ("oneOf", Kind::Schemas),
    ("not", Kind::Schema),
    ("if", Kind::Schema),
    ("then", Kind::Schema),
    ("else", Kind::Schema),
    ("unevaluatedItems", Kind::Schema),
    ("unevaluatedProperties", Kind::Schema),
    ("title", Kind::Text),
    ("examples", Kind::List),
    ("deprecated", Kind::Flag),
    ("readOnly", Kind::Flag),
    ("writeOnly", Kind::Flag),
    ("contentEncoding", Kind::Text),
    ("contentMediaType", Kind::Text),
    ("contentSchema", Kind::Schema),
    ("$schema", Kind::Text),
    ("$id", Kind::Id),
    ("$ref", Kind::Ref),
    ("$anchor", Kind::Anchor),
    ("$dynamicRef", Kind::Ref),
    ("$dynamicAnchor", Kind::Anchor),
    ("$defs", Kind::SchemaMap),
    ("$comment", Kind::Text),
    ("$vocabulary", Kind::Flags),
    ("definitions", Kind::SchemaMap),
    ("dependencies", Kind::Dependencies),
    ("$recursiveRef", Kind::Ref),
    ("$recursiveAnchor", Kind::Anchor),
    // Annotations of OpenAPI that authors paste along; they judge nothing.
    ("example", Kind::Any),
    ("nullable", Kind::Any),
    ("discriminator", Kind::Any),
    ("externalDocs", Kind::Any),
];

/// The kind of a keyword; none when the draft does not have it.
pub(super) fn kind(name: &str) -> Option<Kind> {
    KEYWORDS.iter().find(|(keyword, _)| *keyword == name).map(|(_, kind)| *kind)
}
