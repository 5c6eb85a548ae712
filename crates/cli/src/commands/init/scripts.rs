//! The scripts for Python and Node. Each is one text, made of two: those of a language share a
//! block, which a line of the script marks the place of.

use manifest::starter::{Language, fill};

/// The script that describes a function.
pub(super) fn introspection(language: Language) -> String {
    let script = match language {
        Language::Python => include_str!("../../../assets/init/introspect.py"),
        Language::Node => include_str!("../../../assets/init/introspect.mjs"),
    };
    fill(script, &[shared(language)])
}

/// The script that runs a function as a tool, with its marks replaced.
pub(super) fn runner(language: Language, values: &[(&str, &str)]) -> String {
    let script = match language {
        Language::Python => include_str!("../../../assets/init/run.py"),
        Language::Node => include_str!("../../../assets/init/run.mjs"),
    };
    fill(script, &[values, &[shared(language)]].concat())
}

/// The block that both scripts of a language hold, after the mark it stands in for.
fn shared(language: Language) -> (&'static str, &'static str) {
    let (mark, block) = match language {
        Language::Python => ("# @CONVERSION@", include_str!("../../../assets/init/conversion.py")),
        Language::Node => ("// @CALLING@", include_str!("../../../assets/init/calling.mjs")),
    };
    // The line of the mark ends itself.
    (mark, block.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_holds_its_block_once() {
        for language in [Language::Python, Language::Node] {
            let (mark, block) = shared(language);
            for script in [introspection(language), runner(language, &[])] {
                assert_eq!(script.matches(block).count(), 1);
                assert!(!script.contains(mark));
            }
        }
    }
}
