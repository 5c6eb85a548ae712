//! What can be typed after the flags of `haft sandbox`, and what is said of what cannot.

use sandbox::Level;

use crate::walls;

/// Below this nothing can be started at all.
const LEAST_MEMORY: u64 = 8 << 20;

pub(super) fn memory(text: &str) -> Result<u64, String> {
    match crate::commands::size(text)? {
        size if size < LEAST_MEMORY => Err("the least is 8M; write a unit, such as 512M".into()),
        size => Ok(size),
    }
}

pub(super) fn processors(text: &str) -> Result<u32, String> {
    let number: f64 = text.parse().map_err(|_| "write a number such as 1.5".to_owned())?;
    if !(0.01..=1024.0).contains(&number) {
        return Err("write a number from 0.01 to 1024".into());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked")]
    Ok((number * 100.0).round() as u32)
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    match Level::parse(text) {
        Some(level) if level >= walls::REQUIRED => Ok(level),
        Some(_) => Err("only L2 and L3; no flag lowers the walls".into()),
        None => Err("write L2 or L3".into()),
    }
}
