//! The tables of `docs/search.md` are what the code says.

use search::{Field, limits};
use testkit::docs::check_part;

/// One test for both: they write to one page.
#[test]
fn the_tables_are_those_of_the_code() {
    check_part("search.md", "fields", &fields());
    check_part("search.md", "limits", &limits());
}

fn fields() -> String {
    let mut table = String::from(
        "| field | weight | usual length | how far length counts |\n|---|---|---|---|\n",
    );
    for (field, name) in Field::ALL {
        let (weight, usual) = (field.weight(), field.usual_length());
        table += &format!("| `{name}` | {weight} | {usual} words | {} |\n", field.by_length());
    }
    table
}

fn limits() -> String {
    let mut table = String::from("| what | limit | beyond it |\n|---|---|---|\n");
    for (what, limit, beyond) in [
        ("bytes of a key", limits::KEY_BYTES, "refused"),
        ("bytes of a value of a facet", limits::FACET_BYTES, "refused; of a package: passed over"),
        ("values of one facet, in a document or a filter", limits::FACET_VALUES, "the same"),
        ("bytes of a field", limits::FIELD_BYTES, "not indexed"),
        ("words of a field", limits::FIELD_WORDS, "not indexed"),
        ("bytes of a word", limits::WORD_BYTES, "passed over"),
        ("bytes of a query", limits::QUERY_BYTES, "not read"),
        ("different words of a query", limits::QUERY_WORDS, "those that say least do not count"),
        ("misspelt words of a query that are corrected", limits::CORRECTED_WORDS, "find nothing"),
        (
            "words that one misspelt or begun word stands for",
            limits::SPELLINGS,
            "the nearest, then the commonest",
        ),
        ("hits on a page", limits::PAGE, "on the next page"),
        ("documents in an index", limits::DOCUMENTS, "refused; a caller may allow fewer"),
        ("bytes that an index is read from", limits::INDEX_BYTES, "refused"),
    ] {
        table += &format!("| {what} | {limit} | {beyond} |\n");
    }
    table
}
