#![no_main]
//! An OpenAPI document, JSON or YAML, as a package.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::import_openapi(bytes).expect("every promise is kept");
});
