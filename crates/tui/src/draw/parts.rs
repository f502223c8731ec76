//! Frames, tables and numbers, as all screens show them.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Style,
    text::{Line, Span},
    widgets::{Block, Cell, Clear, Paragraph, Row, Table, Wrap},
};

pub(super) use base::words::{count, span};

use super::theme::Theme;
use crate::{
    app::{layout, list::List, reading::Reading},
    text,
};

pub(super) fn framed(title: &str, is_chosen: bool, theme: Theme) -> Block<'static> {
    let title = Span::styled(format!(" {title} "), theme.title());
    Block::bordered().border_style(theme.frame(is_chosen)).title(title)
}

/// A framed list of rows under a header.
pub(super) struct ListView<'a> {
    pub(super) title: &'a str,
    pub(super) header: &'a [&'static str],
    pub(super) widths: &'a [Constraint],
    pub(super) list: List,
    pub(super) is_chosen: bool,
}

impl ListView<'_> {
    /// The widths of its columns, as the table will lay them out.
    fn columns(&self, area: Rect) -> Vec<usize> {
        let inside = layout::rows(area, false);
        let columns = Layout::horizontal(self.widths.iter().copied()).spacing(1).split(inside);
        columns.iter().map(|column| column.width.into()).collect()
    }

    /// Draws it. Only the visible rows are made, each for the widths of the columns.
    pub(super) fn draw<T>(
        &self,
        area: Rect,
        rows: &[T],
        row: impl Fn(&T, &[usize]) -> Row<'static>,
        theme: Theme,
        frame: &mut Frame<'_>,
    ) {
        let page = layout::page(area, !self.header.is_empty());
        let widths = self.columns(area);
        let seen = rows.iter().enumerate().skip(self.list.top).take(page);
        let styled = |(at, item)| {
            let row = row(item, &widths);
            if self.is_chosen && at == self.list.at { row.style(theme.chosen()) } else { row }
        };
        let header = Row::new(self.header.iter().copied()).style(theme.quiet());
        let mut table = Table::new(seen.map(styled), self.widths.iter().copied()).block(framed(
            self.title,
            self.is_chosen,
            theme,
        ));
        if !self.header.is_empty() {
            table = table.header(header);
        }
        frame.render_widget(table, area);
    }
}

/// Shows in the place of a list why it is missing, or `none` if it is empty.
pub(super) fn explain<T>(
    reading: &Reading<T>,
    is_empty: bool,
    none: &str,
    area: Rect,
    theme: Theme,
    frame: &mut Frame<'_>,
) {
    if let Some(why) = missing(reading).or_else(|| is_empty.then(|| none.to_owned())) {
        instead(&why, area, theme, frame);
    }
}

/// Shows words in the place of a list that is missing.
pub(super) fn instead(words: &str, area: Rect, theme: Theme, frame: &mut Frame<'_>) {
    let words = Paragraph::new(words.to_owned()).style(theme.quiet()).wrap(Wrap { trim: true });
    let inside = layout::rows(area, false);
    // The header of the empty table has been drawn there.
    frame.render_widget(Clear, inside);
    frame.render_widget(words, inside);
}

/// Why a list is missing; `None` if it is there.
pub(super) fn missing<T>(reading: &Reading<T>) -> Option<String> {
    match reading {
        Reading::Known(_) => None,
        Reading::Unknown => Some("Nothing was heard yet.".to_owned()),
        Reading::Private => {
            Some("Only an administrator is told: start with --token TOKEN.".to_owned())
        }
        Reading::Failed(why) => Some(text::line(why)),
    }
}

/// A cell with a stranger's text, made safe.
pub(super) fn cell(text: &str) -> Cell<'static> {
    Cell::from(text::line(text))
}

/// A cell with a name. A name that is longer than this many columns is shortened in the middle.
pub(super) fn name(name: &str, columns: usize) -> Cell<'static> {
    Cell::from(text::middle(&text::line(name), columns))
}

/// A cell with a number, on its right.
pub(super) fn number(number: impl Into<Number>) -> Cell<'static> {
    Cell::from(Line::from(number.into().0).right_aligned())
}

pub(super) fn known(value: Option<impl Into<Number>>) -> Cell<'static> {
    number(value.map_or_else(|| Number("-".to_owned()), Into::into))
}

/// A number as text.
pub(super) struct Number(String);

impl From<String> for Number {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self(number.to_string())
    }
}

/// A line with a property and its value.
pub(super) fn property(name: &str, value: &str, theme: Theme) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("{name:<14}"), theme.quiet()),
        Span::raw(text::line(value)),
    ])
}

/// Properties and their values, framed over the screen.
pub(super) fn properties(
    title: &str,
    lines: &[(&str, String)],
    area: Rect,
    theme: Theme,
    frame: &mut Frame<'_>,
) {
    let lines: Vec<_> = lines.iter().map(|(name, value)| property(name, value, theme)).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(framed(title, true, theme)), area);
}

pub(super) fn styled(words: impl Into<String>, style: Style) -> Cell<'static> {
    Cell::from(Span::styled(words.into(), style))
}

/// The time of day in UTC of some milliseconds since 1970.
pub(super) fn time_of_day(ms: u64) -> String {
    let secs = ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)
}
