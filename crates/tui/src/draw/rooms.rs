//! The rooms, and one of them.

use protocol::room::{MachineSpecs, ParticipantInfo, Status};
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    text::{Line, Span, Text},
    widgets::{Paragraph, Row},
};

use super::{
    parts::{ListView, cell, framed, instead, known, missing, name, number, styled, time_of_day},
    theme::Theme,
};
use crate::{
    app::{
        App,
        activity::{self, Sort},
        layout::{self, WIDE},
        room::{Room, WatchState, models_of},
        rooms::{Entry, Part},
    },
    text,
};

/// The columns before the text of an event.
const INDENT: usize = 9;

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let areas = layout::rooms(app);
    list(app, areas.list, theme, frame);
    match app.rooms.open() {
        Some(room) => {
            people(app, room, areas.people, theme, frame);
            happened(app, room, areas.activity, theme, frame);
        }
        None => {
            let area = areas.people.union(areas.activity);
            frame.render_widget(framed("Room", false, theme), area);
            instead("Choose a room, or press o and give a code.", area, theme, frame);
        }
    }
}

fn list(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let entries = app.rooms.entries();
    let listed = ListView {
        title: "Rooms",
        header: &[],
        widths: &[Constraint::Length(1), Constraint::Fill(1), Constraint::Length(4)],
        list: app.rooms.list,
        is_chosen: app.rooms.part == Part::List,
    };
    let open = app.rooms.open().map(|room| room.entry().code);
    listed.draw(area, &entries, |entry, _| row(entry, open.as_deref(), theme), theme, frame);
    let none = "No rooms. `warren room create` makes one; o opens one by its code.";
    let none = || Some(none.to_owned());
    if let Some(why) = missing(&app.rooms.listed).or_else(none).filter(|_| entries.is_empty()) {
        instead(&why, area, theme, frame);
    }
}

fn row(entry: &Entry, open: Option<&str>, theme: Theme) -> Row<'static> {
    let mark = if open == Some(&entry.code) { "›" } else { " " };
    let people = match (entry.people, entry.locked) {
        (Some(people), true) => format!("*{people}"),
        (Some(people), false) => people.to_string(),
        (None, _) => "?".to_owned(),
    };
    Row::new([styled(mark, theme.title()), cell(&entry.code), number(people)])
}

fn title(room: &Room) -> String {
    let Some(summary) = &room.summary else { return text::line(&room.code) };
    let (entry, short) = (room.entry(), &summary.room.code);
    let codes = match entry.code == *short {
        true => entry.code,
        false => format!("{} / {short}", entry.code),
    };
    text::line(&format!("{codes}  {}", entry.name))
}

fn people(app: &App, room: &Room, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let wide = app.size.width >= WIDE;
    let mut widths = vec![
        Constraint::Fill(3),
        Constraint::Length(7),
        Constraint::Fill(4),
        Constraint::Fill(4),
        Constraint::Length(6),
    ];
    let mut header = vec!["Who", "Status", "Model", "Machine", " Tok/s"];
    if wide {
        widths.extend([Constraint::Length(8), Constraint::Length(5)]);
        header.extend([" Last ms", "Slots"]);
    }
    let title = title(room);
    let listed = ListView {
        title: &title,
        header: &header,
        widths: &widths,
        list: room.list,
        is_chosen: app.rooms.part == Part::People,
    };
    listed.draw(area, &room.people, |who, widths| person(who, widths, theme), theme, frame);
    if let Some(why) = nobody(room) {
        instead(&why, area, theme, frame);
    }
}

/// Why no participant is shown.
fn nobody(room: &Room) -> Option<String> {
    match &room.watched {
        WatchState::Locked if room.password.is_some() => {
            Some("That was not this room's password. Press p to give another.".to_owned())
        }
        WatchState::Locked => Some("This room needs its password. Press p to give it.".to_owned()),
        _ if !room.people.is_empty() => None,
        WatchState::Asking => Some("Asking …".to_owned()),
        WatchState::Gone(why) | WatchState::Lost(why) => Some(text::line(why)),
        WatchState::Live => {
            let code = text::line(&room.entry().code);
            Some(format!("Nobody is here. `warren room join {code}` lends a model."))
        }
    }
}

fn person(who: &ParticipantInfo, widths: &[usize], theme: Theme) -> Row<'static> {
    let (status, style) = match who.status {
        Status::Online => ("online", theme.good()),
        Status::Busy => ("busy", theme.warn()),
        Status::Offline => ("offline", theme.quiet()),
    };
    let metrics = who.metrics.unwrap_or_default();
    let last = who.metrics.map(|_| metrics.duration_ms);
    let mut cells = vec![
        name(&who.nickname, widths[0]),
        styled(status, style),
        name(&models_of(who).join(", "), widths[2]),
        name(&machine(&who.specs), widths[3]),
        known(metrics.tokens_per_second.map(|rate| format!("{rate:.1}"))),
    ];
    // A wide terminal has more columns.
    if widths.len() > cells.len() {
        cells.extend([known(last), known(who.max_concurrent)]);
    }
    Row::new(cells)
}

/// A machine in a few words: its GPU, or else its CPU, and its memory.
fn machine(specs: &MachineSpecs) -> String {
    let chip = specs.gpu.as_ref().or(specs.cpu.as_ref());
    let memory = specs.vram.filter(|_| specs.gpu.is_some()).or(specs.ram);
    let memory = memory.map(|gb| format!("{gb:.0}G"));
    let words: Vec<&str> =
        [chip, memory.as_ref()].into_iter().flatten().map(String::as_str).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

fn happened(app: &App, room: &Room, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let inside = layout::rows(area, false);
    let (columns, rows) = (usize::from(inside.width), usize::from(inside.height));
    // From the end, and no more than fit: a long history is not wrapped again for each frame.
    let mut lines: Vec<Line<'static>> = Vec::with_capacity(rows);
    for line in room.activity.lines().rev().skip(room.below) {
        let mut shown = activity_lines(line, columns, theme);
        // Of an event that is longer than the window, the beginning is shown.
        shown.truncate(rows.max(1));
        lines.extend(shown.into_iter().rev());
        if lines.len() >= rows {
            break;
        }
    }
    lines.truncate(rows);
    lines.reverse();
    let title = match (&room.watched, room.below) {
        (WatchState::Live, 0) => "Activity".to_owned(),
        (WatchState::Live, below) => format!("Activity, {below} more below"),
        (WatchState::Asking, _) => "Activity, asking …".to_owned(),
        (WatchState::Lost(_), _) => "Activity, lost, trying again".to_owned(),
        (WatchState::Locked | WatchState::Gone(_), _) => "Activity, ended".to_owned(),
    };
    let is_chosen = app.rooms.part == Part::Activity;
    let shown = Paragraph::new(Text::from(lines)).block(framed(&title, is_chosen, theme));
    frame.render_widget(shown, area);
}

fn activity_lines(line: &activity::Line, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let style = match line.sort {
        Sort::People | Sort::Request => theme.quiet(),
        Sort::Answer => theme.answer(),
        Sort::Done => theme.good(),
        Sort::Error => theme.bad(),
    };
    let words = match (line.sort, line.who.as_str()) {
        (Sort::Answer, who) => format!("{who}: {}", line.text),
        (_, "") => line.text.clone(),
        (_, who) => format!("{who} {}", line.text),
    };
    let wrapped = text::wrap(words.trim_end(), columns.saturating_sub(INDENT)).into_iter();
    let first = format!("{} ", time_of_day(line.at));
    let shown = wrapped.enumerate().map(|(at, words)| {
        let before = if at == 0 { first.clone() } else { " ".repeat(INDENT) };
        Line::from(vec![Span::styled(before, theme.quiet()), Span::styled(words, style)])
    });
    shown.collect()
}
