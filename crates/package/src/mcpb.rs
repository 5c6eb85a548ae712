//! The signature that MCPB files carry after the archive.
//!
//! A mark, the length of the signature, the signature, a mark. It is cut off
//! before the archive is read, and counts for nothing: what it covers is not
//! what Haft installs.

use std::io;

use crate::record;
use crate::source::Source;

const HEADER: &[u8] = b"MCPB_SIG_V1";
const FOOTER: &[u8] = b"MCPB_SIG_END";

/// The longest signature that is cut off.
const MAX_SIGNATURE: usize = 256 * 1024;

/// Where the archive ends and its signature begins; nothing when there is none.
pub(crate) fn trailer(source: &Source, len: u64) -> io::Result<Option<u64>> {
    let frame = HEADER.len() + 4 + FOOTER.len();
    let tail_len = usize::try_from(len).unwrap_or(usize::MAX).min(MAX_SIGNATURE + frame);
    if tail_len < frame {
        return Ok(None);
    }
    let tail = source.part(len - tail_len as u64, tail_len)?;
    if !tail.ends_with(FOOTER) {
        return Ok(None);
    }
    // The length must lead from one mark exactly to the other.
    let fits = |at: &usize| {
        let after = &tail[at + HEADER.len()..];
        let Some(stated) = after.get(..4).and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        after.len() == u32::from_le_bytes(stated) as usize + 4 + FOOTER.len()
    };
    let starts = tail.windows(HEADER.len()).enumerate();
    let at = starts.filter(|(_, window)| *window == HEADER).map(|(at, _)| at).find(fits);
    Ok(at.map(|at| len - tail_len as u64 + at as u64))
}

/// Whether a signature holds what other readers would take for the end of another archive.
/// They look for it from the end on, and do not cut anything off first.
pub(crate) fn has_end_record(source: &Source, end: u64, len: u64) -> io::Result<bool> {
    let tail = source.part(end, usize::try_from(len - end).unwrap_or(usize::MAX))?;
    Ok(tail.windows(4).any(|mark| record::mark(mark) == Some(record::END)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Option<u64> {
        let source = Source::Bytes(bytes.to_vec());
        trailer(&source, bytes.len() as u64).ok().flatten()
    }

    #[test]
    fn a_signature_is_cut_off_only_when_it_fits() {
        let signed = |stated: u32| {
            [&b"archive"[..], HEADER, &stated.to_le_bytes(), b"12345", FOOTER].concat()
        };
        assert_eq!(cut(&signed(5)), Some(7));
        assert_eq!(cut(&signed(4)), None);
        assert_eq!(cut(b"archive"), None);
        assert_eq!(cut(&[&signed(5)[..], b"x"].concat()), None);
        assert_eq!(cut(&[HEADER, FOOTER].concat()), None);
    }
}
