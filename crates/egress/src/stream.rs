//! Bytes on their way: a head as it arrives, a body within its own bounds.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::head::{Framing, HeadError};

/// Bytes that are read at once, for each direction of each connection.
pub(crate) const PIECE: usize = 16 * 1024;
/// Bytes of a chunk's first line, and of all trailers together.
const CHUNK_LINE: usize = 512;
const TRAILERS: usize = 8 * 1024;

/// Why bytes stopped passing.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The side they came from failed, or left too early.
    From,
    /// The side they went to failed.
    To,
    /// The chunks are damaged.
    Chunks,
}

/// Why there is no head.
#[derive(Debug)]
pub(crate) enum NoHead {
    /// The other side failed, or left too early.
    Left,
    /// What came cannot be a head.
    Bad(HeadError),
}

/// Reads up to and with the first empty line, and not a byte further.
pub(crate) async fn read_head(
    from: &mut (impl AsyncBufRead + Unpin),
    most: usize,
    head: &mut Vec<u8>,
) -> Result<(), NoHead> {
    loop {
        let piece = from.fill_buf().await.map_err(|_| NoHead::Left)?;
        if piece.is_empty() {
            return Err(NoHead::Left);
        }
        let mut taken = 0;
        for byte in piece {
            taken += 1;
            // Told at once, since a client that ends its lines so waits for an answer.
            if *byte == b'\n' && head.last() != Some(&b'\r') {
                return Err(NoHead::Bad(HeadError::LineEnd));
            }
            if head.len() == most {
                return Err(NoHead::Bad(HeadError::TooLarge));
            }
            head.push(*byte);
            if head.ends_with(b"\r\n\r\n") {
                break;
            }
        }
        from.consume(taken);
        if head.ends_with(b"\r\n\r\n") {
            return Ok(());
        }
    }
}

/// Passes everything on until the end, then says so.
pub(crate) async fn pass_all(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    passed: &AtomicU64,
) -> Result<(), Broken> {
    while pass_piece(from, to, u64::MAX, passed).await? > 0 {}
    // Whether the other side still listens does not matter any more.
    let _ = to.shutdown().await;
    Ok(())
}

/// Passes one body on. What follows it is not touched.
pub(crate) async fn pass_body(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    (framing, onward): (Framing, Framing),
    passed: &AtomicU64,
) -> Result<(), Broken> {
    match framing {
        Framing::Empty => Ok(()),
        Framing::UntilClose => pass_all(from, to, passed).await,
        Framing::Length(length) => pass_exactly(from, to, length, passed).await,
        Framing::Chunked => pass_chunks(from, to, onward, passed).await,
    }
}

async fn pass_exactly(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: u64,
    passed: &AtomicU64,
) -> Result<(), Broken> {
    let mut left = length;
    while left > 0 {
        match pass_piece(from, to, left, passed).await? {
            0 => return Err(Broken::From),
            count => left -= count,
        }
    }
    Ok(())
}

/// Passes on what has arrived, but no more than this; 0 at the end.
async fn pass_piece(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    most: u64,
    passed: &AtomicU64,
) -> Result<u64, Broken> {
    let piece = from.fill_buf().await.map_err(|_| Broken::From)?;
    let count = piece.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    to.write_all(&piece[..count]).await.map_err(|_| Broken::To)?;
    from.consume(count);
    let count = count as u64;
    passed.fetch_add(count, Ordering::Relaxed);
    Ok(count)
}

/// Reads chunks and writes chunks of our own, or their bare content for a client that knows none.
///
/// Extensions and trailers end here. A body that is cut off is never ended in order, so
/// that nobody takes a part for the whole.
async fn pass_chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    onward: Framing,
    passed: &AtomicU64,
) -> Result<(), Broken> {
    let is_chunked = onward == Framing::Chunked;
    loop {
        let size = chunk_size(&read_line(from, CHUNK_LINE).await?).ok_or(Broken::Chunks)?;
        if size == 0 {
            break;
        }
        let mut left = size;
        while left > 0 {
            let piece = from.fill_buf().await.map_err(|_| Broken::From)?;
            let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if count == 0 {
                return Err(Broken::From);
            }
            let content = &piece[..count];
            let written = if is_chunked {
                let chunk = [format!("{count:x}\r\n").as_bytes(), content, b"\r\n"].concat();
                to.write_all(&chunk).await
            } else {
                to.write_all(content).await
            };
            written.map_err(|_| Broken::To)?;
            from.consume(count);
            left -= count as u64;
            passed.fetch_add(count as u64, Ordering::Relaxed);
        }
        if !read_line(from, 0).await?.is_empty() {
            return Err(Broken::Chunks);
        }
    }
    let mut left = TRAILERS;
    loop {
        let trailer = read_line(from, left).await?;
        if trailer.is_empty() {
            break;
        }
        left = left.saturating_sub(trailer.len());
    }
    if is_chunked {
        to.write_all(b"0\r\n\r\n").await.map_err(|_| Broken::To)?;
    }
    Ok(())
}

/// The size at the start of a chunk's first line; what follows a semicolon is of no concern.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_plain = (1..=15).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(size).ok().filter(|_| is_plain)?;
    u64::from_str_radix(size, 16).ok()
}

/// A line without its CRLF. LF alone, CR alone, and longer lines are refused.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> Result<Vec<u8>, Broken> {
    let mut line = Vec::new();
    loop {
        let byte = read_byte(from).await.map_err(|_| Broken::From)?;
        match (line.last(), byte) {
            (Some(b'\r'), b'\n') => {
                line.pop();
                return Ok(line);
            }
            (Some(b'\r'), _) | (_, b'\n' | 0) => return Err(Broken::Chunks),
            _ if line.len() > most => return Err(Broken::Chunks),
            _ => line.push(byte),
        }
    }
}

async fn read_byte(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<u8> {
    let first = from.fill_buf().await?.first().copied();
    from.consume(1);
    first.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out of chunks, and what is left behind them.
    fn passed(body: &[u8], onward: Framing) -> Result<(Vec<u8>, Vec<u8>), Broken> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut from, mut to) = (body, Vec::new());
            let count = AtomicU64::new(0);
            pass_body(&mut from, &mut to, (Framing::Chunked, onward), &count).await?;
            Ok((to, from.to_vec()))
        })
    }

    #[test]
    fn chunks_are_written_anew_and_what_follows_stays() {
        let body =
            b"5;name=value\r\nhello\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /next";
        let (chunks, left) = passed(body, Framing::Chunked).unwrap();
        assert_eq!(chunks, b"5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n");
        assert_eq!(left, b"GET /next");
        assert_eq!(passed(body, Framing::UntilClose).unwrap().0, b"hello0123456789");
    }

    #[test]
    fn damaged_chunks_are_refused() {
        for body in [
            &b"5\nhello\r\n0\r\n\r\n"[..],
            b"5\r\nhello0\r\n\r\n",
            b"5\r\nhelloX\r\n0\r\n\r\n",
            b"+5\r\nhello\r\n0\r\n\r\n",
            b"0x5\r\nhello\r\n0\r\n\r\n",
            b"5 \r\nhello\r\n0\r\n\r\n",
            b" 5\r\nhello\r\n0\r\n\r\n",
            b"\r\nhello\r\n0\r\n\r\n",
            b"-1\r\nhello\r\n0\r\n\r\n",
            b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            b"5;a\rb\r\nhello\r\n0\r\n\r\n",
            b"0\r\nTrailer: x\n\r\n",
        ] {
            let result = passed(body, Framing::Chunked);
            assert!(matches!(result, Err(Broken::Chunks)), "{}: {result:?}", body.escape_ascii());
        }
        let long = [&b"5;"[..], &[b'a'; 2000], b"\r\nhello\r\n0\r\n\r\n"].concat();
        assert!(matches!(passed(&long, Framing::Chunked), Err(Broken::Chunks)));
        let result = passed(b"5\r\nhel", Framing::Chunked);
        assert!(matches!(result, Err(Broken::From)), "{result:?}");
    }
}
