//! The state of the interface, and the effect of each key: a pure machine.
//!
//! [`App::handle`] takes an event and its time, and returns the effects that it wants. It knows the size
//! of the terminal, and so the place under the mouse.
//!
//! - [`event`]: the events that it takes, and the effects that it wants
//! - `keys`, `mouse`: the effects of keys and of the mouse
//! - [`layout`]: the places on the screen, for the mouse and for drawing
//! - [`overview`], [`rooms`] and [`room`], [`requests`], [`ask`], [`workspace`]: the screens
//! - [`pages`]: more of them: lists that are polled only while they are shown
//! - [`transcript`]: a conversation as lines
//! - [`activity`], [`rates`]: the events of a room; a server's rates of the last seconds
//! - [`dialog`]: questions to the user
//! - [`list`], [`editor`], [`reading`]: positions in lists, typed texts, answers of a server

pub mod activity;
pub mod ask;
pub mod dialog;
pub mod editor;
pub mod event;
#[cfg(test)]
pub(crate) mod fixture;
mod keys;
pub mod layout;
pub mod list;
mod mouse;
pub mod overview;
pub mod pages;
pub mod rates;
pub mod reading;
pub mod requests;
pub mod room;
pub mod rooms;
#[cfg(test)]
mod tests;
pub mod transcript;
pub mod workspace;

use std::collections::BTreeMap;

use base::Secret;
use client::ClientError;
use jiff::Timestamp;
use protocol::room::RoomEvent;
use ratatui::layout::Size;

use self::{
    ask::Ask,
    dialog::Dialog,
    event::{Effect, Event, PollAnswers, RoomNews, Target},
    overview::Overview,
    pages::{AccessKeys, Mesh, Page, Usage},
    requests::Requests,
    rooms::Rooms,
    workspace::{Workspace, WorkspaceReport},
};

/// The settings that the interface starts with.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The servers, as they are shown; at least one.
    pub servers: Vec<String>,
    /// The room to open at once, by its code.
    pub room: Option<String>,
    /// That room's password.
    pub password: Option<Secret>,
    /// Whether there are colours.
    pub colour: bool,
}

/// A screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Screen {
    /// The state of the server.
    #[default]
    Overview,
    /// The rooms, and one of them.
    Rooms,
    /// The requests that ended last.
    Requests,
    /// A conversation with a model.
    Ask,
    /// The machines of the workspace, and its sessions.
    Workspace,
    /// The peers of the mesh.
    Mesh,
    /// Usage by key, model and so on.
    Usage,
    /// The keys.
    Keys,
    /// The keys of the keyboard, and their effects.
    Help,
}

/// The screens, in the order of their tabs, with titles that fit 80 columns beside the server's address.
pub const SCREENS: [(Screen, &str); 9] = [
    (Screen::Overview, "Overview"),
    (Screen::Rooms, "Rooms"),
    (Screen::Requests, "Log"),
    (Screen::Ask, "Ask"),
    (Screen::Workspace, "Work"),
    (Screen::Mesh, "Mesh"),
    (Screen::Usage, "Usage"),
    (Screen::Keys, "Keys"),
    (Screen::Help, "?"),
];

/// The connection to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// It has not answered yet.
    Asking,
    /// It answers.
    Here,
    /// It has not answered since then, for this reason.
    Lost(Timestamp, String),
}

/// The interface.
#[derive(Debug)]
pub struct App {
    /// The settings of its start.
    pub settings: Settings,
    /// The terminal's size.
    pub size: Size,
    /// The time of the last event.
    pub now: Timestamp,
    /// The screen that is shown.
    pub screen: Screen,
    /// The screen that was shown before the help.
    before_help: Screen,
    /// The index of the shown server among those in the settings.
    pub server: usize,
    /// The connection to it.
    pub link: Link,
    /// The state of the server.
    pub overview: Overview,
    /// The rooms.
    pub rooms: Rooms,
    /// The requests that ended last.
    pub requests: Requests,
    /// A conversation with a model.
    pub ask: Ask,
    /// The workspace.
    pub workspace: Workspace,
    /// The peers of the mesh.
    pub mesh: Mesh,
    /// Usage.
    pub usage: Usage,
    /// The keys.
    pub access_keys: AccessKeys,
    /// The names of keys and peers by their ids, as far as the server tells them.
    pub names: BTreeMap<String, String>,
    /// The list that the server is asked for now.
    page: Option<Page>,
    /// Counts the effects that asked for a list. Answers to older ones are dropped.
    follow: u64,
    /// The open question to the user, if any.
    pub dialog: Option<Dialog>,
    /// The number of the last effect that asked for a poll. Answers to older ones are dropped.
    epoch: u64,
}

impl App {
    /// The interface on a terminal of this size.
    pub fn new(settings: Settings, size: Size, now: Timestamp) -> Self {
        Self {
            settings,
            size,
            now,
            screen: Screen::default(),
            before_help: Screen::default(),
            server: 0,
            link: Link::Asking,
            overview: Overview::default(),
            rooms: Rooms::default(),
            requests: Requests::default(),
            ask: Ask::default(),
            workspace: Workspace::default(),
            mesh: Mesh::default(),
            usage: Usage::default(),
            access_keys: AccessKeys::default(),
            names: BTreeMap::new(),
            page: None,
            follow: 0,
            dialog: None,
            epoch: 0,
        }
    }

    /// The effects at its start.
    pub fn start(&mut self) -> Vec<Effect> {
        let mut effects = self.look_at_server(0);
        if let Some(code) = self.settings.room.clone() {
            self.screen = Screen::Rooms;
            effects.extend(self.look_at_room(&code));
        }
        effects
    }

    /// Handles an event. Returns the effects that it wants.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        self.now = now;
        let is_token = is_token(&event);
        let mut effects = match event {
            Event::Key(key) => self.key(key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) => self.paste(&text),
            Event::Resize(width, height) => self.resize(width, height),
            Event::Tick => Vec::new(),
            Event::Polled { epoch, polled } if epoch == self.epoch => self.polled(*polled),
            Event::Room { watch, news } => self.room(watch, *news),
            Event::Answer { question, piece } => self.answered(question, piece),
            Event::Workspace { watch, came } => self.workspace(watch, *came),
            Event::Page { follow, news } if follow == self.follow => self.page_news(*news),
            Event::KeyChanged { server, news } => self.key_changed(server, *news),
            Event::Polled { .. } | Event::Page { .. } => Vec::new(),
        };
        if let Some(answer) = &mut self.ask.answer {
            answer.pass(now);
        }
        effects.extend(self.watch_workspace());
        effects.extend(self.follow_page());
        // Tokens come by the thousand, and change no list.
        if !is_token {
            layout::settle(self);
        }
        effects
    }

    /// The server's address, as it is shown.
    pub fn server_name(&self) -> &str {
        self.settings.servers.get(self.server).map_or("", String::as_str)
    }

    /// The name of a key, or of the peer that asked. If it is not known, the id, which tells it from others.
    pub fn key_name(&self, key: &str) -> String {
        let peer = key.strip_prefix("peer:");
        let id = peer.unwrap_or(key);
        match (self.names.get(id), peer) {
            (Some(name), _) => name.clone(),
            (None, Some(id)) => format!("peer {}", workspace::beginning(id)),
            (None, None) => key.to_owned(),
        }
    }

    fn resize(&mut self, width: u16, height: u16) -> Vec<Effect> {
        self.size = Size { width, height };
        Vec::new()
    }

    fn answered(&mut self, question: u64, piece: event::Piece) -> Vec<Effect> {
        self.ask.take(self.now, question, piece);
        Vec::new()
    }

    fn workspace(&mut self, watch: u64, came: Result<WorkspaceReport, ClientError>) -> Vec<Effect> {
        if self.workspace.is_watched && watch == self.workspace.watch {
            self.workspace.take(came);
        }
        Vec::new()
    }

    /// Polls the workspace while it is shown.
    fn watch_workspace(&mut self) -> Option<Effect> {
        // The help hides it only for a moment.
        let is_shown = match self.screen {
            Screen::Help => self.workspace.is_watched,
            screen => screen == Screen::Workspace,
        };
        if is_shown == self.workspace.is_watched {
            return None;
        }
        self.workspace.is_watched = is_shown;
        if !is_shown {
            return Some(Effect::UnwatchWorkspace);
        }
        self.workspace.watch += 1;
        Some(Effect::WatchWorkspace { watch: self.workspace.watch })
    }

    fn room(&mut self, watch: u64, news: RoomNews) -> Vec<Effect> {
        let at = u64::try_from(self.now.as_millisecond()).unwrap_or(0);
        if let Some(room) = self.rooms.by_watch(watch) {
            room.take(at, news);
        }
        Vec::new()
    }

    fn polled(&mut self, polled: PollAnswers) -> Vec<Effect> {
        let second = self.now.as_second();
        match polled.health {
            Ok(health) => {
                self.link = Link::Here;
                self.overview.take(second, health);
            }
            Err(error) => self.lost(&error),
        }
        let stats = polled.stats.map(|stats| stats.map(|stats| stats.queues));
        self.overview.queues.take(stats);
        self.rooms.listed.take(polled.rooms);
        self.names.extend(polled.names);
        self.take_requests(second, polled.requests);
        self.choose_target();
        self.open_first_room()
    }

    fn take_requests(
        &mut self,
        second: i64,
        came: Option<Result<Vec<client::admin::requests::RequestJson>, ClientError>>,
    ) {
        match came {
            Some(Ok(came)) => {
                let newest = came.clone();
                if let Some(ended) = self.requests.take(came) {
                    self.overview.rates.take(second, &newest, ended);
                }
            }
            other => self.requests.reading.take(other.map(|came| came.map(drop))),
        }
    }

    fn lost(&mut self, error: &ClientError) {
        let since = match &self.link {
            Link::Lost(since, _) => *since,
            _ => self.now,
        };
        self.link = Link::Lost(since, error.to_string());
    }

    /// Shows another server, and forgets all about the earlier one.
    fn look_at_server(&mut self, server: usize) -> Vec<Effect> {
        let watched = std::mem::take(&mut self.rooms);
        let unwatch = watched.watched().iter().map(|room| Effect::Unwatch { watch: room.watch });
        let mut effects: Vec<Effect> = unwatch.collect();
        if self.ask.cancel() {
            effects.push(Effect::Cancel);
        }
        (self.overview, self.requests) = (Overview::default(), Requests::default());
        effects.extend(self.forget_workspace());
        (self.mesh, self.usage) =
            (Mesh::default(), Usage { by: self.usage.by, ..Usage::default() });
        (self.access_keys, self.names) = (AccessKeys::default(), BTreeMap::new());
        // The next event asks the other server for its list, if one is shown.
        if self.page.take().is_some() {
            self.follow += 1;
            effects.push(Effect::Unfollow);
        }
        (self.link, self.server, self.ask.to) = (Link::Asking, server, None);
        // Late news of the earlier server's rooms must match no watch.
        self.rooms.number_after(&watched);
        self.epoch += 1;
        effects.push(Effect::Poll { epoch: self.epoch, server });
        effects
    }

    /// Forgets the workspace of the earlier server. The next event asks the other server for its workspace,
    /// if it is shown.
    fn forget_workspace(&mut self) -> Option<Effect> {
        let Workspace { watch, is_watched, part, .. } = std::mem::take(&mut self.workspace);
        (self.workspace.watch, self.workspace.part) = (watch, part);
        is_watched.then_some(Effect::UnwatchWorkspace)
    }

    /// Opens a room, and watches it if it is not watched yet.
    fn look_at_room(&mut self, code: &str) -> Vec<Effect> {
        let is_given =
            self.settings.room.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(code));
        let password = self.settings.password.clone().filter(|_| is_given);
        let opened = self.rooms.look_at(code, password.clone());
        let unwatch = opened.unwatch.map(|watch| Effect::Unwatch { watch });
        let code = code.to_owned();
        let watch = opened.watch.map(|watch| Effect::Watch { watch, code, password });
        unwatch.into_iter().chain(watch).collect()
    }

    /// Opens the first room of the list if none is open, so that there is something to see.
    fn open_first_room(&mut self) -> Vec<Effect> {
        let first = self.rooms.listed.all().first().map(|room| rooms::entry(room).code);
        match first.filter(|_| self.rooms.open().is_none()) {
            Some(code) => self.look_at_room(&code),
            None => Vec::new(),
        }
    }

    /// All targets that can be asked.
    pub fn targets(&self) -> Vec<Target> {
        let models = self.overview.details().map_or(&[][..], |details| &details.models);
        ask::targets(models, self.rooms.watched())
    }

    /// Chooses the first target, if none is chosen.
    fn choose_target(&mut self) {
        if self.ask.to.is_none() {
            self.ask.to = self.targets().into_iter().next();
        }
    }
}

fn is_token(event: &Event) -> bool {
    match event {
        Event::Answer { .. } => true,
        Event::Room { news, .. } => match &**news {
            RoomNews::Happened(happened) => matches!(happened.event, RoomEvent::LlmToken(_)),
            _ => false,
        },
        _ => false,
    }
}
