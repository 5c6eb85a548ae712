#![no_main]
//! JSON is what serde_json says it is.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::json(bytes).expect("every promise is kept");
});
