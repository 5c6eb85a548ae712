//! The keywords of JSON Schema 2020-12, as data.

/// The words a schema is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// JSON Schema 2020-12.
    Draft2020,
    /// The older dialect of OpenAPI 3.0, which has its own idea of `null` and of open bounds.
    OpenApi30,
}

impl Words {
    /// The kind of a keyword; none when these words do not have it.
    pub(crate) fn kind(self, name: &str) -> Option<Kind> {
        match self {
            Words::Draft2020 => kind(name),
            Words::OpenApi30 => match name {
                "type" => Some(Kind::Type),
                "nullable" | "exclusiveMinimum" | "exclusiveMaximum" => Some(Kind::Flag),
                "xml" => Some(Kind::Any),
                _ if OPENAPI_30.contains(&name) => kind(name),
                _ => None,
            },
        }
    }
}

/// What OpenAPI 3.0 has in common with the draft.
const OPENAPI_30: [&str; 31] = [
    "$ref",
    "title",
    "multipleOf",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "required",
    "enum",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "items",
    "properties",
    "additionalProperties",
    "description",
    "format",
    "default",
    "discriminator",
    "readOnly",
    "writeOnly",
    "externalDocs",
    "example",
    "deprecated",
];

/// What the value of a keyword must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
    /// One type, which is not `null`.
    Type,
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

macro_rules! keywords {
    ($($name:literal $kind:ident)*) => {
        /// Every keyword of the draft, those kept from older ones included.
        pub(super) const KEYWORDS: &[&str] = &[$($name,)*];

        /// The kind of a keyword; none when the draft does not have it.
        pub(super) fn kind(name: &str) -> Option<Kind> {
            Some(match name {
                $($name => Kind::$kind,)*
                _ => return None,
            })
        }
    };
}

keywords! {
    "type" Types
    "properties" SchemaMap
    "description" Text
    "required" Names
    "items" Schema
    "enum" List
    "const" Any
    "default" Any
    "additionalProperties" Schema
    "minimum" Number
    "maximum" Number
    "exclusiveMinimum" Number
    "exclusiveMaximum" Number
    "multipleOf" Positive
    "minLength" Count
    "maxLength" Count
    "pattern" Regex
    "format" Text
    "minItems" Count
    "maxItems" Count
    "uniqueItems" Flag
    "prefixItems" Schemas
    "contains" Schema
    "minContains" Count
    "maxContains" Count
    "minProperties" Count
    "maxProperties" Count
    "patternProperties" PatternMap
    "propertyNames" Schema
    "dependentRequired" NamesMap
    "dependentSchemas" SchemaMap
    "allOf" Schemas
    "anyOf" Schemas
    "oneOf" Schemas
    "not" Schema
    "if" Schema
    "then" Schema
    "else" Schema
    "unevaluatedItems" Schema
    "unevaluatedProperties" Schema
    "title" Text
    "examples" List
    "deprecated" Flag
    "readOnly" Flag
    "writeOnly" Flag
    "contentEncoding" Text
    "contentMediaType" Text
    "contentSchema" Schema
    "$schema" Text
    "$id" Id
    "$ref" Ref
    "$anchor" Anchor
    "$dynamicRef" Ref
    "$dynamicAnchor" Anchor
    "$defs" SchemaMap
    "$comment" Text
    "$vocabulary" Flags
    "definitions" SchemaMap
    "dependencies" Dependencies
    "$recursiveRef" Ref
    "$recursiveAnchor" Anchor
    // Annotations of OpenAPI that authors paste along; they judge nothing.
    "example" Any
    "nullable" Any
    "discriminator" Any
    "externalDocs" Any
}
