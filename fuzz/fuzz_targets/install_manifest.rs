#![no_main]
//! An install-manifest.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::InstallManifest, bytes).expect("every promise is kept");
});
