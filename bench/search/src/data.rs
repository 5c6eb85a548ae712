//! Tools and questions: those of a folder, or made up from a seed.

use std::path::Path;

use serde_json::Value;

/// A tool as every engine is given it.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: String,
    pub parameters: String,
    pub parameter_texts: String,
    pub language: Option<String>,
}

/// A question and the tools that answer it.
#[derive(Clone, Debug)]
pub struct Question {
    pub text: String,
    pub gold: Vec<String>,
}

/// The sets that quality is measured on.
pub const SETS: [&str; 5] = ["metatool", "bfcl_live", "apibench", "sealtools", "mcp_xsource"];

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

pub fn tools(path: &Path) -> Vec<Tool> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let tool = |value: Value| {
        let tags = value["tags"].as_array().cloned().unwrap_or_default();
        let schema = value["schema"].as_object().cloned().unwrap_or_default();
        Tool {
            id: text(&value, "id"),
            name: text(&value, "name"),
            description: text(&value, "description"),
            tags: tags.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
            parameters: schema.keys().cloned().collect::<Vec<_>>().join("\n"),
            parameter_texts: schema
                .values()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join("\n"),
            language: value["language"].as_str().map(str::to_owned),
        }
    };
    lines(path).into_iter().map(tool).collect()
}

pub fn questions(path: &Path) -> Vec<Question> {
    let question = |value: Value| Question {
        text: value["text"].as_str().unwrap_or_default().to_owned(),
        gold: value["gold"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect(),
    };
    lines(path).into_iter().map(question).collect()
}

/// Numbers that are the same every time.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Often a small number and seldom a large one, as words are distributed.
    fn seldom(&mut self, end: usize) -> usize {
        let part = self.next() as f64 / u64::MAX as f64;
        ((end as f64).powf(part) - 1.0) as usize
    }
}

/// Made-up tools: words as often and as long as in real ones.
pub fn made_up(count: usize, seed: u64) -> Vec<Tool> {
    let mut draws = Draws::new(seed);
    let words = vocabulary(60_000);
    let languages = ["python", "typescript", "rust", "go", "java"];
    (0..count)
        .map(|at| {
            let mut some = |least: usize, most: usize, join: &str| {
                let count = least + draws.below(most - least + 1);
                let some: Vec<_> =
                    (0..count).map(|_| words[draws.seldom(words.len())].as_str()).collect();
                some.join(join)
            };
            let (name, description) = (some(1, 3, "_"), some(8, 40, " "));
            let (tags, parameters, parameter_texts) =
                (some(0, 4, "\n"), some(0, 5, "\n"), some(0, 30, " "));
            let language = Some(languages[draws.below(languages.len())].to_owned());
            Tool {
                id: format!("made:{at}"),
                name,
                description,
                tags,
                parameters,
                parameter_texts,
                language,
            }
        })
        .collect()
}

/// Made-up questions of several words.
pub fn made_up_questions(count: usize, seed: u64) -> Vec<Question> {
    let mut draws = Draws::new(seed);
    let words = vocabulary(60_000);
    let mut question = || {
        let count = 6 + draws.below(14);
        let some: Vec<_> = (0..count).map(|_| words[draws.seldom(words.len())].as_str()).collect();
        Question { text: some.join(" "), gold: Vec::new() }
    };
    (0..count).map(|_| question()).collect()
}

fn vocabulary(count: usize) -> Vec<String> {
    let syllables = [
        "ka", "ro", "mi", "ten", "sul", "var", "de", "lo", "pin", "gra", "fo", "nel", "tu", "bes",
        "qui", "zan",
    ];
    let mut draws = Draws::new(7);
    let word = |draws: &mut Draws| -> String {
        (0..2 + draws.below(3)).map(|_| syllables[draws.below(syllables.len())]).collect()
    };
    let mut known = std::collections::HashSet::new();
    let mut words = Vec::new();
    while words.len() < count {
        let word = word(&mut draws);
        if known.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}

/// The words of a question, for engines with a language of their own.
pub fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
