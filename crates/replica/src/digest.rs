//! Links, and the digests and hints by which members show each other what they have noted.

use std::time::{Duration, Instant};

use crate::{
    claims::Claim,
    clock::NOTABLE,
    dot::{Dot, Incarnation},
    entry::{Entry, Key, NodeId},
    input::LinkId,
    link::{Link, Shown},
    message::{ClaimOf, Digest, LargestDots, MOST_MEMBERS, Message},
    notice::Notice,
    replica::Replica,
    take::By,
};

/// The time between two digests of a link, spread so that members do not send all at once.
const DIGEST_EVERY: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];
/// The time between two digests that say what is known of other members.
const FULL_EVERY: Duration = Duration::from_secs(60);
/// How long new dots are gathered before a hint names them.
const HINT_AFTER: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(40)];
/// How long a missing write may take to come before it is pulled. Messages of several links
/// overtake each other.
const HOLE_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(150)];
/// The most incarnations of one hint. With more, a digest is not longer than the hint would be.
const MOST_NEWS: usize = 64;
/// The greatest age of a claim that is believed, in seconds: ten years.
const OLDEST_S: u32 = 10 * 365 * 24 * 3600;

impl Replica {
    pub(crate) fn link_up(&mut self, link: LinkId, node: NodeId, incarnation: Incarnation) {
        if self.links.len() < MOST_MEMBERS {
            self.links.insert(link, Link::new(node, incarnation, self.now));
            self.send_digest(link);
        }
    }

    pub(crate) fn link_down(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.clock.forget(link);
        self.outbox.forget(link);
        // Without links the next look at tombstones comes later.
        self.tidy_at = None;
    }

    /// When something is due at a link, and what.
    pub(crate) fn link_deadlines<'a>(
        &'a self,
        link: &'a Link,
    ) -> impl Iterator<Item = (Instant, &'static str)> + 'a {
        let hint = link.hint_at.map(|at| (at, "a hint"));
        let pull = self.may_pull().then(|| link.pull_due()).flatten().map(|at| (at, "a pull"));
        let ask = link.ask.as_ref().map(|ask| (ask.deadline(), "the answer to a pull"));
        [Some((link.digest_at, "a digest")), hint, pull, ask].into_iter().flatten()
    }

    /// Does what is due at each link.
    pub(crate) fn tick_links(&mut self) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.give_up_late(link);
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
            let Some(state) = self.links.get(&link) else { continue };
            let (digest, hint) = (due(Some(state.digest_at)), due(state.hint_at));
            if digest {
                self.send_digest(link);
            } else if hint {
                self.send_hint(link);
            }
        }
    }

    /// Sends a digest. Once a minute it also says what is known of other members.
    fn send_digest(&mut self, link: LinkId) {
        let next = self.now + self.random.between(DIGEST_EVERY[0], DIGEST_EVERY[1]);
        let (now, incarnation) = (self.now, self.incarnation);
        let Some(state) = self.links.get_mut(&link) else { return };
        let is_full = state.full_at <= now;
        state.digest_at = next;
        state.news.clear();
        state.hint_at = None;
        if is_full {
            state.full_at = now + FULL_EVERY;
        }
        let digest = Digest {
            incarnation,
            wall_us: u64::try_from(self.wall.as_micros()).unwrap_or_default(),
            context: self.knowledge.context(),
            retired: self.knowledge.retired_hash(),
            print: self.table.print().total(),
            count: self.table.print().count(),
            links: self.links.values().map(|link| link.incarnation).collect(),
            claims: if is_full { self.claims_of_others(link) } else { Vec::new() },
        };
        self.send(link, Message::Digest(digest.into()));
    }

    fn claims_of_others(&self, link: LinkId) -> Vec<ClaimOf> {
        let receiver = self.links.get(&link).map(|link| &link.node);
        let others = self.claims.iter().filter(|(node, _)| Some(*node) != receiver);
        let claim = |(node, claim): (&NodeId, &Claim)| ClaimOf {
            node: node.clone(),
            incarnation: claim.incarnation,
            age_s: u32::try_from(self.elapsed_s() - claim.at_s).unwrap_or(OLDEST_S),
            context: (!self.knowledge.is(&claim.context)).then(|| claim.context.clone()),
        };
        others.map(claim).collect()
    }

    fn send_hint(&mut self, link: LinkId) {
        let Some(state) = self.links.get_mut(&link) else { return };
        let news = std::mem::take(&mut state.news);
        state.hint_at = None;
        if news.len() > MOST_NEWS {
            return self.send_digest(link);
        }
        let dots = news.into_iter().map(|(incarnation, counter)| Dot::new(incarnation, counter));
        self.send(link, Message::Hint(LargestDots(dots.collect())));
    }

    /// Plans hints about a write of `incarnation` that came over the link `from`, so that members
    /// without a link to the writer learn of it soon. In a full mesh of links no hints are needed.
    pub(crate) fn plan_hints(&mut self, from: LinkId, incarnation: Incarnation) {
        let max = self.knowledge.get(incarnation).map_or(0, |record| record.seen.max());
        let at = self.now + self.random.between(HINT_AFTER[0], HINT_AFTER[1]);
        for (link, state) in &mut self.links {
            let has_heard = *link == from
                || state.incarnation == incarnation
                || state.neighbours.contains(&incarnation);
            if !has_heard {
                state.news.insert(incarnation, max);
                state.hint_at.get_or_insert(at);
            }
        }
    }

    pub(crate) fn on_digest(&mut self, link: LinkId, digest: Digest) {
        let Some(state) = self.links.get_mut(&link) else { return };
        if state.incarnation != digest.incarnation {
            // This is from an earlier start of that member. The current incarnation was given when
            // the link came up.
            return;
        }
        let node = state.node.clone();
        state.neighbours = digest.links.into_iter().collect();
        state.shown = Some(Shown { context: digest.context.clone(), retired: digest.retired });
        self.clock.note(link, Duration::from_micros(digest.wall_us), self.now);
        self.notice_clock();
        self.note_claims(&digest.context, digest.claims);
        let (incarnation, at_s) = (digest.incarnation, self.elapsed_s());
        self.claims.note(&node, Claim { incarnation, at_s, context: digest.context });
        self.take_back_used();
        if self.is_lacking(link) {
            self.want_pull(link, self.now);
        } else {
            self.check_print(link, digest.print);
        }
    }

    /// Takes incarnations off the list of retired ones if members write under them.
    fn take_back_used(&mut self) {
        if self.knowledge.retired_count() == 0 {
            return;
        }
        let retired = self.knowledge.iter().filter(|(_, record)| record.retired);
        let used = retired.map(|(i, _)| i).filter(|i| self.is_in_use(*i));
        let used: Vec<Incarnation> = used.collect();
        used.into_iter().for_each(|incarnation| self.take_back(incarnation));
    }

    fn notice_clock(&mut self) {
        let by = self.clock.error(self.now, self.wall);
        if by > NOTABLE {
            self.notice(Notice::Clock { by: Duration::ZERO }, Notice::Clock { by });
        }
    }

    fn note_claims(&mut self, senders: &crate::Context, claims: Vec<ClaimOf>) {
        for claim in claims {
            if claim.node == self.config.node {
                continue;
            }
            let at_s = self.elapsed_s() - i64::from(claim.age_s.min(OLDEST_S));
            let context = claim.context.unwrap_or_else(|| senders.clone());
            self.claims.note(&claim.node, Claim { incarnation: claim.incarnation, at_s, context });
        }
    }

    pub(crate) fn on_hint(&mut self, link: LinkId, dots: &LargestDots) {
        let Some(state) = self.links.get_mut(&link) else { return };
        for dot in dots.0.iter().take(MOST_NEWS) {
            let max = state.hinted.entry(dot.incarnation).or_default();
            *max = dot.counter.max(*max);
        }
        if self.is_lacking(link) {
            self.want_pull(link, self.now);
        }
    }

    /// Takes in a write of the sender. If an earlier write of the same incarnation is missing, it
    /// is soon pulled from the sender, which has all its own writes.
    pub(crate) fn on_delta(&mut self, link: LinkId, key: &Key, entry: &std::sync::Arc<Entry>) {
        let is_taken = self.take(link, key, entry, By::Delta);
        let Dot { incarnation, counter } = entry.dot;
        let wait = self.random.between(HOLE_AFTER[0], HOLE_AFTER[1]);
        let has_gap = self.has_gap(incarnation, counter);
        let Some(state) = self.links.get_mut(&link) else { return };
        if state.incarnation == incarnation && has_gap {
            state.hinted.insert(incarnation, counter);
            state.want_pull(self.now + wait);
        }
        if !is_taken {
            state.hinted.remove(&incarnation);
        }
    }

    /// Whether a write up to this counter is not noted.
    fn has_gap(&self, incarnation: Incarnation, counter: u64) -> bool {
        match self.knowledge.get(incarnation) {
            Some(record) => !record.seen.gaps(counter).is_empty(),
            None => true,
        }
    }

    /// Whether the linked member has shown a write that is not noted here, or another list of
    /// retired incarnations.
    pub(crate) fn is_lacking(&self, link: LinkId) -> bool {
        let Some(state) = self.links.get(&link) else { return false };
        let shown = state.shown.as_ref();
        state.hinted.iter().any(|(incarnation, counter)| self.has_gap(*incarnation, *counter))
            || shown.is_some_and(|shown| {
                shown.retired != self.knowledge.retired_hash()
                    || self.knowledge.lacks(&shown.context)
            })
    }
}
