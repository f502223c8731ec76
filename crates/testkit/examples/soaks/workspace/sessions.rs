//! The sessions that should run.

use std::collections::BTreeMap;

use testkit::{Random, workspace::Mark};
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Sessions {
    terminals: BTreeMap<String, Terminal>,
}

pub(crate) struct Terminal {
    pub(crate) mark: Mark,
    /// The outputs that clients have seen, each with its time; the oldest first.
    seen: Vec<(Instant, u64)>,
}

impl Sessions {
    pub(crate) fn opened(&mut self, id: String, mark: Mark) {
        self.terminals.insert(id, Terminal { mark, seen: Vec::new() });
    }

    pub(crate) fn count(&self) -> usize {
        self.terminals.len()
    }

    pub(crate) fn any(&self, random: &mut Random) -> Option<String> {
        let count = self.terminals.len() as u64;
        (count > 0)
            .then(|| random.below(count))
            .and_then(|at| self.terminals.keys().nth(at as usize).cloned())
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Terminal> {
        self.terminals.remove(id)
    }

    /// All of them, which are forgotten.
    pub(crate) fn take(&mut self) -> BTreeMap<String, Terminal> {
        std::mem::take(&mut self.terminals)
    }

    /// A client has seen output of this number.
    pub(crate) fn saw(&mut self, id: &str, seq: u64) {
        let Some(terminal) = self.terminals.get_mut(id) else { return };
        if terminal.seen.last().is_none_or(|(_, last)| *last < seq) {
            terminal.seen.push((Instant::now(), seq));
        }
    }
}

impl Terminal {
    /// The newest output that was seen before then.
    pub(crate) fn seen_before(&self, then: Instant) -> u64 {
        let before = self.seen.iter().filter(|(at, _)| *at < then);
        before.map(|(_, seq)| *seq).max().unwrap_or_default()
    }
}
