//! A conversation as lines: its questions, and its answers with their Markdown rendered.

use ratatui::text::Line;

use super::ask::{Answer, Ask, Progress};
use crate::{draw::theme::Theme, markdown, text};

/// All lines of the conversation in this many columns, the oldest first.
pub fn lines(ask: &Ask, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for answer in ask.earlier.iter().chain(&ask.answer) {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(turn(answer, columns, theme));
    }
    lines
}

fn turn(answer: &Answer, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let question = text::clip(&format!("> {}", answer.prompt.replace('\n', " ")), columns);
    let mut lines = vec![Line::styled(question, theme.quiet())];
    let rendered = markdown::render(&answer.text, columns, theme).into_iter();
    lines.extend(rendered.map(|line| line.style(theme.answer())));
    if let Progress::Failed(why) = &answer.state {
        let why = text::wrap(why, columns).into_iter();
        lines.extend(why.map(|line| Line::styled(line, theme.bad())));
    }
    lines
}
