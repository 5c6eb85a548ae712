#![no_main]
//! An mcpkg manifest.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::Mcpkg, bytes).expect("every promise is kept");
});
