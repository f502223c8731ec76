//! One driver for the established links of all protocols.
//!
//! It reads frames, keeps time, and drains the link when the worker ends. The meaning of frames is up
//! to a [`Codec`], of which each protocol has its own.

use tokio::time::{Instant, Interval};
use wire::{Frame, Link, LinkError, until};

use crate::{
    context::LinkContext,
    outcome::{LinkEnd, Outcome},
};

/// How many frames are taken in a row before the driver looks at anything else.
const AT_ONCE: usize = 32;

/// A protocol on one established link. If a method returns an [`Outcome`], the link ends with it.
pub(crate) trait Codec {
    /// The event that the protocol waits for beside frames, such as the end of a job.
    type Event;

    /// Waits for the next event. Cancel safe.
    fn event(&mut self) -> impl Future<Output = Self::Event> + Send;

    fn on_event(&mut self, event: Self::Event) -> Option<Outcome>;

    fn on_frame(&mut self, frame: Frame) -> Option<Outcome>;

    /// When [`Codec::on_beat`] is called.
    fn beats(&self) -> Interval;

    /// Whether the far end is asked for a sign of life with each beat. Every WebSocket answers.
    fn pings(&self) -> bool {
        false
    }

    /// A beat is due. `heard`: when the server was last heard.
    fn on_beat(&mut self, heard: Instant) -> Option<Outcome>;

    /// The time by which the server must have done what the link waits for; `None`: it waits for
    /// nothing.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The link has no job. Returns an outcome if the link must not go on.
    fn on_idle(&mut self) -> Option<Outcome> {
        None
    }

    /// How many jobs have not ended.
    fn jobs(&self) -> usize;

    /// The worker ends: from now on, no new job is taken.
    fn drain(&mut self);

    /// The server closed the link, with this code and reason.
    fn closed(&self, reason: Option<(u16, String)>) -> Outcome;

    /// The link broke, or the server did not keep a deadline.
    fn lost(&self, reason: String) -> Outcome;

    /// [`Codec::deadline`] has passed.
    fn too_late(&self) -> Outcome {
        self.lost("the server is late".to_owned())
    }

    /// Gives up the jobs that are left, and closes the link if it is still open.
    fn end(self, link: Link, cause: Cause) -> impl Future<Output = ()> + Send;
}

/// Why a link ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The worker ends, and the link is drained, or the time to drain is over.
    Shutdown,
    /// The server closed it, or it broke.
    Gone,
    /// The codec gave it up.
    GivenUp,
}

/// An event that wakes the driver.
enum Wake<E> {
    Frame(Result<Option<Frame>, LinkError>),
    Event(E),
    Beat,
    Deadline,
    Shutdown,
}

/// Serves a link until it ends.
pub(crate) async fn drive<C: Codec>(
    context: &LinkContext,
    mut link: Link,
    mut codec: C,
) -> LinkEnd {
    let mut beats = codec.beats();
    // When jobs that still run are cut off; set once the worker ends.
    let mut leave_by = None;
    let (cause, outcome) = loop {
        if codec.jobs() == 0 {
            if leave_by.is_some() {
                break (Cause::Shutdown, None);
            }
            if let Some(outcome) = codec.on_idle() {
                break (Cause::GivenUp, Some(outcome));
            }
        }
        let deadline = leave_by.or_else(|| codec.deadline());
        let wake = tokio::select! {
            // A flood of frames must delay neither a shutdown nor a deadline.
            biased;
            () = context.shutdown.cancelled(), if leave_by.is_none() => Wake::Shutdown,
            // Before frames: an ended job frees a slot, and a server that floods the link must not delay
            // that.
            event = codec.event() => Wake::Event(event),
            _ = beats.tick() => Wake::Beat,
            () = until(deadline) => Wake::Deadline,
            frame = link.next() => Wake::Frame(frame),
        };
        let outcome = match wake {
            Wake::Frame(Ok(Some(frame))) => on_frames(&mut link, &mut codec, frame),
            Wake::Frame(Ok(None)) => {
                break (Cause::Gone, Some(codec.closed(link.close_reason())));
            }
            Wake::Frame(Err(error)) => break (Cause::Gone, Some(codec.lost(error.to_string()))),
            Wake::Event(event) => codec.on_event(event),
            Wake::Beat => on_beat(&mut link, &mut codec),
            Wake::Deadline if leave_by.is_some() => break (Cause::Shutdown, None),
            Wake::Deadline => Some(codec.too_late()),
            Wake::Shutdown => {
                codec.drain();
                leave_by = Some(Instant::now() + context.drain_timeout);
                None
            }
        };
        if outcome.is_some() {
            break (Cause::GivenUp, outcome);
        }
    };
    // Counted before `end`, which cuts these jobs off.
    let cut_off = codec.jobs();
    codec.end(link, cause).await;
    match outcome.filter(|_| leave_by.is_none()) {
        Some(outcome) => LinkEnd::Again(outcome),
        None => LinkEnd::Left(cut_off),
    }
}

/// Handles a frame, and others that have come already: another wait costs more than most frames.
fn on_frames<C: Codec>(link: &mut Link, codec: &mut C, first: Frame) -> Option<Outcome> {
    let mut outcome = codec.on_frame(first);
    for _ in 0..AT_ONCE {
        if outcome.is_some() {
            break;
        }
        let Some(frame) = link.ready() else { break };
        outcome = codec.on_frame(frame);
    }
    outcome
}

/// Handles a beat. First looks for frames that came while this process did not run, since they are
/// signs of life.
fn on_beat<C: Codec>(link: &mut Link, codec: &mut C) -> Option<Outcome> {
    // A process that was suspended finds missed frames and a missed beat at the same time.
    if let Some(frame) = link.ready()
        && let Some(outcome) = on_frames(link, codec, frame)
    {
        return Some(outcome);
    }
    let outcome = codec.on_beat(link.heard());
    if outcome.is_none() && codec.pings() {
        return link.ping().err().map(|error| codec.lost(error.to_string()));
    }
    outcome
}

/// Counts beats in a row without a sign of life. Counting beats and not time leaves out the time in
/// which this process or machine did not run.
#[derive(Debug)]
pub(crate) struct SilentBeats {
    last_heard: Instant,
    silent: u32,
}

impl SilentBeats {
    pub(crate) fn new() -> Self {
        Self { last_heard: Instant::now(), silent: 0 }
    }

    /// Counts a beat. Returns how many there were since the last sign of life, which came at
    /// `heard`.
    pub(crate) fn beat(&mut self, heard: Instant) -> u32 {
        self.silent = if heard > self.last_heard { 0 } else { self.silent.saturating_add(1) };
        self.last_heard = self.last_heard.max(heard);
        self.silent
    }
}

/// The reason for leaving a server that was last heard at `heard`.
pub(crate) fn silent(heard: Instant) -> String {
    format!("the server was silent for {} s", heard.elapsed().as_secs())
}
