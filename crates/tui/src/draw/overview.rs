//! The overview: the state of the server.

use base::LoadState;
use client::admin::status::{Health, HealthDetails, ModelFacts, QueueJson, WorkerJson};
use protocol::room::RoomSummary;
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    text::{Line, Span},
    widgets::{Paragraph, Row, Sparkline},
};

use super::{
    parts::{ListView, cell, count, explain, framed, instead, missing, name, number, span, styled},
    theme::Theme,
};
use crate::{
    app::{App, layout, overview::Part, rates::Series, rooms::entry},
    text,
};

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let areas = layout::overview(app);
    server(app, areas.server, theme, frame);
    rates(app, areas.rates, theme, frame);
    workers(app, areas.workers, theme, frame);
    rooms(app, areas.rooms, theme, frame);
    queues(app, areas.queues, theme, frame);
}

fn server(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let lines = match &app.overview.health {
        Some(health) => vec![named(health, theme), busy(app, health, theme)],
        None => vec![Line::styled("Asking the server how it is …", theme.quiet())],
    };
    frame.render_widget(Paragraph::new(lines).block(framed("Server", false, theme)), area);
}

fn named(health: &Health, theme: Theme) -> Line<'static> {
    let style = if health.status == "ok" { theme.good() } else { theme.warn() };
    let up = health.details.as_ref().map(|details| format!(", up {}", span(details.uptime_secs)));
    Line::from(vec![
        Span::raw(format!("Warren {}: ", text::line(&health.version))),
        Span::styled(text::line(&health.status), style),
        Span::raw(up.unwrap_or_default()),
    ])
}

fn busy(app: &App, health: &Health, theme: Theme) -> Line<'static> {
    match &health.details {
        Some(HealthDetails { degraded: Some(why), .. }) => {
            Line::styled(text::line(why), theme.warn())
        }
        Some(details) => Line::raw(numbers(app, details)),
        None => Line::styled("More is told to whoever has a key: --token KEY.", theme.quiet()),
    }
}

fn numbers(app: &App, details: &HealthDetails) -> String {
    let rooms = app.rooms.listed.all().len() as u64;
    [
        count(details.workers_connected, "provider"),
        count(details.models.len() as u64, "model"),
        count(rooms, "room"),
        format!("{} in flight", details.in_flight),
        format!("{} waiting", details.queue_depth),
    ]
    .join(", ")
}

fn rates(app: &App, areas: [Rect; 3], theme: Theme, frame: &mut Frame<'_>) {
    let rates = &app.overview.rates;
    let private = missing(&app.requests.reading).filter(|_| app.overview.health.is_some());
    let shown = [
        (format!("Requests/s {:.1}", rates.requests.mean()), &rates.requests, private.clone()),
        (format!("Tokens/s {:.0}", rates.tokens.mean()), &rates.tokens, private),
        (format!("In flight {:.0}", rates.in_flight.now()), &rates.in_flight, None),
    ];
    for (area, (title, series, why)) in areas.into_iter().zip(shown) {
        match why {
            Some(why) => {
                let title = title.split(' ').next().unwrap_or_default();
                frame.render_widget(framed(title, false, theme), area);
                instead(&why, area, theme, frame);
            }
            None => curve(&title, series, area, theme, frame),
        }
    }
}

fn curve(title: &str, series: &Series, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let columns = usize::from(layout::rows(area, false).width);
    // A sparkline takes whole numbers; the factor keeps rates below one visible.
    let values = series.last(columns).into_iter().map(|value| (value * 100.0) as u64);
    let line = Sparkline::default()
        .data(values.collect::<Vec<u64>>())
        .style(theme.curve())
        .block(framed(title, false, theme));
    frame.render_widget(line, area);
}

fn workers(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let widths = [
        Constraint::Fill(2),
        Constraint::Length(14),
        Constraint::Fill(3),
        Constraint::Length(10),
        Constraint::Length(7),
    ];
    let listed = ListView {
        title: "Providers",
        header: &["Name", "Scope", "Models", "State", "Busy"],
        widths: &widths,
        list: app.overview.workers,
        is_chosen: app.overview.part == Part::Workers,
    };
    let workers = app.overview.all_workers();
    listed.draw(area, workers, |it, widths| row(app, it, widths, theme), theme, frame);
    if workers.is_empty() && app.overview.details().is_some() {
        instead(
            "No worker is connected: `warren worker` lends a machine's models.",
            area,
            theme,
            frame,
        );
    }
}

fn row(app: &App, worker: &WorkerJson, widths: &[usize], theme: Theme) -> Row<'static> {
    let (state, style) = match worker.resting_secs {
        _ if worker.is_draining => ("draining".to_owned(), theme.warn()),
        Some(rest) => (format!("rests {rest:.0}s"), theme.bad()),
        None if worker.in_flight >= worker.max_concurrent => ("full".to_owned(), theme.warn()),
        None => ("ready".to_owned(), theme.good()),
    };
    Row::new([
        name(&worker.worker_name, widths[0]),
        name(&app.rooms.scope(&worker.scope), widths[1]),
        name(&models(app, worker), widths[2]),
        styled(state, style),
        number(format!("{}/{}", worker.in_flight, worker.max_concurrent)),
    ])
}

/// The models of a worker: those in memory first, with their size and how long ago they were used.
fn models(app: &App, worker: &WorkerJson) -> String {
    let state = |model: &String| worker.model_facts.get(model).and_then(|facts| facts.load);
    let rank = |model: &String| match state(model) {
        Some(LoadState::Loaded) => 0,
        Some(LoadState::Loading) => 1,
        None | Some(LoadState::Unloaded) => 2,
    };
    let mut models: Vec<&String> = worker.models.iter().collect();
    models.sort_by_key(|model| rank(model));
    let now = u64::try_from(app.now.as_millisecond()).unwrap_or(0);
    let described = |model: &String| {
        let facts = worker.model_facts.get(model).filter(|_| rank(model) < 2);
        facts.map_or_else(|| model.clone(), |facts| format!("{model} ({})", memory(facts, now)))
    };
    models.into_iter().map(described).collect::<Vec<_>>().join(", ")
}

/// The memory of a model that is loaded, or being loaded.
fn memory(facts: &ModelFacts, now_ms: u64) -> String {
    let state = facts.load.map(|load| load.to_string());
    let size = facts.memory_bytes.or(facts.file_bytes);
    let size = size.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let used = facts.last_used_ms.map(|used| now_ms.saturating_sub(used) / 1_000);
    let used = used.map(|secs| format!("{} ago", span(secs)));
    [state, size, used].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn rooms(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let widths = [Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(6)];
    let listed = ListView {
        title: "Rooms",
        header: &["Code", "Name", "People"],
        widths: &widths,
        list: app.overview.rooms,
        is_chosen: app.overview.part == Part::Rooms,
    };
    let rooms = app.rooms.listed.all();
    listed.draw(area, rooms, room, theme, frame);
    let none = "No rooms: `warren room create` makes one.";
    explain(&app.rooms.listed, rooms.is_empty(), none, area, theme, frame);
}

fn room(room: &RoomSummary, widths: &[usize]) -> Row<'static> {
    let entry = entry(room);
    Row::new([cell(&entry.code), name(&entry.name, widths[1]), number(room.participant_count)])
}

fn queues(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let widths =
        [Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(7), Constraint::Length(7)];
    let listed = ListView {
        title: "Queues",
        header: &["Model", "Scope", "Waiting", "Oldest"],
        widths: &widths,
        list: app.overview.waiting,
        is_chosen: app.overview.part == Part::Queues,
    };
    let queues = app.overview.queues.all();
    listed.draw(area, queues, |waiting, widths| queue(app, waiting, widths), theme, frame);
    let is_empty = queues.is_empty();
    explain(&app.overview.queues, is_empty, "Nobody waits.", area, theme, frame);
}

fn queue(app: &App, queue: &QueueJson, widths: &[usize]) -> Row<'static> {
    let oldest = format!("{:.1}s", queue.oldest_secs);
    Row::new([
        name(&queue.model, widths[0]),
        cell(&app.rooms.scope(&queue.scope)),
        number(queue.depth),
        number(oldest),
    ])
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Size;

    use super::*;
    use crate::app::Settings;

    #[test]
    fn models_in_memory_come_first_with_size_and_age() {
        let now = jiff::Timestamp::from_second(1_000).unwrap();
        let app = App::new(Settings::default(), Size { width: 80, height: 24 }, now);
        let facts = |load, used| ModelFacts {
            load: Some(load),
            memory_bytes: Some(6 << 30),
            last_used_ms: used,
            ..ModelFacts::default()
        };
        let mut worker = WorkerJson {
            models: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            ..WorkerJson::default()
        };
        worker.model_facts.insert("b".to_owned(), facts(LoadState::Unloaded, None));
        worker.model_facts.insert("c".to_owned(), facts(LoadState::Loading, None));
        worker.model_facts.insert("d".to_owned(), facts(LoadState::Loaded, Some(955_000)));
        let expected = "d (loaded, 6.0 GiB, 45s ago), c (loading, 6.0 GiB), a, b";
        assert_eq!(models(&app, &worker), expected);
    }
}
