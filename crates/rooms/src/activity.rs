//! The jobs of rooms, as participants and watchers see them.

use std::collections::{HashMap, VecDeque};

use base::{JobId, ProviderId};
use protocol::room::{
    Protocol, RoomEvent, Selector, ServerMessage,
    event::{LlmDone, LlmFailed, LlmStarted, Stage},
    message::{LlmComplete, LlmError},
    selector::real_model,
    types::AnswerMetrics,
};

use crate::events::Announcement;

/// The most jobs of a room that are tracked at once. Jobs above this number are served without
/// being reported.
pub const MAX_JOBS: usize = 10_000;

/// The most remembered jobs that ended before their start was reported.
const ENDED_EARLY: usize = 64;

/// A job was given to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStarted {
    /// The job.
    pub job: JobId,
    /// The provider that has it.
    pub provider: ProviderId,
    /// The selector, as the client wrote it.
    pub model: String,
    /// Its API.
    pub protocol: Protocol,
    /// The id that the client gave the job, if it came as an `llm:request`. The reader of its
    /// answer reports its end in the spec's messages.
    pub message: Option<String>,
}

impl JobStarted {
    fn request_id(&self) -> String {
        self.message.clone().unwrap_or_else(|| self.job.to_string())
    }
}

/// A job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnded {
    /// The job.
    pub job: JobId,
    /// Its end.
    pub how: How,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// With an answer of any status.
    Answered(AnswerMetrics),
    /// Without an answer, or in the middle of one.
    Failed {
        /// Whether its answer had begun.
        begun: bool,
        /// The reason.
        error: String,
    },
    /// Its client left.
    ClientGone,
}

/// The participant that a job was given to.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its nickname, for people.
    pub nickname: &'a str,
    /// The URL of its backend, as reported by the participant.
    pub endpoint: &'a str,
    /// Its models.
    pub models: &'a [String],
}

/// The jobs that the participants of one room have now, and the metrics of their last answers.
///
/// Pure. Its size is bounded by the jobs in flight, up to [`MAX_JOBS`], and by the participants.
#[derive(Debug, Default)]
pub struct Activity {
    jobs: HashMap<JobId, RoomJob>,
    participants: HashMap<String, ParticipantActivity>,
    /// The end events of jobs that came as messages. Each waits here until the reader of the answer
    /// has reported every token: an end never overtakes a token.
    withheld: HashMap<JobId, RoomEvent>,
    /// Jobs that ended before their start was reported. Most are never reported at all, but a start
    /// and an end of the same moment may arrive in either order.
    ended_early: VecDeque<JobId>,
}

/// A job that a participant has, or had last.
#[derive(Debug)]
struct RoomJob {
    participant: String,
    nickname: String,
    endpoint: String,
    model: String,
    protocol: Protocol,
    /// The id of the job in events.
    request_id: String,
    by_message: bool,
    /// For a job that came as a message: whether its whole answer was reported.
    concluded: bool,
    /// Whether the participant still has it.
    held: bool,
}

/// The activity of a participant.
#[derive(Debug, Default)]
struct ParticipantActivity {
    in_flight: u32,
    last: Option<AnswerMetrics>,
}

impl Activity {
    /// Records that a job was given to a participant, for the first time or again. Returns the
    /// event for it.
    pub fn started(&mut self, job: &JobStarted, holder: Holder<'_>) -> Option<Announcement> {
        if self.take_early_end(job.job) || self.is_full(job.job) {
            return None;
        }
        // A job that is given again has left its former participant, which may not have been reported.
        self.requeued(job.job);
        self.jobs.insert(job.job, RoomJob::new(job, holder));
        self.participants.entry(holder.id.to_owned()).or_default().in_flight += 1;
        Some(Announcement::event(RoomEvent::LlmRequest(LlmStarted {
            request_id: job.request_id(),
            participant_id: holder.id.to_owned(),
            model: job.model.clone(),
            protocol: job.protocol,
        })))
    }

    /// Records that no participant has a job for the moment: the last one did not begin its answer.
    pub fn requeued(&mut self, job: JobId) {
        let Some(running) = self.jobs.get_mut(&job).filter(|running| running.held) else { return };
        running.held = false;
        if let Some(doing) = self.participants.get_mut(&running.participant) {
            doing.in_flight = doing.in_flight.saturating_sub(1);
        }
    }

    /// Records the end of a job. Returns its event, unless no participant ever had the job.
    pub fn ended(&mut self, ended: &JobEnded) -> Option<Announcement> {
        self.requeued(ended.job);
        let Some(running) = self.jobs.remove(&ended.job) else {
            self.remember_ended(ended.job);
            return None;
        };
        if let (How::Answered(metrics), Some(doing)) =
            (&ended.how, self.participants.get_mut(&running.participant))
        {
            doing.last = Some(*metrics);
        }
        let announcement = running.end(&ended.how);
        // The end of a job that came as a message waits until the reader of its answer has reported all tokens.
        if !running.by_message || running.concluded {
            return Some(announcement);
        }
        self.withheld.extend(announcement.event.map(|event| (ended.job, event)));
        None
    }

    /// Records that the whole answer to a job that came as a message was reported. Returns the end
    /// event, if the job has ended.
    pub fn conclude(&mut self, job: JobId) -> Option<RoomEvent> {
        if let Some(running) = self.jobs.get_mut(&job) {
            running.concluded = true;
        }
        self.withheld.remove(&job)
    }

    /// The id of the participant that has a job now.
    pub fn holder(&self, job: JobId) -> Option<&str> {
        let running = self.jobs.get(&job).filter(|running| running.held)?;
        Some(&running.participant)
    }

    /// The number of jobs that a participant has now.
    pub fn in_flight(&self, participant: &str) -> u32 {
        self.participants.get(participant).map_or(0, |doing| doing.in_flight)
    }

    /// The metrics of a participant's last answer.
    pub fn metrics(&self, participant: &str) -> Option<AnswerMetrics> {
        self.participants.get(participant)?.last
    }

    /// Forgets a participant that left the room. Its jobs end on their own.
    pub fn forget(&mut self, participant: &str) {
        self.participants.remove(participant);
        let its = |running: &&mut RoomJob| running.participant == participant;
        self.jobs.values_mut().filter(its).for_each(|running| running.held = false);
    }

    fn is_full(&self, job: JobId) -> bool {
        self.jobs.len() >= MAX_JOBS && !self.jobs.contains_key(&job)
    }

    /// Forgets the early end of a job. Returns whether there was one.
    fn take_early_end(&mut self, job: JobId) -> bool {
        let early = self.ended_early.iter().position(|ended| *ended == job);
        early.is_some_and(|index| self.ended_early.remove(index).is_some())
    }

    fn remember_ended(&mut self, job: JobId) {
        self.ended_early.push_back(job);
        if self.ended_early.len() > ENDED_EARLY {
            self.ended_early.pop_front();
        }
    }
}

impl RoomJob {
    fn new(job: &JobStarted, holder: Holder<'_>) -> Self {
        Self {
            participant: holder.id.to_owned(),
            nickname: holder.nickname.to_owned(),
            endpoint: holder.endpoint.to_owned(),
            model: model_of(&job.model, holder.models),
            protocol: job.protocol,
            request_id: job.request_id(),
            by_message: job.message.is_some(),
            concluded: false,
            held: true,
        }
    }

    fn end(&self, how: &How) -> Announcement {
        let (event, message) = match how {
            How::Answered(metrics) => self.complete(metrics),
            How::Failed { begun: false, error } => self.failed(Stage::Dispatch, error),
            How::Failed { begun: true, error } => self.failed(Stage::Stream, error),
            // Stock servers report nothing here, and their watchers wait for ever.
            How::ClientGone => self.failed(Stage::Stream, "the client left"),
        };
        let message = (!self.by_message).then_some(message);
        Announcement { event: Some(event), message }
    }

    fn complete(&self, metrics: &AnswerMetrics) -> (RoomEvent, ServerMessage) {
        let event = LlmDone {
            request_id: self.request_id.clone(),
            participant_id: self.participant.clone(),
            model: self.model.clone(),
            protocol: self.protocol,
            metrics: *metrics,
        };
        let message = LlmComplete {
            request_id: self.request_id.clone(),
            participant_id: self.participant.clone(),
            metrics: metrics.as_spec(),
        };
        (RoomEvent::LlmComplete(event), ServerMessage::LlmComplete(message))
    }

    fn failed(&self, stage: Stage, error: &str) -> (RoomEvent, ServerMessage) {
        let event = LlmFailed {
            request_id: self.request_id.clone(),
            participant_id: self.participant.clone(),
            nickname: self.nickname.clone(),
            endpoint: self.endpoint.clone(),
            model: self.model.clone(),
            protocol: self.protocol,
            stage,
            error: error.to_owned(),
        };
        let message = LlmError {
            request_id: self.request_id.clone(),
            participant_id: self.participant.clone(),
            error: error.to_owned(),
        };
        (RoomEvent::LlmError(event), ServerMessage::LlmError(message))
    }
}

/// The model that this selector means at a participant.
fn model_of(selector: &str, models: &[String]) -> String {
    let name = match Selector::parse(selector) {
        Selector::Any => String::new(),
        Selector::Model(name) | Selector::Named(name) => name,
    };
    real_model(&name, models).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
