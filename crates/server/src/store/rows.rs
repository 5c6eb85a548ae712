//! Everything that a registry knows, row by row, whatever the tables are: for a backup.
//!
//! The tables are read from the text that makes them and their columns are asked from the database, so that a
//! backup holds whatever a version adds.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row};

use super::each::is_unreadable;
use super::{Engine, Store, StoreError, schema};

/// The form of the tables that is known here.
pub const KNOWN: i64 = schema::KNOWN;

const DUMP: &str = "read every row";
const LOAD: &str = "write rows back";

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Bytes,
}

/// A table and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    name: &'static str,
    columns: Vec<Column>,
}

/// What a row is called that cannot be read, and why it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The table, and the row where that can be told.
    pub row: String,
    /// Why.
    pub why: String,
}

/// Why rows are not written back.
#[derive(Debug)]
pub enum LoadError {
    /// There is something in the registry already, in this table.
    NotEmpty(&'static str),
    /// This line is no row of a table we know.
    Line(u64, String),
    /// The database refuses.
    Store(StoreError),
    /// The rows cannot be read.
    Read(std::io::Error),
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        LoadError::Store(error)
    }
}

impl Store {
    /// Gives every row of one moment to `keep`, a line of JSON each; rows that cannot be read.
    pub async fn dump<E: From<StoreError>>(
        &self,
        mut keep: impl FnMut(&Value) -> Result<(), E>,
    ) -> Result<Vec<Unread>, E> {
        let failed = || StoreError::query(DUMP);
        let begin = match self.engine {
            Engine::Sqlite => "BEGIN DEFERRED",
            Engine::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let mut moment = self.pool.begin_with(begin).await.map_err(failed())?;
        let (mut unread, mut packages) = (Vec::new(), HashSet::new());
        for table in self.tables(&mut moment).await? {
            let names: Vec<&str> =
                table.columns.iter().map(|column| column.name.as_str()).collect();
            let asked = format!("SELECT {} FROM {}", names.join(", "), table.name);
            let mut rows = sqlx::query(AssertSqlSafe(asked)).fetch(&mut *moment);
            let mut number = 0;
            while let Some(row) = rows.next().await {
                number += 1;
                let (called, read) = match row {
                    Ok(row) => (called(&table, &row), values(&table, &row)),
                    Err(error) => (format!("{} row {number}", table.name), Err(error)),
                };
                let values = match read {
                    Ok(values) => values,
                    Err(error) if is_unreadable(&error) => {
                        unread.push(Unread { row: called, why: error.to_string() });
                        continue;
                    }
                    Err(error) => return Err(failed()(error).into()),
                };
                // Without its package a row could never be written back, and neither could all the others.
                match (table.name, values.get("id"), values.get("package")) {
                    ("packages", Some(Value::String(id)), _) => {
                        packages.insert(id.clone());
                    }
                    ("versions" | "owners", _, Some(Value::String(id)))
                        if !packages.contains(id) =>
                    {
                        let why = "its package cannot be read".to_owned();
                        unread.push(Unread { row: called, why });
                        continue;
                    }
                    _ => {}
                }
                keep(&json!({"table": table.name, "row": values}))?;
            }
        }
        Ok(unread)
    }

    /// Writes rows back, all of them or none, into a registry in which nothing is.
    pub async fn load(
        &self,
        lines: impl Iterator<Item = std::io::Result<String>>,
    ) -> Result<u64, LoadError> {
        let mut change = self.change(LOAD).await?;
        let connection = &mut *change.transaction;
        // Nobody else writes anything from here on.
        let emptied = sqlx::query("DELETE FROM feed").execute(&mut *connection).await;
        emptied.map_err(StoreError::query(LOAD))?;
        let tables = self.tables(connection).await?;
        for table in &tables {
            let asked =
                format!("SELECT COUNT(*) FROM (SELECT 1 FROM {} LIMIT 1) AS looked", table.name);
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(asked))
                .fetch_one(&mut *connection)
                .await
                .map_err(StoreError::query(LOAD))?;
            if count > 0 {
                return Err(LoadError::NotEmpty(table.name));
            }
        }
        let mut number = 0;
        for line in lines {
            let line = line.map_err(LoadError::Read)?;
            number += 1;
            let bad = |why: &str| LoadError::Line(number, why.to_owned());
            let written: Value =
                serde_json::from_str(&line).map_err(|error| bad(&error.to_string()))?;
            let named = written["table"].as_str().unwrap_or_default();
            let table = tables.iter().find(|table| table.name == named);
            let table = table.ok_or_else(|| bad("it is of a table that is not known here"))?;
            let row = written["row"].as_object().ok_or_else(|| bad("it holds no row"))?;
            let known = |name: &String| table.columns.iter().any(|column| column.name == *name);
            if !row.keys().all(known) {
                return Err(bad("it has a column that is not known here"));
            }
            let columns: Vec<&Column> =
                table.columns.iter().filter(|column| row.contains_key(&column.name)).collect();
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let places: Vec<String> = (1..=names.len()).map(|place| format!("${place}")).collect();
            let put = format!(
                "INSERT INTO {} ({}) VALUES ({})",
                table.name,
                names.join(", "),
                places.join(", ")
            );
            let mut query = sqlx::query(AssertSqlSafe(put));
            for column in columns {
                query = bound(query, column.kind, &row[&column.name])
                    .ok_or_else(|| bad("a value is not of its column"))?;
            }
            query.execute(&mut *connection).await.map_err(StoreError::query(LOAD))?;
        }
        let feeds: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM feed")
            .fetch_one(&mut *connection)
            .await
            .map_err(StoreError::query(LOAD))?;
        if feeds != 1 {
            return Err(LoadError::Line(number, "the number of the last change is missing".into()));
        }
        change.transaction.commit().await.map_err(StoreError::query(LOAD))?;
        Ok(number)
    }

    /// A table with rows in it, where there is one.
    pub async fn first_with_rows(&self) -> Result<Option<&'static str>, StoreError> {
        for table in schema::tables().into_iter().filter(|table| *table != "feed") {
            let asked = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS looked");
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(asked))
                .fetch_one(&self.pool)
                .await
                .map_err(StoreError::query(LOAD))?;
            if count > 0 {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// The tables with their columns, as they are in this database.
    async fn tables(&self, connection: &mut AnyConnection) -> Result<Vec<Table>, StoreError> {
        let asked = match self.engine {
            Engine::Sqlite => "SELECT name, type FROM pragma_table_info($1) ORDER BY cid",
            Engine::Postgres => {
                "SELECT column_name::text, data_type::text FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position"
            }
        };
        let mut tables = Vec::new();
        for name in schema::tables() {
            let rows = sqlx::query(asked)
                .bind(name)
                .fetch_all(&mut *connection)
                .await
                .map_err(StoreError::query(DUMP))?;
            let columns = rows.iter().map(column).collect::<Result<_, _>>();
            tables.push(Table { name, columns: columns.map_err(StoreError::query(DUMP))? });
        }
        Ok(tables)
    }
}

fn column(row: &sqlx::any::AnyRow) -> Result<Column, sqlx::Error> {
    let kind: String = row.try_get(1)?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "text" => Kind::Text,
        "bigint" | "integer" => Kind::Number,
        "blob" | "bytea" => Kind::Bytes,
        other => {
            return Err(sqlx::Error::Decode(format!("no backup knows the type `{other}`").into()));
        }
    };
    Ok(Column { name: row.try_get(0)?, kind })
}

fn values(table: &Table, row: &sqlx::any::AnyRow) -> Result<Map<String, Value>, sqlx::Error> {
    let mut values = Map::new();
    for (place, column) in table.columns.iter().enumerate() {
        let value = match column.kind {
            Kind::Text => row.try_get::<Option<String>, _>(place)?.map(Value::from),
            Kind::Number => row.try_get::<Option<i64>, _>(place)?.map(Value::from),
            Kind::Bytes => {
                let bytes = row.try_get::<Option<Vec<u8>>, _>(place)?;
                bytes.map(|bytes| STANDARD.encode(bytes).into())
            }
        };
        values.insert(column.name.clone(), value.unwrap_or(Value::Null));
    }
    Ok(values)
}

/// The table and the first texts of a row, as far as they can be read.
fn called(table: &Table, row: &sqlx::any::AnyRow) -> String {
    let texts = table.columns.iter().enumerate().filter(|(_, column)| column.kind == Kind::Text);
    let texts = texts.filter_map(|(place, _)| row.try_get::<String, _>(place).ok());
    let texts: Vec<String> = texts.take(2).collect();
    format!("{} {}", table.name, texts.join(" ")).trim_end().to_owned()
}

fn bound<'q>(
    query: Query<'q, Any, AnyArguments>,
    kind: Kind,
    value: &Value,
) -> Option<Query<'q, Any, AnyArguments>> {
    Some(match (kind, value) {
        (Kind::Text, Value::Null) => query.bind(None::<String>),
        (Kind::Number, Value::Null) => query.bind(None::<i64>),
        (Kind::Bytes, Value::Null) => query.bind(None::<Vec<u8>>),
        (Kind::Text, Value::String(text)) => query.bind(text.clone()),
        (Kind::Number, number) => query.bind(number.as_i64()?),
        (Kind::Bytes, Value::String(text)) => query.bind(STANDARD.decode(text).ok()?),
        _ => return None,
    })
}
