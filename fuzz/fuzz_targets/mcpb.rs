#![no_main]
//! The manifest of an MCP bundle.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    testkit::fuzz::document(manifest::dialect::Dialect::Mcpb, bytes).expect("every promise is kept");
});
