#![no_main]
//! A test of an mcpkg package, and its manifest after a NUL.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::mcpkg_test(bytes).expect("every promise is kept");
});
