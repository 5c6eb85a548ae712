#![no_main]
//! The settings of a client: servers as packages, edits that come back.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::import_config(bytes).expect("every promise is kept");
});
