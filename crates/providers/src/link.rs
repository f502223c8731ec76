//! One driver for every link of a provider.
//!
//! The driver reads frames, carries out the scheduler's decisions, watches for silence and for the
//! end of the provider's permit, and takes the link down in order. A [`Codec`] for each protocol
//! interprets the frames.

use std::{future::pending, pin::pin, time::Duration};

use base::JobId;
use scheduler::LeaveReason;
use tokio::time::{Instant, sleep, sleep_until};
use wire::{Frame, Link, LinkError, until};

use crate::notes::{AssignedJob, Note, Notes};

/// How many frames are taken in a row before the driver looks at anything else.
const AT_ONCE: usize = 32;

/// A close code and its reason.
pub(crate) type Close = (u16, &'static str);

/// A protocol on one link: interprets its frames, and sends the scheduler's decisions.
pub(crate) trait Codec {
    /// A job as this protocol's [`scheduler::Provider`] hands it to the link's task.
    type Job: AssignedJob;

    /// The provider's name in the log.
    const NAME: &'static str;

    /// The close codes for each end of a link.
    const CLOSES: Closes;

    fn assigned(&mut self, job: Self::Job);

    /// Handles a cancellation: the job is no longer this provider's.
    fn canceled(&mut self, job: JobId);

    /// Handles one frame. A bad frame costs at most the job that it belongs to.
    fn frame(&mut self, frame: Frame);

    /// The room's data about the provider have changed.
    fn changed(&mut self) {}

    /// The time from the start to the first call of [`Codec::check_silence`].
    fn first_check(&self) -> Duration;

    /// Returns the time of the next check, or `None` when the provider has been silent for too
    /// long. Its last frame arrived at `heard`.
    fn check_silence(&mut self, heard: Instant) -> Option<Instant>;

    /// When [`Codec::due`] is to be called, if at all.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Called at the time of [`Codec::next_due`].
    fn due(&mut self) {}

    /// Leaves the scheduler, which moves or ends the remaining jobs.
    fn leave(self, why: LeaveReason);
}

/// How the server closes a link.
pub(crate) struct Closes {
    /// After a drain in which every job finished.
    pub(crate) drained: Close,
    /// After a drain that cut jobs off.
    pub(crate) drain_timed_out: Close,
    /// The provider closed first.
    pub(crate) goodbye: Close,
    pub(crate) broken: Close,
    pub(crate) silent: Close,
}

/// A provider's permission to be connected: a key, a name, or a place in a room.
pub(crate) trait Permit: Sync {
    /// Resolves once the permission has ended. Cancel safe.
    fn ended(&self) -> impl Future<Output = Close> + Send;

    /// Resolves each time the provider has changed its announcement. Cancel safe.
    fn changed(&self) -> impl Future<Output = ()> + Send {
        pending()
    }

    /// Called for each frame.
    fn heard(&self) {}
}

/// Serves a registered provider until its link ends.
pub(crate) async fn drive<C: Codec>(
    mut link: Link,
    mut codec: C,
    notes: &Notes<C::Job>,
    permit: impl Permit,
) {
    let (why, (code, reason)) = until_end(&mut link, &mut codec, notes, &permit).await;
    let (close, said) = link.close_reason().unzip();
    tracing::info!(reason, close, said, "{} disconnected", C::NAME);
    // Settles the jobs and the room before the close frame: they should not wait for a slow
    // goodbye.
    for note in notes.take() {
        match note {
            Note::Assigned(job) => job.abandon(),
            Note::Canceled(job) => codec.canceled(job),
            Note::Retired { .. } => {}
        }
    }
    codec.leave(why);
    drop(permit);
    link.close(code, reason).await;
}

async fn until_end<C: Codec>(
    link: &mut Link,
    codec: &mut C,
    notes: &Notes<C::Job>,
    permit: &impl Permit,
) -> (LeaveReason, Close) {
    let mut ended = pin!(permit.ended());
    let mut check = pin!(sleep(codec.first_check()));
    let mut noted = Vec::new();
    loop {
        // Not only when nothing else is to be done: frames may come without a pause.
        if codec.next_due().is_some_and(|at| at <= Instant::now()) {
            codec.due();
        }
        tokio::select! {
            biased;
            close = &mut ended => return (LeaveReason::Closed, close),
            () = permit.changed() => codec.changed(),
            read = link.next() => {
                if let Some(end) = on_frames(link, codec, notes, &mut noted, permit, read) {
                    return end;
                }
            }
            () = notes.woken() => {
                if let Some(close) = catch_up(codec, notes, &mut noted) {
                    return (LeaveReason::Drained, close);
                }
            }
            () = until(codec.next_due()) => codec.due(),
            () = &mut check => match codec.check_silence(link.heard()) {
                Some(next) => check.set(sleep_until(next)),
                None => return (LeaveReason::HeartbeatLost, C::CLOSES.silent),
            }
        }
    }
}

/// Handles what was read, and further frames that have come already: another wait costs more than most
/// frames. Returns how the link ends, if it does. Notes are handled before each frame, because an
/// assignment does not always wake this task, and the frame may already answer it.
fn on_frames<C: Codec>(
    link: &mut Link,
    codec: &mut C,
    notes: &Notes<C::Job>,
    noted: &mut Vec<Note<C::Job>>,
    permit: &impl Permit,
    read: Result<Option<Frame>, LinkError>,
) -> Option<(LeaveReason, Close)> {
    let mut read = Some(read);
    for _ in 0..AT_ONCE {
        let Some(frame) = read.take().or_else(|| link.ready().map(|frame| Ok(Some(frame)))) else {
            break;
        };
        if let Some(close) = catch_up(codec, notes, noted) {
            return Some((LeaveReason::Drained, close));
        }
        match frame {
            Ok(Some(frame)) => {
                permit.heard();
                codec.frame(frame);
            }
            Ok(None) => return Some((LeaveReason::Closed, C::CLOSES.goodbye)),
            Err(error) => {
                tracing::warn!(%error, "the {}'s link broke", C::NAME);
                return Some((LeaveReason::Closed, C::CLOSES.broken));
            }
        }
    }
    None
}

/// Carries out the scheduler's decisions. Returns the close code once the drain is over. `noted` is
/// empty before and after; it is passed in so that its memory is used again.
fn catch_up<C: Codec>(
    codec: &mut C,
    notes: &Notes<C::Job>,
    noted: &mut Vec<Note<C::Job>>,
) -> Option<Close> {
    let mut close = None;
    notes.take_into(noted);
    for note in noted.drain(..) {
        match note {
            Note::Assigned(job) => codec.assigned(*job),
            Note::Canceled(job) => codec.canceled(job),
            Note::Retired { clean: true } => close = Some(C::CLOSES.drained),
            Note::Retired { clean: false } => close = Some(C::CLOSES.drain_timed_out),
        }
    }
    close
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::io::{AsyncWriteExt, duplex};
    use wire::Role;

    use super::*;

    impl AssignedJob for Infallible {
        fn id(&self) -> JobId {
            match *self {}
        }

        fn abandon(self) {
            match self {}
        }
    }

    const END: Close = (1000, "");

    /// Counts frames, and has something due from its beginning.
    struct Counting {
        frames: usize,
        due: Option<Instant>,
        /// How many frames had come when it was called.
        called: Option<usize>,
    }

    impl Codec for Counting {
        type Job = Infallible;
        const NAME: &'static str = "codec";
        const CLOSES: Closes =
            Closes { drained: END, drain_timed_out: END, goodbye: END, broken: END, silent: END };

        fn assigned(&mut self, job: Infallible) {
            match job {}
        }

        fn canceled(&mut self, _: JobId) {}

        fn frame(&mut self, _: Frame) {
            self.frames += 1;
        }

        fn first_check(&self) -> Duration {
            Duration::from_secs(60)
        }

        fn check_silence(&mut self, heard: Instant) -> Option<Instant> {
            Some(heard + Duration::from_secs(60))
        }

        fn next_due(&self) -> Option<Instant> {
            self.due
        }

        fn due(&mut self) {
            (self.due, self.called) = (None, Some(self.frames));
        }

        fn leave(self, _: LeaveReason) {}
    }

    struct Endless;

    impl Permit for Endless {
        async fn ended(&self) -> Close {
            pending().await
        }
    }

    #[tokio::test]
    async fn frames_without_a_pause_do_not_hold_up_what_is_due() {
        const FRAMES: usize = 10_000;
        let text: &[u8] = b"\x81\x01a";
        let (near, mut far) = duplex(FRAMES * text.len());
        far.write_all(&text.repeat(FRAMES)).await.unwrap();
        drop(far);
        let (mut link, _outbox) = Link::new(Box::pin(near), Role::Client);
        let mut codec = Counting { frames: 0, due: Some(Instant::now()), called: None };
        until_end(&mut link, &mut codec, &Notes::new(), &Endless).await;
        assert_eq!(codec.frames, FRAMES);
        assert!(codec.called.is_some_and(|frames| frames < FRAMES), "{:?}", codec.called);
    }
}
