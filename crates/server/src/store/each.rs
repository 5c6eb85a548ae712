//! Rows read one by one: one that cannot be read is left out and counted, and breaks no other.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Row};

use super::{Store, StoreError, asking};

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<T> {
    /// The rows that can be read, in order.
    pub rows: Vec<T>,
    /// How many cannot.
    pub unread: usize,
}

impl Store {
    /// Reads all rows that a question finds.
    pub(super) async fn each<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        doing: &'static str,
        read: impl Fn(&AnyRow) -> Result<T, sqlx::Error>,
    ) -> Result<Read<T>, StoreError> {
        let mut rows = Vec::new();
        let keep = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        let unread = self.each_while(query, doing, read, keep).await?;
        Ok(Read { rows, unread })
    }

    /// Gives rows to `keep` as they come, until it has enough; how many could not be read.
    pub(super) async fn each_while<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        doing: &'static str,
        read: impl Fn(&AnyRow) -> Result<T, sqlx::Error>,
        mut keep: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<usize, StoreError> {
        let _asking = asking(doing);
        // On a connection of its own the rows behind a broken one still come; the pool ends with the first failure.
        let mut connection = self.pool.acquire().await.map_err(StoreError::query(doing))?;
        let mut found = query.fetch(&mut *connection);
        let mut unread = 0;
        while let Some(row) = found.next().await {
            match row.and_then(|row| read(&row)) {
                Ok(row) => {
                    if keep(row).is_break() {
                        break;
                    }
                }
                Err(error) if is_unreadable(&error) => unread += 1,
                Err(error) => return Err(StoreError::query(doing)(error)),
            }
        }
        self.unread.fetch_add(unread as u64, Ordering::Relaxed);
        Ok(unread)
    }

    /// The ids that a question finds and that are not among those that can be read.
    pub(super) async fn ids_unread(
        &self,
        ids: Query<'_, Any, AnyArguments>,
        doing: &'static str,
        readable: HashSet<String>,
    ) -> Result<Vec<String>, StoreError> {
        let Read { mut rows, unread } = self.each(ids, doing, |row| row.try_get(0)).await?;
        rows.retain(|id| !readable.contains(id));
        rows.extend(std::iter::repeat_n("?".to_owned(), unread));
        Ok(rows)
    }

    /// How often a row could not be read since the start.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }
}

/// Whether it is the bytes of a row that are wrong, not the database.
pub(super) fn is_unreadable(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } | sqlx::Error::AnyDriverError(_)
    )
}
