//! Archives made by chance, and damaged ones.
//!
//! About half of them are clean: whoever compares two readers needs archives
//! that both accept, and that no person would have thought of.

use proptest::strategy::Strategy;

use super::zip::{Item, Place, Zip, extra};
use crate::draws::{Draws, made};

/// Archives made by chance; now and then a field is wrong.
pub fn drawn() -> impl Strategy<Value = Vec<u8>> {
    made(60, |draws| draw(draws).bytes())
}

/// Archives of these in which a few fields or bytes were changed.
pub fn damaged(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    made(24, move |draws| {
        let mut bytes = draws.pick(&seeds);
        for _ in 0..=draws.below(3) {
            damage(&mut bytes, draws);
        }
        bytes
    })
}

fn draw(draws: &mut Draws<'_>) -> Zip {
    let mut zip = Zip::default();
    for index in 0..draws.below(6) {
        let item = item(index, draws);
        zip.items.push(item);
    }
    if draws.once_in(6) {
        let digits = draws.pick(&[40, 64, 20]);
        zip.comment = b"0123456789abcdef".repeat(4)[..digits].to_vec();
    }
    if draws.once_in(30) {
        zip.prefix = b"#!".to_vec();
    }
    if draws.once_in(30) {
        zip.gap = vec![0];
    }
    if draws.once_in(30) {
        zip.trailing = vec![0];
    }
    zip
}

fn item(index: usize, draws: &mut Draws<'_>) -> Item {
    const NAMES: [&str; 16] = [
        "a", "b", "c/d", "c/e", "c/e/f", "é", "e\u{301}", "日本", "A", "x.zip", "f;1", "f", "f'g",
        "c", "zz.zz", "(x) [y]",
    ];
    let name = match draws.below(3) {
        0 => format!("{index}"),
        1 => format!("{index}/{}", draws.pick(&NAMES)),
        _ => draws.pick(&NAMES).to_owned(),
    };
    let content = content(draws);
    let mut item = match draws.below(8) {
        0..=2 => Item::stored(&name, &content),
        3..=6 => Item::deflated(&name, &content),
        _ => Item::folder(&format!("{name}/")),
    };
    if item.central.method == 8 && draws.once_in(3) {
        item = item.described(draws.pick(&[&b"PK\x07\x08"[..], b""]));
    }
    if draws.once_in(3) {
        item.local.extra = field(&item, draws);
    }
    if draws.once_in(3) {
        item.central.extra = field(&item, draws);
    }
    if draws.once_in(3) && item.central.name.last() != Some(&b'/') {
        item.external =
            draws.pick(&[0o100_755_u32, 0o100_600, 0o755, 0]) << 16 | draws.pick(&[0, 0x20, 1]);
    }
    if draws.once_in(3) {
        item.made_by = draws.pick(&[3_u16, 0, 10, 11, 14, 19, 7]) << 8 | 0x14;
    }
    if draws.once_in(3) {
        let (time, date) = (draws.pick(&[0, 0xffff, 0x1234]), draws.pick(&[0x21, 0, 0xffff]));
        item = item.both(|header| (header.time, header.date) = (time, date));
    }
    if draws.once_in(40) {
        item.place = draws.pick(&[Place::Entries, Place::Directory]);
    }
    if draws.once_in(40) {
        item.local.name = b"other".to_vec();
    }
    item
}

fn content(draws: &mut Draws<'_>) -> Vec<u8> {
    match draws.below(5) {
        0 => Vec::new(),
        1 => b"text ".repeat(draws.below(500)),
        2 => vec![0; draws.below(100_000)],
        3 => (0..draws.below(40)).map(|_| draws.below(256).to_le_bytes()[0]).collect(),
        _ => draws
            .pick(&[
                &b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
                b"PK\x03\x04",
                b"PK\x07\x08",
                b"PK\x06\x07",
            ])
            .repeat(1 + draws.below(3)),
    }
}

fn field(item: &Item, draws: &mut Draws<'_>) -> Vec<u8> {
    let name =
        [&[1][..], &crc32fast::hash(&item.local.name).to_le_bytes(), &item.local.name].concat();
    match draws.below(6) {
        0 => extra(0x5455, &[1, 0, 0, 0, 0]),
        1 => extra(0x7875, &[1, 1, 0, 1, 0]),
        2 => extra(0x7075, &name),
        3 => [extra(0x000a, &[0; 32]), extra(0x5855, &[0; 8])].concat(),
        4 => extra(0x5455, &b"PK\x06\x07".repeat(6)),
        _ => extra(draws.pick(&[0xcafe_u16, 1, 0x6375]), &[0; 4]),
    }
}

/// Changes a field of a record, or a few bytes anywhere.
fn damage(bytes: &mut Vec<u8>, draws: &mut Draws<'_>) {
    const MARKS: [&[u8]; 3] = [b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"];
    const VALUES: [u32; 12] =
        [0, 1, 2, 8, 20, 22, 30, 0xff, 0xffff, 0x7fff_ffff, 0xffff_fffe, 0xffff_ffff];
    if draws.below(3) == 2 {
        return crate::bytes::damage(bytes, draws);
    }
    let mark = draws.pick(&MARKS);
    let places: Vec<_> =
        bytes.windows(4).enumerate().filter(|(_, at)| *at == mark).map(|(at, _)| at).collect();
    if places.is_empty() {
        return;
    }
    let at = draws.pick(&places) + 4 + 2 * draws.below(21);
    let width = draws.pick(&[2, 4, 1]);
    let value = draws.pick(&VALUES).to_le_bytes();
    let is_step = draws.once_in(2);
    let Some(field) = bytes.get_mut(at..at + width) else { return };
    if is_step {
        field[0] = field[0].wrapping_add(value[0]);
    } else {
        field.copy_from_slice(&value[..width]);
    }
}
