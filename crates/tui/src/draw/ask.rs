//! A conversation with a model.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span, Text},
    widgets::Paragraph,
};

use super::{
    parts::{framed, instead},
    theme::Theme,
};
use crate::{
    app::{
        App,
        ask::{Answer, Progress, label},
        event::Target,
        layout, transcript,
    },
    text,
};

pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let areas = layout::ask(app);
    to(app, areas.to, theme, frame);
    prompt(app, areas.prompt, theme, frame);
    match &app.ask.answer {
        Some(answer) => conversation(app, answer, areas.answer, theme, frame),
        None => {
            frame.render_widget(framed("Answer", false, theme), areas.answer);
            instead("The answer comes here.", areas.answer, theme, frame);
        }
    }
}

fn to(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let words = match &app.ask.to {
        Some(target) => Line::from(vec![
            Span::styled("‹ ", theme.title()),
            Span::raw(label(target)),
            Span::styled(" ›  ", theme.title()),
            Span::styled(how(app, target), theme.quiet()),
        ]),
        None => Line::styled("There is no model and no room to ask yet.", theme.quiet()),
    };
    frame.render_widget(Paragraph::new(words).block(framed("Whom", false, theme)), area);
}

fn how(app: &App, target: &Target) -> &'static str {
    match target {
        Target::Room { .. } if app.ask.aloud => "aloud: the whole room sees the answer",
        _ => "privately",
    }
}

fn prompt(app: &App, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let inside = layout::rows(area, false);
    let (columns, rows) = (usize::from(inside.width), usize::from(inside.height));
    let before = text::fold(app.ask.prompt.before(), columns);
    let lines = text::fold(app.ask.prompt.text(), columns);
    let top = before.len().saturating_sub(rows);
    let lines: Vec<Line<'_>> = lines.into_iter().skip(top).take(rows).map(Line::raw).collect();
    let is_typing = app.is_typing() && app.dialog.is_none();
    let shown = Paragraph::new(lines).block(framed("Prompt", app.ask.is_typing, theme));
    frame.render_widget(shown, area);
    if is_typing {
        let column = before.last().map_or(0, |line| text::width(line));
        let (x, y) = (column.min(columns), before.len() - 1 - top);
        let at = |from: u16, by: usize| from.saturating_add(u16::try_from(by).unwrap_or(0));
        frame.set_cursor_position(Position { x: at(inside.x, x), y: at(inside.y, y) });
    }
}

/// The end of the conversation, or the part that was scrolled to.
fn conversation(app: &App, answer: &Answer, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let inside = layout::rows(area, false);
    let (columns, rows) = (usize::from(inside.width), usize::from(inside.height));
    let lines = transcript::lines(&app.ask, columns, theme);
    let top = lines.len().saturating_sub(rows).saturating_sub(app.ask.below);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(rows).collect();
    let title = match app.ask.earlier.len() {
        0 => "Answer".to_owned(),
        earlier => format!("Conversation, {} questions", earlier + 1),
    };
    let block = framed(&title, !app.ask.is_typing, theme)
        .title_bottom(Span::styled(format!(" {} ", went(answer)), theme.title()));
    frame.render_widget(Paragraph::new(Text::from(shown)).block(block), area);
}

/// The state of an answer in words.
fn went(answer: &Answer) -> String {
    let metrics = answer.metrics();
    let took = metrics.duration_ms as f64 / 1_000.0;
    let numbers = format!(
        "{} tokens in {took:.1} s, first after {} ms, {:.1}/s",
        metrics.tokens, metrics.latency_first_token_ms, metrics.tokens_per_second
    );
    match &answer.state {
        Progress::Open if answer.text.is_empty() => format!("waiting, {took:.0} s"),
        Progress::Open => format!("{took:.0} s …"),
        Progress::Done => numbers,
        Progress::Failed(_) => "failed".to_owned(),
        Progress::Cancelled => "stopped".to_owned(),
    }
}
