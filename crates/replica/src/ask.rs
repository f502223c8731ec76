//! Pulling from a linked member, and joining its context at the end.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    claims::Claim,
    context::Context,
    dot::Dot,
    entry::{Entry, Key},
    input::LinkId,
    link::{Ask, Shown},
    message::{Batch, Last, Message, Pull, Retired},
    replica::Replica,
    table::Layer,
    take::By,
};

/// The most pulls from here at a time. Each needs memory for keys.
const MOST_PULLS: usize = 2;
/// How long to wait for the next batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long no pull begins from a member after one that met a bound, since the next would meet the
/// bound again.
const REST: Duration = Duration::from_secs(60);
/// How long a pull that was cut off waits before it begins again.
const AGAIN_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// The most keys that are gathered in one pull.
const MOST_KEYS: usize = 131_072;

impl Ask {
    /// When the next batch must have come.
    pub(crate) fn deadline(&self) -> Instant {
        self.heard + PATIENCE
    }
}

impl Replica {
    /// Plans a pull from this member.
    pub(crate) fn want_pull(&mut self, link: LinkId, at: Instant) {
        if let Some(state) = self.links.get_mut(&link) {
            state.want_pull(at);
        }
    }

    /// Whether another pull may begin.
    pub(crate) fn may_pull(&self) -> bool {
        self.links.values().filter(|link| link.ask.is_some()).count() < MOST_PULLS
    }

    /// Begins the pulls that are due, as many as may run.
    pub(crate) fn begin_pulls(&mut self) {
        let due = |at: Instant| at <= self.now;
        let due = self.links.iter().filter(|(_, state)| state.pull_due().is_some_and(due));
        let mut due: Vec<(Instant, LinkId)> =
            due.filter_map(|(link, state)| Some((state.pull_at?, *link))).collect();
        // The pull that has waited longest begins first.
        due.sort_unstable();
        for (_, link) in due {
            if !self.may_pull() {
                return;
            }
            self.begin_pull(link);
        }
    }

    fn begin_pull(&mut self, link: LinkId) {
        let is_lacking = self.is_lacking(link);
        let Some(state) = self.links.get_mut(&link) else { return };
        state.pull_at = None;
        if !is_lacking {
            return;
        }
        self.pulls += 1;
        state.ask = Some(Ask {
            id: self.pulls,
            next: 0,
            heard: self.now,
            keys: BTreeSet::new(),
            refused: false,
            retired_hash: self.knowledge.retired_hash(),
        });
        let is_stale = std::mem::take(&mut state.is_list_stale);
        let shown = state.shown.as_ref().map(|shown| shown.retired).filter(|_| !is_stale);
        let hash = self.knowledge.retired_hash();
        let retired = self.knowledge.retired();
        let pull = Pull {
            id: self.pulls,
            of: state.incarnation,
            context: self.knowledge.context(),
            retired_hash: hash,
            retired: (shown != Some(hash))
                .then(|| retired.iter().map(|(i, seen)| (i, seen.clone())).collect()),
        };
        self.send(link, Message::Pull(pull));
    }

    pub(crate) fn on_batch(&mut self, link: LinkId, batch: Batch) {
        let Some(ask) = self.links.get_mut(&link).and_then(|state| state.ask.as_mut()) else {
            return;
        };
        if ask.id != batch.id || batch.number < ask.next {
            // Of an earlier pull, or received twice.
            return;
        }
        let keys = batch.keys.into_iter().chain(batch.entries.iter().map(|(key, _)| key.clone()));
        ask.keys.extend(keys);
        if batch.number > ask.next || ask.keys.len() > MOST_KEYS {
            return self.begin_again(link);
        }
        ask.next += 1;
        ask.heard = self.now;
        for (key, entry) in &batch.entries {
            let is_taken = self.take(link, key, entry, By::Pull);
            self.note_refusal(link, !is_taken);
        }
        match batch.last {
            Some(last) => self.end_pull(link, &last),
            None => self.go_on(link, batch.id, batch.number),
        }
    }

    fn note_refusal(&mut self, link: LinkId, is_refused: bool) {
        if let Some(ask) = self.links.get_mut(&link).and_then(|state| state.ask.as_mut()) {
            ask.refused |= is_refused;
        }
    }

    fn go_on(&mut self, link: LinkId, id: u64, batch: u32) {
        if !self.config.rules.whole_pulls {
            self.join_early(link);
        }
        self.send(link, Message::More { id, batch });
    }

    /// For the simulator's tests: the fault that the rule `whole_pulls` prevents.
    fn join_early(&mut self, link: LinkId) {
        let shown = self.links.get(&link).and_then(|link| link.shown.as_ref());
        let Some(context) = shown.map(|shown| shown.context.clone()) else { return };
        for (incarnation, seen) in context.iter() {
            self.knowledge.join(incarnation, seen);
            self.note_changed(incarnation);
        }
    }

    pub(crate) fn on_cut(&mut self, link: LinkId, id: u64) {
        let ask = self.links.get(&link).and_then(|state| state.ask.as_ref());
        if ask.is_some_and(|ask| ask.id == id) {
            self.begin_again(link);
        }
        if let Some(state) = self.links.get_mut(&link) {
            state.is_list_stale = true;
        }
    }

    /// Gives up a pull whose next batch does not come.
    pub(crate) fn give_up_late(&mut self, link: LinkId) {
        let ask = self.links.get(&link).and_then(|state| state.ask.as_ref());
        if ask.is_some_and(|ask| ask.deadline() <= self.now) {
            self.begin_again(link);
        }
    }

    /// Ends a pull that was cut off, and plans another. The entries that it brought are noted, so
    /// they are not sent again.
    fn begin_again(&mut self, link: LinkId) {
        let at = self.now + self.random.between(AGAIN_AFTER[0], AGAIN_AFTER[1]);
        if let Some(state) = self.links.get_mut(&link) {
            state.ask = None;
            state.want_pull(at);
        }
    }

    fn end_pull(&mut self, link: LinkId, last: &Last) {
        let Some(state) = self.links.get_mut(&link) else { return };
        let Some(ask) = state.ask.take() else { return };
        if ask.retired_hash != self.knowledge.retired_hash() {
            // The answer refers to another list of retired incarnations.
            return self.begin_again(link);
        }
        let refused = ask.refused;
        state.hinted.clear();
        let full = self.full_after(last);
        let rest_until = (refused || full.is_some()).then_some(self.now + REST);
        if let Some(state) = self.links.get_mut(&link) {
            state.rest_until = rest_until;
        }
        full.into_iter().for_each(|bound| self.notice_full(bound));
        if rest_until.is_some() {
            return;
        }
        self.note_shown(link, last);
        if let Some(noted) = &last.listed {
            self.drop_unlisted(&ask.keys, last, noted);
        }
        self.join(link, last);
    }

    /// The bound that joining would exceed.
    fn full_after(&self, last: &Last) -> Option<&'static str> {
        let new = last.retired.iter().filter(|it| self.knowledge.get(it.incarnation).is_none());
        let (in_use, new): (Vec<_>, Vec<_>) = new.partition(|it| self.is_in_use(it.incarnation));
        let limits = &self.config.limits;
        let unretired = self.knowledge.unretired_after(&last.context) + in_use.len();
        if unretired > limits.incarnations {
            return Some("incarnations");
        }
        let retired = self.knowledge.retired_count() + new.len();
        (retired > limits.retired).then_some("retired incarnations")
    }

    fn note_shown(&mut self, link: LinkId, last: &Last) {
        let at_s = self.elapsed_s();
        let Some(state) = self.links.get_mut(&link) else { return };
        let retired = state.shown.as_ref().map_or(0, |shown| shown.retired);
        state.shown = Some(Shown { context: last.context.clone(), retired });
        let claim = Claim { incarnation: state.incarnation, at_s, context: last.context.clone() };
        self.claims.note(&state.node.clone(), claim);
    }

    /// Drops the objects that the member has noted and does not have: they were deleted, and it has
    /// dropped their tombstones. `noted` is the member's context when it began its list of keys.
    /// Tombstones are dropped as well: a tombstone of an earlier life would keep the key in this
    /// member's own list of keys.
    fn drop_unlisted(&mut self, keys: &BTreeSet<Key>, last: &Last, noted: &Context) {
        let is_gone = |key: &Key, entry: &Entry| {
            !keys.contains(key)
                && [entry.dot, entry.birth].iter().any(|dot| self.is_noted_there(last, noted, *dot))
        };
        let held = self.table.all_held().map(|(key, entry)| (Layer::Held, key, entry));
        let present = self.table.entries().map(|(key, entry)| (Layer::Present, key, entry));
        let gone = held.chain(present).filter(|(_, key, entry)| is_gone(key, entry));
        let gone: Vec<(Layer, Key, Arc<Entry>)> =
            gone.map(|(layer, key, entry)| (layer, key.clone(), entry.clone())).collect();
        for (layer, key, entry) in &gone {
            self.put(*layer, key, None);
            if entry.dead {
                self.raise_floor(entry.dot);
            }
        }
        if !gone.is_empty() {
            self.cut_answers();
        }
    }

    /// Whether the answering member had noted a write.
    fn is_noted_there(&self, last: &Last, noted: &Context, dot: Dot) -> bool {
        let Dot { incarnation, counter } = dot;
        let mut handed = last.retired.iter().filter(|retired| retired.incarnation == incarnation);
        let is_like_here =
            self.knowledge.is_retired(incarnation) && !last.unlike.contains(&incarnation);
        noted.has(dot)
            || handed.any(|retired| retired.seen.has(counter))
            || is_like_here && self.knowledge.has(dot)
    }

    /// Notes all writes that the member has noted. This is right only at the end of a pull, when
    /// every entry that stands for one of these writes was taken in. If contexts were joined with
    /// each batch and the pull broke off, the entries of the missing batches would count as deleted
    /// here and be lost everywhere.
    fn join(&mut self, link: LinkId, last: &Last) {
        for (incarnation, seen) in last.context.iter() {
            self.join_one(link, incarnation, seen);
        }
        for dot in &last.floors.0 {
            self.join_floor(*dot);
        }
        // The known ones come last: they need no room, since they may stay as they are.
        let (known, new): (Vec<&Retired>, Vec<&Retired>) =
            last.retired.iter().partition(|it| self.knowledge.get(it.incarnation).is_some());
        for retired in new.into_iter().chain(known) {
            self.join_retired(link, retired);
        }
    }

    fn join_floor(&mut self, dot: Dot) {
        if self.knowledge.raise_floor(dot.incarnation, dot.counter) {
            self.note_changed(dot.incarnation);
            self.cut_answers();
        }
    }

    /// Takes in an incarnation that the other member retired. It is retired here as well if no
    /// further write of it was noted and no member writes under it.
    fn join_retired(&mut self, link: LinkId, retired: &Retired) {
        let incarnation = retired.incarnation;
        self.join_one(link, incarnation, &retired.seen);
        self.join_floor(Dot::new(incarnation, retired.floor));
        let is_same =
            self.knowledge.get(incarnation).is_some_and(|record| record.seen == retired.seen);
        let has_room = self.knowledge.retired_count() < self.config.limits.retired;
        if is_same && has_room && !self.is_in_use(incarnation) {
            self.retire(incarnation);
        }
    }

    fn join_one(&mut self, link: LinkId, incarnation: crate::Incarnation, seen: &crate::Seen) {
        let record = self.knowledge.get(incarnation);
        let is_new = record.is_none_or(|record| record.seen.lacks(seen, u64::MAX));
        if is_new {
            self.knowledge.join(incarnation, seen);
            self.note_changed(incarnation);
            self.last_noted.insert(incarnation, self.elapsed_s());
            self.plan_hints(link, incarnation);
        }
    }
}
