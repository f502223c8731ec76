//! The keys and their effects.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{parts::framed, theme::Theme};
use crate::app::{App, layout};

/// The keys that work everywhere and in lists.
const COMMON: &[(&str, &str)] = &[
    ("1 … 8", "go to a screen"),
    ("Tab, Shift-Tab", "next screen, last one"),
    ("↑ ↓, k j", "row up, row down"),
    ("PgUp PgDn", "screen up, screen down"),
    ("Home End, g G", "first row, last row"),
    ("← →, h l", "part to the left, right"),
    ("Enter", "open what is chosen"),
    ("Esc", "back"),
    ("o", "open a room by its code"),
    ("s", "next server, of several"),
    ("?", "this page"),
    ("q, Ctrl-C", "leave"),
    ("", ""),
    ("Mouse", "click chooses or opens"),
    ("", "the wheel moves"),
    ("*3 in a list", "3 people, a password"),
];

/// The keys of one screen.
const HERE: &[(&str, &str)] = &[
    ("Rooms", ""),
    ("p", "give its password"),
    ("a", "ask anybody in it"),
    ("Enter on one", "ask this one"),
    ("", ""),
    ("Log", ""),
    ("/", "only those with a text"),
    ("", ""),
    ("Ask", ""),
    ("Enter, i", "write; again: ask"),
    ("Alt-Enter", "a new line"),
    ("← →, m", "whom; from a list"),
    ("a", "aloud, or privately"),
    ("n", "a new conversation"),
    ("Esc", "leave the box; stop"),
    ("", ""),
    ("Usage", ""),
    ("← →", "by key, model, day …"),
    ("Keys", ""),
    ("c, r", "create one; revoke one"),
];

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(layout::frame(app).body);
    page("Everywhere", COMMON, left, theme, frame);
    page("On one screen", HERE, right, theme, frame);
}

fn page(title: &str, keys: &[(&str, &str)], area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let width =
        keys.iter().filter(|(_, what)| !what.is_empty()).map(|(key, _)| key.chars().count());
    let width = width.max().unwrap_or(0) + 1;
    let line = |(key, what): &(&str, &str)| {
        let key = Span::styled(format!("{key:<width$}"), theme.title());
        Line::from(vec![key, Span::raw((*what).to_owned())])
    };
    let lines: Vec<Line<'_>> = keys.iter().map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(framed(title, false, theme)), area);
}
