#![no_main]
//! A chain, and after a NUL what is known when one of its steps is about to be made.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::chain(bytes).expect("every promise is kept");
});
