//! Fetches hash trees and pieces from several peers at once.
//!
//! Trees come first. Then the plan decides which piece is requested from which peer. Nothing here
//! waits: requests are queued, and the writer reports the pieces that came.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use models::{
    Arrival, ArrivalError, Manifest, PieceId, Plan,
    plan::{Event, Verdict},
    tree::{piece_len, pieces},
};
use protocol::mesh::{
    ClusterMessage,
    cluster::{ModelPieceRequest, ModelTreeRequest},
};
use tokio::time::Instant;

use super::{Failure, Job, inbox::MAX_SOURCES, slices::Key};
use crate::{link::Link, peer::PeerId, transfer::shared::Counters};

/// The most trees that are requested from one peer at a time.
const TREES_AT_ONCE: usize = 4;

/// How long a peer may take to send a tree before it is dropped.
const TREE_WITHIN: Duration = Duration::from_secs(60);

/// The most pieces that are requested with one message.
const MAX_RUN: u32 = 64;

/// A model that is being fetched from several peers.
pub(super) struct Fetch {
    pub(super) manifest: Arc<Manifest>,
    pub(super) arrival: Arc<Arrival>,
    job: Arc<Job>,
    sources: BTreeMap<PeerId, Arc<Link>>,
    /// All peers that are or were sources.
    former: BTreeSet<PeerId>,
    trees: Trees,
    plan: Option<Plan<PeerId>>,
    began: Instant,
    /// The peers that have sent wrong bytes. The caller must empty it.
    pub(super) banned: Vec<PeerId>,
}

/// The hash trees that have not arrived yet.
#[derive(Default)]
struct Trees {
    missing: VecDeque<u32>,
    /// The requested trees: from which peer, and when.
    requested: BTreeMap<u32, (PeerId, Instant)>,
}

impl Fetch {
    pub(super) fn new(job: Arc<Job>, manifest: Arc<Manifest>, arrival: Arc<Arrival>) -> Self {
        let missing = arrival.files_without_tree().into();
        Self {
            manifest,
            arrival,
            job,
            sources: BTreeMap::new(),
            former: BTreeSet::new(),
            trees: Trees { missing, requested: BTreeMap::new() },
            plan: None,
            began: Instant::now(),
            banned: Vec::new(),
        }
    }

    /// The peers that are sources now.
    pub(super) fn peers(&self) -> Vec<String> {
        self.sources.keys().map(PeerId::to_string).collect()
    }

    /// The links to the sources.
    pub(super) fn links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.sources.values()
    }

    /// Whether it has no source.
    pub(super) fn is_alone(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether this peer is a source over this link. Also true if there is no room for another
    /// source.
    pub(super) fn has(&self, peer: &PeerId, link: Option<u64>) -> bool {
        match self.sources.get(peer) {
            Some(source) => link.is_none_or(|link| source.number == link),
            None => self.sources.len() >= MAX_SOURCES,
        }
    }

    /// Whether hash trees are still missing.
    pub(super) fn wants_trees(&self) -> bool {
        !self.trees.missing.is_empty() || !self.trees.requested.is_empty()
    }

    /// Whether everything has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::is_done)
    }

    /// Makes a peer that has these files a source.
    pub(super) fn join(&mut self, link: Arc<Link>) {
        if self.has(&link.peer, Some(link.number)) || link.is_closed() {
            return;
        }
        self.leave(&link.peer.clone());
        let now = self.now();
        if let Some(plan) = &mut self.plan
            && plan.handle(now, Event::Joined(link.peer.clone())) == Verdict::Dropped
        {
            return self.banned.push(link.peer.clone());
        }
        tracing::info!(model = %self.job.model, peer = %link.peer.short(), "a peer sends a model");
        self.former.insert(link.peer.clone());
        self.sources.insert(link.peer.clone(), link);
    }

    /// Whether this peer is or was a source.
    pub(super) fn had(&self, peer: &PeerId) -> bool {
        self.former.contains(peer)
    }

    /// Removes a peer from the sources. What it has not sent is requested from others.
    pub(super) fn leave(&mut self, peer: &PeerId) {
        let Some(link) = self.sources.remove(peer) else { return };
        self.job.inbox.forget(link.number);
        self.trees.give_back(peer);
        let now = self.now();
        if let Some(plan) = &mut self.plan {
            plan.handle(now, Event::Left(peer.clone()));
        }
    }

    /// Removes the source that has this link.
    pub(super) fn leave_link(&mut self, number: u64) {
        let over = |link: &&Arc<Link>| link.number == number;
        if let Some(peer) = self.sources.values().find(over).map(|link| link.peer.clone()) {
            self.leave(&peer);
        }
    }

    /// Handles the writer's report: a piece or a tree was written, or was wrong.
    pub(super) fn written(
        &mut self,
        from: &PeerId,
        key: Key,
        result: Result<bool, ArrivalError>,
        counts: &Counters,
    ) -> Result<(), Failure> {
        match (key, result) {
            (Key::Tree(file), Ok(_)) => self.trees.done(file),
            (Key::Data(piece), Ok(_)) => {
                self.happened(Event::Arrived(from.clone(), piece));
            }
            (Key::Data(piece), Err(ArrivalError::Corrupt { .. })) => {
                counts.corrupt.one();
                tracing::warn!(model = %self.job.model, peer = %from.short(), file = piece.file, piece = piece.piece, "a piece was wrong");
                if self.happened(Event::Corrupt(from.clone(), piece)) == Verdict::Dropped {
                    self.ban(from);
                }
            }
            (Key::Tree(_), Err(ArrivalError::Tree { file })) => {
                counts.corrupt.one();
                tracing::warn!(model = %self.job.model, peer = %from.short(), %file, "a hash tree was wrong");
                self.ban(from);
            }
            (_, Err(error)) => return Err(Failure::of(&error)),
        }
        Ok(())
    }

    /// Requests everything that may be requested now.
    pub(super) fn request(&mut self) {
        if self.wants_trees() {
            return self.request_trees();
        }
        let (now, missing) = (self.now(), &self.arrival);
        let plan = self.plan.get_or_insert_with(|| {
            let mut plan = Plan::new(missing.missing());
            for peer in self.sources.keys() {
                plan.handle(now, Event::Joined(peer.clone()));
            }
            plan
        });
        for (peer, link) in &self.sources {
            let wanted: Vec<_> = std::iter::from_fn(|| plan.next_for(now, peer)).collect();
            request_pieces(&self.job, &self.manifest, link, &wanted);
        }
    }

    /// Removes the sources that do not answer, or whose links have ended.
    pub(super) fn check_sources(&mut self) {
        let now = self.now();
        let mut gone = self.plan.as_mut().map(|plan| plan.handle_timeout(now)).unwrap_or_default();
        let late = self.trees.requested.values().filter(|(_, at)| at.elapsed() >= TREE_WITHIN);
        gone.extend(late.map(|(peer, _)| peer.clone()));
        let closed = self.sources.values().filter(|link| link.is_closed());
        gone.extend(closed.map(|link| link.peer.clone()));
        gone.iter().for_each(|peer| self.leave(peer));
    }

    fn ban(&mut self, peer: &PeerId) {
        self.leave(peer);
        self.banned.push(peer.clone());
    }

    fn happened(&mut self, event: Event<PeerId>) -> Verdict {
        let now = self.now();
        self.plan.as_mut().map_or(Verdict::Noted, |plan| plan.handle(now, event))
    }

    fn request_trees(&mut self) {
        while let Some(file) = self.trees.missing.front().copied() {
            // It is requested from the source with the fewest requests.
            let load = |link: &&Arc<Link>| self.trees.load(&link.peer);
            let Some(link) = self.sources.values().min_by_key(load) else { return };
            if self.trees.load(&link.peer) >= TREES_AT_ONCE {
                return;
            }
            self.trees.missing.pop_front();
            self.trees.requested.insert(file, (link.peer.clone(), Instant::now()));
            let size = self.manifest.files().get(file as usize).map_or(0, |file| file.size);
            // A manifest has at most 2^23 pieces.
            self.job.inbox.expect(link.number, Key::Tree(file), pieces(size) as u32 * 32);
            let (transfer_id, model_id) = (self.job.id.clone(), self.job.model.to_string());
            let request = ModelTreeRequest { transfer_id, model_id, file };
            // If the link is closed, the source is removed soon.
            let _ = link.tell(&ClusterMessage::ModelTreeRequest(request));
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Trees {
    fn load(&self, peer: &PeerId) -> usize {
        self.requested.values().filter(|(from, _)| from == peer).count()
    }

    fn done(&mut self, file: u32) {
        self.requested.remove(&file);
        self.missing.retain(|missing| *missing != file);
    }

    fn give_back(&mut self, peer: &PeerId) {
        let of_peer =
            |(file, (from, _)): (&u32, &(PeerId, Instant))| (from == peer).then_some(*file);
        let back: Vec<u32> = self.requested.iter().filter_map(of_peer).collect();
        for file in back {
            self.requested.remove(&file);
            self.missing.push_front(file);
        }
    }
}

/// Requests these pieces. Consecutive pieces are requested in one message.
fn request_pieces(job: &Job, manifest: &Manifest, link: &Link, wanted: &[PieceId]) {
    for piece in wanted {
        let size = manifest.files().get(piece.file as usize).map_or(0, |file| file.size);
        // It fits, since it is one piece at most.
        let length = piece_len(size, piece.piece.into()) as u32;
        job.inbox.expect(link.number, Key::Data(*piece), length);
    }
    for (first, count) in runs(wanted) {
        let request = ModelPieceRequest {
            transfer_id: job.id.clone(),
            model_id: job.model.to_string(),
            file: first.file,
            first: first.piece,
            count,
        };
        // If the link is closed, the source is removed soon.
        let _ = link.tell(&ClusterMessage::ModelPieceRequest(request));
    }
}

/// The runs of consecutive pieces: the first piece, and the number of pieces.
fn runs(pieces: &[PieceId]) -> Vec<(PieceId, u32)> {
    let mut runs: Vec<(PieceId, u32)> = Vec::new();
    for piece in pieces {
        match runs.last_mut() {
            Some((first, count))
                if first.file == piece.file
                    && first.piece.checked_add(*count) == Some(piece.piece)
                    && *count < MAX_RUN =>
            {
                *count += 1;
            }
            _ => runs.push((*piece, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_follow_each_other_are_requested_together() {
        let piece = |file, piece| PieceId { file, piece };
        let pieces = [piece(0, 4), piece(0, 5), piece(0, 7), piece(1, 8), piece(1, 9)];
        let expected = [(piece(0, 4), 2), (piece(0, 7), 1), (piece(1, 8), 2)];
        assert_eq!(runs(&pieces), expected);
        let many: Vec<_> = (0..MAX_RUN + 1).map(|it| piece(0, it)).collect();
        assert_eq!(runs(&many), [(piece(0, 0), MAX_RUN), (piece(0, MAX_RUN), 1)]);
    }
}
