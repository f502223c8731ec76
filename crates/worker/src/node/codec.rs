//! The node protocol on one connection.

use std::time::Duration;

use protocol::node::{KEEP_ALIVE, WARREN, close};
use tokio::{
    task::JoinError,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use wire::{DialedLink, Frame, Link, Outbox};

use super::{job::TaskFailure, session::Action, slot::TaskSlot};
use crate::{
    context::LinkContext,
    driver::{Cause, Codec, SilentBeats, silent},
    event::Event,
    outcome::Outcome,
};

/// A server that keeps the connection for this long has accepted the node. The protocol has no
/// message for that.
const SETTLED: Duration = Duration::from_secs(1);

/// After this many beats without a sign of life, a Warren counts as gone.
const SILENT_BEATS: u32 = 2;

/// Close code: a task failed here (towards a Warren).
const FAILED: u16 = 1011;

/// Close code: the server goes away for a while.
const GOING_AWAY: u16 = 1001;

/// Close code: the server does not accept this node as it is.
const POLICY: u16 = 1008;

/// The codec's events beside frames.
pub(crate) enum NodeEvent {
    TaskEnded(Result<Result<(), TaskFailure>, JoinError>),
    /// The server has kept the connection for long enough.
    Settled,
}

/// A connection of the node protocol, with at most one task.
pub(crate) struct NodeCodec<'a> {
    context: &'a LinkContext,
    model: &'a str,
    outbox: Outbox,
    slot: &'a mut TaskSlot,
    /// Whether the server is a Warren, which takes the end of the connection for the failure of its
    /// task.
    warren: bool,
    since: Instant,
    settled: bool,
    leaving: bool,
    silence: SilentBeats,
}

impl<'a> NodeCodec<'a> {
    pub(crate) fn new(
        context: &'a LinkContext,
        model: &'a str,
        dialed: DialedLink,
        slot: &'a mut TaskSlot,
    ) -> (Link, Self) {
        let DialedLink { link, outbox, headers, .. } = dialed;
        slot.attach(outbox.clone());
        let warren = headers.contains_key(WARREN);
        let (since, settled, leaving) = (Instant::now(), false, false);
        let silence = SilentBeats::new();
        (link, Self { context, model, outbox, slot, warren, since, settled, leaving, silence })
    }

    fn settle(&mut self) {
        if !std::mem::replace(&mut self.settled, true) {
            let (server, name) = (self.context.server.to_string(), self.context.name.clone());
            let model = self.model.to_owned();
            self.context.events.send(&Event::NodeConnected { server, name, model });
        }
    }

    /// Handles a failed task. Returns the outcome if the connection must end.
    fn failed(&mut self, ended: Result<Result<(), TaskFailure>, JoinError>) -> Option<Outcome> {
        let failed = match ended {
            Ok(Err(failed)) => failed,
            Ok(Ok(())) | Err(_) => TaskFailure::Panicked,
        };
        let (name, task) = (&self.context.name, self.slot.running());
        let words = format!("a task failed: {failed}");
        tracing::error!(name, task, "{words}");
        // A Warren takes the end of the connection for the failure. At a stock server, only the text
        // can tell of it.
        if self.warren {
            self.slot.done();
        } else {
            self.slot.fail(&failed.without_address());
        }
        match failed {
            failed if self.warren && failed.is_the_tasks_own() => Some(Outcome::Spent(words)),
            // A server that reads nothing would not read of the failure either, so the connection
            // ends.
            failed if self.warren || failed.is_unread() => Some(self.lost(words)),
            _ => None,
        }
    }
}

impl Codec for NodeCodec<'_> {
    type Event = NodeEvent;

    async fn event(&mut self) -> NodeEvent {
        tokio::select! {
            biased;
            ended = self.slot.ended() => NodeEvent::TaskEnded(ended),
            () = sleep_until(self.since + SETTLED), if !self.settled => NodeEvent::Settled,
        }
    }

    fn on_event(&mut self, event: NodeEvent) -> Option<Outcome> {
        match event {
            NodeEvent::Settled => self.settle(),
            NodeEvent::TaskEnded(Ok(Ok(()))) => self.slot.done(),
            NodeEvent::TaskEnded(ended) => return self.failed(ended),
        }
        None
    }

    fn on_frame(&mut self, frame: Frame) -> Option<Outcome> {
        let Frame::Text(text) = frame else {
            tracing::warn!(len = frame.len(), "a binary frame of the server was ignored");
            return None;
        };
        self.settle();
        match self.slot.on_text(text.as_str())? {
            Action::Start(task) => self.slot.start(self.model, task, self.context.lent.count()),
            Action::Stop => self.slot.stop(),
        }
        None
    }

    fn beats(&self) -> Interval {
        let mut beats = interval_at(self.since + KEEP_ALIVE, KEEP_ALIVE);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats
    }

    fn pings(&self) -> bool {
        self.warren
    }

    /// Only a Warren, which answers pings, can be too silent. Stock servers send nothing while they have no
    /// tasks.
    fn on_beat(&mut self, heard: Instant) -> Option<Outcome> {
        if self.silence.beat(heard) >= SILENT_BEATS && self.warren {
            return Some(self.lost(silent(heard)));
        }
        // A link that is closed says so when it is read next.
        let _ = self.outbox.push(String::new());
        None
    }

    fn jobs(&self) -> usize {
        usize::from(self.slot.running().is_some())
    }

    fn drain(&mut self) {
        self.leaving = true;
        self.slot.drain();
    }

    fn closed(&self, reason: Option<(u16, String)>) -> Outcome {
        let Some((code, reason)) = reason else {
            return self.lost("the server went away".to_owned());
        };
        match code {
            code if code == close::INVALID_TOKEN.0 => {
                Outcome::Refused(format!("the server refused the token: {reason}"))
            }
            code if code == close::REPLACED.0 => Outcome::Refused(
                "another node of the same model and name took its place; give each its --name"
                    .to_owned(),
            ),
            close::BAD_QUERY | POLICY => Outcome::Refused(reason),
            GOING_AWAY => Outcome::Drained(reason),
            code if code == close::NORMAL.0 => Outcome::Drained(reason),
            code => self.lost(format!("the server closed: {code} {reason}")),
        }
    }

    fn lost(&self, reason: String) -> Outcome {
        Outcome::Lost { reason, stood: self.settled.then(|| self.since.elapsed()) }
    }

    async fn end(self, link: Link, cause: Cause) {
        match cause {
            Cause::Shutdown => {
                self.slot.end().await;
                if !self.warren {
                    self.slot.fail("this worker has ended");
                }
                let (code, reason) = close::NORMAL;
                link.close(code, reason).await;
                self.slot.forget();
            }
            Cause::GivenUp if self.warren => {
                // The end of the connection is what tells a Warren that the task failed.
                link.close(FAILED, "the task failed").await;
                self.slot.forget();
            }
            _ if self.warren || self.leaving => self.slot.forget(),
            // A stock server still waits for the task, so the task goes on over the next
            // connection.
            _ => self.slot.cut(),
        }
    }
}
