#![no_main]
//! A capability manifest or catalog.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::Capability, bytes).expect("every promise is kept");
});
