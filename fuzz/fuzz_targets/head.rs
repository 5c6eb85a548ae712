#![no_main]
//! The head of a request or a response.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::head(bytes).expect("every promise is kept");
});
