//! The output of a session: decoded, kept once for all viewers, painted and written.
//!
//! - [`Output`]: the log with its decoder, and how far it is painted and written
//! - [`asides`]: messages beside the output
//! - [`screen`]: the painted screen; [`painter`]: its contents; [`painting`]: the painting threads
//! - [`history`]: the output on the disk; [`journal`]: the output that is not there yet
//! - [`turn_log`]: the events of an agent's turns

pub(crate) mod asides;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod painter;
pub(crate) mod painting;
pub(crate) mod screen;
pub(crate) mod turn_log;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use base::Secret;
use bytes::Bytes;
use protocol::workspace::ServerMessage;
use session::terminal::{
    log::{Chunk, Log},
    text::Decoder,
};

use self::{
    asides::Asides,
    journal::{JournalScreen, OutputJournal},
    painter::Painter,
};

/// The pause in the output after which the screen is painted.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait for the rest of a character that was cut in two.
const LONGEST_CHARACTER: Duration = Duration::from_millis(200);
/// The memory of a chunk beside its text, in bytes, roughly.
const OVERHEAD: usize = 64;
/// More unpainted output than this, in bytes, is painted soon. Less is painted only when the output
/// pauses or a client needs the screen.
const MUCH: usize = 256 * 1024;
/// The most output that may wait to be painted, in bytes.
const MOST: usize = 1024 * 1024;
/// The most output that is painted in one step, in bytes.
const STEP: u64 = 256 * 1024;

/// The output of a session, and how far it is painted and written. It has no lock of its own: the
/// session's covers it together with the viewers, whose positions are positions in its log.
pub(crate) struct Output {
    log: Log,
    decoder: Decoder,
    asides: Asides,
    /// The most output that the log keeps, in bytes.
    bound: usize,
    /// Whether the log was dropped from memory, so that the output is only on the disk.
    is_unloaded: bool,
    /// The number of the newest output when the log was dropped; `None` after a restart, when that
    /// number is not known.
    unloaded_at: Option<u64>,
    /// The bytes of output that are not painted yet.
    unpainted: usize,
    /// Whether there is a screen that can fall behind the output.
    has_screen: bool,
    /// Whether the session is in the queue of the painting threads.
    is_to_be_painted: bool,
    /// The number up to which chunks are on the disk, or never will be.
    written: u64,
    /// The bytes of output that the writer has not taken yet.
    unwritten: usize,
    /// Whether the session is in the writer's queue.
    is_to_be_written: bool,
    /// When output was last appended.
    last: Option<Instant>,
    /// Holds output until it is on the disk; `None` for a session without a program of its own.
    journal: Option<OutputJournal>,
    /// The bytes of decoded output that follow the text that is appended next.
    undecided: usize,
    /// The key of an agent that will run in the terminal, until there is a journal.
    key: Option<Secret>,
}

impl Output {
    /// Empty output, whose log keeps this many bytes.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            log: Log::new(bound),
            decoder: Decoder::new(),
            asides: Asides::default(),
            bound,
            is_unloaded: false,
            unloaded_at: None,
            unpainted: 0,
            has_screen: false,
            is_to_be_painted: false,
            written: 0,
            unwritten: 0,
            is_to_be_written: false,
            last: None,
            journal: None,
            undecided: 0,
            key: None,
        }
    }

    /// The output in memory.
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// The messages beside the output.
    pub(crate) const fn asides(&self) -> &Asides {
        &self.asides
    }

    /// The number of the newest output, if known.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        if self.is_unloaded { self.unloaded_at } else { Some(self.log.last_seq()) }
    }

    /// The output as text. A character that is cut at the end of the bytes is decoded with later bytes.
    pub(crate) fn decode(&mut self, bytes: Bytes) -> Bytes {
        if let Some(journal) = &mut self.journal {
            journal.note_read(bytes.len());
        }
        self.decoder.push(bytes)
    }

    /// Notes how much decoded output follows the text that is appended next.
    pub(crate) const fn note_undecided(&mut self, bytes: usize) {
        self.undecided = bytes;
    }

    pub(crate) fn append(&mut self, text: Bytes, now: Instant) -> u64 {
        let cost = cost(text.len());
        self.unpainted += cost;
        self.unwritten += cost;
        self.last = Some(now);
        let before = self.log.last_seq();
        let last = self.log.append(text);
        let rest = self.undecided + self.decoder.pending();
        if let (Some(journal), Ok(chunks)) = (&mut self.journal, self.log.after(before)) {
            journal.note(chunks, rest);
        }
        last
    }

    /// Adds an aside after all output so far.
    pub(crate) fn append_aside(&mut self, message: ServerMessage) {
        self.asides.push(self.log.last_seq(), message);
    }

    /// Adds asides after the output that is appended next: `asides` makes them from its number. A
    /// text that is empty is not appended, so its asides follow the output so far.
    pub(crate) fn prepare_asides(
        &mut self,
        text: &Bytes,
        asides: impl FnOnce(u64) -> Vec<ServerMessage>,
    ) {
        let seq = self.log.last_seq() + u64::from(!text.is_empty());
        asides(seq).into_iter().for_each(|aside| self.asides.push(seq, aside));
    }

    /// Ends an incomplete character with a replacement. Returns whether there was one.
    pub(crate) fn end_character(&mut self, now: Instant) -> bool {
        let replaced = self.decoder.flush();
        replaced.map(|text| self.append(text, now)).is_some()
    }

    /// When an incomplete character has waited for its rest long enough.
    pub(crate) fn end_character_at(&self) -> Option<Instant> {
        let last = self.last.filter(|_| self.decoder.is_pending());
        last.map(|last| last + LONGEST_CHARACTER)
    }
}

/// The journal.
impl Output {
    /// The output of a program that outlived an earlier daemon: `stored` from the disk, then the output that
    /// only the journal has.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(crate) fn resumed(
        bound: usize,
        stored: Vec<Chunk>,
        journal: Arc<process::Journal>,
    ) -> io::Result<Self> {
        let mut output = Self::new(bound);
        output.load(stored);
        for note in journal.notes()? {
            if note.mark <= output.log.last_seq() || note.text.is_empty() {
                continue;
            }
            // The bound of the notes may have dropped output between the disk and the journal.
            if note.mark != output.log.last_seq() + 1 {
                output.log.resume_at(note.mark);
                output.written = output.log.last_seq();
            }
            let cost = cost(note.text.len());
            output.unpainted += cost;
            output.unwritten += cost;
            output.log.append(note.text.into());
        }
        output.begin_journal(journal)?;
        Ok(output)
    }

    /// From now on, notes output in this journal, unless the output has a journal already.
    pub(crate) fn begin_journal(&mut self, journal: Arc<process::Journal>) -> io::Result<()> {
        if self.journal.is_none() {
            let mut journal = OutputJournal::new(journal, self.bound)?;
            self.key.take().into_iter().for_each(|key| journal.keep_key(key));
            self.journal = Some(journal);
        }
        Ok(())
    }

    /// Notes that the text that is appended next ends after this many bytes of the process's output.
    pub(crate) const fn note_taken(&mut self, taken: u64) {
        if let Some(journal) = &mut self.journal {
            journal.note_read_to(taken);
        }
    }

    /// Stops noting output in the journal.
    pub(crate) fn end_journal(&mut self) {
        self.journal = None;
    }

    /// Keeps the key of the agent in the terminal in the journal, as soon as there is one.
    pub(crate) fn keep_key(&mut self, key: Secret) {
        self.key = Some(key);
    }

    fn wants_screen(&self) -> bool {
        self.journal.as_ref().is_some_and(OutputJournal::wants_screen)
    }

    fn keep_screen(&mut self, screen: JournalScreen) {
        if let Some(journal) = &mut self.journal {
            journal.keep_screen(screen);
        }
    }
}

/// Memory and disk.
impl Output {
    /// Continues the numbers after the output of an earlier daemon, which is on the disk.
    pub(crate) fn continue_after(&mut self, seq: u64) {
        self.log.resume_at(seq + session::terminal::log::RESTART_GAP);
        self.written = self.log.last_seq();
    }

    /// Continues the numbers of another machine's output, all of which is on the disk.
    pub(crate) fn continue_at(&mut self, last_seq: u64) {
        self.log.resume_at(last_seq + 1);
        self.written = self.log.last_seq();
    }

    /// Output of an earlier daemon that is only on the disk, until a viewer needs it.
    pub(crate) fn unloaded(bound: usize) -> Self {
        Self { is_unloaded: true, ..Self::new(bound) }
    }

    pub(crate) const fn is_unloaded(&self) -> bool {
        self.is_unloaded
    }

    /// Whether nothing is lost if the log is dropped.
    pub(crate) fn may_unload(&self) -> bool {
        !self.is_unloaded && self.written >= self.log.last_seq()
    }

    /// Drops the log from memory. The output stays on the disk. The asides are dropped, too; their
    /// numbers are not used again.
    pub(crate) fn unload(&mut self) {
        let mut asides = std::mem::take(&mut self.asides);
        asides.clear();
        let unloaded_at = self.last_seq();
        *self = Self { unloaded_at, asides, ..Self::unloaded(self.bound) };
    }

    /// Fills the log with the output from the disk.
    pub(crate) fn load(&mut self, chunks: Vec<Chunk>) {
        self.is_unloaded = false;
        for Chunk { seq, text } in chunks {
            if seq != self.log.last_seq() + 1 {
                self.log.resume_at(seq);
            }
            self.unpainted += cost(text.len());
            self.log.append(text);
        }
        self.written = self.log.last_seq();
    }

    /// How much output the writer has not taken yet, in bytes.
    pub(crate) const fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// Notes that the session joins the writer's queue. Returns whether it is not in it yet.
    pub(crate) const fn join_writer(&mut self) -> bool {
        !std::mem::replace(&mut self.is_to_be_written, true)
    }

    /// Takes the chunks to be written now.
    pub(crate) fn take_unwritten(&mut self) -> Vec<Chunk> {
        self.is_to_be_written = false;
        self.unwritten = 0;
        if let Some(journal) = &mut self.journal {
            journal.note_writing();
        }
        match self.log.after(self.written) {
            Ok(chunks) => chunks.collect(),
            // Some chunks left the log before they could be written: only the rest is written.
            Err(_) => self.log.all().collect(),
        }
    }

    /// Notes that the chunks up to this number are on the disk.
    pub(crate) fn note_written(&mut self, last: u64) {
        self.written = last;
        if let Some(journal) = &self.journal {
            journal.note_written();
        }
    }
}

/// Painting.
impl Output {
    /// How much output is not painted, in bytes.
    pub(crate) const fn unpainted(&self) -> usize {
        self.unpainted
    }

    /// Whether so much is unpainted that the session has to join the queue of the painting threads, and is not in it
    /// yet.
    pub(crate) const fn needs_painting(&self) -> bool {
        self.unpainted > MUCH && !self.is_to_be_painted
    }

    /// Whether this many more bytes might push unpainted output out of the log.
    pub(crate) fn is_too_much(&self, more: usize) -> bool {
        // Decoding can make bytes that are not valid text three times as long.
        self.unpainted > 0 && self.unpainted + 3 * more > MOST.min(self.bound / 2)
    }

    /// When the output will have paused for long enough to be painted, if no more comes.
    pub(crate) fn paint_at(&self) -> Option<Instant> {
        let is_behind = self.has_screen && self.unpainted > 0;
        self.last.filter(|_| is_behind).map(|last| last + PAUSE)
    }

    /// Notes that the session joins the queue of the painting threads. Returns whether it is not in
    /// it yet.
    pub(crate) const fn join_painting(&mut self) -> bool {
        !std::mem::replace(&mut self.is_to_be_painted, true)
    }

    /// Notes that a painting thread has taken the session out of the queue.
    pub(crate) const fn leave_painting(&mut self) {
        self.is_to_be_painted = false;
    }

    /// Takes the next output that is not painted on this painter's screen, [`STEP`] bytes at most, and the number of
    /// its last chunk.
    fn take_unpainted(&mut self, painter: &Painter) -> (Vec<Chunk>, u64) {
        let chunks: Vec<_> = painter.lacking(&self.log).up_to(STEP).collect();
        let newest = self.log.last_seq();
        let last = chunks.last().map_or(newest, |chunk| chunk.seq);
        let fed: usize = chunks.iter().map(|chunk| cost(chunk.text.len())).sum();
        self.has_screen = true;
        self.unpainted = if last == newest { 0 } else { self.unpainted.saturating_sub(fed) };
        (chunks, last)
    }

    /// Drops the painter's screen if it can be painted again from the log at little cost.
    fn drop_little_screen(&mut self, painter: &mut Painter) {
        if painter.drop_if_little(&self.log) {
            self.unpainted += self.log.size();
            self.has_screen = false;
        }
    }

    /// Counts all output as painted, though it is not. Returns the number of the newest output.
    fn skip_unpainted(&mut self) -> u64 {
        self.unpainted = 0;
        self.log.last_seq()
    }
}

/// The memory of a chunk with a text of this length, in bytes, roughly.
const fn cost(length: usize) -> usize {
    length + OVERHEAD
}
