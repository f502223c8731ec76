//! Tables that fit into a width.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::rows::{Breaks, width, wrap};
use crate::draw::theme::Theme;

/// The text of a cell.
pub(super) type Cell = Vec<Span<'static>>;

/// The text between two columns.
const BETWEEN: &str = " │ ";

/// A table whose rows arrive one by one, its header first.
pub(super) struct Table {
    aligned: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(aligned: Vec<Alignment>) -> Self {
        Self { aligned, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Its lines, of at most `columns` columns.
    pub(super) fn lines(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        match fitting(self.widths(), columns) {
            Some(widths) => self.aligned_lines(&widths, theme),
            None => self.rows.iter().flat_map(|row| one_after_another(row, columns)).collect(),
        }
    }

    fn widths(&self) -> Vec<usize> {
        let widest =
            |at: usize| self.rows.iter().filter_map(move |row| row.get(at)).map(|cell| width(cell));
        (0..self.aligned.len()).map(|at| widest(at).max().unwrap_or(0).max(1)).collect()
    }

    fn aligned_lines(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, widths, theme));
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(rule.join("─┼─"), theme.quiet()));
            }
        }
        lines
    }

    fn row(&self, row: &[Cell], widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let empty = Cell::new();
        let cell = |(at, width): (usize, &usize)| {
            wrap(row.get(at).unwrap_or(&empty), *width, Breaks::Words)
        };
        let cells: Vec<Vec<Line<'static>>> = widths.iter().enumerate().map(cell).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        (0..height).map(|line| self.line(&cells, line, widths, theme)).collect()
    }

    fn line(
        &self,
        cells: &[Vec<Line<'static>>],
        line: usize,
        widths: &[usize],
        theme: Theme,
    ) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (at, (cell, columns)) in cells.iter().zip(widths).enumerate() {
            if at > 0 {
                spans.push(Span::styled(BETWEEN, theme.quiet()));
            }
            let shown = cell.get(line).map_or(&[][..], |line| &line.spans);
            let room = columns.saturating_sub(width(shown));
            let before = match self.aligned.get(at) {
                Some(Alignment::Right) => room,
                Some(Alignment::Center) => room / 2,
                _ => 0,
            };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(shown.iter().cloned());
            spans.push(Span::raw(" ".repeat(room - before)));
        }
        Line::from(spans)
    }
}

/// The widths of the columns, the widest ones reduced until all fit. `None` if the columns cannot fit.
fn fitting(mut widths: Vec<usize>, columns: usize) -> Option<Vec<usize>> {
    /// No column is made narrower than this.
    const LEAST: usize = 3;
    let between = BETWEEN.chars().count() * widths.len().saturating_sub(1);
    let room = columns.checked_sub(between)?;
    while widths.iter().sum::<usize>() > room {
        // One column at a time, so that wide ones end up about equal.
        let widest = widths.iter_mut().max().filter(|width| **width > LEAST)?;
        *widest -= 1;
    }
    Some(widths)
}

fn one_after_another(row: &[Cell], columns: usize) -> Vec<Line<'static>> {
    let mut all = Cell::new();
    for (at, cell) in row.iter().enumerate() {
        all.extend((at > 0).then(|| Span::raw(BETWEEN)));
        all.extend(cell.iter().cloned());
    }
    wrap(&all, columns, Breaks::Words)
}
