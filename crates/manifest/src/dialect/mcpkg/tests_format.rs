//! The operators of an assertion.

/// What an assertion can ask; each asks exactly one of these.
pub const OPERATORS: [&str; 10] = [
    "equals",
    "notEquals",
    "exists",
    "notExists",
    "contains",
    "matches",
    "lessThan",
    "greaterThan",
    "type",
    "length",
];
