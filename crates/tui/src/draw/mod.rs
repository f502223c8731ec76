//! The drawing of the interface: a pure function of its state.
//!
//! - [`theme`]: the styles, with colours and without
//! - `parts`: frames, tables and numbers, as all screens show them
//! - `overview`, `rooms`, `requests`, `ask`, `workspace`, `help`: the screens; `pages` has three more
//! - `dialog`: questions to the user

mod ask;
mod dialog;
mod help;
mod overview;
mod pages;
mod parts;
mod requests;
mod rooms;
#[cfg(test)]
mod tests;
pub mod theme;
mod workspace;

use ratatui::{
    Frame,
    layout::Alignment,
    text::{Line, Span},
    widgets::Paragraph,
};

use self::theme::Theme;
use crate::{
    app::{
        App, Link, Screen,
        dialog::Dialog,
        layout::{self, LEAST},
    },
    text,
};

/// Draws the interface.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    if frame.area().as_size() != app.size {
        // The terminal already has another size; the event that reports it comes in a moment.
        return;
    }
    if layout::is_too_small(app.size) {
        return too_small(app, frame);
    }
    let theme = Theme::new(app.settings.colour);
    let areas = layout::frame(app);
    tabs(app, theme, frame);
    if let Link::Lost(since, why) = &app.link {
        let secs = app.now.duration_since(*since).as_secs().max(0);
        let words = format!(" Lost for {secs} s, trying again: {}", text::line(why));
        let words = text::clip(&words, areas.banner.width.into());
        frame.render_widget(Paragraph::new(words).style(theme.bad()), areas.banner);
    }
    match app.screen {
        Screen::Overview => overview::draw(app, theme, frame),
        Screen::Rooms => rooms::draw(app, theme, frame),
        Screen::Requests => requests::draw(app, theme, frame),
        Screen::Ask => ask::draw(app, theme, frame),
        Screen::Workspace => workspace::draw(app, theme, frame),
        Screen::Mesh => pages::mesh(app, theme, frame),
        Screen::Usage => pages::usage(app, theme, frame),
        Screen::Keys => pages::keys(app, theme, frame),
        Screen::Help => help::draw(app, theme, frame),
    }
    frame.render_widget(Paragraph::new(keys(app, theme)), areas.keys);
    if let Some(dialog) = &app.dialog {
        dialog::draw(app, dialog, theme, frame);
    }
}

fn too_small(app: &App, frame: &mut Frame<'_>) {
    let (width, height) = (app.size.width, app.size.height);
    let words = format!(
        "Warren needs a terminal of {}×{}.\nThis one is {width}×{height}.\nq leaves.",
        LEAST.width, LEAST.height
    );
    frame.render_widget(Paragraph::new(words), frame.area());
}

fn tabs(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let mut used = 0;
    for (at, (place, screen)) in layout::tabs(app).into_iter().enumerate() {
        let style = if screen == app.screen { theme.chosen() } else { theme.title() };
        frame.render_widget(Paragraph::new(layout::label(at)).style(style), place);
        used = place.right();
    }
    let mut rest = layout::frame(app).tabs;
    rest.width -= used;
    rest.x = used;
    let name = text::line(app.server_name());
    // The scheme is the first part of a long address to be left out.
    let room = usize::from(rest.width).saturating_sub(1);
    let short = name.split_once("://").map(|(_, short)| short.to_owned());
    let name = short.filter(|_| text::width(&name) > room).unwrap_or(name);
    let name = text::middle(&name, usize::from(rest.width).saturating_sub(1));
    let name = Paragraph::new(name).style(theme.quiet()).alignment(Alignment::Right);
    frame.render_widget(name, rest);
}

/// The keys of the keyboard that work here.
fn keys(app: &App, theme: Theme) -> Line<'static> {
    let here: &[(&str, &str)] = match (&app.dialog, app.screen) {
        (Some(Dialog::Target(_)), _) => &[("↑↓", "choose"), ("Enter", "take it"), ("Esc", "back")],
        (Some(Dialog::Revoke(_)), _) => &[("y", "revoke it"), ("Esc", "keep it")],
        (Some(Dialog::Filter), _) => &[("Enter", "done"), ("Esc", "show all")],
        (Some(_), _) => &[("Enter", "done"), ("Esc", "back")],
        (None, Screen::Overview) => {
            &[("←→", "part"), ("↑↓", "row"), ("Enter", "open room"), ("o", "room by code")]
        }
        (None, Screen::Rooms) => &[
            ("←→", "part"),
            ("Enter", "open"),
            ("o", "by code"),
            ("p", "password"),
            ("a", "ask here"),
        ],
        (None, Screen::Requests) => &[("↑↓", "row"), ("Enter", "whole"), ("/", "filter")],
        (None, Screen::Ask) if app.ask.is_typing => {
            &[("Enter", "ask"), ("Alt-Enter", "new line"), ("Esc", "leave the box")]
        }
        (None, Screen::Ask) => &[
            ("Enter", "write"),
            ("m", "whom"),
            ("n", "new"),
            ("a", "aloud"),
            ("↑↓", "scroll"),
            ("Esc", "stop"),
        ],
        (None, Screen::Workspace) => {
            &[("←→", "part"), ("↑↓", "row"), ("Enter", "session whole"), ("Esc", "back")]
        }
        (None, Screen::Mesh) => &[("↑↓", "row"), ("Enter", "peer whole"), ("Esc", "back")],
        (None, Screen::Usage) => &[("←→", "by key, model, day, provider"), ("↑↓", "row")],
        (None, Screen::Keys) => &[("↑↓", "row"), ("c", "create"), ("r", "revoke")],
        (None, Screen::Help) => &[("Esc", "back")],
    };
    let always: &[(&str, &str)] = match (&app.dialog, app.is_typing()) {
        (None, false) => &[("?", "help"), ("q", "leave")],
        _ => &[("Ctrl-C", "leave")],
    };
    let words = here.iter().chain(always).flat_map(|(key, what)| {
        [Span::styled(format!(" {key}"), theme.title()), Span::raw(format!(" {what} "))]
    });
    Line::from_iter(words)
}
