//! How keys are reported: the stack of flags of the kitty keyboard protocol.

use alacritty_terminal::vte::ansi::{KeyboardModes, KeyboardModesApplyBehavior as Change};

/// The most entries of the stack.
const DEEPEST: usize = 8;

/// A stack of flags. The top entry is in force.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct Keys(Vec<u8>);

impl Keys {
    /// All entries, the top one last.
    pub(in super::super) fn all(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn push(&mut self, flags: KeyboardModes) {
        if self.0.len() == DEEPEST {
            self.0.remove(0);
        }
        self.0.push(flags.bits());
    }

    pub(super) fn pop(&mut self, count: u16) {
        self.0.truncate(self.0.len().saturating_sub(count.into()));
    }

    pub(super) fn set(&mut self, flags: KeyboardModes, change: Change) {
        let old = self.0.pop().unwrap_or_default();
        self.0.push(match change {
            Change::Replace => flags.bits(),
            Change::Union => old | flags.bits(),
            Change::Difference => old & !flags.bits(),
        });
    }
}
