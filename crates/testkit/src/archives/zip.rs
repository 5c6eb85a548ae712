//! A writer that writes any field wrongly.
//!
//! An [`Item`] begins as an honest entry. Whatever is then set is written as it
//! is; what is left alone is worked out when the bytes are made.

use super::deflate::deflate;

/// The name is UTF-8.
pub const UTF8: u16 = 1 << 11;
/// Sizes and checksum follow the data.
pub const DESCRIBED_AFTER: u16 = 1 << 3;
/// Version 2.0 of the format, on Unix.
pub const UNIX: u16 = 3 << 8 | 0x14;

/// What both headers of an entry say; each has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the format that a reader needs.
    pub needed: u16,
    /// Flags.
    pub flags: u16,
    /// How the data is compressed.
    pub method: u16,
    /// The time of day.
    pub time: u16,
    /// The day.
    pub date: u16,
    /// The checksum.
    pub crc: u32,
    /// The size of the data.
    pub compressed: u32,
    /// The size of the content.
    pub size: u32,
    /// The name.
    pub name: Vec<u8>,
    /// Extra fields.
    pub extra: Vec<u8>,
}

/// Where an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the entries and in the directory.
    Both,
    /// Only among the entries.
    Entries,
    /// Only in the directory.
    Directory,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it is written.
    pub place: Place,
    /// Bytes before its own header.
    pub before: Vec<u8>,
    /// Its own header.
    pub local: Header,
    /// Its data.
    pub data: Vec<u8>,
    /// What follows the data.
    pub after: Vec<u8>,
    /// What the directory says.
    pub central: Header,
    /// Who made it.
    pub made_by: u16,
    /// A comment.
    pub comment: Vec<u8>,
    /// The disk it lies on.
    pub disk: u16,
    /// Attributes inside.
    pub internal: u16,
    /// Attributes outside.
    pub external: u32,
    /// Where it begins, if that is a lie.
    pub offset: Option<u32>,
}

/// An archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zip {
    /// Bytes before everything, which the offsets do not count.
    pub prefix: Vec<u8>,
    /// The entries.
    pub items: Vec<Item>,
    /// Bytes between the entries and the directory.
    pub gap: Vec<u8>,
    /// Bytes between the directory and the end record.
    pub late: Vec<u8>,
    /// What the end record says.
    pub end: End,
    /// The comment.
    pub comment: Vec<u8>,
    /// Bytes after everything.
    pub trailing: Vec<u8>,
}

/// The end record; what is not set is written as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The number of this disk.
    pub disk: u16,
    /// The disk the directory begins on.
    pub directory_disk: u16,
    /// How many entries are on this disk.
    pub entries_here: Option<u16>,
    /// How many entries there are.
    pub entries: Option<u16>,
    /// The size of the directory.
    pub directory_size: Option<u32>,
    /// Where the directory begins.
    pub directory_offset: Option<u32>,
    /// The length of the comment.
    pub comment_len: Option<u16>,
}

impl Item {
    /// A file, stored as it is.
    pub fn stored(name: &str, content: &[u8]) -> Self {
        Self::new(name, 0, content.to_vec(), content)
    }

    /// A file, compressed.
    pub fn deflated(name: &str, content: &[u8]) -> Self {
        Self::new(name, 8, deflate(content), content)
    }

    /// A folder; its name ends in a slash.
    pub fn folder(name: &str) -> Self {
        let item = Self::new(name, 0, Vec::new(), b"");
        item.with(|item| item.external = 0o040_755 << 16 | 0x10)
    }

    /// A file whose compressed data was made by hand.
    pub fn by_hand(name: &str, data: Vec<u8>, size: usize, crc: u32) -> Self {
        let item = Self::new(name, 8, data, b"");
        item.both(|header| {
            header.size = number(size);
            header.crc = crc;
        })
    }

    fn new(name: &str, method: u16, data: Vec<u8>, content: &[u8]) -> Self {
        let header = Header {
            needed: if method == 0 { 10 } else { 20 },
            flags: if name.is_ascii() { 0 } else { UTF8 },
            method,
            time: 0x6000,
            date: 0x5a21,
            crc: crc32fast::hash(content),
            compressed: number(data.len()),
            size: number(content.len()),
            name: name.as_bytes().to_vec(),
            extra: Vec::new(),
        };
        Self {
            place: Place::Both,
            before: Vec::new(),
            local: header.clone(),
            data,
            after: Vec::new(),
            central: header,
            made_by: UNIX,
            comment: Vec::new(),
            disk: 0,
            internal: 0,
            external: 0o100_644 << 16,
            offset: None,
        }
    }

    /// Changes anything.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Changes both headers alike.
    pub fn both(mut self, change: impl Fn(&mut Header)) -> Self {
        change(&mut self.local);
        change(&mut self.central);
        self
    }

    /// A file of this mode.
    pub fn mode(self, mode: u32) -> Self {
        self.with(|item| item.external = mode << 16)
    }

    /// Sizes and checksum follow the data, after these bytes, and are missing in the own header.
    pub fn described(self, mark: &[u8]) -> Self {
        let after = [mark, &sizes(&self.central)].concat();
        let mut item = self.both(|header| header.flags |= DESCRIBED_AFTER);
        (item.local.crc, item.local.compressed, item.local.size) = (0, 0, 0);
        item.after = after;
        item
    }

    fn entry(&self) -> Vec<u8> {
        let mut out = b"PK\x03\x04".to_vec();
        put(&mut out, &self.local);
        out.extend(&self.local.name);
        out.extend(&self.local.extra);
        out.extend(&self.data);
        out.extend(&self.after);
        out
    }

    fn line(&self, at: usize) -> Vec<u8> {
        let mut out = b"PK\x01\x02".to_vec();
        out.extend(self.made_by.to_le_bytes());
        put(&mut out, &self.central);
        for field in [length(&self.comment), self.disk, self.internal] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.external.to_le_bytes());
        out.extend(self.offset.unwrap_or(number(at)).to_le_bytes());
        out.extend(&self.central.name);
        out.extend(&self.central.extra);
        out.extend(&self.comment);
        out
    }
}

impl Zip {
    /// An honest archive of these entries.
    pub fn of(items: impl IntoIterator<Item = Item>) -> Self {
        Self { items: items.into_iter().collect(), ..Self::default() }
    }

    /// Changes anything.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The bytes of the archive.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut directory = Vec::new();
        let mut entries = 0;
        for item in &self.items {
            out.extend(&item.before);
            if item.place != Place::Entries {
                directory.extend(item.line(out.len()));
                entries += 1;
            }
            if item.place != Place::Directory {
                out.extend(item.entry());
            }
        }
        out.extend(&self.gap);
        let offset = out.len();
        out.extend(&directory);
        out.extend(&self.late);
        out.extend(self.end_record(entries, directory.len(), offset));
        out.extend(&self.comment);
        out.extend(&self.trailing);
        [&self.prefix[..], &out].concat()
    }

    fn end_record(&self, entries: u16, size: usize, offset: usize) -> Vec<u8> {
        let end = &self.end;
        let mut out = b"PK\x05\x06".to_vec();
        let entries_here = end.entries_here.or(end.entries).unwrap_or(entries);
        for field in [end.disk, end.directory_disk, entries_here, end.entries.unwrap_or(entries)] {
            out.extend(field.to_le_bytes());
        }
        out.extend(end.directory_size.unwrap_or(number(size)).to_le_bytes());
        out.extend(end.directory_offset.unwrap_or(number(offset)).to_le_bytes());
        out.extend(end.comment_len.unwrap_or(length(&self.comment)).to_le_bytes());
        out
    }
}

/// An extra field.
pub fn extra(id: u16, field: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &length(field).to_le_bytes(), field].concat()
}

/// Checksum and sizes as they follow the data.
pub fn sizes(header: &Header) -> Vec<u8> {
    [header.crc, header.compressed, header.size].iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn put(out: &mut Vec<u8>, header: &Header) {
    for field in [header.needed, header.flags, header.method, header.time, header.date] {
        out.extend(field.to_le_bytes());
    }
    for field in [header.crc, header.compressed, header.size] {
        out.extend(field.to_le_bytes());
    }
    out.extend(length(&header.name).to_le_bytes());
    out.extend(length(&header.extra).to_le_bytes());
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).expect("a field is shorter than 64 KiB")
}

fn number(value: usize) -> u32 {
    u32::try_from(value).expect("an archive of a test is smaller than 4 GiB")
}
