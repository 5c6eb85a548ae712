#![no_main]
//! A line of the audit log.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::audit_line(bytes).expect("every promise is kept");
});
