//! The workspace: the members of its cluster, its sessions, and one session in full.

use protocol::workspace::{SessionInfo, SessionStatus};
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    text::Line,
    widgets::{Paragraph, Row},
};

use super::{
    parts::{self, ListView, cell, explain, framed, instead, number, properties, span, styled},
    theme::Theme,
};
use crate::app::{
    App,
    layout::{self, WIDE},
    workspace::{Member, Part, Reach, beginning, runs, status},
};

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let areas = layout::workspace(app);
    members(app, areas.members, theme, frame);
    notices(app, areas.notices, theme, frame);
    sessions(app, areas.sessions, theme, frame);
    if let Some(session) = app.workspace.whole() {
        whole(app, session, theme, frame);
    }
}

fn members(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let widths = [Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(14)];
    let workspace = &app.workspace;
    let listed = ListView {
        title: "Machines",
        header: &["Name", "Address", "State"],
        widths: &widths,
        list: workspace.members_list,
        is_chosen: workspace.part == Part::Members,
    };
    listed.draw(area, &workspace.members, |it, widths| member(it, widths, theme), theme, frame);
    let is_known = workspace.reading.known().is_some();
    if is_known && !workspace.are_several() && workspace.members.iter().all(is_alone) {
        let words = "This machine is in no cluster: `warren cluster invite` begins one.";
        instead(words, area, theme, frame);
    }
}

/// A machine that is in no cluster has no address for others.
fn is_alone(member: &Member) -> bool {
    member.address.is_empty()
}

fn member(member: &Member, widths: &[usize], theme: Theme) -> Row<'static> {
    let (words, style) = match member.reach {
        Reach::Server => ("this server", theme.good()),
        Reach::Linked => ("reachable", theme.good()),
        Reach::Away => ("not reachable", theme.bad()),
    };
    Row::new([parts::name(&member.name, widths[0]), cell(&member.address), styled(words, style)])
}

/// The newest notices.
fn notices(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let lines = layout::notice_lines(app).into_iter();
    let lines: Vec<Line<'_>> = lines.map(|line| Line::styled(line, theme.warn())).collect();
    if !lines.is_empty() {
        frame.render_widget(Paragraph::new(lines).block(framed("Notices", false, theme)), area);
    }
}

fn sessions(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let workspace = &app.workspace;
    let (header, widths) = columns(app);
    let title = format!("Sessions: {}", workspace.sessions.len());
    let listed = ListView {
        title: &title,
        header: &header,
        widths: &widths,
        list: workspace.list,
        is_chosen: workspace.part == Part::Sessions,
    };
    listed.draw(
        area,
        &workspace.sessions,
        |it, widths| session(app, it, widths, theme),
        theme,
        frame,
    );
    let none = "No sessions: `warren open` makes one.";
    explain(&workspace.reading, workspace.sessions.is_empty(), none, area, theme, frame);
}

fn columns(app: &App) -> (Vec<&'static str>, Vec<Constraint>) {
    let mut header = vec!["Name", "Runs", "Status", "   Used", "Seen by"];
    let mut widths = vec![
        Constraint::Fill(2),
        Constraint::Fill(3),
        Constraint::Length(13),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    if app.workspace.are_several() {
        header.insert(0, "Machine");
        widths.insert(0, Constraint::Length(12));
    }
    if app.size.width >= WIDE {
        header.push("Directory");
        widths.push(Constraint::Fill(3));
    }
    (header, widths)
}

fn session(app: &App, session: &SessionInfo, widths: &[usize], theme: Theme) -> Row<'static> {
    let (words, style) = state(session, theme);
    let machine = usize::from(app.workspace.are_several());
    let mut cells = vec![
        parts::name(&name(session), widths[machine]),
        cell(&runs(session)),
        styled(words, style),
        number(span(used(app, session))),
        number(session.attached_clients),
    ];
    if app.workspace.are_several() {
        cells.insert(0, parts::name(&app.workspace.machine(session), widths[0]));
    }
    if app.size.width >= WIDE {
        cells.push(cell(&session.working_dir));
    }
    Row::new(cells)
}

fn state(session: &SessionInfo, theme: Theme) -> (&'static str, ratatui::style::Style) {
    match session.status {
        _ if !session.reachable => ("not reachable", theme.bad()),
        SessionStatus::Exited => (status(session.status), theme.quiet()),
        live => (status(live), theme.good()),
    }
}

fn name(session: &SessionInfo) -> String {
    session.name.clone().unwrap_or_else(|| beginning(&session.id.to_string()))
}

/// The seconds since a session was last used.
fn used(app: &App, session: &SessionInfo) -> u64 {
    u64::try_from(app.now.duration_since(session.last_active).as_secs()).unwrap_or(0)
}

fn whole(app: &App, session: &SessionInfo, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::popup(app, 72, 15);
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let code = session.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let lines = [
        ("Id", session.id.to_string()),
        ("Name", text(&session.name)),
        ("Machine", app.workspace.machine(session)),
        ("Runs", runs(session)),
        ("Model", text(&session.model)),
        ("Status", format!("{}{code}", state(session, theme).0)),
        ("Directory", session.working_dir.clone()),
        ("Tags", session.tags.join(", ")),
        ("Made", session.created_at.strftime("%F %TZ").to_string()),
        ("Used", format!("{} ago", span(used(app, session)))),
        ("Seen by", session.attached_clients.to_string()),
        ("", String::new()),
        ("Attach", format!("warren session attach {}", beginning(&session.id.to_string()))),
    ];
    properties("Session", &lines, area, theme, frame);
}
