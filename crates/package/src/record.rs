//! The three records of a zip archive, as bytes and as values.
//!
//! Nothing is judged here. The reader and the writer share these, so that what
//! one writes the other reads.

/// What an entry's own header begins with.
pub(crate) const LOCAL: u32 = 0x0403_4b50;
/// What a line of the central directory begins with.
pub(crate) const CENTRAL: u32 = 0x0201_4b50;
/// What the end record begins with.
pub(crate) const END: u32 = 0x0605_4b50;
/// What the zip64 locator begins with.
pub(crate) const LOCATOR64: u32 = 0x0706_4b50;
/// What a record after an entry's data may begin with.
pub(crate) const DESCRIPTOR: u32 = 0x0807_4b50;

/// Bytes of an entry's own header, before its name.
pub(crate) const LOCAL_LEN: usize = 30;
/// Bytes of a line of the directory, before its name.
pub(crate) const CENTRAL_LEN: usize = 46;
/// Bytes of the end record, before its comment.
pub(crate) const END_LEN: usize = 22;

/// Stored as it is.
pub(crate) const STORED: u16 = 0;
/// Deflated.
pub(crate) const DEFLATED: u16 = 8;

/// What both headers of an entry say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) needed: u16,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) time: u16,
    pub(crate) date: u16,
    pub(crate) crc: u32,
    pub(crate) compressed: u32,
    pub(crate) size: u32,
    pub(crate) name_len: u16,
    pub(crate) extra_len: u16,
}

/// What only the directory says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Central {
    pub(crate) made_by: u16,
    pub(crate) common: Common,
    pub(crate) comment_len: u16,
    pub(crate) disk: u16,
    pub(crate) internal: u16,
    pub(crate) external: u32,
    pub(crate) offset: u32,
}

/// The end record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) disk: u16,
    pub(crate) directory_disk: u16,
    pub(crate) entries_here: u16,
    pub(crate) entries: u16,
    pub(crate) directory_size: u32,
    pub(crate) directory_offset: u32,
    pub(crate) comment_len: u16,
}

/// Reads an entry's own header; nothing when it is none.
pub(crate) fn local(bytes: &[u8]) -> Option<Common> {
    let mut fields = Fields::of(bytes, LOCAL, LOCAL_LEN)?;
    Some(common(&mut fields))
}

/// Reads a line of the directory; nothing when it is none.
pub(crate) fn central(bytes: &[u8]) -> Option<Central> {
    let mut fields = Fields::of(bytes, CENTRAL, CENTRAL_LEN)?;
    Some(Central {
        made_by: fields.u16(),
        common: common(&mut fields),
        comment_len: fields.u16(),
        disk: fields.u16(),
        internal: fields.u16(),
        external: fields.u32(),
        offset: fields.u32(),
    })
}

/// Reads an end record; nothing when it is none.
pub(crate) fn end(bytes: &[u8]) -> Option<End> {
    let mut fields = Fields::of(bytes, END, END_LEN)?;
    Some(End {
        disk: fields.u16(),
        directory_disk: fields.u16(),
        entries_here: fields.u16(),
        entries: fields.u16(),
        directory_size: fields.u32(),
        directory_offset: fields.u32(),
        comment_len: fields.u16(),
    })
}

/// Writes an entry's own header, up to its name.
pub(crate) fn put_local(out: &mut Vec<u8>, header: &Common) {
    out.extend(LOCAL.to_le_bytes());
    put_common(out, header);
}

/// Writes a line of the directory, up to its name.
pub(crate) fn put_central(out: &mut Vec<u8>, line: &Central) {
    out.extend(CENTRAL.to_le_bytes());
    out.extend(line.made_by.to_le_bytes());
    put_common(out, &line.common);
    for number in [line.comment_len, line.disk, line.internal] {
        out.extend(number.to_le_bytes());
    }
    out.extend(line.external.to_le_bytes());
    out.extend(line.offset.to_le_bytes());
}

/// Writes the end record.
pub(crate) fn put_end(out: &mut Vec<u8>, end: &End) {
    out.extend(END.to_le_bytes());
    for number in [end.disk, end.directory_disk, end.entries_here, end.entries] {
        out.extend(number.to_le_bytes());
    }
    out.extend(end.directory_size.to_le_bytes());
    out.extend(end.directory_offset.to_le_bytes());
    out.extend(end.comment_len.to_le_bytes());
}

/// The number a record begins with.
pub(crate) fn mark(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
}

fn common(fields: &mut Fields<'_>) -> Common {
    Common {
        needed: fields.u16(),
        flags: fields.u16(),
        method: fields.u16(),
        time: fields.u16(),
        date: fields.u16(),
        crc: fields.u32(),
        compressed: fields.u32(),
        size: fields.u32(),
        name_len: fields.u16(),
        extra_len: fields.u16(),
    }
}

fn put_common(out: &mut Vec<u8>, header: &Common) {
    for number in [header.needed, header.flags, header.method, header.time, header.date] {
        out.extend(number.to_le_bytes());
    }
    for number in [header.crc, header.compressed, header.size] {
        out.extend(number.to_le_bytes());
    }
    out.extend(header.name_len.to_le_bytes());
    out.extend(header.extra_len.to_le_bytes());
}

/// Numbers of a record, one after the other; its length was checked at the door.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn of(bytes: &'b [u8], wanted: u32, len: usize) -> Option<Self> {
        (bytes.len() >= len && mark(bytes) == Some(wanted)).then(|| Self(&bytes[4..len]))
    }

    fn u16(&mut self) -> u16 {
        let (number, rest) = self.0.split_at(2);
        self.0 = rest;
        u16::from_le_bytes([number[0], number[1]])
    }

    fn u32(&mut self) -> u32 {
        let low = u32::from(self.u16());
        low | u32::from(self.u16()) << 16
    }
}
