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
    workspace::Told,
};

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// A text was pasted.
    Paste(String),
    /// The terminal has another size, in columns and rows.
    Resize(u16, u16),
    /// Time passed.
    Tick,
    /// A server was asked how it is. `epoch`: of the effect that wanted it.
    Polled {
        /// Of the effect that wanted it; what is older is thrown away.
        epoch: u64,
        /// Its answers.
        polled: Box<Polled>,
    },
    /// Something came from a room that is watched.
    Room {
        /// Of the effect that wanted it; what is older is thrown away.
        watch: u64,
        /// The news.
        news: Box<RoomNews>,
    },
    /// A server was asked for its workspace. `watch`: of the effect that wanted it.
    Workspace {
        /// Of the effect that wanted it; what is older is thrown away.
        watch: u64,
        /// Its answer.
        came: Box<Result<Told, ClientError>>,
    },
    /// A server was asked for the list that is shown. `follow`: of the effect that wanted it.
    Page {
        /// Of the effect that wanted it; what is older is thrown away.
        follow: u64,
        /// Its answer.
        news: Box<PageNews>,
    },
    /// A key was made or revoked, or not.
    KeyChanged(Box<PageNews>),
    /// Something came of an answer.
    Answer {
        /// The question's number.
        question: u64,
        /// The piece.
        piece: Piece,
    },
}

/// A server's answers about itself. An answer is `None` if it was not asked for, because the server is away.
#[derive(Debug)]
pub struct Polled {
    /// How it is.
    pub health: Result<Health, ClientError>,
    /// Its queues.
    pub stats: Option<Result<Stats, ClientError>>,
    /// Its requests that ended since it was last asked, the newest first.
    pub requests: Option<Result<Vec<RequestJson>, ClientError>>,
    /// Its rooms.
    pub rooms: Option<Result<Vec<RoomSummary>, ClientError>>,
    /// Names of keys and peers by their ids, where they were asked for.
    pub names: BTreeMap<String, String>,
}

/// News of a watched room.
#[derive(Debug)]
pub enum RoomNews {
    /// It is watched now: what it is.
    Opened(RoomSummary),
    /// Its participants.
    People(Vec<ParticipantInfo>),
    /// Something happened in it.
    Happened(EventEnvelope),
    /// It is not watched for now; this was why. It is tried again.
    Lost(ClientError),
    /// It cannot be watched, and is not tried again.
    Refused(ClientError),
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Some text of it.
    Text(String),
    /// It is whole.
    Done {
        /// Tokens written, where that was said.
        tokens: Option<u64>,
        /// How it went, where that was said.
        metrics: Option<LlmMetrics>,
    },
    /// It did not come, or not whole.
    Failed(String),
}

/// Something for the shell to do.
#[derive(Debug)]
pub enum Effect {
    /// End.
    Quit,
    /// Ask this server, of those that were given, again and again; and no other any more.
    Poll {
        /// Comes back with each answer.
        epoch: u64,
        /// The server's place in the list.
        server: usize,
    },
    /// Watch a room, until [`Effect::Unwatch`].
    Watch {
        /// Comes back with all that comes from it.
        watch: u64,
        /// The room's code.
        code: String,
        /// Its password, if it was given.
        password: Option<Secret>,
    },
    /// No longer watch a room.
    Unwatch {
        /// The number it was watched under.
        watch: u64,
    },
    /// Ask the server for its workspace again and again, until [`Effect::UnwatchWorkspace`].
    WatchWorkspace {
        /// Comes back with each answer.
        watch: u64,
    },
    /// No longer ask for a workspace.
    UnwatchWorkspace,
    /// Ask the server for a list again and again, until another one, or [`Effect::Unfollow`].
    Follow {
        /// Comes back with each answer.
        follow: u64,
        /// The list.
        page: Page,
    },
    /// Ask for no list any more.
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
    /// Ask no longer.
    Cancel,
}

/// A question.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// Whom it is for.
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

/// Whom a question is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A model of the server.
    Server {
        /// The model.
        model: String,
    },
    /// Somebody in a room.
    Room {
        /// The room's code.
        code: String,
        /// Anybody, a model or a participant, as requests say it.
        selector: String,
    },
}
