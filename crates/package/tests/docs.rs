//! `docs/packages.md` says what the code says.

use std::fmt::Write;

use package::limits::Limits;
use package::refusal::RefusalCode;
use testkit::docs::check_part;

// One test, because both parts are of one page.
#[test]
fn the_page_lists_limits_and_refusals() {
    check_part("packages.md", "limits", &limits());
    check_part("packages.md", "refusals", &refusals());
}

fn refusals() -> String {
    let mut table = String::from("| code | why |\n|---|---|\n");
    for code in RefusalCode::ALL {
        writeln!(table, "| `{}` | {} |", code.name(), code.about()).expect("text grows");
    }
    table
}

fn limits() -> String {
    let Limits { entries, file_bytes, total_bytes, ratio, ratio_free_bytes } = Limits::DEFAULT;
    let mib = |bytes: u64| format!("{} MiB", bytes / (1024 * 1024));
    format!(
        "| what | at most |\n|---|---|\n\
         | files, and as many folders | {entries} |\n\
         | one file | {} |\n\
         | all files together | {} |\n\
         | growth of a file over {} | {ratio} times |\n\
         | length of a path | {} bytes, {} a name |\n\
         | names in a path | {} |\n",
        mib(file_bytes),
        mib(total_bytes),
        mib(ratio_free_bytes),
        manifest::path::MAX_PATH,
        manifest::path::MAX_NAME,
        manifest::path::MAX_SEGMENTS,
    )
}
