#![no_main]
//! A pattern, and a text after a NUL.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::regex(bytes).expect("every promise is kept");
});
