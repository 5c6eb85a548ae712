//! What is wrong with a document, where, and what would mend it.

use crate::json::{Pointer, Span};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is not valid.
    Error,
    /// The document is valid, and its author would want to know.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing, in a word that never changes.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Where in the document.
    pub pointer: Pointer,
    /// Where in the text.
    pub span: Span,
    /// What is wrong, naming the thing.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}

impl Finding {
    /// A finding of the severity its code has by nature.
    pub fn new(code: Code, pointer: Pointer, span: Span, message: impl Into<String>) -> Self {
        let severity = code.severity();
        Self { code, severity, pointer, span, message: message.into(), help: None }
    }

    /// The same, with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// How many findings of each severity are gathered from one document.
const MAX_GATHERED: usize = 5_000;

/// Findings gathered so far; bounded, because a stranger can write a million faults in a few
/// megabytes. The verdict is never lost: errors and warnings are counted apart.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Adds a finding, unless there are enough of its severity.
    pub(crate) fn push(&mut self, finding: Finding) {
        let count = match finding.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_GATHERED {
            self.list.push(finding);
        }
    }

    /// Counts a finding that there is no room for; whether there was none.
    pub(crate) fn is_beyond(&mut self, severity: Severity) -> bool {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        let is_beyond = *count >= MAX_GATHERED;
        *count += usize::from(is_beyond);
        is_beyond
    }

    /// Whether there are so many errors that looking further tells nothing new.
    pub(crate) fn are_enough(&self) -> bool {
        self.errors > MAX_GATHERED
    }

    /// The findings, and how many more there were.
    pub(crate) fn into_list(self) -> (Vec<Finding>, usize) {
        let more = (self.errors + self.warnings) - self.list.len();
        (self.list, more)
    }
}

impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        for finding in findings {
            self.push(finding);
        }
    }
}

/// What a code speaks of: its place in the order in which a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The bytes: is it JSON, within limits, of a dialect we know?
    Bytes,
    /// The shape: everything the dialect's published JSON Schema can say.
    Structure,
    /// The JSON Schemas inside it, and the examples they judge.
    Schemas,
    /// What only reading with understanding shows.
    Meaning,
}

macro_rules! codes {
    ($($stage:ident { $($variant:ident $name:literal $severity:ident $about:literal)* })*) => {
        /// The kinds of finding. The names are stable: scripts may rely on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $about] $variant,)*)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$($(Code::$variant,)*)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $($(Code::$variant => $name,)*)* }
            }

            /// What the code means, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $($(Code::$variant => $about,)*)* }
            }

            /// The severity it has unless a dialect says otherwise.
            pub fn severity(self) -> Severity {
                match self { $($(Code::$variant => Severity::$severity,)*)* }
            }

            /// What it speaks of.
            pub fn stage(self) -> Stage {
                match self { $($(Code::$variant => Stage::$stage,)*)* }
            }
        }
    };
}

codes! {
    Bytes {
        NotUtf8 "not-utf8" Error "The file is not UTF-8 text."
        ByteOrderMark "byte-order-mark" Error "The file begins with a byte order mark, which JSON does not allow."
        JsonSyntax "json-syntax" Error "The text is not JSON."
        YamlSyntax "yaml-syntax" Error "The head of a SKILL.md is not the part of YAML that is read there."
        TrailingData "trailing-data" Error "Something follows the end of the document."
        DuplicateKey "duplicate-key" Error "A key appears twice in one object, so two readers may see two documents."
        TooDeep "too-deep" Error "Values are nested more than 128 deep."
        TooLarge "too-large" Error "The file is over the size limit of its kind, or has too many values."
        NumberOutOfRange "number-out-of-range" Error "A number is larger than a double can hold."
        LoneSurrogate "lone-surrogate" Error "A string holds half of a surrogate pair, which is no character."
        MoreFindings "more-findings" Error "There are more findings than are told at once."
        UnknownDialect "unknown-dialect" Error "The document fits none of the dialects."
        UnknownVersion "unknown-version" Error "The document names a version of its format that does not exist, or is not read here."
    }
    Structure {
        MissingField "missing-field" Error "A required field is absent."
        UnknownField "unknown-field" Error "A key that the dialect does not have; a warning where the dialect ignores such keys."
        WrongType "wrong-type" Error "A value has the wrong JSON type."
        BadValue "bad-value" Error "A value is not one of those allowed."
        BadPattern "bad-pattern" Error "A string does not follow its grammar."
        TooShort "too-short" Error "A string is too short."
        TooLong "too-long" Error "A string is too long."
        TooFew "too-few" Error "A list has too few elements."
        TooMany "too-many" Error "A list has too many elements."
        OutOfRange "out-of-range" Error "A number is too small or too large for its field."
        ConflictingFields "conflicting-fields" Error "Fields that exclude each other are both present."
        NoWayToRun "no-way-to-run" Error "An mcpkg manifest has neither endpoint, implementations nor chain."
        MissingActions "missing-actions" Error "A runtime kind without discovery needs a catalog of actions."
        ToolNameRequired "tool-name-required" Error "A tool of a tools.json has no name."
        CommandEmpty "command-empty" Error "A tool of a tools.json has no program."
        SecretValue "secret-value" Error "A secret is something other than a name and a reference."
        UnsupportedRuntime "unsupported-runtime" Error "A Jumith tool names a runtime other than node."
        BadEncoding "bad-encoding" Error "A bundled file has an encoding other than utf8 or base64."
        BadUrl "bad-url" Error "A URL is not http or https, or is no URL."
        BadVersion "bad-version" Error "A version is not exact semver."
        BadDigest "bad-digest" Error "A digest is not 64 hexadecimal digits."
        BadQuantity "bad-quantity" Error "A limit of cpu or memory is no quantity."
    }
    Schemas {
        BadSchema "bad-schema" Error "A schema inside the document is not valid JSON Schema 2020-12, or not what OpenAPI 3.0 makes of it."
        OtherDraft "other-draft" Warning "A schema names another draft; it is read as 2020-12."
        RemoteRef "remote-ref" Error "A reference leads outside the document; nothing is ever fetched."
        UnresolvedRef "unresolved-ref" Error "A reference leads to a part that is not there, or is something else."
        SchemaTooLarge "schema-too-large" Error "A schema is over 256 KiB or has more than 2,000 subschemas."
        SchemaTooCostly "schema-too-costly" Error "Checking a value against the schema could take practically forever."
        BadRegex "bad-regex" Error "A pattern is no ECMAScript regular expression, or one that cannot be run safely."
        ExampleMismatch "example-mismatch" Warning "An example does not satisfy its schema."
        DefaultMismatch "default-mismatch" Warning "A default does not satisfy its own schema or pattern."
        ArgumentsMismatch "arguments-mismatch" Error "The smoke test's arguments do not satisfy the action's input schema."
        InputMismatch "input-mismatch" Error "A test's input does not satisfy the input schema."
    }
    Meaning {
        BadFormat "bad-format" Warning "A string is not the URI or e-mail address it should be; formats are advisory."
        BadLicense "bad-license" Warning "A licence is no SPDX expression."
        SecretInArgv "secret-in-argv" Error "A secret would be put on a command line, where other processes can read it."
        SecretDefault "secret-default" Error "A secret has a default value."
        EntrypointAndEndpoint "entrypoint-and-endpoint" Error "A runtime has both an entrypoint and an endpoint URL."
        MissingEntrypoint "missing-entrypoint" Error "The runtime kind needs an entrypoint."
        MissingEndpoint "missing-endpoint" Error "The runtime kind or an http action needs an endpoint URL."
        InvocationMismatch "invocation-mismatch" Error "An action is called in a way its runtime kind cannot serve."
        DuplicateAction "duplicate-action" Error "Two actions have the same name."
        DuplicateEnv "duplicate-env" Error "Two environment variables have the same name."
        DuplicateScope "duplicate-scope" Warning "Two scopes name the same resource."
        UnresolvedAction "unresolved-action" Error "The smoke test names an action that does not exist."
        UnsafeSmoke "unsafe-smoke" Error "The smoke test would run an action that changes something."
        UndeclaredScope "undeclared-scope" Warning "An action uses a scope that is not declared."
        UndeclaredInput "undeclared-input" Error "A template uses an input or setting that is not declared."
        UndeclaredEnv "undeclared-env" Error "A template uses an environment variable that is not declared."
        BadTemplate "bad-template" Error "A template holds a `${…}` that means nothing."
        BadPointer "bad-pointer" Error "A key that must be a JSON pointer is none."
        UnpinnedImage "unpinned-image" Warning "A container image is not pinned by digest."
        UnpinnedRef "unpinned-ref" Warning "A git reference is no commit SHA."
        BadSource "bad-source" Error "A package name or URL could make the package client do something else."
        MissingDataBoundary "missing-data-boundary" Error "A scope touches personal data, so a data boundary must be declared."
        UnearnedKillSwitchNone "unearned-kill-switch-none" Error "Kill switch `none` is only for tools without environment and without kept data."
        DuplicateTool "duplicate-tool" Error "Two tools of one document have the same name."
        EnvNameInvalid "env-name-invalid" Error "An envPassthrough entry is no variable name."
        EnvNameEmpty "env-name-empty" Error "An envPassthrough entry is blank."
        BadTimeout "bad-timeout" Error "A whole time limit is written with a point or an exponent, which the original tool refuses."
        CommandNotInBin "command-not-in-bin" Error "A relative program of a tools.json does not lie in ./tools/bin/."
        CommandEscapesBin "command-escapes-bin" Error "A program of a tools.json leaves ./tools/bin/ once its path is cleaned."
        CommandDotdot "command-dotdot" Error "A program of a tools.json begins with `..`."
        DangerousEnv "dangerous-env" Warning "A passed variable can make any program run other code; policy refuses it unless the owner names it."
        FolderName "folder-name" Error "A skill is not called as the folder that it is in."
        ShortId "short-id" Warning "A tool id has fewer than three segments."
        PublisherMismatch "publisher-mismatch" Error "The manifest and `meta/publisher.json` name different publishers."
        TwoCompanions "two-companions" Error "There is a `haft.json` and a `meta/haft.json`, so it is unclear which one counts."
        MissingFile "missing-file" Error "A listed file does not exist."
        UnlistedFile "unlisted-file" Warning "A test file exists that the manifest does not list."
        PathEscapes "path-escapes" Error "A path leaves the package folder."
        AssertionOperator "assertion-operator" Error "An assertion has no operator, or more than one."
        BadJsonPath "bad-jsonpath" Error "A path is no JSONPath (RFC 9535)."
        AsksNothing "asks-nothing" Warning "A test has neither an expected answer nor assertions."
        UnknownPlatform "unknown-platform" Warning "A way to run names a platform that never matches."
        DuplicateTest "duplicate-test" Warning "Two tests have the same name."
        DuplicateImplementation "duplicate-implementation" Error "Two implementations have the same id."
        DuplicateStep "duplicate-step" Error "Two chain steps have the same name or output key."
        UnknownRoot "unknown-root" Error "A chain step reads a key that nothing before it has written."
        ChainSelf "chain-self" Error "A chain calls itself."
        BadCommand "bad-command" Error "A command string cannot be split into arguments."
        UnknownDigest "unknown-digest" Warning "A digest of all zeros: what is fetched cannot be checked."
        DuplicateId "duplicate-id" Error "Two entries of a catalog have the same id."
        AllowlistUnused "allowlist-unused" Error "A network allowlist without `network: allowlist`."
        EmptyAllowlist "empty-allowlist" Warning "An allowlist that is empty or absent denies every host."
        MissingImplementation "missing-implementation" Warning "An implementation lacks the object its kind needs; a call would be refused."
        OauthUnavailable "oauth-unavailable" Warning "A sign-in is required, and no secret is declared that its token could be given as; a call would be refused."
        OverrideRaisesTrust "override-raises-trust" Warning "A local entry claims more trust than the base entry it overrides; the lower one counts."
        OverrideWidens "override-widens" Warning "A local entry widens the permissions of the base entry it overrides."
        SecretCollision "secret-collision" Warning "A tool and secret name join to a key that another pair could also make."
        BadPath "bad-path" Error "The path of a file in a bundle is not plain and relative."
        DuplicatePath "duplicate-path" Error "Two bundled files have the same path."
        BadBase64 "bad-base64" Error "A bundled file's content is not base64."
        MissingMain "missing-main" Error "The entry file is not among the bundled files."
        BundleTooLarge "bundle-too-large" Error "A bundle is over the package limits."
        PathTemplate "path-template" Error "The names in braces of an OpenAPI path are not those of its path parameters."
        EquivalentPaths "equivalent-paths" Error "Two OpenAPI paths are the same but for the names in braces."
        DuplicateOperation "duplicate-operation" Error "Two OpenAPI operations have the same id."
        DuplicateParameter "duplicate-parameter" Error "Two parameters of an OpenAPI operation or path have the same name and place."
        UndeclaredSecurity "undeclared-security" Error "An OpenAPI security requirement names a scheme that is not declared."
        UndeclaredVariable "undeclared-variable" Error "The address of an OpenAPI server uses a variable that is not declared, or its braces do not match."
        OpenapiEndpoint "openapi-endpoint" Error "The manifest calls something that is no operation of the openapi.json beside it."
        OpenapiSchema "openapi-schema" Error "A schema of the manifest cannot be reconciled with the operation in the openapi.json beside it."
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_are_unique_kebab_words() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        assert!(names.iter().all(|name| {
            name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b.is_ascii_digit())
        }));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
