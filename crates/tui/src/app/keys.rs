//! The actions of keys.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    App, SCREENS, Screen,
    dialog::Dialog,
    event::{Effect, Question, Target},
    layout,
    list::Step,
    overview, rooms, transcript, workspace,
};
use crate::draw::theme::Theme;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        // Terminals on Windows also report when a key is released.
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        // Before dialogs and prompts: in raw mode, the terminal does not turn it into a signal.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return vec![Effect::Quit];
        }
        match self.dialog.take() {
            Some(dialog) => self.dialog_key(dialog, key),
            None if self.is_typing() => self.prompt_key(key),
            None => self.common_key(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        let is_typing = self.is_typing();
        match &mut self.dialog {
            Some(Dialog::Filter) => self.requests.filter.insert(text.trim()),
            Some(Dialog::Code(editor) | Dialog::Password(editor) | Dialog::KeyName(editor)) => {
                editor.insert(text.trim());
            }
            Some(Dialog::Target(pick)) => pick.filter.insert(text.trim()),
            Some(Dialog::NewKey { .. } | Dialog::Revoke(_)) => {}
            None if is_typing => self.ask.prompt.insert(text),
            None => {}
        }
        Vec::new()
    }

    /// Whether keys go into the prompt.
    pub fn is_typing(&self) -> bool {
        self.screen == Screen::Ask && self.ask.is_typing
    }

    pub(super) fn show(&mut self, screen: Screen) {
        if self.screen != Screen::Help {
            self.before_help = self.screen;
        }
        self.screen = screen;
        // A user who goes to this screen wants to ask.
        self.ask.is_typing = screen == Screen::Ask && !self.ask.is_open();
    }

    fn common_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Char('q') => return vec![Effect::Quit],
            KeyCode::Char('?') => self.show(Screen::Help),
            KeyCode::Char(c @ '1'..='9') => self.show(SCREENS[c as usize - '1' as usize].0),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(SCREENS.len() - 1),
            KeyCode::Char('s') => return self.next_server(),
            KeyCode::Char('o') => self.ask_for_code(),
            _ => return self.screen_key(key),
        }
        Vec::new()
    }

    fn turn(&mut self, by: usize) {
        let at = SCREENS.iter().position(|(screen, _)| *screen == self.screen).unwrap_or(0);
        self.show(SCREENS[(at + by) % SCREENS.len()].0);
    }

    fn next_server(&mut self) -> Vec<Effect> {
        match self.settings.servers.len() {
            0 | 1 => Vec::new(),
            count => self.look_at_server((self.server + 1) % count),
        }
    }

    fn ask_for_code(&mut self) {
        self.show(Screen::Rooms);
        self.dialog = Some(Dialog::code());
    }

    fn screen_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match self.screen {
            Screen::Overview => self.overview_key(key),
            Screen::Rooms => self.rooms_key(key),
            Screen::Requests => self.requests_key(key),
            Screen::Ask => self.ask_key(key),
            Screen::Workspace => self.workspace_key(key),
            Screen::Mesh => self.on_page(|app| app.mesh_key(key)),
            Screen::Usage => self.on_page(|app| app.usage_key(key)),
            Screen::Keys => self.on_page(|app| app.access_keys_key(key)),
            Screen::Help => {
                if key.code == KeyCode::Esc {
                    // The screen comes back as it was left, not as if the user had just opened it.
                    self.screen = self.before_help;
                }
                Vec::new()
            }
        }
    }

    /// Handles a key on a list that is polled while it is shown. Such keys have no effects for the shell.
    fn on_page(&mut self, acts: impl FnOnce(&mut Self)) -> Vec<Effect> {
        acts(self);
        Vec::new()
    }

    fn overview_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Left | KeyCode::Char('h') => self.overview.turn(false),
            KeyCode::Right | KeyCode::Char('l') => self.overview.turn(true),
            KeyCode::Enter => return self.open_from_overview(),
            _ => {
                if let Some(step) = Step::of(key) {
                    self.overview_step(step);
                }
            }
        }
        Vec::new()
    }

    pub(super) fn overview_step(&mut self, step: Step) {
        let areas = layout::overview(self);
        let (workers, rooms) = (self.overview.all_workers().len(), self.rooms.listed.all().len());
        let queues = self.overview.queues.all().len();
        let overview = &mut self.overview;
        let (list, len, area) = match overview.part {
            overview::Part::Workers => (&mut overview.workers, workers, areas.workers),
            overview::Part::Rooms => (&mut overview.rooms, rooms, areas.rooms),
            overview::Part::Queues => (&mut overview.waiting, queues, areas.queues),
        };
        list.step(step, len, layout::page(area, true));
    }

    pub(super) fn open_from_overview(&mut self) -> Vec<Effect> {
        let room = self.rooms.listed.all().get(self.overview.rooms.at);
        match room.filter(|_| self.overview.part == overview::Part::Rooms) {
            Some(room) => {
                let code = rooms::entry(room).code;
                self.show(Screen::Rooms);
                self.look_at_room(&code)
            }
            None => Vec::new(),
        }
    }

    fn rooms_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        use rooms::Part::{Activity, List, People};
        match (key.code, self.rooms.part) {
            (KeyCode::Left | KeyCode::Char('h'), part) => {
                self.rooms.part = if part == Activity { People } else { List };
            }
            (KeyCode::Right | KeyCode::Char('l'), part) => {
                self.rooms.part = if part == List { People } else { Activity };
            }
            (KeyCode::Char('p'), _) if self.rooms.open().is_some() => {
                self.dialog = Some(Dialog::password());
            }
            (KeyCode::Char('a'), _) => self.ask_in_room("*".to_owned()),
            (KeyCode::Enter, List) => return self.open_chosen(),
            (KeyCode::Enter, People) => self.ask_chosen(),
            (KeyCode::Esc, _) => self.rooms.part = List,
            _ => {
                if let Some(step) = Step::of(key) {
                    self.rooms_step(step);
                }
            }
        }
        Vec::new()
    }

    pub(super) fn open_chosen(&mut self) -> Vec<Effect> {
        let entries = self.rooms.entries();
        let code = entries.get(self.rooms.list.at).map(|entry| entry.code.clone());
        code.map(|code| self.look_at_room(&code)).unwrap_or_default()
    }

    pub(super) fn ask_chosen(&mut self) {
        let open = self.rooms.open();
        let who = open.and_then(|room| room.people.get(room.list.at)).map(|who| who.id.clone());
        if let Some(selector) = who {
            self.ask_in_room(selector);
        }
    }

    fn ask_in_room(&mut self, selector: String) {
        if let Some(room) = self.rooms.open() {
            let code = room.entry().code;
            self.ask.to = Some(Target::Room { code, selector });
            self.show(Screen::Ask);
        }
    }

    pub(super) fn rooms_step(&mut self, step: Step) {
        let areas = layout::rooms(self);
        let (entries, part) = (self.rooms.entries().len(), self.rooms.part);
        if part == rooms::Part::List {
            return self.rooms.list.step(step, entries, layout::page(areas.list, false));
        }
        let Some(room) = self.rooms.open_mut() else { return };
        if part == rooms::Part::People {
            return room.list.step(step, room.people.len(), layout::page(areas.people, true));
        }
        let page = layout::page(areas.activity, false);
        room.below = scrolled(room.below, step, room.activity.lines().len(), page);
    }

    fn requests_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Char('/') => self.dialog = Some(Dialog::Filter),
            KeyCode::Esc if self.requests.whole.is_some() => self.requests.whole = None,
            KeyCode::Esc => self.requests.filter.clear(),
            KeyCode::Enter if self.requests.whole.is_some() => self.requests.whole = None,
            KeyCode::Enter => self.requests.open(),
            _ => {
                if let Some(step) = Step::of(key) {
                    self.requests_step(step);
                }
            }
        }
        Vec::new()
    }

    /// Moves in the log, or to another request while one is shown in full.
    pub(super) fn requests_step(&mut self, step: Step) {
        let page = layout::page(layout::frame(self).body, true);
        let shown = self.requests.shown().len();
        self.requests.list.step(step, shown, page);
        if self.requests.whole.is_some() {
            self.requests.open();
        }
    }

    fn workspace_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let workspace = &mut self.workspace;
        match key.code {
            KeyCode::Esc | KeyCode::Enter if workspace.whole.is_some() => workspace.whole = None,
            KeyCode::Left | KeyCode::Right | KeyCode::Char('h' | 'l') => workspace.turn(),
            KeyCode::Enter if workspace.part == workspace::Part::Sessions => workspace.open(),
            _ => {
                if let Some(step) = Step::of(key) {
                    self.workspace_step(step);
                }
            }
        }
        Vec::new()
    }

    /// Moves in a list, or to another session while one is shown in full.
    pub(super) fn workspace_step(&mut self, step: Step) {
        let areas = layout::workspace(self);
        let workspace = &mut self.workspace;
        if workspace.part == workspace::Part::Members {
            let (len, page) = (workspace.members.len(), layout::page(areas.members, true));
            return workspace.members_list.step(step, len, page);
        }
        workspace.list.step(step, workspace.sessions.len(), layout::page(areas.sessions, true));
        if workspace.whole.is_some() {
            workspace.open();
        }
    }

    fn ask_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Char('i') | KeyCode::Enter => self.ask.is_typing = true,
            KeyCode::Left | KeyCode::Char('h') => self.turn_target(false),
            KeyCode::Right | KeyCode::Char('l') => self.turn_target(true),
            KeyCode::Char('m') => self.dialog = Some(Dialog::target()),
            KeyCode::Char('a') => self.ask.aloud = !self.ask.aloud,
            KeyCode::Char('n') => self.ask.forget(),
            KeyCode::Esc if self.ask.cancel() => return vec![Effect::Cancel],
            _ => {
                if let Some(step) = Step::of(key) {
                    self.ask_step(step);
                }
            }
        }
        Vec::new()
    }

    pub(super) fn ask_step(&mut self, step: Step) {
        let area = layout::ask(self).answer;
        let columns = layout::rows(area, false).width.into();
        let lines = transcript::lines(&self.ask, columns, Theme::new(self.settings.colour)).len();
        self.ask.below = scrolled(self.ask.below, step, lines, layout::page(area, false));
    }

    fn turn_target(&mut self, forward: bool) {
        let targets = self.targets();
        let Some(last) = targets.len().checked_sub(1) else { return };
        let at = targets.iter().position(|target| Some(target) == self.ask.to.as_ref());
        let next = match at {
            Some(at) if forward => (at + 1) % targets.len(),
            Some(at) => at.checked_sub(1).unwrap_or(last),
            None => 0,
        };
        self.ask.to = targets.into_iter().nth(next);
    }

    fn prompt_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let apart = KeyModifiers::ALT | KeyModifiers::SHIFT;
        match key.code {
            KeyCode::Esc => self.ask.is_typing = false,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(SCREENS.len() - 1),
            KeyCode::Enter if key.modifiers.intersects(apart) => self.ask.prompt.insert("\n"),
            KeyCode::Enter => return self.send(),
            KeyCode::PageUp => self.ask_step(Step::Pages(-1)),
            KeyCode::PageDown => self.ask_step(Step::Pages(1)),
            _ => {
                self.ask.prompt.key(key);
            }
        }
        Vec::new()
    }

    fn send(&mut self) -> Vec<Effect> {
        let prompt = self.ask.prompt.text().trim().to_owned();
        let Some(to) = self.ask.to.clone().filter(|_| !prompt.is_empty()) else {
            return Vec::new();
        };
        let aloud = self.ask.aloud && matches!(to, Target::Room { .. });
        let (number, password) = (self.ask.begin(self.now), self.password_of(&to));
        self.ask.prompt.clear();
        self.ask.is_typing = false;
        let before = self.ask.before();
        vec![Effect::Ask(Question { number, to, password, aloud, before, prompt })]
    }

    fn password_of(&self, to: &Target) -> Option<base::Secret> {
        let Target::Room { code, .. } = to else { return None };
        let rooms = self.rooms.watched();
        rooms.iter().find(|room| room.entry().code == *code)?.password.clone()
    }

    fn dialog_key(&mut self, mut dialog: Dialog, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Esc => {
                self.give_up(&dialog);
                return Vec::new();
            }
            KeyCode::Enter => return self.done(dialog),
            _ => {}
        }
        match &mut dialog {
            Dialog::Filter => drop(self.requests.filter.key(key)),
            Dialog::Code(editor) | Dialog::Password(editor) | Dialog::KeyName(editor) => {
                editor.key(key);
            }
            Dialog::NewKey { .. } => {}
            Dialog::Revoke(key_meant) => match key.code {
                KeyCode::Char('y') => return self.revoke_key(&key_meant.clone()),
                KeyCode::Char('n') => return Vec::new(),
                _ => {}
            },
            Dialog::Target(pick) => match Step::of(key).filter(|_| !is_text(key)) {
                Some(step) => {
                    let len = pick.shown(self.targets()).len();
                    pick.list.step(step, len, layout::page(layout::targets(self), true));
                }
                None => drop(pick.filter.key(key)),
            },
        }
        self.dialog = Some(dialog);
        Vec::new()
    }

    fn give_up(&mut self, dialog: &Dialog) {
        if matches!(dialog, Dialog::Filter) {
            self.requests.filter.clear();
        }
    }

    pub(super) fn done(&mut self, dialog: Dialog) -> Vec<Effect> {
        match dialog {
            Dialog::Filter | Dialog::NewKey { .. } => Vec::new(),
            Dialog::Code(editor) => match editor.text().trim() {
                "" => Vec::new(),
                code => self.look_at_room(code),
            },
            Dialog::Password(editor) => self.retry_with(editor.text()),
            Dialog::KeyName(editor) => self.make_key(editor.text()),
            // Enter does not revoke: an act that cannot be undone needs a key of its own.
            revoke @ Dialog::Revoke(_) => {
                self.dialog = Some(revoke);
                Vec::new()
            }
            Dialog::Target(pick) => {
                if let Some(target) = pick.shown(self.targets()).into_iter().nth(pick.list.at) {
                    self.ask.to = Some(target);
                    self.ask.is_typing = true;
                }
                Vec::new()
            }
        }
    }

    fn retry_with(&mut self, password: &str) -> Vec<Effect> {
        let password = (!password.is_empty()).then(|| base::Secret::from(password));
        let Some((before, watch)) = self.rooms.retry(password) else { return Vec::new() };
        let Some(room) = self.rooms.open() else { return Vec::new() };
        let (code, password) = (room.code.clone(), room.password.clone());
        vec![Effect::Unwatch { watch: before }, Effect::Watch { watch, code, password }]
    }
}

/// The number of lines below the window after a step; the window shows `page` of `lines`.
fn scrolled(below: usize, step: Step, lines: usize, page: usize) -> usize {
    // A step counts lines from above, `below` counts them from below: at 0, the window stays with the newest line.
    let most = lines.saturating_sub(page);
    let above = most.saturating_sub(below);
    most - step.from(above, most + 1, page).min(most)
}

/// Whether a key is a character, which is typed.
fn is_text(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char(_) | KeyCode::Home | KeyCode::End)
}
