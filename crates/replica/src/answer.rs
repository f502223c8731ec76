//! Answering the pull of a linked member.

use std::collections::BTreeSet;

use crate::{
    context::Context,
    dot::{Dot, Incarnation},
    entry::Key,
    input::LinkId,
    knowledge::Record,
    message::{Batch, LargestDots, Last, Message, Pull, Retired},
    replica::Replica,
    table::size,
};

/// How many batches may be under way.
const MOST_AHEAD: u32 = 4;

/// A pull of a linked member, as far as it is answered.
///
/// Entries are sent in the order of their dots, so that the cost follows what the asker lacks.
/// Objects that change meanwhile get new dots, which may lie before the place reached. So at the end
/// of a walk another one follows over what was noted since the walk before began, until there is
/// nothing: at that moment the asker has everything that stands for the present context.
///
/// What is *dropped* meanwhile could be missed by a walk and not noticed by the asker: then the pull
/// is cut off, and the asker begins again.
#[derive(Debug)]
pub(crate) struct Answer {
    id: u64,
    /// What the asker has noted, or has been sent.
    base: Context,
    retired: BTreeSet<Incarnation>,
    unknown: Vec<Incarnation>,
    /// All that was noted here when the present walk began.
    snapshot: Context,
    reached: Option<Dot>,
    /// Whether the asker gets the list of keys, and how far it has it.
    listed: bool,
    last_key: Option<Key>,
    keys_done: bool,
    sent: u32,
    acknowledged: u32,
}

impl Replica {
    pub(crate) fn on_pull(&mut self, link: LinkId, pull: Pull) {
        let id = pull.id;
        let answer = self.answer_to(pull);
        let Some(state) = self.links.get_mut(&link) else { return };
        state.answer = answer;
        if state.answer.is_none() {
            return self.send(link, Message::Cut { id });
        }
        self.send_batches(link);
    }

    /// None: the pull is not for this incarnation, or for another list of retired ones.
    fn answer_to(&self, pull: Pull) -> Option<Answer> {
        let is_same_list = pull.retired_hash == self.knowledge.retired_hash();
        if pull.of != self.incarnation || pull.retired.is_none() && !is_same_list {
            return None;
        }
        let own = self.knowledge.iter().filter(|(_, record)| record.retired).map(|(i, _)| i);
        let retired: BTreeSet<Incarnation> =
            pull.retired.map_or_else(|| own.collect(), |list| list.into_iter().collect());
        let unknown =
            retired.iter().filter(|incarnation| self.knowledge.get(**incarnation).is_none());
        let unknown = unknown.copied().collect();
        let listed = self.config.rules.floors && self.needs_keys(&pull.context, &retired);
        Some(Answer {
            id: pull.id,
            base: pull.context,
            retired,
            unknown,
            snapshot: self.knowledge.all(),
            reached: None,
            listed,
            last_key: None,
            keys_done: !listed,
            sent: 0,
            acknowledged: 0,
        })
    }

    /// Whether the asker may have an object whose tombstone was dropped here: it has not noted
    /// everything up to the floor. So may one that noted writes of an incarnation which were not
    /// known when that was retired.
    fn needs_keys(&self, context: &Context, retired: &BTreeSet<Incarnation>) -> bool {
        let mut records = self.knowledge.iter().filter(|(i, _)| !retired.contains(i));
        records.any(|(incarnation, record)| match context.seen(incarnation) {
            Some(seen) => {
                seen.lacks(&record.seen, record.floor)
                    || record.retired && record.seen.lacks(seen, u64::MAX)
            }
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
        // Taken out while batches are made: making one reads the whole replica.
        let Some(mut answer) = self.links.get_mut(&link).and_then(|state| state.answer.take())
        else {
            return;
        };
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

    /// Adds entries that the asker lacks. True: it lacks none any more.
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

    /// Goes on with one walk. False: the batch is full.
    fn walk_on(&self, answer: &mut Answer, batch: &mut Batch, room: &mut usize) -> bool {
        let first = answer.reached.map_or(Incarnation(0), |dot| dot.incarnation);
        for (incarnation, record) in self.knowledge.from(first) {
            if answer.retired.contains(&incarnation) {
                continue;
            }
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

    /// Adds keys. True: the asker has them all, or needs none.
    fn list_keys(&self, answer: &mut Answer, batch: &mut Batch, room: &mut usize) -> bool {
        if answer.keys_done {
            return true;
        }
        for key in self.table.keys_after(answer.last_key.clone().as_ref()) {
            if is_full(batch, *room, self.config.limits.batch_entries) {
                return false;
            }
            *room = room.saturating_sub(key.id.len() + 8);
            answer.last_key = Some(key.clone());
            batch.keys.push(key.clone());
        }
        answer.keys_done = true;
        true
    }

    fn last(&self, answer: &Answer) -> Last {
        let open = self.knowledge.iter().filter(|(_, record)| !record.retired);
        let floors = open.filter(|(_, record)| record.floor > 0);
        let floors = floors.map(|(incarnation, record)| Dot::new(incarnation, record.floor));
        let new = |(incarnation, record): &(Incarnation, &Record)| {
            record.retired && !answer.retired.contains(incarnation)
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
            unknown: answer.unknown.clone(),
            listed: answer.listed,
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

fn is_full(batch: &Batch, room: usize, most: usize) -> bool {
    room == 0 || batch.entries.len() + batch.keys.len() >= most
}
