//! The lists that are polled only while they are shown: peers, usage and keys.

use base::UsageBy;
use client::{
    ClientError,
    admin::{
        KeyJson,
        mesh::{MeshPeer, MeshPeers},
        usage::{UsageReport, UsageRow},
    },
};
use crossterm::event::{KeyCode, KeyEvent};

use super::{
    App, Screen,
    dialog::Dialog,
    event::Effect,
    layout,
    list::{List, Step},
    reading::Reading,
};

/// A list that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The peers of the mesh.
    Mesh,
    /// Usage, split by a property.
    Usage(UsageBy),
    /// The keys.
    Keys,
}

/// A server's answer about such a list.
#[derive(Debug)]
pub enum PageNews {
    /// The peers of the mesh.
    Mesh(Result<MeshPeers, ClientError>),
    /// Usage.
    Usage(Result<UsageReport, ClientError>),
    /// The keys.
    Keys(Result<Vec<KeyJson>, ClientError>),
    /// A key was made; this has its text.
    KeyMade(Result<KeyJson, ClientError>),
    /// A key was revoked.
    KeyRevoked(Result<KeyJson, ClientError>),
}

/// The peers of the mesh.
#[derive(Debug, Default)]
pub struct Mesh {
    /// The peers, if the server takes part in the mesh and shows them.
    pub reading: Reading<MeshPeers>,
    /// The place in the list.
    pub list: List,
    /// The id of the peer that is shown in full.
    pub whole: Option<String>,
}

impl Mesh {
    /// The peers.
    pub fn peers(&self) -> &[MeshPeer] {
        self.reading.known().map_or(&[], |known| &known.peers)
    }

    /// The peers that could not be linked to, in words.
    pub fn unlinked(&self) -> Vec<String> {
        let unlinked = self.reading.known().map_or(&[][..], |known| &known.unlinked);
        unlinked.iter().map(|one| format!("No link to {}: {}", one.place, one.why)).collect()
    }

    /// The peer that is shown in full.
    pub fn whole(&self) -> Option<&MeshPeer> {
        let id = self.whole.as_ref()?;
        self.peers().iter().find(|peer| peer.id == *id)
    }

    /// Shows the chosen peer in full.
    pub fn open(&mut self) {
        self.whole = self.peers().get(self.list.at).map(|peer| peer.id.clone());
    }
}

/// The properties by which usage is split, in the order in which the arrow keys reach them.
pub const SPLITS: [UsageBy; 4] = [UsageBy::Key, UsageBy::Model, UsageBy::Day, UsageBy::Provider];

/// The span of time for which usage is asked, as the server reads it.
pub const SINCE: &str = "30d";

/// Usage.
#[derive(Debug)]
pub struct Usage {
    /// The property by which it is split.
    pub by: UsageBy,
    /// The report, if the server shows it.
    pub reading: Reading<UsageReport>,
    /// The place in the list.
    pub list: List,
}

impl Default for Usage {
    fn default() -> Self {
        Self { by: UsageBy::Key, reading: Reading::default(), list: List::default() }
    }
}

impl Usage {
    /// The rows.
    pub fn rows(&self) -> &[UsageRow] {
        self.reading.known().map_or(&[], |report| &report.rows)
    }

    /// Splits it by the next property, or the one before.
    pub fn turn(&mut self, forward: bool) {
        let at = SPLITS.iter().position(|by| *by == self.by).unwrap_or(0);
        let step = if forward { 1 } else { SPLITS.len() - 1 };
        *self = Self { by: SPLITS[(at + step) % SPLITS.len()], ..Self::default() };
    }
}

/// The keys.
#[derive(Debug, Default)]
pub struct AccessKeys {
    /// The keys that are not revoked, the oldest first, if the server shows them.
    pub reading: Reading<Vec<KeyJson>>,
    /// The place in the list.
    pub list: List,
    /// Why the last change was refused.
    pub refused: Option<String>,
}

impl AccessKeys {
    /// The chosen key.
    pub fn chosen(&self) -> Option<&KeyJson> {
        self.reading.all().get(self.list.at)
    }
}

impl App {
    /// Polls the list that is shown, and no other.
    pub(super) fn follow_page(&mut self) -> Option<Effect> {
        let wanted = match self.screen {
            // The help hides it only for a moment.
            Screen::Help => self.page,
            Screen::Mesh => Some(Page::Mesh),
            Screen::Usage => Some(Page::Usage(self.usage.by)),
            Screen::Keys => Some(Page::Keys),
            _ => None,
        };
        if wanted == self.page {
            return None;
        }
        self.page = wanted;
        Some(self.ask_for_page())
    }

    /// Polls the list again at once.
    fn ask_for_page(&mut self) -> Effect {
        // A late answer to the earlier poll may be about another list.
        self.follow += 1;
        match self.page {
            Some(page) => Effect::Follow { follow: self.follow, page },
            None => Effect::Unfollow,
        }
    }

    pub(super) fn page_news(&mut self, news: PageNews) -> Vec<Effect> {
        match news {
            PageNews::Mesh(came) => self.mesh.reading.take(Some(came)),
            PageNews::Usage(came) => self.usage.reading.take(Some(came)),
            PageNews::Keys(came) => {
                let live = |keys: Vec<KeyJson>| {
                    keys.into_iter().filter(|key| key.revoked_at.is_none()).collect()
                };
                self.access_keys.reading.take(Some(came.map(live)));
            }
            PageNews::KeyMade(Ok(key)) => {
                self.dialog = Some(Dialog::NewKey { key: Box::new(key), elsewhere: None });
                return vec![self.ask_for_page()];
            }
            PageNews::KeyRevoked(Ok(_)) => return vec![self.ask_for_page()],
            PageNews::KeyMade(Err(error)) | PageNews::KeyRevoked(Err(error)) => {
                self.access_keys.refused = Some(error.to_string());
            }
        }
        Vec::new()
    }

    /// News of a change of keys at a server, which may not be the one that is shown any more.
    pub(super) fn key_changed(&mut self, server: usize, news: PageNews) -> Vec<Effect> {
        if server == self.server {
            return self.page_news(news);
        }
        // The text of a new key never comes again; everything else is of no use here.
        if let PageNews::KeyMade(Ok(key)) = news {
            let elsewhere = self.settings.servers.get(server).cloned();
            self.dialog = Some(Dialog::NewKey { key: Box::new(key), elsewhere });
        }
        Vec::new()
    }

    pub(super) fn mesh_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Esc | KeyCode::Enter if self.mesh.whole.is_some() => self.mesh.whole = None,
            KeyCode::Enter => self.mesh.open(),
            _ => self.page_step(key),
        }
    }

    pub(super) fn usage_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Left | KeyCode::Char('h') => self.usage.turn(false),
            KeyCode::Right | KeyCode::Char('l') => self.usage.turn(true),
            _ => self.page_step(key),
        }
    }

    pub(super) fn access_keys_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char('c') => self.dialog = Some(Dialog::key_name()),
            KeyCode::Char('r') => {
                self.dialog = self.access_keys.chosen().cloned().map(Box::new).map(Dialog::Revoke);
            }
            _ => self.page_step(key),
        }
    }

    fn page_step(&mut self, key: KeyEvent) {
        if let Some(step) = Step::of(key) {
            self.step_in_page(step);
        }
    }

    /// Moves in the list, or to another peer while one is shown in full.
    pub(super) fn step_in_page(&mut self, step: Step) {
        let rows = layout::page(layout::page_list(self), true);
        let (list, len) = match self.screen {
            Screen::Mesh => {
                let len = self.mesh.peers().len();
                (&mut self.mesh.list, len)
            }
            Screen::Usage => {
                let len = self.usage.rows().len();
                (&mut self.usage.list, len)
            }
            _ => (&mut self.access_keys.list, self.access_keys.reading.all().len()),
        };
        list.step(step, len, rows);
        if self.mesh.whole.is_some() {
            self.mesh.open();
        }
    }

    /// Keeps every chosen row in its list and in sight.
    pub(super) fn settle_pages(&mut self) {
        let rows = layout::page(layout::page_list(self), true);
        self.mesh.list.settle(self.mesh.reading.known().map_or(0, |known| known.peers.len()), rows);
        self.usage
            .list
            .settle(self.usage.reading.known().map_or(0, |known| known.rows.len()), rows);
        self.access_keys.list.settle(self.access_keys.reading.all().len(), rows);
    }

    /// Makes a key of this name.
    pub(super) fn make_key(&mut self, name: &str) -> Vec<Effect> {
        self.access_keys.refused = None;
        match name.trim() {
            "" => Vec::new(),
            name => vec![Effect::MakeKey { name: name.to_owned() }],
        }
    }

    pub(super) fn revoke_key(&mut self, key: &KeyJson) -> Vec<Effect> {
        self.access_keys.refused = None;
        vec![Effect::RevokeKey { id: key.id.clone() }]
    }
}
