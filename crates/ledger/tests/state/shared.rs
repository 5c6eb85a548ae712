//! A shared database: whose it is, which version, and what happens while it is away.

use std::error::Error;

use ledger::state::{Database, StateErrorKind};
use ledger::{State, StateError};
use sqlx::{Connection, PgConnection};

use crate::{block_on, count, demanded, fresh, server};

/// Everything that an error says.
fn whole(error: &StateError) -> String {
    let mut words = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(next) = cause {
        words = format!("{words}: {next} {next:?}");
        cause = next.source();
    }
    words
}

async fn done(address: &str, words: &'static str) {
    let mut connection = PgConnection::connect(address).await.unwrap();
    sqlx::raw_sql(words).execute(&mut connection).await.unwrap();
}

#[test]
fn what_was_written_is_there_when_it_is_joined_again() {
    let Some(server) = server() else { return };
    let database = fresh(&server);
    block_on(async {
        let state = State::join(&database).await.unwrap();
        count(&state, "demo").await.unwrap();
        state.close().await.unwrap();
        let state = State::join(&database).await.unwrap();
        state.check().await.unwrap();
        assert_eq!(state.metrics(None).await.unwrap()[0].calls, 1);
        assert_eq!(state.mark(), None, "only the database knows whether it was changed");
    });
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let Some(server) = server() else { return };
    let address = server.database();
    block_on(async {
        done(&address, "CREATE TABLE theirs (x BIGINT)").await;
        let error = State::join(&Database::parse(&address).unwrap()).await.unwrap_err();
        assert!(matches!(error, StateError::Foreign { .. }), "{error:?}");
        let mut connection = PgConnection::connect(&address).await.unwrap();
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
        let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut connection).await.unwrap();
        assert_eq!(tables, 1);
    });
}

#[test]
fn a_newer_database_is_refused() {
    let Some(server) = server() else { return };
    let address = server.database();
    let database = Database::parse(&address).unwrap();
    block_on(async {
        State::join(&database).await.unwrap().close().await.unwrap();
        done(&address, "UPDATE haft_state SET version = 99").await;
        let error = State::join(&database).await.unwrap_err();
        assert!(matches!(error, StateError::Newer { found: 99, known: 1, .. }), "{error:?}");
        assert_eq!(error.kind(), StateErrorKind::Broken);
    });
}

#[test]
fn a_server_that_is_started_anew_is_used_on_and_what_fails_meanwhile_says_so() {
    let Some(mut server) = demanded() else { return };
    let address = server.database().replace("haft@", "haft:s3cret@");
    let database = Database::parse(&address).unwrap();
    block_on(async {
        let state = State::join(&database).await.unwrap();
        count(&state, "demo").await.unwrap();
        server.stop();
        for _ in 0..3 {
            let error = count(&state, "demo").await.unwrap_err();
            let words = whole(&error);
            assert_eq!(error.kind(), StateErrorKind::Unavailable, "{words}");
            assert!(!words.contains("s3cret"), "{words}");
        }
        let error = state.grants(None).await.unwrap_err();
        assert!(error.to_string().contains(database.place()), "{error}");
        server.start_again();
        // A connection that was cut is found to be so when it is used.
        while count(&state, "demo").await.is_err() {}
        assert_eq!(state.metrics(None).await.unwrap()[0].calls, 2, "what was committed is there");
    });
}

#[test]
fn nobody_is_told_a_password() {
    block_on(async {
        let database = Database::parse("postgres://eve7:s3cret@127.0.0.1:1/tools").unwrap();
        let error = State::join(&database).await.unwrap_err();
        let words = whole(&error);
        assert!(words.contains("failed to open `127.0.0.1:1/tools`"), "{words}");
        assert!(words.contains("nobody listens there"), "{words}");
        assert!(!words.contains("s3cret") && !words.contains("eve7"), "{words}");
    });
}
