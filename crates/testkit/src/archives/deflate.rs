//! Compressed data, also such as no compressor would make.

use flate2::{Compress, Compression, FlushCompress};

/// The last block, with nothing in it.
pub const END: &[u8] = &[0x03, 0x00];

/// A block with nothing in it, and not the last.
pub const NOTHING: &[u8] = &[0x00, 0x00, 0x00, 0xff, 0xff];

/// Compresses as anybody would.
pub fn deflate(content: &[u8]) -> Vec<u8> {
    deflate_with(content, Compression::new(6))
}

/// Compresses as hard as told.
pub fn deflate_with(content: &[u8], level: Compression) -> Vec<u8> {
    run(content, level, FlushCompress::Finish)
}

/// Blocks that can be followed by other blocks, or by themselves: they look back at nothing.
pub fn blocks(content: &[u8]) -> Vec<u8> {
    run(content, Compression::new(9), FlushCompress::Full)
}

/// A whole stream of the same blocks, again and again.
pub fn repeated(blocks: &[u8], times: usize) -> Vec<u8> {
    [&blocks.repeat(times), END].concat()
}

/// A block of bytes as they are.
pub fn stored_block(content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).expect("a stored block is short");
    [&[0x00][..], &len.to_le_bytes(), &(!len).to_le_bytes(), content].concat()
}

/// Bytes that do not shrink, always the same.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn run(content: &[u8], level: Compression, flush: FlushCompress) -> Vec<u8> {
    let mut compress = Compress::new(level, false);
    let mut out = Vec::with_capacity(content.len() + content.len() / 8 + 256);
    compress
        .compress_vec(content, &mut out, flush)
        .expect("memory can be compressed, and the room suffices");
    out
}
