//! What must hold for any bytes that may be an index.

use proptest::prelude::{prop_assert, prop_assert_eq};
use search::{Index, LastWord, Query};

use super::Kept;

/// What every index begins with.
const HEAD: &[u8] = b"haft-search\0\x01\0\0\0";

/// An index, or what is between its head and its checksum: what is accepted is written as it was read, has
/// every document once, finds no more than it has, and takes no more memory than its bytes can answer for.
pub fn search_index(bytes: &[u8]) -> Kept {
    check(bytes)?;
    let mut whole = [HEAD, bytes].concat();
    whole.extend(crc32fast::hash(&whole).to_le_bytes());
    check(&whole)
}

fn check(bytes: &[u8]) -> Kept {
    let index = match Index::from_bytes(bytes) {
        Ok(index) => index,
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    prop_assert_eq!(&index.to_bytes(), bytes);
    let memory = index.memory();
    prop_assert!(memory.total <= (64 << 10) + bytes.len() * 64, "{memory:?}");
    let all = index.search(&Query::new(""));
    prop_assert_eq!(all.total, memory.documents);
    let query = Query::new("pdf reeder on").last_word(LastWord::Begun);
    let page = index.search(&query);
    prop_assert!(page.total <= all.total);
    for hit in page.hits {
        prop_assert!(hit.score > 0.0 && hit.score.is_finite());
        prop_assert!(index.explain(&query, &hit.key).is_some());
    }
    let before = index.search(&query);
    index.compact();
    prop_assert_eq!(index.search(&query), before);
    Ok(())
}
