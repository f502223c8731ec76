//! The place in a list: the chosen row, and the first row that is shown.

use crossterm::event::{KeyCode, KeyEvent};

/// A move in a list or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This many rows down, or up.
    Rows(isize),
    /// This many screens down, or up.
    Pages(isize),
    /// To the beginning.
    First,
    /// To the end.
    Last,
}

impl Step {
    /// The move that a key means in a list.
    pub fn of(key: KeyEvent) -> Option<Self> {
        Some(match key.code {
            KeyCode::Up | KeyCode::Char('k') => Self::Rows(-1),
            KeyCode::Down | KeyCode::Char('j') => Self::Rows(1),
            KeyCode::PageUp => Self::Pages(-1),
            KeyCode::PageDown => Self::Pages(1),
            KeyCode::Home | KeyCode::Char('g') => Self::First,
            KeyCode::End | KeyCode::Char('G') => Self::Last,
            _ => return None,
        })
    }

    /// The row that the move leads to from `at`, where `page` rows are shown of `len`.
    pub fn from(self, at: usize, len: usize, page: usize) -> usize {
        let to = match self {
            Self::Rows(rows) => at.saturating_add_signed(rows),
            Self::Pages(pages) => at.saturating_add_signed(pages * page.max(1).cast_signed()),
            Self::First => 0,
            Self::Last => len,
        };
        to.min(len.saturating_sub(1))
    }
}

/// The place in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    /// The chosen row.
    pub at: usize,
    /// The first row that is shown.
    pub top: usize,
}

impl List {
    /// Moves the chosen row.
    pub fn step(&mut self, step: Step, len: usize, page: usize) {
        self.at = step.from(self.at, len, page);
    }

    /// Keeps the chosen row within the list and in sight, where `page` rows are shown.
    pub fn settle(&mut self, len: usize, page: usize) {
        self.at = self.at.min(len.saturating_sub(1));
        let lowest = (self.at + 1).saturating_sub(page.max(1));
        // A list that became shorter leaves no empty rows below its last one.
        self.top = self.top.min(len.saturating_sub(page)).clamp(lowest, self.at);
    }

    /// The row of the list in a line of the screen, if there is one.
    pub fn row(&self, line: u16, len: usize) -> Option<usize> {
        let row = self.top + usize::from(line);
        (row < len).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_stays_in_the_list_and_in_sight() {
        let mut list = List::default();
        list.step(Step::Rows(-1), 10, 4);
        assert_eq!(list.at, 0);
        list.step(Step::Pages(2), 10, 4);
        list.settle(10, 4);
        assert_eq!(list, List { at: 8, top: 5 });
        list.step(Step::Last, 10, 4);
        list.settle(3, 4);
        assert_eq!(list, List { at: 2, top: 0 });
        list.settle(0, 0);
        assert_eq!(list, List::default());
    }

    #[test]
    fn a_line_below_the_last_row_is_no_row() {
        let list = List { at: 5, top: 4 };
        assert_eq!([list.row(0, 6), list.row(1, 6), list.row(2, 6)], [Some(4), Some(5), None]);
    }
}
