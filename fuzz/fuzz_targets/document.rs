#![no_main]
//! A document of whatever dialect it looks like.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::any_document(bytes).expect("every promise is kept");
});
