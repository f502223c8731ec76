//! The effects of the mouse: a click chooses, a click on what is chosen opens it, the wheel moves.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::{
    App, Screen,
    dialog::Dialog,
    event::Effect,
    layout,
    list::{List, Step},
    overview, rooms, workspace,
};

/// The rows that one turn of the wheel moves.
const WHEEL: isize = 3;

impl App {
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let at = Position { x: mouse.column, y: mouse.row };
        match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            MouseEventKind::ScrollUp => self.wheel(at, Step::Rows(-WHEEL)),
            MouseEventKind::ScrollDown => self.wheel(at, Step::Rows(WHEEL)),
            _ => Vec::new(),
        }
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if let Some(dialog) = self.dialog.take() {
            return self.click_dialog(dialog, at);
        }
        let tab = layout::tabs(self).into_iter().find(|(place, _)| place.contains(at));
        if let Some((_, screen)) = tab {
            self.show(screen);
            return Vec::new();
        }
        match self.screen {
            Screen::Overview => self.click_overview(at),
            Screen::Rooms => self.click_rooms(at),
            Screen::Requests => self.click_requests(at),
            Screen::Ask => self.click_ask(at),
            Screen::Workspace => self.click_workspace(at),
            Screen::Mesh | Screen::Usage | Screen::Keys => self.click_page(at),
            Screen::Help => Vec::new(),
        }
    }

    /// Handles a click while a dialog is open. It chooses a target, or closes the dialog if it is outside of
    /// it; that of a new key stays open.
    fn click_dialog(&mut self, mut dialog: Dialog, at: Position) -> Vec<Effect> {
        let area = layout::dialog(self, &dialog);
        if let Dialog::Target(pick) = &mut dialog {
            let len = pick.shown(self.targets()).len();
            if hit(&mut pick.list, area, true, at, len).is_some() {
                return self.done(dialog);
            }
        }
        // The text of a new key is shown only now, so no click closes its dialog.
        if area.contains(at) || matches!(dialog, Dialog::NewKey { .. }) {
            self.dialog = Some(dialog);
        }
        Vec::new()
    }

    fn click_overview(&mut self, at: Position) -> Vec<Effect> {
        self.choose_part(at);
        let areas = layout::overview(self);
        let workers = self.overview.all_workers().len();
        let (rooms, queues) = (self.rooms.listed.all().len(), self.overview.queues.all().len());
        let overview = &mut self.overview;
        hit(&mut overview.workers, areas.workers, true, at, workers);
        hit(&mut overview.waiting, areas.queues, true, at, queues);
        match hit(&mut overview.rooms, areas.rooms, true, at, rooms) {
            Some(Hit::Chosen) => self.open_from_overview(),
            _ => Vec::new(),
        }
    }

    /// Makes the clicked part of the overview the one that the keyboard acts on.
    fn choose_part(&mut self, at: Position) {
        let areas = layout::overview(self);
        let parts = [
            (areas.workers, overview::Part::Workers),
            (areas.rooms, overview::Part::Rooms),
            (areas.queues, overview::Part::Queues),
        ];
        choose(&mut self.overview.part, &parts, at);
    }

    fn click_rooms(&mut self, at: Position) -> Vec<Effect> {
        self.choose_room_part(at);
        let areas = layout::rooms(self);
        let entries = self.rooms.entries().len();
        if hit(&mut self.rooms.list, areas.list, false, at, entries).is_some() {
            return self.open_chosen();
        }
        let Some(room) = self.rooms.open_mut() else { return Vec::new() };
        if hit(&mut room.list, areas.people, true, at, room.people.len()) == Some(Hit::Chosen) {
            self.ask_chosen();
        }
        Vec::new()
    }

    fn choose_room_part(&mut self, at: Position) {
        let areas = layout::rooms(self);
        let parts = [
            (areas.list, rooms::Part::List),
            (areas.people, rooms::Part::People),
            (areas.activity, rooms::Part::Activity),
        ];
        choose(&mut self.rooms.part, &parts, at);
    }

    fn click_requests(&mut self, at: Position) -> Vec<Effect> {
        // The request that is shown in full covers the list: the click closes it, and must not reach the list.
        if self.requests.whole.take().is_some() {
            return Vec::new();
        }
        let area = layout::frame(self).body;
        let shown = self.requests.shown().len();
        if hit(&mut self.requests.list, area, true, at, shown) == Some(Hit::Chosen) {
            self.requests.open();
        }
        Vec::new()
    }

    fn click_ask(&mut self, at: Position) -> Vec<Effect> {
        let areas = layout::ask(self);
        if areas.to.contains(at) {
            self.dialog = Some(Dialog::target());
        }
        self.ask.is_typing = areas.prompt.contains(at);
        Vec::new()
    }

    fn click_workspace(&mut self, at: Position) -> Vec<Effect> {
        if self.workspace.whole.take().is_some() {
            return Vec::new();
        }
        self.choose_workspace_part(at);
        let areas = layout::workspace(self);
        let workspace = &mut self.workspace;
        let (members, sessions) = (workspace.members.len(), workspace.sessions.len());
        hit(&mut workspace.members_list, areas.members, true, at, members);
        if hit(&mut workspace.list, areas.sessions, true, at, sessions) == Some(Hit::Chosen) {
            workspace.open();
        }
        Vec::new()
    }

    fn click_page(&mut self, at: Position) -> Vec<Effect> {
        if self.mesh.whole.take().is_some() {
            return Vec::new();
        }
        let area = layout::page_list(self);
        let (peers, rows) = (self.mesh.peers().len(), self.usage.rows().len());
        let keys = self.access_keys.reading.all().len();
        let hit = match self.screen {
            Screen::Mesh => hit(&mut self.mesh.list, area, true, at, peers),
            Screen::Usage => hit(&mut self.usage.list, area, true, at, rows),
            _ => hit(&mut self.access_keys.list, area, true, at, keys),
        };
        if hit == Some(Hit::Chosen) && self.screen == Screen::Mesh {
            self.mesh.open();
        }
        Vec::new()
    }

    fn choose_workspace_part(&mut self, at: Position) {
        let areas = layout::workspace(self);
        let parts = [
            (areas.members, workspace::Part::Members),
            (areas.sessions, workspace::Part::Sessions),
        ];
        choose(&mut self.workspace.part, &parts, at);
    }

    fn wheel(&mut self, at: Position, step: Step) -> Vec<Effect> {
        match self.screen {
            // While a dialog is open, the wheel does nothing.
            _ if self.dialog.is_some() => {}
            Screen::Overview => {
                self.choose_part(at);
                self.overview_step(step);
            }
            Screen::Rooms => {
                self.choose_room_part(at);
                self.rooms_step(step);
            }
            Screen::Requests => self.requests_step(step),
            Screen::Ask => self.ask_step(step),
            Screen::Workspace => {
                self.choose_workspace_part(at);
                self.workspace_step(step);
            }
            Screen::Mesh | Screen::Usage | Screen::Keys => self.step_in_page(step),
            Screen::Help => {}
        }
        Vec::new()
    }
}

/// Sets the part of a screen to the one at this position, if there is one.
fn choose<Part: Copy>(chosen: &mut Part, parts: &[(Rect, Part)], at: Position) {
    if let Some((_, part)) = parts.iter().find(|(area, _)| area.contains(at)) {
        *chosen = *part;
    }
}

/// A click on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hit {
    /// On another row than the chosen one.
    New,
    /// On the chosen row.
    Chosen,
}

/// Chooses the row of a framed list that was clicked, if there is one.
fn hit(list: &mut List, area: Rect, header: bool, at: Position, len: usize) -> Option<Hit> {
    let row = list.row(layout::row_at(area, header, at)?, len)?;
    let before = std::mem::replace(&mut list.at, row);
    Some(if before == row { Hit::Chosen } else { Hit::New })
}
