//! One more record.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::end::{self, End};
use super::error::AuditError;
use super::folder::{Folder, Small, options};
use super::head::{self, Head, HeadFile, Vouched};
use super::held::{Held, Open};
use super::key::Key;
use super::line::{Body, Hash};
use super::record::{Call, Ending, Kind, Outcome, Record};
use super::sitting::Chair;
use crate::Time;

/// How often it is looked whether another thread is done with the log before this one sleeps until it is.
const LOOKS: usize = 300;

/// The log of a home, to be written. Threads and processes may write at once.
#[derive(Debug)]
pub struct Audit(Arc<Log>);

/// The same, as a thread that looks after it knows it.
#[derive(Debug)]
pub(super) struct Log {
    folder: Folder,
    durability: Durability,
    /// Every call that has begun and not ended has a part of it: after that, more will be written.
    underway: Arc<()>,
    memory: Mutex<Memory>,
}

/// What a record outlives once it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of any process, however it comes.
    #[default]
    Process,
    /// A power cut too; each record then waits for the disk.
    Power,
}

/// The proof that a call is in the log before it runs; it is what [`Audit::end`] wants.
#[derive(Debug)]
#[must_use = "a call that began has to end in the log"]
pub struct Begun {
    record: Box<Record>,
    _underway: Arc<()>,
}

impl Begun {
    /// The number of the record.
    pub fn seq(&self) -> u64 {
        self.record.seq
    }
}

/// What need not be read or opened again: a head that this process signed itself is trusted as it is.
#[derive(Default)]
struct Memory {
    key: Option<Key>,
    written: Option<(Vec<u8>, Head)>,
    /// The last record that this process wrote, which has to be there whether or not a head names it yet.
    last: Option<(u64, Hash)>,
    held: Option<Held>,
    /// The log with its lock, while nobody else can write; see [`sitting`](super::sitting).
    sitting: Option<Open>,
    /// For a writer that may sit.
    chair: Option<Chair>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Memory").field("written", &self.written).finish_non_exhaustive()
    }
}

impl Audit {
    /// The log in a folder, which is made when the first record is written.
    pub fn new(folder: impl Into<PathBuf>, durability: Durability) -> Self {
        let memory = Mutex::new(Memory::default());
        let (folder, underway) = (Folder::new(folder.into()), Arc::default());
        Self(Arc::new(Log { folder, durability, underway, memory }))
    }

    /// From now on keeps the lock for a moment where one record follows upon the other and nobody waits for it, and signs when it
    /// gives it back: for a service. What it wrote is signed for when this is dropped.
    pub fn sit_when_busy(&self) {
        if self.0.durability == Durability::Process {
            self.0.lock().chair = Chair::of(Arc::downgrade(&self.0));
        }
    }

    /// Whether a record could be written now. It promises nothing about later, when the disk may
    /// be full: a call needs [`begin`](Self::begin).
    pub fn check_writable(&self, now: Time) -> Result<(), AuditError> {
        self.0.check_writable(now)
    }

    /// Writes that a call was refused, or failed before anything ran; gives the number of the record.
    pub fn record(&self, call: &Call, ending: &Ending, now: Time) -> Result<u64, AuditError> {
        let mut record = Record::blank(Kind::Call, now);
        record.put_call(call);
        record.put_ending(ending);
        self.0.append(&mut record)
    }

    /// Writes what was found out about a package, in words; gives the number of the record.
    pub fn found(
        &self,
        about: &Call,
        outcome: &Outcome,
        words: &str,
        now: Time,
    ) -> Result<u64, AuditError> {
        let mut record = Record::blank(Kind::Call, now);
        record.put_call(about);
        record.put_outcome(outcome);
        record.note = Some(words.to_owned());
        self.0.append(&mut record)
    }

    /// Writes that a call is about to run. Only then may it run.
    pub fn begin(&self, call: &Call, now: Time) -> Result<Begun, AuditError> {
        let mut record = Box::new(Record::blank(Kind::Begin, now));
        record.put_call(call);
        let underway = Arc::clone(&self.0.underway);
        self.0.append(&mut record)?;
        Ok(Begun { record, _underway: underway })
    }

    /// Writes how it ended, and once more what was called, of which more may be known by now: this one record tells the
    /// whole call. Gives its number.
    pub fn end(
        &self,
        begun: Begun,
        call: &Call,
        ending: &Ending,
        now: Time,
    ) -> Result<u64, AuditError> {
        let Begun { mut record, _underway: underway } = begun;
        record.begin = Some(record.seq);
        (record.kind, record.ts) = (Kind::End, now);
        record.put_call(call);
        record.put_ending(ending);
        drop(underway);
        self.0.append(&mut record)
    }
}

impl Log {
    /// Whoever holds it is at it for some microseconds, and to fall asleep and be woken takes longer than that.
    fn lock(&self) -> MutexGuard<'_, Memory> {
        for _ in 0..LOOKS {
            match self.memory.try_lock() {
                Ok(memory) => return memory,
                Err(TryLockError::Poisoned(error)) => return error.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_writable(&self, now: Time) -> Result<(), AuditError> {
        let mut memory = self.lock();
        self.sign(&mut memory);
        let open = self.open(&mut memory, now)?;
        let path = self.folder.log(open.end.day.map_or(now.day(), |day| day.max(now.day())));
        match options().append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => opened.map(drop).map_err(AuditError::file("open", &path)),
        }
    }

    fn append(&self, record: &mut Record) -> Result<u64, AuditError> {
        // As much as possible is done while others can write.
        let body = &Body::of(record);
        let mut memory = self.lock();
        // Only the slow way tells whether the next day has begun.
        if memory.sitting.as_ref().is_some_and(|open| open.end.day < Some(record.ts.day())) {
            self.sign(&mut memory);
        }
        if let Some(mut open) = memory.sitting.take() {
            let seq = self.write(&mut memory, &mut open, (record, body), Vouched::Sealed)?;
            memory.sitting = Some(open);
            return Ok(seq);
        }
        let held = match (memory.held.take(), &memory.written) {
            (Some(held), Some((bytes, _))) => held.open(&self.folder, bytes, record.ts.day())?,
            _ => None,
        };
        let mut open = match held {
            Some(open) => open,
            None => self.open(&mut memory, record.ts)?,
        };
        let seq = self.write(&mut memory, &mut open, (record, body), Vouched::Signed)?;
        if open.can_be_held() && memory.chair.as_mut().is_some_and(Chair::is_taken) {
            memory.sitting = Some(open);
        } else {
            memory.held = open.hold();
        }
        Ok(seq)
    }

    /// Whether whoever sits may go on: more was written than this, and nobody waits.
    pub(super) fn may_be_sat_at(&self, written: &mut Option<u64>) -> bool {
        let last = self.lock().last.map(|(seq, _)| seq);
        std::mem::replace(written, last) != last && !self.folder.is_awaited()
    }

    /// Signs for what was written, and lets others write.
    pub(super) fn get_up(&self) {
        self.sign(&mut self.lock());
    }

    /// The same with what is known of the log. Where the head cannot be written, the one that is there is vouched for.
    fn sign(&self, memory: &mut Memory) {
        let Some(mut open) = memory.sitting.take() else { return };
        if let Some(chair) = &mut memory.chair {
            chair.is_left();
        }
        let ts = memory.written.as_ref().map(|(_, head)| head.ts);
        if ts.is_some_and(|ts| self.catch_up(memory, &mut open, ts).is_ok()) {
            memory.held = open.hold();
        }
    }

    /// Takes the lock, finds the end of the chain, and notes what is wrong there.
    fn open(&self, memory: &mut Memory, now: Time) -> Result<Open, AuditError> {
        let lock = self.folder.lock()?;
        let key = match memory.key.take() {
            Some(key) => key,
            None => match Key::find(&self.folder)? {
                Some(key) => key,
                None => self.make_key(now)?,
            },
        };
        let file = self.folder.take_small(head::FILE)?;
        let bytes = file.as_ref().map(|file| &file.bytes[..]);
        let head = match &memory.written {
            Some((written, head)) if bytes == Some(written) => HeadFile::Signed(*head),
            _ => HeadFile::check_own(bytes, &key),
        };
        memory.key = Some(key);
        let mut end = end::find(&self.folder, head, now.day())?;
        if let Some((seq, hash)) = memory.last
            && (end.seq < seq || (end.seq == seq && end.hash != hash))
        {
            let note = format!("record {seq} ({hash}) was written, and is gone");
            end.notes.push((Kind::Mended, note));
        }
        let signed = if let HeadFile::Signed(head) = head { Some(head.seq) } else { None };
        let mut open = Open { end, head: file, signed, lock };
        let fits = open.end.notes.iter().all(|(kind, _)| *kind != Kind::Mended);
        if fits && signed.is_some_and(|seq| seq < open.end.seq) {
            self.catch_up(memory, &mut open, now)?;
        }
        for (kind, note) in std::mem::take(&mut open.end.notes) {
            let mut told = Record { note: Some(note), ..Record::blank(kind, now) };
            let body = &Body::of(&mut told);
            self.write(memory, &mut open, (&mut told, body), Vouched::Signed)?;
        }
        Ok(open)
    }

    /// Signs for what somebody else wrote and did not sign for: they were killed, or will with their next record. So there are
    /// never more than two that nothing vouches for, however often somebody is killed.
    fn catch_up(&self, memory: &mut Memory, open: &mut Open, now: Time) -> Result<(), AuditError> {
        let End { seq, hash, day: Some(day), log: ref known, .. } = open.end else {
            return Ok(());
        };
        let path = self.folder.log(day);
        let length = match known {
            Some((_, length)) => *length,
            None => path.metadata().map_err(AuditError::file("look at", &path))?.len(),
        };
        let head = Head { seq, hash, ts: now, day, bytes: length };
        let key = memory.key.as_ref().expect("`open` opens the key first");
        let bytes = head.write(key, Vouched::Signed);
        open.head = self.put_head(open.head.take(), &bytes)?;
        open.signed = Some(seq);
        memory.written = Some((bytes, head));
        Ok(())
    }

    /// Writes a head in the place of the one before.
    fn put_head(&self, old: Option<Small>, bytes: &[u8]) -> Result<Option<Small>, AuditError> {
        match self.durability {
            Durability::Process => self.folder.overwrite(head::FILE, old, bytes),
            Durability::Power => {
                self.folder.replace(head::FILE, bytes, File::sync_data).map(|()| None)
            }
        }
    }

    /// A new key, and the head of a log without records, which it signs. The head is written first: every key
    /// that is there has signed one, so a head that is not there was taken away.
    fn make_key(&self, now: Time) -> Result<Key, AuditError> {
        let key = Key::new()?;
        let bytes = self.folder.read_small(head::FILE)?;
        // A writer may have been killed between the two. Any other head, and any record, is told of instead.
        let is_new =
            bytes.is_none_or(|bytes| Head::parse(&bytes).is_some_and(|head| head.seq == 0));
        if is_new && self.folder.days()?.is_empty() {
            let head = Head { seq: 0, hash: Hash::default(), ts: now, day: now.day(), bytes: 0 };
            let bytes = head.write(&key, Vouched::Signed);
            self.folder.replace(head::FILE, &bytes, File::sync_all)?;
        }
        key.keep(&self.folder)?;
        Ok(key)
    }

    /// Writes one line and the head; when either fails, the log is as it was.
    ///
    /// A head may be one record behind, as it is when somebody is killed between the two. So a record after which more will come
    /// is signed for together with the next, usually the end of a call, unless there is one already that nothing vouches for.
    /// Whoever is killed between that next record and its head leaves two, and more there never are.
    fn write(
        &self,
        memory: &mut Memory,
        open: &mut Open,
        (record, body): (&mut Record, &Body),
        how: Vouched,
    ) -> Result<u64, AuditError> {
        record.seq = open.end.seq.saturating_add(1);
        let may_be_behind = self.may_be_behind(open, record);
        let end = &mut open.end;
        let (line, hash) = body.line(record.seq, end.hash);
        // The clock may have gone back; the order of the files is that of the records.
        let day = end.day.map_or(record.ts.day(), |day| day.max(record.ts.day()));
        let failed = |doing| move |source| AuditError::file(doing, &self.folder.log(day))(source);
        let (mut file, before) = match end.log.take().filter(|_| end.day == Some(day)) {
            Some(log) => log,
            None => {
                let path = self.folder.log(day);
                let opened = options().read(true).append(true).create(true).open(path);
                let file = opened.map_err(failed("open"))?;
                let found = file.metadata().map_err(failed("look at"))?;
                (file, found.len())
            }
        };
        let sync = match self.durability {
            Durability::Process => |_: &File| Ok(()),
            Durability::Power => File::sync_data,
        };
        let head =
            Head { seq: record.seq, hash, ts: record.ts, day, bytes: before + line.len() as u64 };
        if may_be_behind && end.day == Some(day) {
            if let Err(error) = file.write_all(&line) {
                let _ = file.set_len(before);
                return Err(failed("write")(error));
            }
            memory.last = Some((head.seq, hash));
            *end = End::at(&head, file);
            return Ok(head.seq);
        }
        let key = memory.key.as_ref().expect("`open` opens the key first");
        let bytes = head.write(key, how);
        let old = open.head.take();
        let written = file
            .write_all(&line)
            .and_then(|()| sync(&file))
            .map_err(failed("write"))
            .and_then(|()| self.put_head(old, &bytes));
        open.head = match written {
            Ok(head) => head,
            Err(error) => {
                // Should this fail as well, the next writer puts the rest aside.
                let _ = file.set_len(before);
                return Err(error);
            }
        };
        if self.durability == Durability::Power {
            let folder = File::open(self.folder.path()).and_then(|folder| folder.sync_all());
            folder.map_err(AuditError::file("sync", self.folder.path()))?;
        }
        memory.written = Some((bytes, head));
        memory.last = Some((head.seq, hash));
        open.signed = Some(head.seq);
        *end = End::at(&head, file);
        Ok(head.seq)
    }

    /// Whether a record may be written without a head of its own.
    fn may_be_behind(&self, open: &Open, record: &Record) -> bool {
        matches!(record.kind, Kind::Begin | Kind::End)
            && Arc::strong_count(&self.underway) > 1
            && self.durability == Durability::Process
            && open.head.is_some()
            && open.signed.and_then(|seq| seq.checked_add(1)) == Some(record.seq)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.get_up();
    }
}
