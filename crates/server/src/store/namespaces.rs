//! What is known of a namespace: when it published, with which keys, from which builds, and who else may.

use std::collections::BTreeMap;

use registry::Provenance;
use sqlx::Row;

use super::{Store, StoreError, asking, read};

const READ: &str = "look for a namespace";
/// How many of its versions are looked at: those of the tools that have changed last.
const LOOKED_AT: i64 = 500;
/// How many other namespaces are told.
const OWNERS: i64 = 50;

/// What is known of a namespace, of the versions that are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// When its last version was published, in milliseconds since 1970.
    pub published_at: Option<u64>,
    /// The keys that have signed every file of a version, and of how many, the most used first.
    pub keys: Vec<(String, usize)>,
    /// Where versions were built, as their issuers have sworn, and how many, the most used first.
    pub builds: Vec<(Build, usize)>,
    /// The other namespaces that may publish some of its tools, and how many.
    pub owners: Vec<(String, usize)>,
    /// Whether there are more versions than were looked at.
    pub is_cut: bool,
}

/// Where a version was built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    /// The repository, or of whom it was sworn where there is none.
    pub of: String,
    /// Who has sworn it.
    pub issuer: String,
}

impl Store {
    /// What is known of a namespace. It costs the same however many tools there are.
    pub async fn namespace(&self, name: &str) -> Result<Namespace, StoreError> {
        let _asking = asking(READ);
        let rows = sqlx::query(
            "SELECT v.signers, v.provenance, v.published_at FROM packages p \
             JOIN versions v ON v.package = p.id \
             WHERE p.namespace = $1 AND v.channel IN ('stable', 'beta') \
             ORDER BY p.changed DESC LIMIT $2",
        )
        .bind(name)
        .bind(LOOKED_AT)
        .fetch_all(&self.pool)
        .await
        .map_err(StoreError::query(READ))?;
        let mut known = Namespace {
            owners: self.owners_in(name).await?,
            is_cut: i64::try_from(rows.len()).is_ok_and(|count| count == LOOKED_AT),
            ..Namespace::default()
        };
        let (mut keys, mut builds) = (BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let signers: String = row.try_get(0).map_err(StoreError::query(READ))?;
            for key in signers.split_whitespace() {
                *keys.entry(key.to_owned()).or_default() += 1;
            }
            let provenance: Option<String> = row.try_get(1).map_err(StoreError::query(READ))?;
            let sworn = provenance.and_then(|text| serde_json::from_str::<Provenance>(&text).ok());
            if let Some(Provenance { issuer, subject, repository, .. }) = sworn {
                let build = Build { of: repository.unwrap_or(subject), issuer };
                *builds.entry(build).or_default() += 1;
            }
            let published_at = read(row.try_get(2).map_err(StoreError::query(READ))?);
            known.published_at = known.published_at.max(Some(published_at));
        }
        (known.keys, known.builds) = (most_used(keys), most_used(builds));
        Ok(known)
    }

    async fn owners_in(&self, namespace: &str) -> Result<Vec<(String, usize)>, StoreError> {
        // In this order: there are far fewer owners than packages.
        let rows = sqlx::query(
            "SELECT o.namespace, COUNT(*) FROM owners o CROSS JOIN packages p \
             WHERE p.id = o.package AND p.namespace = $1 AND p.latest IS NOT NULL \
             GROUP BY o.namespace ORDER BY COUNT(*) DESC, o.namespace LIMIT $2",
        )
        .bind(namespace)
        .bind(OWNERS)
        .fetch_all(&self.pool)
        .await
        .map_err(StoreError::query(READ))?;
        let mut owners = Vec::with_capacity(rows.len());
        for row in rows {
            let count: i64 = row.try_get(1).map_err(StoreError::query(READ))?;
            let name = row.try_get(0).map_err(StoreError::query(READ))?;
            owners.push((name, usize::try_from(count).unwrap_or_default()));
        }
        Ok(owners)
    }
}

fn most_used<T>(counted: BTreeMap<T, usize>) -> Vec<(T, usize)> {
    let mut sorted: Vec<_> = counted.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}
