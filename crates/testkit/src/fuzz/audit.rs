//! What must hold for any bytes that may be a line of the audit log.

use ledger::audit::line::{Hash, LineError, MAX_LINE, link, parse};
use proptest::prelude::{prop_assert, prop_assert_eq};

use super::Kept;

/// A line: what is accepted is one JSON object that has the hash it names.
pub fn audit_line(bytes: &[u8]) -> Kept {
    let read = link(bytes);
    if bytes.len() > MAX_LINE {
        prop_assert_eq!(read, Err(LineError::TooLong));
        return Ok(());
    }
    let Ok(link) = read else {
        prop_assert!(parse(bytes).is_err());
        return Ok(());
    };
    let value: serde_json::Value = serde_json::from_slice(bytes)?;
    prop_assert_eq!(value["seq"].as_u64(), Some(link.seq));
    let (prev, hash) = (link.prev.to_string(), link.hash.to_string());
    prop_assert_eq!(value["prev"].as_str(), Some(prev.as_str()));
    prop_assert_eq!(value["hash"].as_str(), Some(hash.as_str()));
    let at = bytes.windows(8).rposition(|part| part == b",\"hash\":").unwrap_or_default();
    prop_assert_eq!(link.computed, Hash::of(&bytes[..at]), "the page tells how it is taken");
    match parse(bytes) {
        Ok(record) => {
            prop_assert_eq!(link.computed, link.hash);
            prop_assert_eq!((record.seq, record.prev, record.hash), (link.seq, prev, hash));
        }
        Err(LineError::WrongHash) => prop_assert!(link.computed != link.hash),
        Err(_) => {}
    }
    Ok(())
}
