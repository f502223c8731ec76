//! One connection while it stands.

use std::time::Duration;

use protocol::node::{KEEP_ALIVE, WARREN, close};
use tokio::{
    task::JoinError,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use wire::{DialedLink, Frame, Link, LinkError, Outbox};

use super::{job::Failed, session::Action, work::Work};
use crate::{event::Event, link::LinkLoop, reconnect::Outcome, serving::Ending};

/// A server that wants this node keeps the connection for longer than this. It has no other word
/// for it.
const SETTLED: Duration = Duration::from_secs(1);

/// The close code for a task that failed here, towards a Warren.
const FAILED: u16 = 1011;

/// Closed because the server stops, for now.
const GOING_AWAY: u16 = 1001;

/// Closed because the server does not want this node as it is.
const POLICY: u16 = 1008;

/// What wakes the connection.
enum Wake {
    Frame(Result<Option<Frame>, LinkError>),
    Ended(Result<Result<(), Failed>, JoinError>),
    KeepAlive,
    Settled,
    Late,
    Shutdown,
}

/// A connection that stands, with at most one task.
pub(crate) struct Serving<'a> {
    context: &'a LinkLoop,
    model: &'a str,
    link: Link,
    outbox: Outbox,
    work: &'a mut Work,
    /// Whether the server is a Warren, which takes the end of the connection as the failure of its
    /// task.
    warren: bool,
    since: Instant,
    settled: bool,
    /// When a task that still runs is cut off.
    leave_by: Option<Instant>,
}

impl<'a> Serving<'a> {
    pub(crate) fn new(
        context: &'a LinkLoop,
        model: &'a str,
        dialed: DialedLink,
        work: &'a mut Work,
    ) -> Self {
        let DialedLink { link, outbox, headers, .. } = dialed;
        work.attach(outbox.clone());
        Self {
            context,
            model,
            link,
            outbox,
            work,
            warren: headers.contains_key(WARREN),
            since: Instant::now(),
            settled: false,
            leave_by: None,
        }
    }

    /// Serves until the connection ends.
    pub(crate) async fn run(mut self) -> Ending {
        let mut keep_alive = interval_at(self.since + KEEP_ALIVE, KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.leave_by.is_some() && self.work.running().is_none() {
                return self.leave().await;
            }
            match self.wait(&mut keep_alive).await {
                Wake::Frame(Ok(Some(frame))) => self.on_frame(&frame),
                Wake::Frame(Ok(None)) => return self.over(Self::closed),
                Wake::Frame(Err(error)) => return self.over(|it| it.lost(error.to_string())),
                Wake::Ended(Ok(Ok(()))) => self.work.done(),
                Wake::Ended(ended) => {
                    if let Some(outcome) = self.failed(ended) {
                        return self.give_up(outcome).await;
                    }
                }
                Wake::KeepAlive => self.send(Frame::from(String::new())),
                Wake::Settled => self.settle(),
                Wake::Shutdown => self.begin_to_leave(),
                Wake::Late => return self.leave().await,
            }
        }
    }

    async fn wait(&mut self, keep_alive: &mut Interval) -> Wake {
        let settled_at = self.since + SETTLED;
        tokio::select! {
            biased;
            () = self.context.shutdown.cancelled(), if self.leave_by.is_none() => Wake::Shutdown,
            ended = self.work.ended() => Wake::Ended(ended),
            _ = keep_alive.tick() => Wake::KeepAlive,
            () = sleep_until(settled_at), if !self.settled => Wake::Settled,
            () = sleep_until(self.leave_by.unwrap_or(settled_at)), if self.leave_by.is_some() => {
                Wake::Late
            }
            frame = self.link.next() => Wake::Frame(frame),
        }
    }

    fn on_frame(&mut self, frame: &Frame) {
        let Frame::Text(text) = frame else {
            return tracing::warn!(len = frame.len(), "a binary frame of the server was ignored");
        };
        self.settle();
        match self.work.on_text(text.as_str()) {
            Some(Action::Start(task)) => {
                self.work.start(self.model, task, self.context.lent.count());
            }
            Some(Action::Stop) => self.work.stop(),
            None => {}
        }
    }

    fn settle(&mut self) {
        if !std::mem::replace(&mut self.settled, true) {
            let (server, name) = (self.context.server.to_string(), self.context.name.clone());
            self.context.teller.tell(&Event::NodeConnected {
                server,
                name,
                model: self.model.to_owned(),
            });
        }
    }

    fn begin_to_leave(&mut self) {
        self.work.drain();
        self.leave_by = Some(Instant::now() + self.context.drain_timeout);
    }

    async fn leave(self) -> Ending {
        let cut_off = usize::from(self.work.running().is_some());
        self.work.end().await;
        if !self.warren {
            self.work.fail("this worker has ended");
        }
        let (code, reason) = close::NORMAL;
        self.link.close(code, reason).await;
        self.work.forget();
        Ending::Left(cut_off)
    }

    /// Handles a failed task. Returns how the connection ends, if it does.
    fn failed(&mut self, ended: Result<Result<(), Failed>, JoinError>) -> Option<Outcome> {
        let failed = match ended {
            Ok(Err(failed)) => failed,
            Ok(Ok(())) | Err(_) => Failed::Here,
        };
        let (name, task) = (&self.context.name, self.work.running());
        let words = format!("a task failed: {failed}");
        tracing::error!(name, task, "{words}");
        if self.warren {
            self.work.done();
        } else {
            self.work.fail(&failed.to_string());
        }
        match failed {
            failed if self.warren && failed.is_the_tasks_own() => Some(Outcome::Spent(words)),
            // A server that reads nothing would not read about the failure either.
            failed if self.warren || failed.is_unread() => Some(self.lost(words)),
            _ => None,
        }
    }

    /// Ends the connection over a task that failed.
    async fn give_up(self, outcome: Outcome) -> Ending {
        if !self.warren {
            return self.over(|_| outcome);
        }
        let ending = self.ending(outcome, 0);
        self.link.close(FAILED, "the task failed").await;
        self.work.forget();
        ending
    }

    /// There is no connection any more. A running task and its unsent text are dropped, unless the
    /// server still waits for it.
    fn over(self, outcome: impl FnOnce(&Self) -> Outcome) -> Ending {
        let cut_off = usize::from(self.work.running().is_some());
        let ending = self.ending(outcome(&self), cut_off);
        if self.warren || self.leave_by.is_some() {
            self.work.forget();
        } else {
            self.work.cut();
        }
        ending
    }

    fn ending(&self, outcome: Outcome, cut_off: usize) -> Ending {
        if self.leave_by.is_some() { Ending::Left(cut_off) } else { Ending::Again(outcome) }
    }

    fn closed(&self) -> Outcome {
        let Some((code, reason)) = self.link.close_reason() else {
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

    fn send(&self, frame: Frame) {
        // A link that is closed says so when it is read next.
        let _ = self.outbox.push(frame);
    }
}
