//! A package and the report of its tests, as the parts of one form.

use package::digest::Digest;

use crate::tested::TestReport;

/// How many letters of its digest part a package from what is around it.
const APART: usize = 48;

/// The type of the form, and the form.
pub(super) fn form(package: &[u8], report: &TestReport) -> (String, Vec<u8>) {
    // Nobody can write a file that holds its own digest, so this line stands in no package.
    let boundary = format!("haft-{}", &Digest::of(package).to_string()[..APART]);
    let report = serde_json::to_vec(report).unwrap_or_default();
    let parts: [(&str, &str, &[u8]); 2] = [
        ("name=\"package\"; filename=\"package.mcpkg\"", "application/zip", package),
        ("name=\"report\"", "application/json", &report),
    ];
    let mut body = Vec::with_capacity(package.len() + report.len() + 1_024);
    for (name, kind, content) in parts {
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; {name}\r\nContent-Type: {kind}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
