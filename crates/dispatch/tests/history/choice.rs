//! The provider that a new job goes to if several are free.

use base::{JobId, ModelName, ProviderId};
use dispatch::{Distance, Route};

use super::{
    known::{JobRecord, Peer},
    oracle::Oracle,
    rules::{Verdict, ensure},
};

impl Oracle {
    /// A job that did not wait goes to the nearest that is free for it, on most routes, and to one
    /// that serves its own shape rather than another. Where one of these is another machine, to one
    /// of the fastest; sometimes to one that is not, or of which nothing is known. Among what is
    /// left, to one that can begin soonest, and among these to the smallest share in use.
    pub(crate) fn check_choice(&mut self, id: JobId, by: ProviderId) -> Verdict {
        if self.is_unsure() {
            // Whether that one was free is not known, nor who was left out for it.
            self.left_out = None;
            return Ok(());
        }
        let (job, chosen) = self.pair(id, by)?;
        let model = &job.spec.model;
        let free: Vec<_> = self.peers.iter().filter(|peer| self.may_take(peer, job)).collect();
        let near = self.near_and_native(job, free);
        let in_house = |peer: &&Peer| peer.offer.distance <= Distance::Fellow;
        if near.len() < 2 || near.iter().all(in_house) {
            return self.check_share(model, nearest(near), chosen);
        }
        if near.iter().any(|peer| is_unseen(peer)) {
            let unseen = near.into_iter().filter(|peer| is_unseen(peer)).collect();
            return self.check_share(model, nearest(unseen), chosen);
        }
        let best = near.iter().filter_map(|peer| pace(peer)).max();
        let fast = |peer: &&Peer| match (pace(peer), best) {
            (Some(pace), Some(best)) => pace * 10 >= best * 8,
            (None, Some(_)) => self.held_by(peer.id).is_empty(),
            _ => true,
        };
        let (fast, slow): (Vec<_>, Vec<_>) = near.into_iter().partition(fast);
        if slow.is_empty() {
            return self.check_share(model, nearest(fast), chosen);
        }
        let longest = slow.iter().min_by_key(|peer| (peer.last_given, peer.id));
        let tried = longest.is_some_and(|peer| peer.id == by);
        let (turn, every) = (self.left_out.map(|count| count + 1), self.config.try_slow_every);
        let as_due = turn.is_none_or(|turn| tried == (turn >= every));
        ensure(as_due, || format!("{by} at turn {turn:?}: {tried}"))?;
        if !tried {
            self.check_share(model, nearest(fast), chosen)?;
        }
        self.narrowed += 1;
        self.tried += u64::from(tried);
        self.left_out = if tried { Some(0) } else { turn };
        Ok(())
    }

    fn near_and_native<'a>(&self, job: &JobRecord, mut free: Vec<&'a Peer>) -> Vec<&'a Peer> {
        if job.spec.route != Route::Mesh {
            free = nearest(free);
        }
        let native = |peer: &&Peer| peer.offer.endpoints.contains(job.spec.endpoint);
        if free.iter().any(native) {
            free.retain(native);
        }
        free
    }

    fn check_share(&self, model: &ModelName, among: Vec<&Peer>, chosen: &Peer) -> Verdict {
        let mut among = among;
        let start = |peer: &Peer| peer.start(self.now, model);
        let soonest = among.iter().map(|peer| start(peer)).min();
        among.retain(|peer| Some(start(peer)) == soonest);
        let share = |peer: &Peer| f64::from(self.occupied(peer)) / f64::from(peer.capacity());
        let is_among = among.iter().any(|peer| peer.id == chosen.id);
        ensure(is_among, || format!("{chosen:?} is not among {among:?}"))?;
        let better = among.into_iter().find(|other| share(other) < share(chosen));
        ensure(better.is_none(), || format!("{better:?} has more room than {chosen:?}"))
    }
}

fn nearest(peers: Vec<&Peer>) -> Vec<&Peer> {
    let nearest = peers.iter().map(|peer| peer.offer.distance).min();
    peers.into_iter().filter(|peer| Some(peer.offer.distance) == nearest).collect()
}

fn is_unseen(peer: &Peer) -> bool {
    peer.speed().is_none() && peer.last_given == 0
}

fn pace(peer: &Peer) -> Option<u64> {
    peer.speed().map(|speed| u64::from(speed) * u64::from(peer.throttle))
}
