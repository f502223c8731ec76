//! The request log, and one request in full.

use client::admin::requests::RequestJson;
use ratatui::{Frame, layout::Constraint, widgets::Row};

use super::{
    parts::{ListView, cell, explain, known, name, number, properties, styled},
    theme::Theme,
};
use crate::app::{
    App,
    layout::{self, WIDE},
};

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::frame(app).body;
    let shown = app.requests.shown();
    let wide = app.size.width >= WIDE;
    let title = title(app, shown.len());
    let (header, widths) = columns(wide);
    let listed = ListView {
        title: &title,
        header: &header,
        widths: &widths,
        list: app.requests.list,
        is_chosen: true,
    };
    listed.draw(area, &shown, |it, widths| row(app, it, widths, theme), theme, frame);
    explain(&app.requests.reading, shown.is_empty(), "No request.", area, theme, frame);
    if let Some(request) = app.requests.whole() {
        whole(app, request, theme, frame);
    }
}

fn title(app: &App, shown: usize) -> String {
    match app.requests.filter.text() {
        "" => format!("Requests: {shown}"),
        filter => format!("Requests: {shown} of {} with \"{filter}\"", app.requests.count()),
    }
}

fn columns(wide: bool) -> (Vec<&'static str>, Vec<Constraint>) {
    let mut header =
        vec!["Ended", "Key", "Model", "Provider", "Outcome", "    In", "   Out", "     ms"];
    let mut widths = vec![
        Constraint::Length(8),
        Constraint::Fill(2),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(17),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(7),
    ];
    if wide {
        header.extend(["  First", "Queued", "Endpoint"]);
        widths.extend([7, 6, 20].map(Constraint::Length));
    }
    (header, widths)
}

fn row(app: &App, request: &RequestJson, widths: &[usize], theme: Theme) -> Row<'static> {
    let style = if request.outcome == "answered" { theme.good() } else { theme.warn() };
    let mut cells = vec![
        cell(&request.at.strftime("%T").to_string()),
        name(&app.key_name(&request.key), widths[1]),
        name(&request.model, widths[2]),
        name(&providers(request), widths[3]),
        styled(crate::text::line(&outcome(request)), style),
        known(tokens(request, request.prompt_tokens)),
        known(tokens(request, request.completion_tokens)),
        number(request.total_ms),
    ];
    if app.size.width >= WIDE {
        let first = known(request.first_byte_ms);
        cells.extend([first, number(request.queue_ms), cell(&request.endpoint)]);
    }
    Row::new(cells)
}

fn outcome(request: &RequestJson) -> String {
    match request.status {
        Some(status) if status != 200 => format!("{} {status}", request.outcome),
        _ => request.outcome.clone(),
    }
}

/// The provider of a request's answer. If the answer went on at other providers, all of them in turn.
fn providers(request: &RequestJson) -> String {
    match request.providers()[..] {
        [] => "-".to_owned(),
        ref all => all.join(" → "),
    }
}

fn tokens(request: &RequestJson, count: Option<u64>) -> Option<String> {
    count.map(|count| if request.estimated { format!("~{count}") } else { count.to_string() })
}

fn whole(app: &App, request: &RequestJson, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::popup(app, 72, 19);
    let ms = |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| format!("{ms} ms"));
    let count = |count| tokens(request, count).unwrap_or_else(|| "-".to_owned());
    let rate = rate(request).map_or("-".to_owned(), |rate| format!("{rate:.1}/s"));
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let lines = [
        ("Id", request.id.clone()),
        ("Ended", request.at.strftime("%F %TZ").to_string()),
        ("Key", app.key_name(&request.key)),
        ("Scope", app.rooms.scope(request.scope.as_deref().unwrap_or("server"))),
        ("Model", request.model.clone()),
        ("Served model", text(&request.served_model)),
        ("Endpoint", request.endpoint.clone()),
        ("Stream", if request.streaming { "yes" } else { "no" }.to_owned()),
        ("Provider", providers(request)),
        ("Outcome", outcome(request)),
        ("Tokens in", count(request.prompt_tokens)),
        ("Tokens out", count(request.completion_tokens)),
        ("Rate", rate),
        ("Queued", ms(Some(request.queue_ms))),
        ("First byte", ms(request.first_byte_ms)),
        ("In all", ms(Some(request.total_ms))),
        ("Given anew", request.requeues.to_string()),
    ];
    properties("Request", &lines, area, theme, frame);
}

/// Tokens written in each second of the answer.
fn rate(request: &RequestJson) -> Option<f64> {
    let took = request.total_ms.checked_sub(request.first_byte_ms?)?;
    Some(request.completion_tokens? as f64 * 1_000.0 / took.max(1) as f64)
}
