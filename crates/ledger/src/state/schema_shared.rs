//! The tables of a shared database, version by version.

use sqlx::raw_sql;

use super::StateError;
use super::query::{Alone, Connection, Turn, in_time, query};

/// What each version adds. What is here once is never changed; a new version is a new line.
const VERSIONS: &[&str] =
    &[include_str!("shared_1.sql"), include_str!("shared_2.sql"), include_str!("shared_3.sql")];

/// The version of a database that has them all.
const KNOWN: i64 = VERSIONS.len().cast_signed() as i64;

/// Brings a database to the last version. Several replicas may do so at once.
pub(super) async fn bring_up(
    connection: &mut Connection<'_>,
    place: &str,
) -> Result<(), StateError> {
    let failed = |error| StateError::opening(place, error);
    let mut alone = connection.alone(Turn::Tables).await.map_err(failed)?;
    let version = check(&mut alone, place).await?;
    if version == KNOWN {
        return Ok(());
    }
    let done = usize::try_from(version).unwrap_or(VERSIONS.len());
    if let Alone::Postgres(alone) = &mut alone {
        for tables in VERSIONS.iter().skip(done) {
            in_time(raw_sql(*tables).execute(&mut **alone)).await.map_err(failed)?;
        }
    }
    let noted = query(match version {
        0 => "INSERT INTO haft_state VALUES (1, $1)",
        _ => "UPDATE haft_state SET version = $1",
    });
    noted.bind(KNOWN).execute(&mut alone).await.map_err(failed)?;
    alone.commit().await.map_err(failed)
}

/// The version of a database that is ours, or empty.
async fn check(alone: &mut Alone<'_>, place: &str) -> Result<i64, StateError> {
    let failed = |error| StateError::opening(place, error);
    let (ours, tables): (i64, i64) = query(
        "SELECT count(*) FILTER (WHERE table_name = 'haft_state'), count(*) \
         FROM information_schema.tables \
         WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'",
    )
    .fetch_one(&mut *alone)
    .await
    .map_err(failed)?;
    if ours == 0 {
        let foreign = StateError::Foreign { place: place.to_owned() };
        return if tables == 0 { Ok(0) } else { Err(foreign) };
    }
    let asked = query("SELECT version FROM haft_state").fetch_one(alone);
    let (found,): (i64,) = asked.await.map_err(failed)?;
    if found > KNOWN {
        return Err(StateError::Newer { place: place.to_owned(), found, known: KNOWN });
    }
    Ok(found)
}
