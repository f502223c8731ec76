//! The output of a session on disk: segments of records, the oldest dropped first.
//!
//! - [`History`]: the history of one session; [`Segments`]: its files
//! - [`writer`]: the thread that writes for all sessions

pub(crate) mod writer;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::BytesMut;
use session::terminal::log::{
    Chunk, Gather, Retention,
    record::{self, Reader},
    retention::{segment_name, segment_number},
};

/// The history of one session. It has a lock of its own, because reading and writing files takes
/// long. A caller that needs several of the session's locks takes this one first.
pub(crate) struct History(Mutex<Segments>);

impl History {
    /// The history in this directory, which need not exist yet.
    pub(crate) const fn new(dir: PathBuf, retention: Retention) -> Self {
        Self(Mutex::new(Segments::new(dir, retention)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Segments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of one session's output.
#[derive(Debug)]
pub(crate) struct Segments {
    dir: PathBuf,
    retention: Retention,
    /// Number and size in bytes of each segment, the oldest first; `None` until the directory was
    /// read.
    found: Option<Vec<(u64, u64)>>,
    /// The number of the last chunk that this process appended.
    appended: u64,
}

impl Segments {
    /// The segments in this directory, which need not exist yet.
    pub(crate) const fn new(dir: PathBuf, retention: Retention) -> Self {
        Self { dir, retention, found: None, appended: 0 }
    }

    /// Appends chunks, which must be newer than all that are there. After an error, the files hold whole
    /// records only. The caller can try again with the same chunks and more: chunks that
    /// were written are skipped.
    pub(crate) fn append(&mut self, chunks: &[Chunk]) -> io::Result<()> {
        let is_there = |chunk: &Chunk| chunk.seq <= self.appended;
        let mut rest = &chunks[chunks.partition_point(is_there)..];
        while let Some(first) = rest.first() {
            let (number, size) = self.last_or_new(first.seq)?;
            let mut bytes = BytesMut::with_capacity(rest.iter().map(record_size).sum());
            let room = self.retention.segment.saturating_sub(size);
            let count = fill(&mut bytes, rest, room);
            self.write(number, size, &bytes)?;
            let (written, others) = rest.split_at(count);
            // After each segment, so that another try skips the chunks that are there.
            self.appended = written.last().map_or(self.appended, |chunk| chunk.seq);
            rest = others;
        }
        Ok(())
    }

    /// The number of the newest chunk on the disk.
    pub(crate) fn last_seq(&mut self) -> io::Result<Option<u64>> {
        for (number, _) in self.found()?.clone().into_iter().rev() {
            if let Some(last) = self.read(number)?.0.last() {
                return Ok(Some(last.seq));
            }
        }
        Ok(None)
    }

    /// Adds chunks, the newest first, until `gather` wants no more.
    pub(crate) fn gather(&mut self, gather: &mut Gather) -> io::Result<()> {
        for (number, _) in self.found()?.clone().into_iter().rev() {
            if !gather.add(self.read(number)?.0.into_iter()) {
                break;
            }
        }
        Ok(())
    }

    /// When the newest segment was last written.
    pub(crate) fn modified(&self) -> Option<std::time::SystemTime> {
        let newest = list(&self.dir).ok()?.last()?.0;
        fs::metadata(self.path(newest)).and_then(|file| file.modified()).ok()
    }

    pub(crate) fn remove(&mut self) -> io::Result<()> {
        (self.found, self.appended) = (None, 0);
        remove_all(&self.dir)
    }

    /// The number and size of the segment to append to: a new one, if the newest is full.
    fn last_or_new(&mut self, first_seq: u64) -> io::Result<(u64, u64)> {
        let retention = self.retention;
        let newest = self.found()?.last().copied();
        match newest {
            Some((number, size)) if !retention.is_full(size) => Ok((number, size)),
            other => self.begin(other.map_or(1, |(number, _)| number + 1), first_seq),
        }
    }

    fn begin(&mut self, number: u64, first_seq: u64) -> io::Result<(u64, u64)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let mut open = OpenOptions::new();
        let mut file =
            open.write(true).create(true).truncate(true).mode(0o600).open(self.path(number))?;
        file.write_all(&record::header(first_seq))?;
        let size = record::HEADER as u64;
        self.found()?.push((number, size));
        // Only when a segment begins: until the next one, a history grows by one segment at most.
        self.drop_excess();
        Ok((number, size))
    }

    fn write(&mut self, number: u64, size: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.path(number))?;
        if let Err(error) = file.write_all(bytes) {
            // Most likely the disk is full. A partial record must not stand before the next one.
            file.set_len(size)?;
            return Err(error);
        }
        if let Some((_, size)) = self.found()?.last_mut() {
            *size += bytes.len() as u64;
        }
        Ok(())
    }

    fn drop_excess(&mut self) {
        let Some(found) = &mut self.found else { return };
        let sizes: Vec<u64> = found.iter().map(|(_, size)| *size).collect();
        let excess: Vec<_> = found.drain(..self.retention.excess(&sizes)).collect();
        for (number, _) in excess {
            let path = self.path(number);
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot drop old history");
            }
        }
    }

    /// All segments. The first call truncates the newest segment at its first damaged record,
    /// because an earlier daemon may have been killed while it wrote.
    fn found(&mut self) -> io::Result<&mut Vec<(u64, u64)>> {
        let found = match self.found.take() {
            Some(found) => found,
            None => self.look()?,
        };
        Ok(self.found.insert(found))
    }

    fn look(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut found = list(&self.dir)?;
        let Some((number, size)) = found.last_mut() else { return Ok(found) };
        let (_, sound) = self.read(*number)?;
        if sound < record::HEADER as u64 {
            fs::remove_file(self.path(*number))?;
            found.pop();
        } else if sound < *size {
            File::options().write(true).open(self.path(*number))?.set_len(sound)?;
            *size = sound;
        }
        Ok(found)
    }

    /// The chunks of a segment up to the first damaged record, and the length up to there in bytes.
    fn read(&self, number: u64) -> io::Result<(Vec<Chunk>, u64)> {
        let mut reader = Reader::new();
        reader.push(&fs::read(self.path(number))?);
        let chunks = std::iter::from_fn(|| reader.next_chunk()).collect();
        if let Some(fault) = reader.fault() {
            tracing::warn!(path = %self.path(number).display(), %fault, "history");
        }
        Ok((chunks, reader.sound_bytes()))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(segment_name(number))
    }
}

/// Encodes chunks for a segment with this much room in bytes, but at least one chunk. Returns their
/// number.
fn fill(bytes: &mut BytesMut, chunks: &[Chunk], room: u64) -> usize {
    for (count, chunk) in chunks.iter().enumerate() {
        let size = (bytes.len() + record_size(chunk)) as u64;
        if count > 0 && size > room {
            return count;
        }
        record::encode(chunk, bytes);
    }
    chunks.len()
}

/// The size of a chunk's record, in bytes.
fn record_size(chunk: &Chunk) -> usize {
    record::HEAD + chunk.text.len()
}

/// Removes a directory with all that is in it, if it is there.
pub(crate) fn remove_all(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The names of the segments in a directory, the oldest first.
pub(crate) fn segments(dir: &Path) -> io::Result<Vec<String>> {
    Ok(list(dir)?.into_iter().map(|(number, _)| segment_name(number)).collect())
}

fn list(dir: &Path) -> io::Result<Vec<(u64, u64)>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(segment_number) {
            found.push((number, entry.metadata()?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests;
