//! The pages in `docs/`: tables that are written from the code, between two markers.

use crate::files::repo;

/// Holds the part of a page between two markers against what the code says.
/// With `HAFT_UPDATE` in the environment the part is written anew.
pub fn check_part(name: &str, marker: &str, written: &str) {
    let path = repo().join("docs").join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (begin, end) = (format!("<!-- {marker} -->\n"), format!("<!-- /{marker} -->"));
    let start =
        text.find(&begin).unwrap_or_else(|| panic!("{name} has no marker {marker}")) + begin.len();
    let stop = text.find(&end).unwrap_or_else(|| panic!("{name} has no closing marker {marker}"));
    let current = format!("{}{written}{}", &text[..start], &text[stop..]);
    if current != text && std::env::var_os("HAFT_UPDATE").is_some() {
        std::fs::write(&path, &current).expect("a page of the repository can be written");
        return;
    }
    assert_eq!(text, current, "docs/{name} is out of date: run its test with HAFT_UPDATE=1");
}
