//! What is found, and in which order.

use crate::common::{found, index_of, keys, tool};
use search::{
    Entry, Facet, Field, Index, LastWord, Match, Page, Query, QueryError, Spelling, limits,
};

fn shelf() -> Index {
    index_of([
        tool("pdf", "readPdfFile", "Reads the text of PDF documents"),
        tool("sql", "sql_query", "Queries databases with SQL"),
        tool("hub", "GitHub", "Lists repositories and issues"),
        tool("mail", "send-mail", "Sends a message to somebody"),
        tool("weather", "天気予報", "Погода на завтра, طقس"),
    ])
}

#[test]
fn the_forms_and_parts_of_a_word_find_it() {
    let shelf = shelf();
    for (text, key) in [
        ("reading a pdf", "pdf"),
        ("PDFs", "pdf"),
        ("readPdfFile", "pdf"),
        ("query the database", "sql"),
        ("github", "hub"),
        ("git hub issue", "hub"),
        ("Send messages", "mail"),
        ("天気", "weather"),
        ("予", "weather"),
        ("ПОГОДА", "weather"),
        ("طقس", "weather"),
    ] {
        assert_eq!(found(&shelf, text).first().map(String::as_str), Some(key), "{text}");
    }
    assert!(found(&shelf, "xylophone").is_empty());
}

#[test]
fn a_word_in_the_name_counts_more_than_elsewhere_and_a_rare_one_more_than_a_common_one() {
    let index = index_of([
        tool("a", "pdf", "common words about something else"),
        tool("b", "reader", "common words about pdf and more"),
        tool("c", "other", "common words"),
    ]);
    assert_eq!(found(&index, "pdf"), ["a", "b"]);
    assert_eq!(found(&index, "common reader").first().unwrap(), "b");
}

#[test]
fn a_slip_of_the_finger_still_finds_the_word() {
    let shelf = shelf();
    for (text, key) in
        [("gihtub", "hub"), ("databse", "sql"), ("repositroeis", "hub"), ("mesage", "mail")]
    {
        assert_eq!(found(&shelf, text), [key], "{text}");
        let exact = Query::new(text).spelling(Spelling::Exact);
        assert!(shelf.search(&exact).hits.is_empty(), "{text}");
    }
    // Short words have too many neighbours, and a known word stands for itself.
    assert!(found(&shelf, "pdg").is_empty());
    let explained = shelf.explain(&Query::new("github"), "hub").unwrap();
    assert!(explained.words.iter().all(|word| word.how == Match::Stem));
    let explained = shelf.explain(&Query::new("gihtub"), "hub").unwrap();
    assert_eq!(explained.words[0].how, Match::Slips(1));
    assert_eq!(
        (explained.words[0].word.as_str(), explained.words[0].stem.as_str()),
        ("gihtub", "github")
    );
}

#[test]
fn a_rare_word_also_finds_a_much_commoner_neighbour() {
    let common = (0..40).map(|n| tool(&format!("c{n}"), "github", "code"));
    let index = index_of(common.chain([tool("slip", "githib", "a slip")]));
    let page = index.search(&Query::new("githib").page(0, 100));
    assert_eq!((page.total, page.hits[0].key.as_str()), (41, "slip"));
    assert_eq!(index.search(&Query::new("github").page(0, 100)).total, 40);
}

#[test]
fn a_word_that_is_being_typed_finds_what_it_may_become() {
    let index = index_of([
        tool("a", "runner", "running and translating"),
        tool("b", "repository", "code"),
        tool("c", "report", "numbers"),
    ]);
    let begun = |text: &str| keys(&index.search(&Query::new(text).last_word(LastWord::Begun)));
    assert_eq!(begun("repo"), ["b", "c"]);
    assert_eq!(begun("reposi"), ["b"]);
    // The stem of `running` is `run`, which `runnin` does not begin.
    assert_eq!(begun("runnin"), ["a"]);
    assert_eq!(begun("translati"), ["a"]);
    // The last word may have been typed before, and may be the last part of an identifier.
    assert_eq!(begun("repo code repo").first().unwrap(), "b");
    assert_eq!(begun("codeRepor").len(), 2);
    // A letter says too little, and after a space the word is finished.
    assert!(begun("r").is_empty());
    assert!(begun("repo ").is_empty());
    let whole = Query::new("repo").spelling(Spelling::Exact);
    assert!(index.search(&whole).hits.is_empty());
}

#[test]
fn without_words_everything_is_listed_by_rank_and_key() {
    let ranked = |key: &str, rank| tool(key, "x", "y").rank(rank).unwrap();
    let index = index_of([ranked("a", 1.0), ranked("b", 3.0), ranked("c", 1.0), ranked("d", 2.0)]);
    for text in ["", "   ", "\t\n"] {
        let page = index.search(&Query::new(text));
        assert_eq!(
            (keys(&page), page.total),
            (["b", "d", "a", "c"].map(str::to_owned).to_vec(), 4)
        );
        assert!(page.hits.iter().all(|hit| hit.score == 0.0));
    }
    // What says something else than words asks for nothing that is here.
    let long = "a".repeat(5000);
    for text in ["+-*/", "!!!", "\0\u{1}\u{202e}", &long] {
        assert_eq!(index.search(&Query::new(text)), Page::default(), "{text}");
    }
    assert_eq!(Index::new().search(&Query::new("")).total, 0);
    assert_eq!(Index::new().search(&Query::new("word")).total, 0);
}

#[test]
fn the_rank_multiplies_the_score() {
    let index = index_of([
        tool("a", "pdf", "text"),
        tool("b", "pdf", "text").rank(1.5).unwrap(),
        tool("c", "pdf", "text").rank(0.5).unwrap(),
    ]);
    let page = index.search(&Query::new("pdf"));
    assert_eq!(keys(&page), ["b", "a", "c"]);
    assert!((page.hits[0].score - page.hits[1].score * 1.5).abs() < 1e-9);
}

#[test]
fn filters_are_any_of_a_facet_and_all_facets() {
    let of = |key: &str, language: &str, kind: &str| {
        let entry = tool(key, "pdf", "text").facet(Facet::Language, language).unwrap();
        entry.facet(Facet::Kind, kind).unwrap()
    };
    let index = index_of([
        of("a", "Rust", "tool"),
        of("b", "Python", "tool"),
        of("c", "Go", "tool"),
        of("d", "Rust", "mcp_server"),
    ]);
    let query = |text: &str| Query::new(text).filter(Facet::Language, " RUST ").unwrap();
    for text in ["pdf", ""] {
        assert_eq!(keys(&index.search(&query(text))), ["a", "d"]);
        let two = query(text).filter(Facet::Language, "python").unwrap();
        assert_eq!(keys(&index.search(&two)), ["a", "b", "d"]);
        let both = two.filter(Facet::Kind, "tool").unwrap();
        let page = index.search(&both);
        assert_eq!((keys(&page), page.total), (vec!["a".to_owned(), "b".to_owned()], 2));
        let none = query(text).filter(Facet::Trust, "verified").unwrap();
        assert_eq!(index.search(&none).total, 0);
    }
}

#[test]
fn filters_that_cannot_be_meant_are_refused() {
    let query = || Query::new("pdf");
    assert_eq!(query().filter(Facet::Tag, " "), Err(QueryError::Value(Facet::Tag)));
    let long = "v".repeat(limits::FACET_BYTES + 1);
    assert_eq!(query().filter(Facet::Tag, &long), Err(QueryError::Value(Facet::Tag)));
    let many = (0..=limits::FACET_VALUES)
        .try_fold(query(), |query, n| query.filter(Facet::Tag, &n.to_string()));
    assert_eq!(many, Err(QueryError::Values(Facet::Tag)));
    for error in [QueryError::Value(Facet::Tag), QueryError::Values(Facet::Tag)] {
        assert!(error.to_string().contains("`tag`"));
    }
}

#[test]
fn hostile_queries_are_answered() {
    let shelf = shelf();
    let many: String = (0..5_000).map(|n| format!("word{n} ")).collect();
    let hostile = [
        many.clone() + "pdf",
        "pdf ".to_owned() + &many,
        "a".repeat(1 << 20),
        "é".repeat(100_000),
        "\u{fdfa}".repeat(10_000),
        "aB".repeat(10_000),
        "天".repeat(10_000),
        "\"' OR 1=1 -- NEAR(* ) ^".to_owned(),
        "\u{301}\u{301}\u{301}".to_owned(),
    ];
    for text in &hostile {
        for last_word in [LastWord::Whole, LastWord::Begun] {
            let page = shelf.search(&Query::new(text).last_word(last_word).page(0, usize::MAX));
            assert!(page.hits.len() <= 5);
        }
    }
    // What is beyond the limit is not read; what is within counts.
    assert_eq!(found(&shelf, &hostile[1]).first().unwrap(), "pdf");
    assert_eq!(shelf.search(&Query::new("pdf").page(usize::MAX, usize::MAX)).hits, []);
    assert_eq!(shelf.search(&Query::new("pdf").page(0, 0)).total, 1);
}

#[test]
fn of_too_many_words_those_count_that_say_most() {
    let common: Vec<String> =
        (0..limits::QUERY_WORDS).map(|n| format!("common{}", letters(n))).collect();
    let text = common.join(" ");
    let index = index_of(
        (0..9).map(|n| tool(&format!("c{n}"), "x", &text)).chain([tool("rare", "unique", "y")]),
    );
    let page = index.search(&Query::new(&format!("{text} unique")));
    assert!(keys(&page).contains(&"rare".to_owned()));
}

fn letters(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n).unwrap());
    [letter(number / 26), letter(number % 26), 'k'].iter().collect()
}

#[test]
fn endless_texts_are_indexed_up_to_the_limit() {
    let text = "pdf ".repeat(1 << 20) + "unreached";
    let entry = Entry::new("long").unwrap().text(Field::Description, &text);
    let index = index_of([entry, tool("short", "pdf", "")]);
    assert_eq!(found(&index, "pdf").len(), 2);
    assert!(found(&index, "unreached").is_empty());
    assert!(index.memory().total < 1 << 20);
}
