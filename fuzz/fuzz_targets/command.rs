#![no_main]
//! A command string.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::command(bytes).expect("every promise is kept");
});
