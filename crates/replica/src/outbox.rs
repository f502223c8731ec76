//! Outputs in order: first facts, then the messages about them.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use crate::{
    dot::Incarnation,
    entry::{Entry, Key},
    fact::Fact,
    input::LinkId,
    message::Message,
    output::Output,
    table::Layer,
};

/// The outputs, the facts that changed in the present step, and the messages that wait for the disk.
///
/// A message waits until everything that was true when it was written is stored. Otherwise a crash
/// could lose a write after this member had told others that it has it, and they would drop its
/// tombstone.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    outputs: VecDeque<Output>,
    changed: Changed,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The token of the last transaction, and that of the last stored one.
    token: u64,
    stored_token: u64,
}

/// The names of facts that changed since the last transaction.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) entries: BTreeSet<(Layer, Key)>,
    pub(crate) records: BTreeSet<Incarnation>,
    pub(crate) generation: bool,
}

impl Changed {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.records.is_empty() && !self.generation
    }
}

#[derive(Debug)]
struct Waiting {
    token: u64,
    link: LinkId,
    message: Message,
}

impl Outbox {
    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(crate) fn changed(&mut self) -> &mut Changed {
        &mut self.changed
    }

    pub(crate) fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn keep(&mut self, facts: Vec<Fact>) {
        self.token += 1;
        self.push(Output::Keep { token: self.token, facts });
    }

    pub(crate) fn show(&mut self, key: &Key, entry: Option<Arc<Entry>>) {
        self.push(Output::Changed { key: key.clone(), entry });
    }

    /// Sends a message once everything that was written before it is stored. A delta is dropped if
    /// too many bytes wait; digests make up for it. A digest, hint or comparison is dropped if one
    /// of its kind already waits for the same link.
    pub(crate) fn send(&mut self, link: LinkId, message: Message, most_bytes: usize) {
        let token = self.token + u64::from(!self.changed.is_empty());
        if token <= self.stored_token {
            self.push(Output::Send { link, message });
            return;
        }
        let weight = message.weight();
        let over = weight > 0 && self.waiting_bytes + weight > most_bytes;
        if over || self.has_waiting_like(link, &message) {
            return;
        }
        self.waiting_bytes += weight;
        self.waiting.push_back(Waiting { token, link, message });
    }

    /// Whether a message of a kind that comes again and again already waits for the link. Timers
    /// and other members' messages cause these, so the disk's speed does not bound their number.
    fn has_waiting_like(&self, link: LinkId, message: &Message) -> bool {
        let is_repeated = matches!(
            message,
            Message::Digest(_) | Message::Hint(_) | Message::Buckets(_) | Message::Keys(_)
        );
        if !is_repeated {
            return false;
        }
        let kind = std::mem::discriminant(message);
        let is_like = |waiting: &Waiting| {
            waiting.link == link && std::mem::discriminant(&waiting.message) == kind
        };
        self.waiting.iter().any(is_like)
    }

    /// Records that everything up to `token` is stored, and sends the messages that waited for
    /// that.
    pub(crate) fn kept(&mut self, token: u64) {
        self.stored_token = self.stored_token.max(token.min(self.token));
        while self.waiting.front().is_some_and(|waiting| waiting.token <= self.stored_token) {
            if let Some(Waiting { link, message, .. }) = self.waiting.pop_front() {
                self.waiting_bytes -= message.weight();
                self.push(Output::Send { link, message });
            }
        }
    }

    /// Drops the messages that wait for a link that is closed.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.waiting.retain(|waiting| waiting.link != link);
        self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.message.weight()).sum();
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }
}
