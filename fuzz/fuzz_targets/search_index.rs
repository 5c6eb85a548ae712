#![no_main]
//! The bytes of an index.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::search_index(bytes).expect("every promise is kept");
});
