//! A shared database: whose it is, which version, and what happens while it is away.

use std::error::Error;
use std::time::Duration;

use ledger::state::inquiries::{Heard, Inquiry};
use ledger::state::shared::Replica;
use ledger::state::wishes::Wish;
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

/// What is answered in the end: a connection that was cut is found to be so when it is used, and there are eight.
async fn in_the_end<T>(asked: impl AsyncFn() -> Result<T, StateError>) -> T {
    for _ in 0..8 {
        if let Ok(answer) = asked().await {
            return answer;
        }
    }
    asked().await.unwrap()
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
        assert!(matches!(error, StateError::Newer { found: 99, known: 3, .. }), "{error:?}");
        assert_eq!(error.kind(), StateErrorKind::Broken);
    });
}

#[test]
fn an_older_database_is_brought_up_with_what_is_in_it() {
    let Some(server) = server() else { return };
    let address = server.database();
    let database = Database::parse(&address).unwrap();
    block_on(async {
        State::join(&database).await.unwrap().close().await.unwrap();
        let before = "DROP TABLE inquiries; ALTER TABLE wishes DROP COLUMN client; \
            INSERT INTO wishes VALUES ('pdf', 'to read', 'mcp', 1); UPDATE haft_state SET version = 1";
        done(&address, before).await;
        let state = State::join(&database).await.unwrap();
        let [old] = &state.wishes().await.unwrap()[..] else { panic!("not one wish") };
        assert_eq!((&*old.tool, &old.client), ("pdf", &None));
        let new = Wish { client: Some("laptop".into()), ..old.clone() };
        state.wish(&new).await.unwrap();
        assert_eq!(state.wishes().await.unwrap(), [new]);
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
        in_the_end(async || count(&state, "demo").await).await;
        let metrics = in_the_end(async || state.metrics(None).await).await;
        assert_eq!(metrics[0].calls, 2, "what was committed is there");
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

#[test]
fn lines_of_a_log_are_kept_with_their_end_or_not_at_all() {
    let Some(server) = server() else { return };
    block_on(async {
        let state = State::join(&fresh(&server)).await.unwrap();
        let shared = state.shared().unwrap();
        let replica = |head: &str| Replica { key: "ed25519:a".into(), head: head.into() };
        let lines = |from: u64| {
            vec![(from, format!("{{\"x\":\"\\u0000 {from}\"}}")), (from + 1, "y".into())]
        };
        let mut parts = vec![vec![], lines(3), lines(1)];
        let kept = shared.keep_lines(&replica("first"), || Ok::<_, ()>(parts.pop().unwrap())).await;
        assert_eq!(kept.unwrap(), Ok(()));
        assert_eq!(shared.last_line("ed25519:a").await.unwrap(), 4);
        // What cannot be read half-way is not kept half.
        let mut parts = vec![Err("gone"), Ok(lines(5))];
        let kept = shared.keep_lines(&replica("second"), || parts.pop().unwrap()).await;
        assert_eq!(kept.unwrap(), Err("gone"));
        assert_eq!(shared.replicas().await.unwrap(), [replica("first")]);
        let all = shared.lines_after("ed25519:a", 1, 10).await.unwrap();
        assert_eq!(all.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2, 3, 4]);
        let last = shared.lines_before("ed25519:a", 4, 2).await.unwrap();
        assert_eq!(last, [lines(3)[0].clone(), lines(1)[1].clone()]);
        assert_eq!(shared.last_line("ed25519:b").await.unwrap(), 0);
        let folded = shared.fold_lines(|_| 0, |sum, seq, _| *sum += seq).await.unwrap();
        assert_eq!(folded, [(replica("first"), 10)]);
    });
}

#[test]
fn what_is_left_for_a_replica_is_had_once_and_answered_to_who_waits() {
    let Some(server) = server() else { return };
    let address = server.database();
    let database = Database::parse(&address).unwrap();
    block_on(async {
        let [one, other] =
            [State::join(&database).await.unwrap(), State::join(&database).await.unwrap()];
        let (asks, has) = (one.shared().unwrap(), other.shared().unwrap());
        let inquiry = |id: &str| Inquiry { id: id.to_owned(), request: format!("{id}?") };
        let left = async |id: &str| asks.leave_inquiry("them", &inquiry(id)).await.unwrap();
        left("a").await;
        assert_eq!(asks.hear("a").await.unwrap(), Heard::default());
        assert_eq!(has.take_inquiries("others").await.unwrap(), []);
        assert_eq!(has.take_inquiries("them").await.unwrap(), [inquiry("a")]);
        assert_eq!(has.take_inquiries("them").await.unwrap(), []);
        assert!(has.beat("a").await.unwrap());
        has.answer_inquiry("a", "yes").await.unwrap();
        let heard = asks.hear("a").await.unwrap();
        assert_eq!(heard, Heard { beats: 2, answer: Some("yes".to_owned()) });
        // Nobody works on what nobody waits for.
        asks.forget_inquiry("a").await.unwrap();
        assert!(!has.beat("a").await.unwrap());
        has.answer_inquiry("a", "late").await.unwrap();
        assert_eq!(asks.hear("a").await.unwrap(), Heard::default());
        // Nor on what was left by one that went; it is taken away.
        left("b").await;
        left("c").await;
        let ages = "UPDATE inquiries SET awaited = awaited - 61000 WHERE id = 'b'";
        done(&address, ages).await;
        assert_eq!(has.take_inquiries("them").await.unwrap(), [inquiry("c")]);
        done(&address, "UPDATE inquiries SET awaited = awaited - 61000").await;
        assert!(!has.beat("c").await.unwrap());
        asks.await_inquiry("c").await.unwrap();
        assert!(has.beat("c").await.unwrap());
        asks.tidy_inquiries().await.unwrap();
        left("b").await;
        assert_eq!(has.take_inquiries("them").await.unwrap(), [inquiry("b")]);
    });
}

#[test]
fn another_moment_is_told_from_the_one_before() {
    let Some(server) = server() else { return };
    let database = fresh(&server);
    block_on(async {
        let [one, other] =
            [State::join(&database).await.unwrap(), State::join(&database).await.unwrap()];
        let moment = async || one.shared().unwrap().moment().await.unwrap();
        let before = moment().await;
        assert_eq!(moment().await, before);
        count(&other, "demo").await.unwrap();
        assert_ne!(moment().await, before);
    });
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    block_on(async {
        let database = Database::parse(&format!("postgres://eve7@127.0.0.1:{port}/tools")).unwrap();
        let joined = tokio::time::timeout(Duration::from_secs(20), State::join(&database));
        let error = joined.await.expect("it is given up").unwrap_err();
        assert!(whole(&error).contains("no answer came in time"), "{}", whole(&error));
    });
}
