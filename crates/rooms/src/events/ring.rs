//! The kept events, and whether a watcher has missed any.
//!
//! Pure: time and ids come in from outside.

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};

use super::{
    Form,
    announcement::{EncodedEvent, Entry, Sight, Source},
};

/// The bounds of a log. The newest event is kept even if it alone is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The number of events.
    pub events: usize,
    /// The bytes that they take together, in all forms.
    pub bytes: usize,
}

/// The most bytes of one batch; a larger frame goes alone.
pub(super) const BATCH: usize = 16 * 1024;

/// The bits of an id that count events within a millisecond. The ids of a log begin at the time of
/// its start, so they keep increasing over restarts.
const COUNTER_BITS: u32 = 20;

/// The bits of an id that count the events of an epoch, which is above them. Nobody lives to see them all, and until
/// the 8,192nd epoch an id is a number that JavaScript has.
const EPOCH_COUNTER_BITS: u32 = 40;

/// The last events of a log.
pub(super) struct Ring {
    bounds: Bounds,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The id before the first one assigned.
    origin: u64,
    /// The id assigned last.
    last: u64,
    /// For each form, the id of the last event that had it and is no longer kept.
    dropped: [u64; Form::COUNT],
    /// For each form, the batch made last: many watchers are at the same position.
    shared: [Option<SharedBatch>; Form::COUNT],
}

/// Several frames in one piece.
struct SharedBatch {
    after: u64,
    batch: Batch,
}

/// Frames, and the id of the last event that they cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) frames: Bytes,
    pub(super) last: u64,
}

/// The frames after an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RingRead {
    /// Frames.
    Frames(Batch),
    /// Nothing, up to the event of this id.
    Nothing(u64),
    /// The next event is no longer kept.
    Missed,
}

/// The start of a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartPosition {
    /// After the event of this id.
    pub(super) after: u64,
    /// Whether it may have missed events before that.
    pub(super) missed: bool,
}

/// How much a watcher may see of a room.
pub(super) type MaySee = dyn Fn(&Source) -> Sight + Send + Sync;

impl Bounds {
    /// The bounds for one room.
    pub const ROOM: Self = Self { events: 512, bytes: 1024 * 1024 };
    /// The bounds for the log of all rooms.
    pub const ALL_ROOMS: Self = Self { events: 4096, bytes: 4 * 1024 * 1024 };
}

impl Ring {
    /// An empty ring that begins at `now`, in milliseconds since 1970.
    pub(super) fn new(bounds: Bounds, now: u64) -> Self {
        Self::after(bounds, now.min(u64::MAX >> (COUNTER_BITS + 1)) << COUNTER_BITS)
    }

    /// An empty ring with the ids of this epoch: all are greater than those of earlier ones.
    pub(super) fn of_epoch(bounds: Bounds, epoch: u64) -> Self {
        let greatest = u64::MAX >> (EPOCH_COUNTER_BITS + 1);
        Self::after(bounds, epoch.min(greatest) << EPOCH_COUNTER_BITS)
    }

    fn after(bounds: Bounds, origin: u64) -> Self {
        Self {
            bounds,
            entries: VecDeque::new(),
            bytes: 0,
            origin,
            last: origin,
            dropped: [origin; Form::COUNT],
            shared: Default::default(),
        }
    }

    /// Adds an event and drops the oldest ones above the bounds.
    pub(super) fn push(&mut self, encoded: &EncodedEvent, source: Option<Arc<Source>>) {
        self.last += 1;
        let entry = encoded.with_id(self.last, source);
        self.bytes += entry.size();
        self.entries.push_back(entry);
        // The batches end before the new event.
        self.shared = Default::default();
        while self.is_too_full() {
            self.drop_oldest();
        }
    }

    /// The start of a watcher that has seen the event of this id; `None` starts after the newest
    /// event. An id that this log has never assigned starts at the oldest kept event.
    pub(super) fn place(&self, form: Form, after: Option<u64>) -> StartPosition {
        let known = |id: &u64| (self.origin..=self.last).contains(id);
        match after {
            None => StartPosition { after: self.last, missed: false },
            Some(id) if known(&id) && id >= self.dropped[form.index()] => {
                StartPosition { after: id, missed: false }
            }
            // An unknown id is of another log: the first frame says that events may be missing.
            Some(_) => StartPosition { after: self.dropped[form.index()], missed: true },
        }
    }

    /// The frames for a watcher whose last event has the id `after`.
    pub(super) fn read(&mut self, form: Form, after: u64, may_see: Option<&MaySee>) -> RingRead {
        if after < self.dropped[form.index()] {
            return RingRead::Missed;
        }
        if after >= self.last {
            return RingRead::Nothing(after);
        }
        match may_see {
            None => self.read_shared(form, after),
            Some(may_see) => self.read_for(form, after, |source| may_see(source)),
        }
    }

    /// Like `read_for`, with the work done once for all watchers at the same position.
    fn read_shared(&mut self, form: Form, after: u64) -> RingRead {
        if let Some(shared) = &self.shared[form.index()]
            && shared.after == after
        {
            return RingRead::Frames(shared.batch.clone());
        }
        let read = self.read_for(form, after, |_| Sight::All);
        if let RingRead::Frames(batch) = &read {
            self.shared[form.index()] = Some(SharedBatch { after, batch: batch.clone() });
        }
        read
    }

    fn read_for(&self, form: Form, after: u64, may_see: impl Fn(&Source) -> Sight) -> RingRead {
        let mut frames = Frames::default();
        let mut last = after;
        for entry in self.entries.range(self.index_after(after)..) {
            let taken = match entry.source.as_deref().map_or(Sight::All, &may_see) {
                Sight::All => frames.take(entry, form),
                Sight::Stirrings => frames.take_discreet(entry),
                // Passed over, and still counted as seen: the watcher need not look at it again.
                Sight::Nothing => true,
            };
            if !taken {
                break;
            }
            last = entry.id;
        }
        match frames.join() {
            Some(frames) => RingRead::Frames(Batch { frames, last }),
            None => RingRead::Nothing(last),
        }
    }

    /// The index of the first kept event after this id.
    fn index_after(&self, after: u64) -> usize {
        let first = self.entries.front().map_or(after, |entry| entry.id);
        let index = (after + 1).saturating_sub(first);
        usize::try_from(index).map_or(self.entries.len(), |index| index.min(self.entries.len()))
    }

    fn is_too_full(&self) -> bool {
        let too_full = self.entries.len() > self.bounds.events || self.bytes > self.bounds.bytes;
        too_full && self.entries.len() > 1
    }

    fn drop_oldest(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.bytes -= entry.size();
        for form in Form::ALL {
            if entry.has(form) {
                self.dropped[form.index()] = entry.id;
            }
        }
    }
}

/// Gathers frames: a single one is shared without a copy, several are copied together once.
#[derive(Default)]
struct Frames<'a> {
    first: Option<Bytes>,
    rest: Vec<Cow<'a, [u8]>>,
    bytes: usize,
}

impl<'a> Frames<'a> {
    /// Adds an entry's frame, if it has one; `false` when it does not fit.
    fn take(&mut self, entry: &'a Entry, form: Form) -> bool {
        let Some(text) = entry.text(form) else { return true };
        self.bytes += text.len();
        if self.first.is_none() {
            self.first = entry.frame(form);
            return true;
        }
        let fits = self.bytes <= BATCH;
        if fits {
            self.rest.push(Cow::Borrowed(text));
        }
        fits
    }

    /// Like `take`, for a watcher that learns only that something happens.
    fn take_discreet(&mut self, entry: &Entry) -> bool {
        let Some(frame) = entry.discreet() else { return true };
        self.bytes += frame.len();
        if self.first.is_none() {
            self.first = Some(frame);
            return true;
        }
        let fits = self.bytes <= BATCH;
        if fits {
            self.rest.push(Cow::Owned(frame.into()));
        }
        fits
    }

    fn join(self) -> Option<Bytes> {
        let first = self.first?;
        if self.rest.is_empty() {
            return Some(first);
        }
        let mut all = BytesMut::with_capacity(self.bytes);
        all.extend_from_slice(&first);
        self.rest.iter().for_each(|text| all.extend_from_slice(text));
        Some(all.freeze())
    }
}

#[cfg(test)]
mod tests;
