//! Slots that are lent to fellows, and fellows' providers of which slots are borrowed.

use base::ProviderId;
use dispatch::{Dispatcher, Ending};

use super::{
    known::{JobRecord, JobState, Peer, Standing},
    oracle::Oracle,
    rules::{Verdict, ensure},
};

impl Oracle {
    /// The slots of a provider that own jobs cannot have.
    pub(crate) fn occupied(&self, peer: &Peer) -> u32 {
        self.load(peer) + peer.lent.saturating_sub(self.lent_jobs(peer))
    }

    /// Lends `slots` from now on; more than before only if they are free.
    pub(crate) fn lend(&mut self, id: ProviderId, slots: u32) {
        let Some(peer) = self.peer(id) else { return };
        let most = peer.lent + self.lendable(peer);
        if let Some(peer) = self.peer_mut(id) {
            peer.lent = slots.min(most);
        }
    }

    /// A fellow's job has a slot now, or ends.
    pub(crate) fn take_lent(&mut self, mut job: JobRecord) {
        let id = job.spec.id;
        if self.stopping {
            self.owe_end(id, Ending::ShuttingDown);
        } else if self.somebody_may_take(&job) {
            job.place = JobState::AtTheDoor;
            self.jobs.insert(id, job);
            self.lent += 1;
        } else {
            self.owe_end(id, Ending::NotLent);
            self.not_lent += 1;
        }
    }

    pub(crate) fn has_lent_slot(&self, peer: &Peer, job: &JobRecord) -> bool {
        let spec = &job.spec;
        let fits = peer.serves(&spec.scope, &spec.model)
            && spec.size <= peer.offer.max_size
            && spec.serve_as.iter().any(|shape| peer.offer.endpoints.contains(shape))
            && !job.avoided.contains(&peer.id);
        let is_it = spec.pinned == Some(peer.id) && !peer.offer.borrowed;
        !self.stopping && self.has_free_lent_slot(peer) && fits && is_it
    }

    pub(crate) fn has_free_lent_slot(&self, peer: &Peer) -> bool {
        let free = self.lent_jobs(peer) < peer.lent && self.load(peer) < peer.capacity();
        free && peer.throttle > 0 && peer.may_be_tried() && !peer.is_out()
    }

    /// Compares the lent and the wanted slots of each provider.
    pub(crate) fn check_lending(&self, dispatcher: &Dispatcher) -> Verdict {
        let waiting = self.jobs.values().filter(|job| job.spec.lent).find(|job| !is_held(job));
        ensure(waiting.is_none(), || format!("{waiting:?} is a fellow's, and waits"))?;
        let lacking: Vec<_> = self.peers.iter().filter(|peer| self.lacks_a_slot(peer)).collect();
        for peer in &self.peers {
            let view = dispatcher.provider(peer.id).ok_or("an unknown provider")?;
            let told = (view.lent, view.lent_jobs, view.borrowed, view.max_concurrent);
            let own = (peer.lent, self.lent_jobs(peer), peer.offer.borrowed, peer.capacity());
            ensure(told == own, || format!("{view:?} is not {peer:?}"))?;
            ensure(own.1 == 0 || !own.2, || format!("{peer:?} is a fellow's, and has its jobs"))?;
            if peer.standing != Standing::Unsure {
                let (told, own) = (dispatcher.lendable(peer.id), self.lendable(peer));
                ensure(told == own, || format!("{told}, not {own}, may be lent of {peer:?}"))?;
                let is_short = lacking.iter().any(|other| other.id == peer.id);
                let own = if is_short { self.waiting_for(peer).min(peer.capacity()) } else { 0 };
                let told = dispatcher.short(peer.id);
                ensure(told == own, || format!("{told}, not {own}, wait for {peer:?}"))?;
            }
        }
        self.check_wants(dispatcher, &lacking)
    }

    fn check_wants(&self, dispatcher: &Dispatcher, lacking: &[&Peer]) -> Verdict {
        if self.peers.iter().any(|peer| peer.standing == Standing::Unsure) {
            return Ok(());
        }
        let wants = dispatcher.wants(self.now);
        let mut borrowed: Vec<_> = self.peers.iter().filter(|peer| peer.offer.borrowed).collect();
        borrowed.sort_by_key(|peer| peer.id);
        let ids: Vec<_> = wants.iter().map(|(id, _)| *id).collect();
        let own: Vec<_> = borrowed.iter().map(|peer| peer.id).collect();
        ensure(ids == own, || format!("{ids:?} are not {own:?}"))?;
        for (peer, (_, count)) in borrowed.iter().zip(&wants) {
            let lacks = lacking.iter().any(|other| other.id == peer.id);
            let most = if lacks { self.waiting_for(peer) } else { 0 };
            ensure(*count <= most, || format!("{count} want {peer:?}, of {most}"))?;
        }
        let lacking = lacking.iter().filter(|peer| peer.offer.borrowed);
        let able = |job: &JobRecord| lacking.clone().filter(|peer| peer.fits(job)).count();
        let all: usize = self.waiting().map(|job| able(job).min(2)).sum();
        let told: u32 = wants.iter().map(|(_, count)| count).sum();
        ensure(told as usize == all, || format!("{told} slots are wanted, not {all}: {wants:?}"))
    }

    fn lent_jobs(&self, peer: &Peer) -> u32 {
        let at_it =
            |job: &&JobRecord| matches!(job.place, JobState::Held(held) if held.by == peer.id);
        self.jobs.values().filter(|job| job.spec.lent).filter(at_it).count() as u32
    }

    fn lendable(&self, peer: &Peer) -> u32 {
        let awake = peer.throttle > 0 && peer.may_be_tried() && !peer.is_out();
        let open = awake && peer.standing == Standing::Healthy && !peer.offer.borrowed;
        if open && !self.stopping { peer.capacity().saturating_sub(self.occupied(peer)) } else { 0 }
    }

    fn waiting(&self) -> impl Iterator<Item = &JobRecord> {
        self.jobs.values().filter(|job| !is_held(job) && !self.stopping)
    }

    /// How many waiting jobs the provider could serve, were it free.
    fn waiting_for(&self, peer: &Peer) -> u32 {
        self.waiting().filter(|job| peer.fits(job)).count() as u32
    }

    fn lacks_a_slot(&self, peer: &Peer) -> bool {
        let awake = peer.throttle > 0 && peer.may_be_tried() && !peer.is_out();
        awake && peer.standing == Standing::Healthy && self.occupied(peer) >= peer.capacity()
    }
}

fn is_held(job: &JobRecord) -> bool {
    matches!(job.place, JobState::Held(_))
}
