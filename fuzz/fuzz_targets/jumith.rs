#![no_main]
//! A Jumith describe document or bundle.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::Jumith, bytes).expect("every promise is kept");
});
