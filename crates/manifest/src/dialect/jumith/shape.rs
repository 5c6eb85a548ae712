//! The shape of a describe document, and of a bundle.

use std::sync::LazyLock;

use crate::concept::Concept;
use crate::finding::Code;
use crate::shape::{Shape, filled_text, list, may, must, open, patterns, text, text_like, word};

static SHAPE: LazyLock<Shape> = LazyLock::new(describe);
static BUNDLE: LazyLock<Shape> = LazyLock::new(|| {
    open(vec![
        must("manifest", "The describe document of the same version.", describe()),
        must(
            "files",
            "The files.",
            list(open(vec![
                must("path", "Path inside the bundle, relative and plain.", filled_text()),
                must("content", "The content, in the encoding named.", text()),
                may("encoding", "utf8 unless said otherwise.", word(&["utf8", "base64"]))
                    .says(Code::BadEncoding, "encoding must be utf8 or base64"),
                may(
                    "executable",
                    "Whether the file can be run; ours, ignored by others.",
                    Shape::Flag,
                ),
            ])),
        )
        .is(Concept::Files),
        may("sha256", "Digest of the bundle.", text_like(&patterns::DIGEST)).is(Concept::Digest),
    ])
});

/// The shape of a describe document.
pub fn shape() -> &'static Shape {
    &SHAPE
}

/// The shape of a bundle.
pub fn bundle_shape() -> &'static Shape {
    &BUNDLE
}

fn describe() -> Shape {
    open(vec![
        must("id", "Id, unique in the registry.", filled_text()).is(Concept::Id),
        must("name", "Name people type.", filled_text()).is(Concept::DisplayName),
        must("version", "Semantic version.", text_like(&patterns::SEMVER)).is(Concept::Version),
        must("summary", "One line on what it does.", filled_text()).is(Concept::Summary),
        may("description", "More about it.", text()).is(Concept::Description),
        may("tags", "Words to find it by.", list(text())).is(Concept::Tags),
        may("provider", "Who provides it.", text()).is(Concept::Publisher),
        must(
            "entry",
            "Where the tool is in the bundle.",
            open(vec![
                must("runtime", "What runs it: node.", word(&["node"]))
                    .says(Code::UnsupportedRuntime, "entry.runtime must be node"),
                must("main", "Path of the module.", filled_text()),
                may("export", "Name of the export; `tool`, then `default` when absent.", text()),
            ]),
        )
        .is(Concept::Run),
        may(
            "schema",
            "What goes in and comes out.",
            open(vec![
                may("input", "JSON Schema of its input.", Shape::Schema).is(Concept::Input),
                may("output", "JSON Schema of its answer.", Shape::Schema).is(Concept::Output),
            ]),
        ),
        may("requiresApproval", "Whether each call needs the owner's word.", Shape::Flag)
            .is(Concept::Approval),
        may("requiredSecrets", "Names of the secrets it needs.", list(filled_text()))
            .is(Concept::Secrets),
        may("usesPayment", "Whether it spends money.", Shape::Flag).is(Concept::Payment),
        may("sha256", "Digest of the bundle.", text_like(&patterns::DIGEST)).is(Concept::Digest),
    ])
}
