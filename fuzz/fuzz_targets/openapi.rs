#![no_main]
//! An OpenAPI document, and the manifest it stands beside after a NUL.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::openapi(bytes).expect("every promise is kept");
});
