//! The file: whose it is, which version, and whether it is whole.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ledger::state::StateErrorKind;
use ledger::state::rules::Lasts;
use ledger::{State, StateError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use crate::{Home, block_on, count};

/// Takes a database back to what it was before calls were counted over time.
pub(crate) const BEFORE_5: &str = "PRAGMA user_version = 4; \
    DROP TABLE spans; DROP TABLE totals; DROP TABLE folded; DROP TABLE tests; DROP TABLE regressions; \
    DROP TABLE flows; DROP TABLE flow_key; DROP TABLE broken; DROP TABLE machine; DROP TABLE names; DROP TABLE wishes; \
    CREATE TABLE calls (package TEXT NOT NULL, action TEXT NOT NULL, failure TEXT NOT NULL, \
    bucket INTEGER NOT NULL, count INTEGER NOT NULL, last_used INTEGER NOT NULL, \
    PRIMARY KEY (package, action, failure, bucket)) WITHOUT ROWID";

/// A database with some rows, closed.
async fn filled() -> Home {
    let home = Home::new();
    let state = home.open().await;
    for number in 0..200 {
        count(&state, &format!("demo{number}")).await.unwrap();
    }
    state.close().await.unwrap();
    home
}

pub(crate) async fn raw(home: &Home) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(home.path())
        .create_if_missing(true)
        .connect()
        .await
        .unwrap()
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    block_on(async {
        let home = filled().await;
        let state = home.open().await;
        state.check().await.unwrap();
        assert_eq!(state.metrics(None).await.unwrap().len(), 200);
        let mode = fs::metadata(home.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let journal = fs::metadata(home.path().with_extension("db-wal")).unwrap();
        assert_eq!(journal.permissions().mode() & 0o777, 0o600);
    });
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    block_on(async {
        let home = filled().await;
        let mut connection = raw(&home).await;
        sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let before = fs::read(home.path()).unwrap();
        let error = State::open(&home.path()).await.unwrap_err();
        assert!(matches!(error, StateError::Newer { found: 99, known: 10, .. }), "{error:?}");
        assert!(error.to_string().contains("newer version of Haft"), "{error}");
        assert_eq!(fs::read(home.path()).unwrap(), before);
    });
}

#[test]
fn the_answer_to_a_first_question_was_kept_otherwise_once() {
    block_on(async {
        let home = filled().await;
        let mut connection = raw(&home).await;
        sqlx::raw_sql(BEFORE_5).execute(&mut connection).await.unwrap();
        let before = "PRAGMA user_version = 2; CREATE TABLE questions (x); DROP TABLE places; \
            INSERT INTO rules (package, action, arguments, lasts, session, author, created) VALUES \
            ('p', 'a', '{}', 'always', '', 'first call on mcp', 0), \
            ('p', 'a', '{}', 'always', '', 'terminal', 0)";
        sqlx::raw_sql(before).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let rules = home.open().await.remembered(Some("p")).await.unwrap();
        let lasts: Vec<_> = rules.into_iter().map(|one| one.rule.lasts).collect();
        assert_eq!(lasts, [Lasts::First("mcp".into()), Lasts::Always]);
    });
}

#[test]
fn tests_were_kept_without_their_time_once() {
    block_on(async {
        let home = filled().await;
        let mut connection = raw(&home).await;
        let before = "PRAGMA user_version = 8; ALTER TABLE tests DROP COLUMN latency; \
            ALTER TABLE wishes DROP COLUMN client; \
            INSERT INTO tests VALUES ('p', '1', 4, 3, 0, 7)";
        sqlx::raw_sql(before).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let tested = home.open().await.tested(Some("p")).await.unwrap();
        assert_eq!((tested[0].total, tested[0].passed, tested[0].latency), (4, 3, None));
    });
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    block_on(async {
        let home = Home::new();
        let mut connection = raw(&home).await;
        sqlx::raw_sql("CREATE TABLE theirs (x)").execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let before = fs::read(home.path()).unwrap();
        let error = State::open(&home.path()).await.unwrap_err();
        assert!(matches!(error, StateError::Foreign { .. }), "{error:?}");
        assert_eq!(fs::read(home.path()).unwrap(), before);
    });
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    block_on(async {
        let home = Home::new();
        let garbage = "this is no database at all\n".repeat(100);
        fs::write(home.path(), &garbage).unwrap();
        let error = State::open(&home.path()).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Broken, "{error:?}");
        assert_eq!(fs::read_to_string(home.path()).unwrap(), garbage);
    });
}

#[test]
fn a_damaged_database_is_named_and_left_alone() {
    block_on(async {
        let home = filled().await;
        let mut bytes = fs::read(home.path()).unwrap();
        for byte in &mut bytes[4_096..] {
            *byte = 0xa5;
        }
        fs::write(home.path(), &bytes).unwrap();
        let error = match State::open(&home.path()).await {
            Err(error) => error,
            Ok(state) => state.check().await.unwrap_err(),
        };
        assert!(matches!(error, StateError::Corrupt { .. }), "{error:?}");
        assert_eq!(fs::read(home.path()).unwrap(), bytes);
    });
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    block_on(async {
        let home = Home::new();
        let error = State::open(&home.path().join("below/state.db")).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unavailable);
        assert!(std::error::Error::source(&error).is_some());
    });
}

#[test]
fn who_only_looks_makes_nothing() {
    block_on(async {
        let home = Home::new();
        let state = State::look(&home.path()).await.unwrap();
        assert!(state.metrics(None).await.unwrap().is_empty());
        assert!(!home.path().exists());
        let home = filled().await;
        let state = State::look(&home.path()).await.unwrap();
        assert_eq!(state.metrics(None).await.unwrap().len(), 200);
        fs::write(home.path(), "no database, and not empty").unwrap();
        let error = State::look(&home.path()).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Broken, "{error}");
    });
}
