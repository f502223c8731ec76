//! The places of everything on the screen: for drawing, and for the mouse.

use ratatui::layout::{Constraint, Layout, Margin, Position, Rect, Size};

use super::{App, Link, SCREENS, Screen, dialog::Dialog};
use crate::text;

/// The smallest terminal that can be drawn on.
pub const LEAST: Size = Size { width: 80, height: 24 };

/// The least width at which lists have more columns.
pub const WIDE: u16 = 110;

/// The parts of every screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The tabs.
    pub tabs: Rect,
    /// The server's problem; without one, its height is 0.
    pub banner: Rect,
    /// The screen itself.
    pub body: Rect,
    /// The keys of the keyboard that work here.
    pub keys: Rect,
}

/// The parts of every screen.
pub fn frame(app: &App) -> Frame {
    let area = Rect::from(app.size);
    let banner = u16::from(matches!(app.link, Link::Lost(..)));
    let heights = [1, banner].map(Constraint::Length);
    let [tabs, banner, body, keys] =
        Layout::vertical([heights[0], heights[1], Constraint::Fill(1), Constraint::Length(1)])
            .areas(area);
    Frame { tabs, banner, body, keys }
}

/// Whether the terminal is too small to draw on.
pub fn is_too_small(size: Size) -> bool {
    size.width < LEAST.width || size.height < LEAST.height
}

/// The label of a tab.
pub fn label(at: usize) -> String {
    match SCREENS[at] {
        (Screen::Help, title) => format!(" {title} "),
        (_, title) => format!(" {} {title}", at + 1),
    }
}

/// The places of the tabs.
pub fn tabs(app: &App) -> Vec<(Rect, Screen)> {
    let row = frame(app).tabs;
    let mut x = row.x;
    let place = |(at, (screen, _)): (usize, &(Screen, &str))| {
        let width = u16::try_from(text::width(&label(at))).unwrap_or(0);
        let place = Rect { x, width, ..row };
        x += width;
        (place.intersection(row), *screen)
    };
    SCREENS.iter().enumerate().map(place).collect()
}

/// The parts of the overview.
#[derive(Debug, Clone, Copy)]
pub struct Overview {
    /// The server's state in words.
    pub server: Rect,
    /// The rates of requests and tokens, and the number in flight, for each second.
    pub rates: [Rect; 3],
    /// The workers.
    pub workers: Rect,
    /// The rooms.
    pub rooms: Rect,
    /// The queues.
    pub queues: Rect,
}

/// The parts of the overview.
pub fn overview(app: &App) -> Overview {
    let [server, rates, workers, below] = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(5),
        Constraint::Fill(3),
        Constraint::Fill(2),
    ])
    .areas(frame(app).body);
    let rates = Layout::horizontal([Constraint::Fill(1); 3]).areas(rates);
    let [rooms, queues] = Layout::horizontal([Constraint::Fill(1); 2]).areas(below);
    Overview { server, rates, workers, rooms, queues }
}

/// The parts of the screen of rooms.
#[derive(Debug, Clone, Copy)]
pub struct Rooms {
    /// The list.
    pub list: Rect,
    /// The participants of the open room.
    pub people: Rect,
    /// Its events.
    pub activity: Rect,
}

/// The parts of the screen of rooms.
pub fn rooms(app: &App) -> Rooms {
    let list = if app.size.width >= WIDE { 36 } else { 25 };
    let [list, room] =
        Layout::horizontal([Constraint::Length(list), Constraint::Fill(1)]).areas(frame(app).body);
    let [people, activity] =
        Layout::vertical([Constraint::Fill(2), Constraint::Fill(3)]).areas(room);
    Rooms { list, people, activity }
}

/// The parts of the screen for asking.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The target.
    pub to: Rect,
    /// The prompt.
    pub prompt: Rect,
    /// The answer.
    pub answer: Rect,
}

/// The parts of the screen for asking.
pub fn ask(app: &App) -> Ask {
    let [to, prompt, answer] =
        Layout::vertical([Constraint::Length(3), Constraint::Length(5), Constraint::Fill(1)])
            .areas(frame(app).body);
    Ask { to, prompt, answer }
}

/// The parts of the screen of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct Workspace {
    /// The machines.
    pub members: Rect,
    /// The newest notices; without any, its height is 0.
    pub notices: Rect,
    /// The sessions.
    pub sessions: Rect,
}

/// The most machines that are shown at a time.
const MEMBERS: usize = 8;

/// The most notices that are shown, and the most lines of them.
const NOTICES: usize = 3;
const NOTICE_LINES: usize = 9;

/// The lines of the newest notices, long ones on several lines.
pub fn notice_lines(app: &App) -> Vec<String> {
    let columns = rows(frame(app).body, false).width.into();
    let all = app.workspace.notices();
    let newest = &all[all.len().saturating_sub(NOTICES)..];
    let lines = newest.iter().flat_map(|notice| text::wrap(&text::line(notice), columns));
    lines.take(NOTICE_LINES).collect()
}

/// The parts of the screen of the workspace.
pub fn workspace(app: &App) -> Workspace {
    let members = app.workspace.members.len().clamp(1, MEMBERS) + 3;
    let notices = match notice_lines(app).len() {
        0 => 0,
        lines => lines + 2,
    };
    let [members, notices] = [members, notices].map(|rows| Constraint::Length(rows as u16));
    let [members, notices, sessions] =
        Layout::vertical([members, notices, Constraint::Fill(1)]).areas(frame(app).body);
    Workspace { members, notices, sessions }
}

/// The place of the list on a screen that shows mainly one list.
pub fn page_list(app: &App) -> Rect {
    match app.screen {
        Screen::Usage => usage(app)[1],
        _ => frame(app).body,
    }
}

/// The places of the properties by which usage is split, and of the list.
pub fn usage(app: &App) -> [Rect; 2] {
    Layout::vertical([Constraint::Length(3), Constraint::Fill(1)]).areas(frame(app).body)
}

/// The columns of a dialog about a key.
pub const POPUP: u16 = 76;

/// The place of a dialog that shows more than a line.
pub fn popup(app: &App, width: u16, height: u16) -> Rect {
    let body = frame(app).body;
    body.centered(
        Constraint::Length(width.min(body.width)),
        Constraint::Length(height.min(body.height)),
    )
}

/// The place of a dialog. What is clicked there is not outside of it.
pub fn dialog(app: &App, dialog: &Dialog) -> Rect {
    match dialog {
        Dialog::Target(_) => targets(app),
        Dialog::Revoke(_) => revoke(app),
        Dialog::NewKey { .. } => frame(app).body,
        Dialog::Filter | Dialog::Code(_) | Dialog::Password(_) | Dialog::KeyName(_) => line(app),
    }
}

/// The place of a line of input, above the keys.
pub fn line(app: &App) -> Rect {
    let keys = frame(app).keys;
    Rect { y: keys.y.saturating_sub(1), ..keys }
}

/// The place of the question whether a key is to be revoked.
pub fn revoke(app: &App) -> Rect {
    popup(app, POPUP, 6)
}

/// The place of the targets in their dialog.
pub fn targets(app: &App) -> Rect {
    popup(app, 60, 18)
}

/// The rows of a framed list below its header, if it has one.
pub fn rows(framed: Rect, header: bool) -> Rect {
    let inside = framed.inner(Margin::new(1, 1));
    // A frame may be too low even for its header.
    let header = u16::from(header).min(inside.height);
    Rect { y: inside.y + header, height: inside.height - header, ..inside }
}

/// How many rows a framed list shows.
pub fn page(framed: Rect, header: bool) -> usize {
    usize::from(rows(framed, header).height)
}

/// The row under the mouse, counted from the first that is shown.
pub fn row_at(framed: Rect, header: bool, at: Position) -> Option<u16> {
    let rows = rows(framed, header);
    rows.contains(at).then(|| at.y - rows.y)
}

/// Keeps every chosen row within its list and in sight.
pub(super) fn settle(app: &mut App) {
    let (over, in_rooms) = (overview(app), rooms(app));
    let log = page(frame(app).body, true);
    let pick = page(targets(app), true);
    let counts = (
        app.overview.all_workers().len(),
        app.rooms.entries().len(),
        app.overview.queues.all().len(),
    );
    app.overview.workers.settle(counts.0, page(over.workers, true));
    app.overview.rooms.settle(app.rooms.listed.all().len(), page(over.rooms, true));
    app.overview.waiting.settle(counts.2, page(over.queues, true));
    app.rooms.list.settle(counts.1, page(in_rooms.list, false));
    if let Some(room) = app.rooms.open_mut() {
        room.list.settle(room.people.len(), page(in_rooms.people, true));
        let most = room.activity.lines().len().saturating_sub(page(in_rooms.activity, false));
        room.below = room.below.min(most);
    }
    let shown = app.requests.shown().len();
    app.requests.list.settle(shown, log);
    let of_workspace = workspace(app);
    let (members, sessions) = (app.workspace.members.len(), app.workspace.sessions.len());
    app.workspace.members_list.settle(members, page(of_workspace.members, true));
    app.workspace.list.settle(sessions, page(of_workspace.sessions, true));
    app.settle_pages();
    let targets = app.targets();
    if let Some(Dialog::Target(picking)) = &mut app.dialog {
        picking.list.settle(picking.shown(targets).len(), pick);
    }
}
