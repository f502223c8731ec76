//! Answering the pull of a linked member.

use std::collections::BTreeSet;

use crate::{
    context::{Context, Seen},
    dot::{Dot, Incarnation},
    entry::Key,
    input::LinkId,
    knowledge::Record,
    message::{Batch, LargestDots, Last, Message, Pull, Retired},
    replica::Replica,
    table::size,
};

/// How many batches may be sent before the asker has acknowledged them.
const MOST_AHEAD: u32 = 4;

/// The state of the answer to a linked member's pull.
///
/// Entries are sent in the order of their dots, so that the cost follows what the asker lacks.
/// Objects that change meanwhile get new dots, which may lie before the place that the walk has
/// reached. So at the end of a walk another one follows, over what was noted since the last one
/// began. When nothing was, the asker has every entry that stands for the present context.
///
/// If an entry is *dropped* meanwhile, a walk could miss it, and the asker would not notice. So a
/// drop cuts the pull off, and the asker begins again.
#[derive(Debug)]
pub(crate) struct Answer {
    id: u64,
    /// The writes that the asker has noted, or that it has been sent.
    base: Context,
    /// The retired incarnations that the asker has with the same writes as this member, and its
    /// other retired incarnations.
    alike: BTreeSet<Incarnation>,
    unlike: Vec<Incarnation>,
    /// The hash of the own retired incarnations when the pull came.
    retired_hash: u64,
    /// All writes that were noted here when the present walk began.
    snapshot: Context,
    reached: Option<Dot>,
    /// Whether the list of keys is still to be sent; the last key that was sent; and this member's
    /// context when the list was begun.
    keys_due: bool,
    last_key: Option<Key>,
    listed: Option<Context>,
    sent: u32,
    acknowledged: u32,
}

impl Replica {
    pub(crate) fn on_pull(&mut self, link: LinkId, pull: Pull) {
        let id = pull.id;
        let Some(state) = self.links.get_mut(&link) else { return };
        if id <= state.last_pull {
            // The pull came twice. The batches of two answers must not be mixed.
            return;
        }
        state.last_pull = id;
        let answer = self.answer_to(pull);
        let Some(state) = self.links.get_mut(&link) else { return };
        state.answer = answer;
        if state.answer.is_none() {
            return self.send(link, Message::Cut { id });
        }
        self.send_batches(link);
    }

    /// `None` if the pull is for another incarnation, or refers to another list of retired ones.
    fn answer_to(&self, pull: Pull) -> Option<Answer> {
        let is_same_list = pull.retired_hash == self.knowledge.retired_hash();
        if pull.of != self.incarnation || pull.retired.is_none() && !is_same_list {
            return None;
        }
        let mut base = pull.context;
        let retired = pull.retired.map_or_else(|| self.knowledge.retired(), Context::from_iter);
        let (alike, unlike): (Vec<_>, Vec<_>) =
            retired.iter().partition(|(incarnation, seen)| self.is_alike(*incarnation, seen));
        let (alike, unlike) = (incarnations(&alike).collect(), incarnations(&unlike).collect());
        base.join(&retired);
        Some(Answer {
            id: pull.id,
            alike,
            unlike,
            retired_hash: self.knowledge.retired_hash(),
            snapshot: self.knowledge.all(),
            reached: None,
            keys_due: self.config.rules.floors && self.needs_keys(&base),
            last_key: None,
            listed: None,
            base,
            sent: 0,
            acknowledged: 0,
        })
    }

    fn is_alike(&self, incarnation: Incarnation, seen: &Seen) -> bool {
        let record = self.knowledge.get(incarnation);
        record.is_some_and(|record| record.retired && record.seen == *seen)
    }

    /// Whether the asker may have an object whose tombstone was dropped here. That is so if it has
    /// not noted all writes up to a floor.
    fn needs_keys(&self, asker: &Context) -> bool {
        self.knowledge.iter().any(|(incarnation, record)| match asker.seen(incarnation) {
            Some(seen) => seen.lacks(&record.seen, record.floor),
            None => record.floor > 0,
        })
    }

    pub(crate) fn on_more(&mut self, link: LinkId, id: u64, batch: u32) {
        let answer = self.links.get_mut(&link).and_then(|state| state.answer.as_mut());
        if let Some(answer) = answer.filter(|answer| answer.id == id) {
            answer.acknowledged = answer.acknowledged.max(batch.saturating_add(1)).min(answer.sent);
            self.send_batches(link);
        }
    }

    fn send_batches(&mut self, link: LinkId) {
        // Taken out while batches are made, since making one reads the whole replica.
        let Some(mut answer) = self.links.get_mut(&link).and_then(|state| state.answer.take())
        else {
            return;
        };
        if answer.retired_hash != self.knowledge.retired_hash() {
            return self.send(link, Message::Cut { id: answer.id });
        }
        while answer.sent - answer.acknowledged < MOST_AHEAD {
            let batch = self.next_batch(&mut answer);
            let is_last = batch.last.is_some();
            self.send(link, Message::Batch(batch.into()));
            if is_last {
                return;
            }
        }
        if let Some(state) = self.links.get_mut(&link) {
            state.answer = Some(answer);
        }
    }

    fn next_batch(&self, answer: &mut Answer) -> Batch {
        let mut batch = Batch {
            id: answer.id,
            number: answer.sent,
            entries: Vec::new(),
            keys: Vec::new(),
            last: None,
        };
        answer.sent += 1;
        let mut room = self.config.limits.batch_bytes;
        if self.walk(answer, &mut batch, &mut room)
            && self.list_keys(answer, &mut batch, &mut room)
            && self.walk(answer, &mut batch, &mut room)
        {
            batch.last = Some(self.last(answer));
        }
        batch
    }

    /// Adds entries that the asker lacks. Returns true when it lacks none any more, false when the
    /// batch is full.
    fn walk(&self, answer: &mut Answer, batch: &mut Batch, room: &mut usize) -> bool {
        loop {
            if !self.walk_on(answer, batch, room) {
                return false;
            }
            answer.base.join(&answer.snapshot);
            answer.reached = None;
            let now = self.knowledge.all();
            if answer.snapshot == now {
                return true;
            }
            answer.snapshot = now;
        }
    }

    /// Continues one walk. Returns false when the batch is full.
    fn walk_on(&self, answer: &mut Answer, batch: &mut Batch, room: &mut usize) -> bool {
        let first = answer.reached.map_or(Incarnation(0), |dot| dot.incarnation);
        for (incarnation, record) in self.knowledge.from(first) {
            let done = answer.reached.filter(|dot| dot.incarnation == incarnation);
            let done = done.map_or(0, |dot| dot.counter);
            for (from, to) in answer.base.gaps(incarnation, record.seen.max()) {
                if to <= done {
                    continue;
                }
                for (key, entry) in self.table.written(incarnation, (from.max(done + 1), to)) {
                    if is_full(batch, *room, self.config.limits.batch_entries) {
                        return false;
                    }
                    *room = room.saturating_sub(size(key, entry));
                    answer.reached = Some(entry.dot);
                    batch.entries.push((key.clone(), entry.clone()));
                }
            }
        }
        true
    }

    /// Adds keys. Returns true when the asker has them all or needs none, false when the batch is
    /// full.
    fn list_keys(&self, answer: &mut Answer, batch: &mut Batch, room: &mut usize) -> bool {
        if !answer.keys_due {
            return true;
        }
        answer.listed.get_or_insert_with(|| self.knowledge.context());
        for key in self.table.keys_after(answer.last_key.clone().as_ref()) {
            if is_full(batch, *room, self.config.limits.batch_entries) {
                return false;
            }
            *room = room.saturating_sub(key.id.len() + 8);
            answer.last_key = Some(key.clone());
            batch.keys.push(key.clone());
        }
        answer.keys_due = false;
        true
    }

    fn last(&self, answer: &Answer) -> Last {
        let open = self.knowledge.iter().filter(|(_, record)| !record.retired);
        let floors = open.filter(|(_, record)| record.floor > 0);
        let floors = floors.map(|(incarnation, record)| Dot::new(incarnation, record.floor));
        let new = |(incarnation, record): &(Incarnation, &Record)| {
            record.retired && !answer.alike.contains(incarnation)
        };
        let retired = self.knowledge.iter().filter(new).map(|(incarnation, record)| Retired {
            incarnation,
            seen: record.seen.clone(),
            floor: record.floor,
        });
        Last {
            context: self.knowledge.context(),
            floors: LargestDots(floors.collect()),
            retired: retired.collect(),
            unlike: answer.unlike.clone(),
            listed: answer.listed.clone(),
        }
    }

    /// Cuts off every pull that is being answered, because something was dropped.
    pub(crate) fn cut_answers(&mut self) {
        let answers = self.links.iter_mut();
        let cut = answers.filter_map(|(link, state)| Some((*link, state.answer.take()?.id)));
        let cut: Vec<(LinkId, u64)> = cut.collect();
        for (link, id) in cut {
            self.send(link, Message::Cut { id });
        }
    }
}

fn incarnations<'a>(list: &'a [(Incarnation, &Seen)]) -> impl Iterator<Item = Incarnation> + 'a {
    list.iter().map(|(incarnation, _)| *incarnation)
}

fn is_full(batch: &Batch, room: usize, most: usize) -> bool {
    room == 0 || batch.entries.len() + batch.keys.len() >= most
}
