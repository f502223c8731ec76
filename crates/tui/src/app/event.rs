//! The events that the interface takes, and the effects that it wants.

use std::collections::BTreeMap;

use base::Secret;
use client::{
    ClientError,
    admin::{
        requests::RequestJson,
        status::{Health, Stats},
    },
};
use crossterm::event::{KeyEvent, MouseEvent};
use protocol::room::{LlmMetrics, ParticipantInfo, RoomSummary, event::EventEnvelope};

use super::{
    pages::{Page, PageNews},
    workspace::WorkspaceReport,
};

/// An event.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// A text was pasted.
    Paste(String),
    /// The terminal has another size, in columns and rows.
    Resize(u16, u16),
    /// Time passed.
    Tick,
    /// A server answered a poll of its state.
    Polled {
        /// The number of the effect that wanted it. An older answer is dropped.
        epoch: u64,
        /// Its answers.
        polled: Box<PollAnswers>,
    },
    /// News of a watched room.
    Room {
        /// The number of the watch. Older news is dropped.
        watch: u64,
        /// The news.
        news: Box<RoomNews>,
    },
    /// A server answered a question about its workspace.
    Workspace {
        /// The number of the watch. An older answer is dropped.
        watch: u64,
        /// Its answer.
        came: Box<Result<WorkspaceReport, ClientError>>,
    },
    /// A server answered with the list that is shown.
    Page {
        /// The number of the effect that wanted it. An older answer is dropped.
        follow: u64,
        /// Its answer.
        news: Box<PageNews>,
    },
    /// A key was made or revoked, or the server refused.
    KeyChanged {
        /// The server's index among the given ones.
        server: usize,
        /// Its answer.
        news: Box<PageNews>,
    },
    /// A piece of an answer came.
    Answer {
        /// The question's number.
        question: u64,
        /// The piece.
        piece: Piece,
    },
}

/// A server's answers about itself. An answer is `None` if it was not asked for: the server is away, or
/// refused such a question a moment ago.
#[derive(Debug)]
pub struct PollAnswers {
    /// Its health.
    pub health: Result<Health, ClientError>,
    /// Its queues.
    pub stats: Option<Result<Stats, ClientError>>,
    /// Its requests that ended since the last poll, the newest first.
    pub requests: Option<Result<Vec<RequestJson>, ClientError>>,
    /// Its rooms.
    pub rooms: Option<Result<Vec<RoomSummary>, ClientError>>,
    /// Names of keys and peers by their ids, where they were asked for.
    pub names: BTreeMap<String, String>,
}

/// News of a watched room.
#[derive(Debug)]
pub enum RoomNews {
    /// The room is watched now.
    Opened(RoomSummary),
    /// Its participants.
    People(Vec<ParticipantInfo>),
    /// An event of the room.
    Happened(EventEnvelope),
    /// The watch broke off for this reason, and is tried again.
    Lost(ClientError),
    /// The room cannot be watched, for this reason. It is not tried again.
    Refused(ClientError),
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// The answer is complete.
    Done {
        /// The number of tokens, if the server reported it.
        tokens: Option<u64>,
        /// Its metrics, if the server reported them.
        metrics: Option<LlmMetrics>,
    },
    /// The answer failed, or broke off, for this reason.
    Failed(String),
}

/// A task for the shell.
#[derive(Debug)]
pub enum Effect {
    /// End the interface.
    Quit,
    /// Poll this one of the given servers, and stop polling any other.
    Poll {
        /// The number that each answer carries.
        epoch: u64,
        /// The server's index among the given ones.
        server: usize,
    },
    /// Watch a room, until [`Effect::Unwatch`].
    Watch {
        /// The number that the room's news carry.
        watch: u64,
        /// The room's code.
        code: String,
        /// Its password, if it was given.
        password: Option<Secret>,
    },
    /// Stop watching a room.
    Unwatch {
        /// The number of its watch.
        watch: u64,
    },
    /// Poll the workspace of the server until [`Effect::UnwatchWorkspace`].
    WatchWorkspace {
        /// The number that each answer carries.
        watch: u64,
    },
    /// Stop polling the workspace.
    UnwatchWorkspace,
    /// Poll a list of the server until the next [`Effect::Follow`] or [`Effect::Unfollow`].
    Follow {
        /// The number that each answer carries.
        follow: u64,
        /// The list.
        page: Page,
    },
    /// Stop polling a list.
    Unfollow,
    /// Make a key for inference.
    MakeKey {
        /// Its name.
        name: String,
    },
    /// Revoke a key, for good.
    RevokeKey {
        /// Its id.
        id: String,
    },
    /// Ask a question.
    Ask(Question),
    /// Stop the answer.
    Cancel,
}

/// A question.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// Its target.
    pub to: Target,
    /// The password of the room, if it was given.
    pub password: Option<Secret>,
    /// Whether everybody who watches the room sees the answer.
    pub aloud: bool,
    /// The turns before, the oldest first.
    pub before: Vec<Turn>,
    /// The question.
    pub prompt: String,
}

/// A question that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The question.
    pub prompt: String,
    /// The answer.
    pub answer: String,
}

/// The target of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A model of the server.
    Server {
        /// The model.
        model: String,
    },
    /// A target in a room.
    Room {
        /// The room's code.
        code: String,
        /// The selector of a request: anybody, a model or a participant.
        selector: String,
    },
}
