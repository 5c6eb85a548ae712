//! What replicas share beyond what a home has: the key of their seals, and the lines of their logs.
//!
//! Every replica writes the log of its home, a chain of its own, signed with a key of its own. What is here is a copy of
//! each, line by line, under the public key that signs it: whoever changes a line, takes one away or puts one in cannot
//! sign that.

use serde_json::json;

use super::query::{On, Query, Turn, query};
use super::{State, StateError, read, stored};

/// How many lines are read at a time.
const AT_A_TIME: i64 = 1_000;

/// What replicas share.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'s>(pub(super) &'s State);

/// A replica whose log is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The public key that signs its log.
    pub key: String,
    /// The signed end of its log.
    pub head: String,
}

/// A line of a log, and its number.
pub type Line = (u64, String);

impl State {
    /// What replicas share; nothing where the state is that of one home.
    pub fn shared(&self) -> Option<Shared<'_>> {
        self.is_shared().then_some(Shared(self))
    }
}

impl Shared<'_> {
    /// The key that seals what clients bring back to any replica; it is made by whoever comes first.
    pub async fn seal_key(self) -> Result<[u8; 32], StateError> {
        let failed = |error| self.0.failed("read the key of seals", error);
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|_| StateError::NoRandomness)?;
        let mut connection = self.0.connection().await?;
        query("INSERT INTO seal_key VALUES (1, $1) ON CONFLICT DO NOTHING")
            .bind(&fresh[..])
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        let kept = query("SELECT key FROM seal_key").fetch_one(&mut connection).await;
        let (key,): (Vec<u8>,) = kept.map_err(failed)?;
        key.try_into()
            .map_err(|_| failed(sqlx::Error::Io(std::io::Error::other("it has another length"))))
    }

    /// The number of the last line that is here of a replica; zero where there is none.
    pub async fn last_line(self, replica: &str) -> Result<u64, StateError> {
        let (last,): (i64,) =
            query("SELECT coalesce(max(seq), 0) FROM audit_lines WHERE replica = $1")
                .bind(replica)
                .fetch_one(&mut self.0.connection().await?)
                .await
                .map_err(|error| self.0.failed("look for the log of a replica", error))?;
        Ok(read(last))
    }

    /// Keeps lines of a replica and the signed end that they lead to: all or none. Whoever has no more is asked for no
    /// lines. A line that is here stays as it is.
    pub async fn keep_lines<E>(
        self,
        replica: &Replica,
        mut more: impl FnMut() -> Result<Vec<Line>, E>,
    ) -> Result<Result<(), E>, StateError> {
        let failed = |error| self.0.failed("keep the log of a replica", error);
        let mut connection = self.0.connection().await?;
        let mut alone = connection.alone(Turn::Lines).await.map_err(failed)?;
        loop {
            let lines = match more() {
                Ok(lines) => lines,
                Err(error) => return Ok(Err(error)),
            };
            if lines.is_empty() {
                break;
            }
            let rows: Vec<_> =
                lines.iter().map(|(seq, line)| json!({ "seq": seq, "line": line })).collect();
            query(
                "INSERT INTO audit_lines SELECT $1, seq, line \
                 FROM json_to_recordset($2::json) AS rows (seq BIGINT, line TEXT) \
                 ON CONFLICT (replica, seq) DO NOTHING",
            )
            .bind(&replica.key)
            .bind(serde_json::Value::from(rows).to_string())
            .execute(&mut alone)
            .await
            .map_err(failed)?;
        }
        query(
            "INSERT INTO audit_heads VALUES ($1, $2) \
             ON CONFLICT (replica) DO UPDATE SET head = excluded.head",
        )
        .bind(&replica.key)
        .bind(&replica.head)
        .execute(&mut alone)
        .await
        .map_err(failed)?;
        alone.commit().await.map_err(failed)?;
        Ok(Ok(()))
    }

    /// Every replica of which something is here: also where its lines or its end are gone.
    pub async fn replicas(self) -> Result<Vec<Replica>, StateError> {
        let listed = replicas(&mut self.0.connection().await?).await;
        listed.map_err(|error| self.0.failed("list replicas", error))
    }

    /// Every line of every replica, as all of it was at one moment: what begins with a replica goes on with each of its
    /// lines.
    pub async fn fold_lines<T>(
        self,
        mut begin: impl FnMut(&Replica) -> T,
        mut next: impl FnMut(&mut T, u64, &str),
    ) -> Result<Vec<(Replica, T)>, StateError> {
        let failed = |error| self.0.failed("read the log of a replica", error);
        let mut connection = self.0.connection().await?;
        let mut moment = connection.moment().await.map_err(failed)?;
        let mut all = Vec::new();
        for replica in replicas(&mut moment).await.map_err(failed)? {
            let mut made = begin(&replica);
            let mut last = i64::MIN;
            loop {
                let lines: Vec<(i64, String)> = query(
                    "SELECT seq, line FROM audit_lines WHERE replica = $1 AND seq > $2 \
                     ORDER BY seq LIMIT $3",
                )
                .bind(&replica.key)
                .bind(last)
                .bind(AT_A_TIME)
                .fetch_all(&mut moment)
                .await
                .map_err(failed)?;
                let Some((end, _)) = lines.last() else { break };
                last = *end;
                for (seq, line) in &lines {
                    next(&mut made, read(*seq), line);
                }
            }
            all.push((replica, made));
        }
        Ok(all)
    }

    /// Lines of a replica after one, in their order; at most so many.
    pub async fn lines_after(
        self,
        replica: &str,
        seq: u64,
        most: u32,
    ) -> Result<Vec<Line>, StateError> {
        let asked = query(
            "SELECT seq, line FROM audit_lines WHERE replica = $1 AND seq > $2 \
             ORDER BY seq LIMIT $3",
        );
        self.lines(asked.bind(replica).bind(stored(seq)).bind(i64::from(most))).await
    }

    /// Lines of a replica before one, the last one first; at most so many.
    pub async fn lines_before(
        self,
        replica: &str,
        seq: u64,
        most: u32,
    ) -> Result<Vec<Line>, StateError> {
        let asked = query(
            "SELECT seq, line FROM audit_lines WHERE replica = $1 AND seq < $2 \
             ORDER BY seq DESC LIMIT $3",
        );
        self.lines(asked.bind(replica).bind(stored(seq)).bind(i64::from(most))).await
    }

    async fn lines(self, asked: Query<'_>) -> Result<Vec<Line>, StateError> {
        let rows: Vec<(i64, String)> = asked
            .fetch_all(&mut self.0.connection().await?)
            .await
            .map_err(|error| self.0.failed("read the log of a replica", error))?;
        Ok(rows.into_iter().map(|(seq, line)| (read(seq), line)).collect())
    }

    /// What tells one moment of the state from another, as far as the owner is shown it.
    pub async fn moment(self) -> Result<String, StateError> {
        let (moment,): (String,) = query(
            "SELECT concat_ws(' ', \
             (SELECT concat_ws(' ', count(*), max(created), max(answered), max(used)) FROM tickets), \
             (SELECT concat_ws(' ', count(*), max(id)) FROM rules), \
             (SELECT concat_ws(' ', count(*), max(created)) FROM grants), \
             (SELECT concat_ws(' ', count(*), sum(count)) FROM blocked), \
             (SELECT concat_ws(' ', sum(calls), max(last_used)) FROM totals), \
             (SELECT concat_ws(' ', count(*), max(at)) FROM wishes), \
             (SELECT concat_ws(' ', max(id), count(over)) FROM regressions), \
             (SELECT concat_ws(' ', count(*), max(at)) FROM tests), \
             (SELECT md5(string_agg(head, ' ' ORDER BY replica)) FROM audit_heads))",
        )
        .fetch_one(&mut self.0.connection().await?)
        .await
        .map_err(|error| self.0.failed("look whether anything is new", error))?;
        Ok(moment)
    }
}

async fn replicas(on: impl Into<On<'_>>) -> Result<Vec<Replica>, sqlx::Error> {
    let rows: Vec<(String, String)> = query(
        "SELECT replica, coalesce(max(head), '') FROM \
         (SELECT replica, head FROM audit_heads \
         UNION ALL SELECT DISTINCT replica, NULL FROM audit_lines) AS known \
         GROUP BY replica ORDER BY replica",
    )
    .fetch_all(on)
    .await?;
    Ok(rows.into_iter().map(|(key, head)| Replica { key, head }).collect())
}
