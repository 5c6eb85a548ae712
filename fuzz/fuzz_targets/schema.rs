#![no_main]
//! A JSON Schema, and a value after a NUL.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::schema(bytes).expect("every promise is kept");
});
