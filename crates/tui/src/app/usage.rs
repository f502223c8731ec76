//! Usage of the last days.

use base::UsageBy;
use client::admin::usage::{UsageReport, UsageRow};

use super::{list::List, reading::Reading};

/// The properties by which usage is split, in the order of the keys.
pub const SPLITS: [UsageBy; 4] = [UsageBy::Key, UsageBy::Model, UsageBy::Day, UsageBy::Provider];

/// The span that is asked about, as the server reads it.
pub const SINCE: &str = "30d";

/// Usage.
#[derive(Debug)]
pub struct Usage {
    /// The property by which it is split.
    pub by: UsageBy,
    /// The report, if the server shows it.
    pub reading: Reading<UsageReport>,
    /// The place in the list.
    pub list: List,
}

impl Default for Usage {
    fn default() -> Self {
        Self { by: UsageBy::Key, reading: Reading::default(), list: List::default() }
    }
}

impl Usage {
    /// The rows.
    pub fn rows(&self) -> &[UsageRow] {
        self.reading.known().map_or(&[], |report| &report.rows)
    }

    /// Splits it by the next property, or the one before.
    pub fn turn(&mut self, forward: bool) {
        let at = SPLITS.iter().position(|by| *by == self.by).unwrap_or(0);
        let step = if forward { 1 } else { SPLITS.len() - 1 };
        *self = Self { by: SPLITS[(at + step) % SPLITS.len()], ..Self::default() };
    }
}
