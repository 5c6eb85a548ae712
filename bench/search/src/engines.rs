//! Three engines with the same tools.

use rusqlite::Connection;
use search::{Change, Entry, Facet, Field, Index, Query};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{
    IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::{IndexReader, TantivyDocument, doc};

use crate::data::{Tool, words};

pub trait Engine {
    fn name(&self) -> &'static str;
    /// The ids of the best ten, best first.
    fn best(&self, question: &str) -> Vec<String>;
}

pub fn entry(tool: &Tool) -> Entry {
    let key: String = tool.id.chars().take(200).collect();
    let mut entry = Entry::new(&key).expect("ids are sound");
    for (field, text) in [
        (Field::Name, &tool.name),
        (Field::Description, &tool.description),
        (Field::Tags, &tool.tags),
        (Field::Parameters, &tool.parameters),
        (Field::ParameterTexts, &tool.parameter_texts),
    ] {
        entry = entry.text(field, text);
    }
    match &tool.language {
        Some(language) => entry.facet(Facet::Language, language).expect("languages are sound"),
        None => entry,
    }
}

pub fn haft(tools: &[Tool]) -> Index {
    let index = Index::new();
    index.apply(tools.iter().map(|tool| Change::Put(entry(tool)))).expect("there is room");
    index
}

impl Engine for Index {
    fn name(&self) -> &'static str {
        "haft"
    }

    fn best(&self, question: &str) -> Vec<String> {
        self.search(&Query::new(question)).hits.into_iter().map(|hit| hit.key).collect()
    }
}

/// SQLite's FTS5 with its Porter stemmer, in memory; any of the words, ranked by bm25.
struct Fts5(Connection);

impl Fts5 {
    fn new(tools: &[Tool]) -> Self {
        let connection = Connection::open_in_memory().expect("memory is there");
        connection
            .execute_batch(
                "CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, name, description, tags, parameters, tokenize='porter')",
            )
            .expect("FTS5 is compiled in");
        connection.execute_batch("BEGIN").expect("a transaction begins");
        {
            let mut insert = connection
                .prepare("INSERT INTO tools VALUES (?1, ?2, ?3, ?4, ?5)")
                .expect("the statement is sound");
            for tool in tools {
                let parameters = format!("{}\n{}", tool.parameters, tool.parameter_texts);
                insert
                    .execute((&tool.id, &tool.name, &tool.description, &tool.tags, &parameters))
                    .expect("a row is written");
            }
        }
        connection
            .execute_batch("COMMIT; INSERT INTO tools(tools) VALUES('optimize')")
            .expect("it ends");
        Self(connection)
    }
}

impl Engine for Fts5 {
    fn name(&self) -> &'static str {
        "FTS5"
    }

    fn best(&self, question: &str) -> Vec<String> {
        let words: Vec<_> = words(question).iter().map(|word| format!("\"{word}\"")).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut statement = self
            .0
            .prepare_cached("SELECT id FROM tools WHERE tools MATCH ?1 ORDER BY rank LIMIT 10")
            .expect("the statement is sound");
        let rows = statement.query_map([words.join(" OR ")], |row| row.get(0)).expect("it runs");
        rows.map(|id| id.expect("an id is text")).collect()
    }
}

/// tantivy with its English stemmer, in memory; any of the words in any field.
struct Tantivy {
    reader: IndexReader,
    parser: QueryParser,
    id: tantivy::schema::Field,
}

impl Tantivy {
    fn new(tools: &[Tool]) -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("en_stem")
            .set_index_option(IndexRecordOption::WithFreqs);
        let text = TextOptions::default().set_indexing_options(indexing);
        let id = schema.add_text_field("id", STRING | STORED);
        let fields = ["name", "description", "tags", "parameters"]
            .map(|name| schema.add_text_field(name, text.clone()));
        let index = tantivy::Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 200_000_000).expect("there is memory");
        for tool in tools {
            let parameters = format!("{}\n{}", tool.parameters, tool.parameter_texts);
            writer
                .add_document(doc!(
                    id => tool.id.as_str(), fields[0] => tool.name.as_str(), fields[1] => tool.description.as_str(),
                    fields[2] => tool.tags.as_str(), fields[3] => parameters
                ))
                .expect("a document is taken");
        }
        writer.commit().expect("it is written");
        writer.wait_merging_threads().expect("segments are merged");
        let reader = index.reader().expect("it can be read");
        Self { reader, parser: QueryParser::for_index(&index, fields.to_vec()), id }
    }
}

impl Engine for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn best(&self, question: &str) -> Vec<String> {
        let question = words(question).join(" ");
        let Ok(query) = self.parser.parse_query(&question) else { return Vec::new() };
        let searcher = self.reader.searcher();
        let top = searcher.search(&query, &TopDocs::with_limit(10)).expect("it runs");
        let id = |(_, address)| {
            let document: TantivyDocument = searcher.doc(address).expect("it is there");
            document.get_first(self.id).and_then(|id| id.as_str()).unwrap_or_default().to_owned()
        };
        top.into_iter().map(id).collect()
    }
}

/// The rivals, unless ours is to be measured alone.
pub fn rivals(tools: &[Tool]) -> Vec<Box<dyn Engine>> {
    if std::env::var_os("HAFT_BENCH_ALONE").is_some() {
        return Vec::new();
    }
    vec![Box::new(Fts5::new(tools)), Box::new(Tantivy::new(tools))]
}
