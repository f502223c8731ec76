//! The connected providers, and who serves which model.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use base::{Endpoints, ModelName, ProviderId, Scope};

use crate::{
    distance::Distance,
    input::Unloaded,
    job::Demand,
    provider::{Provider, Standing, distinct},
};

/// The index of a provider in `slots`, as long as it is connected.
type Slot = u32;

/// The connected providers. The driver's links bound their number.
///
/// Where many serve a model, each job looks at them all. So providers lie side by side in memory,
/// the list of a model names their slots, and one bit for each slot says whether its provider is
/// open. Full providers cost next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    slots: Vec<Option<Provider>>,
    unused: Vec<Slot>,
    by_id: BTreeMap<ProviderId, Slot>,
    /// The providers of each model, in the order of their ids; those that offer `*` are only listed
    /// under `*`.
    serving: BTreeMap<Scope, BTreeMap<ModelName, Vec<(ProviderId, Slot)>>>,
    /// The providers that may be given a job now, as bits by slot.
    open: Vec<u64>,
    /// Providers at rest or on trial.
    limited: BTreeSet<ProviderId>,
    /// Providers that do not have all their models in memory.
    unloaded: BTreeSet<ProviderId>,
    /// Providers of fellows.
    borrowed: BTreeSet<ProviderId>,
}

impl Providers {
    /// Adds a provider that is not connected yet.
    pub(crate) fn insert(&mut self, id: ProviderId, provider: Provider) {
        let standing = provider.standing();
        if provider.borrowed {
            self.borrowed.insert(id);
        }
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // There are fewer links than ports, so this number fits.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.slots[slot as usize] = Some(provider);
        self.by_id.insert(id, slot);
        self.note(id, slot, standing);
        self.list(id, slot);
    }

    pub(crate) fn remove(&mut self, id: ProviderId) -> Option<Provider> {
        let slot = *self.by_id.get(&id)?;
        // Before the provider is removed, since its own models say where it is listed.
        self.unlist(id, slot);
        self.by_id.remove(&id);
        self.borrowed.remove(&id);
        self.note(id, slot, Standing::default());
        let provider = self.slots[slot as usize].take();
        self.unused.push(slot);
        if self.by_id.is_empty() {
            // Frees the memory that a crowd of providers used.
            *self = Self::default();
        }
        provider
    }

    /// Changes a connected provider, and updates the notes about it. Returns what `change` returns.
    pub(crate) fn change<T>(
        &mut self,
        id: ProviderId,
        change: impl FnOnce(&mut Provider) -> T,
    ) -> Option<T> {
        let slot = *self.by_id.get(&id)?;
        let provider = self.slots[slot as usize].as_mut()?;
        let before = provider.standing();
        let result = change(provider);
        let after = provider.standing();
        // Most changes leave the notes as they are, and each update is a look-up in two sets.
        if before != after {
            self.note(id, slot, after);
        }
        Some(result)
    }

    pub(crate) fn set_models(&mut self, id: ProviderId, models: Vec<ModelName>) {
        let Some(&slot) = self.by_id.get(&id) else { return };
        // The provider is unlisted by its old models and listed by the new ones.
        self.unlist(id, slot);
        if let Some(provider) = &mut self.slots[slot as usize] {
            provider.models = distinct(models);
        }
        self.list(id, slot);
    }

    /// Records which models the provider does not have in memory. Returns whether it is connected.
    pub(crate) fn set_unloaded(
        &mut self,
        now: Instant,
        id: ProviderId,
        models: Vec<Unloaded>,
    ) -> bool {
        self.change(id, |provider| provider.unloaded.report(now, models)).is_some()
    }

    /// Records that a provider has a model in memory. Returns whether that is news.
    pub(crate) fn note_loaded(&mut self, id: ProviderId, model: &ModelName) -> bool {
        self.change(id, |provider| provider.unloaded.answers(model)).unwrap_or(false)
    }

    pub(crate) fn get(&self, id: ProviderId) -> Option<&Provider> {
        self.at(*self.by_id.get(&id)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProviderId, &Provider)> {
        self.by_id.iter().filter_map(|(id, slot)| Some((*id, self.at(*slot)?)))
    }

    pub(crate) fn ids(&self) -> Vec<ProviderId> {
        self.by_id.keys().copied().collect()
    }

    /// Whether every provider has all its models in memory, as far as it says.
    pub(crate) fn all_loaded(&self) -> bool {
        self.unloaded.is_empty()
    }

    /// The providers that may be given a job now, and would have to load some models first.
    pub(crate) fn open_with_unloaded(&self) -> Vec<ProviderId> {
        let open = self
            .unloaded
            .iter()
            .filter(|id| self.by_id.get(id).is_some_and(|slot| self.is_open(*slot)));
        open.copied().collect()
    }

    pub(crate) fn limited(&self) -> Vec<ProviderId> {
        self.limited.iter().copied().collect()
    }

    /// The providers of fellows, by id.
    pub(crate) fn borrowed(&self) -> impl Iterator<Item = (ProviderId, &Provider)> {
        self.borrowed.iter().filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// The models of the scope that a provider serves by name and without a drain, sorted.
    /// O(models) if few drain.
    pub(crate) fn models(&self, scope: &Scope) -> impl Iterator<Item = &ModelName> {
        let named = self.serving.get(scope).into_iter().flatten();
        let stays = |slot: &Slot| self.at(*slot).is_some_and(|provider| !provider.is_draining());
        let served = named.filter(move |(model, listed)| {
            !model.is_wildcard() && listed.iter().any(|(_, slot)| stays(slot))
        });
        served.map(|(model, _)| model)
    }

    /// All providers of the model in the scope, including draining and resting ones.
    pub(crate) fn of(
        &self,
        scope: &Scope,
        model: &ModelName,
    ) -> impl Iterator<Item = (ProviderId, &Provider)> {
        self.listed(scope, model).filter_map(|(id, slot)| Some((*id, self.at(*slot)?)))
    }

    /// All providers that may get this job, now or when they are free and rested.
    pub(crate) fn able<'a>(
        &'a self,
        demand: Demand<'a>,
    ) -> impl Iterator<Item = (ProviderId, &'a Provider)> {
        self.fitting(demand).filter(|(_, provider)| !provider.is_out())
    }

    /// This provider, if it is one of the able ones.
    pub(crate) fn able_one(&self, demand: Demand<'_>, id: ProviderId) -> Option<&Provider> {
        let of_job = |it: &&Provider| it.scope == demand.job.spec.scope && it.serves(demand.model);
        let able = |it: &&Provider| !it.is_draining() && demand.fits(id, it) && !it.is_out();
        self.get(id).filter(of_job).filter(able)
    }

    /// All able providers, and those whose backend is away: they may get the job to see whether the
    /// backend is back.
    fn fitting<'a>(
        &'a self,
        demand: Demand<'a>,
    ) -> impl Iterator<Item = (ProviderId, &'a Provider)> {
        self.of(&demand.job.spec.scope, demand.model)
            .filter(move |(id, provider)| !provider.is_draining() && demand.fits(*id, provider))
    }

    /// The providers that have a free slot for the job now, whatever their health.
    pub(crate) fn open_to<'a>(
        &'a self,
        demand: Demand<'a>,
    ) -> impl Iterator<Item = (ProviderId, &'a Provider)> {
        let listed = self.listed(&demand.job.spec.scope, demand.model);
        let open = listed.filter(|(_, slot)| self.is_open(*slot));
        let open = open.filter_map(|(id, slot)| Some((*id, self.at(*slot)?)));
        open.filter(move |(id, provider)| demand.fits(*id, provider))
    }

    /// Whether to ignore rests and trials, because no healthy provider may get the job.
    pub(crate) fn only_limited(&self, demand: Demand<'_>) -> bool {
        !self.able(demand).any(|(_, provider)| provider.health.is_healthy())
    }

    /// Whether healthy providers together cover this one: for each shape that it serves, one of
    /// them serves the model in it, takes jobs at least as large, and takes them from at least as
    /// far. O(providers of the model) at most; it ends once all shapes are covered.
    pub(crate) fn covered(&self, limited: &Provider, model: &ModelName) -> bool {
        let others = self.of(&limited.scope, model).map(|(_, provider)| provider);
        let mut healthy = others.filter(|other| {
            other.health.is_healthy()
                && !other.is_out()
                && other.max_size >= limited.max_size
                && reaches_more(other.distance, limited.distance)
        });
        let mut shapes = Endpoints::NONE;
        limited.endpoints.is_within(shapes)
            || healthy.any(|other| {
                shapes = shapes.union(other.endpoints);
                limited.endpoints.is_within(shapes)
            })
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
            && self.slots.is_empty()
            && self.serving.is_empty()
            && self.limited.is_empty()
            && self.unloaded.is_empty()
            && self.borrowed.is_empty()
            && self.open.is_empty()
    }

    fn at(&self, slot: Slot) -> Option<&Provider> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn is_open(&self, slot: Slot) -> bool {
        let bits = self.open.get(slot as usize / 64).copied().unwrap_or_default();
        bits >> (slot % 64) & 1 == 1
    }

    fn note(&mut self, id: ProviderId, slot: Slot, standing: Standing) {
        let place = slot as usize / 64;
        if self.open.len() <= place {
            self.open.resize(place + 1, 0);
        }
        let bit = 1 << (slot % 64);
        match standing.open {
            true => self.open[place] |= bit,
            false => self.open[place] &= !bit,
        }
        put(&mut self.limited, id, standing.limited);
        put(&mut self.unloaded, id, standing.unloaded);
    }

    /// The providers that are listed for the model, by name or by `*`.
    fn listed(
        &self,
        scope: &Scope,
        model: &ModelName,
    ) -> impl Iterator<Item = &(ProviderId, Slot)> {
        let of_scope = self.serving.get(scope);
        let named = of_scope.and_then(|models| models.get(model));
        // A job for `*` itself has found them by name already. They must count once.
        let any = of_scope.filter(|_| !model.is_wildcard()).and_then(|models| models.get("*"));
        named.into_iter().chain(any).flatten()
    }

    fn list(&mut self, id: ProviderId, slot: Slot) {
        let Some(provider) = self.slots.get(slot as usize).and_then(Option::as_ref) else { return };
        let models = self.serving.entry(provider.scope.clone()).or_default();
        for model in provider.listed_models() {
            let listed = models.entry(model.clone()).or_default();
            if let Err(place) = listed.binary_search(&(id, slot)) {
                listed.insert(place, (id, slot));
            }
        }
    }

    fn unlist(&mut self, id: ProviderId, slot: Slot) {
        let Some(provider) = self.slots.get(slot as usize).and_then(Option::as_ref) else { return };
        let Some(models) = self.serving.get_mut(&provider.scope) else { return };
        for model in provider.listed_models() {
            if let Some(listed) = models.get_mut(model) {
                listed.retain(|(other, _)| *other != id);
                if listed.is_empty() {
                    models.remove(model);
                }
            }
        }
        if models.is_empty() {
            self.serving.remove(&provider.scope);
        }
    }
}

fn put(set: &mut BTreeSet<ProviderId>, id: ProviderId, belongs: bool) {
    match belongs {
        true => set.insert(id),
        false => set.remove(&id),
    };
}

/// Whether all jobs that may go to a provider at the second distance may go to one at the first.
fn reaches_more(first: Distance, second: Distance) -> bool {
    let is_cloud = |distance| distance == Distance::Cloud;
    is_cloud(first) == is_cloud(second) && (first.is_in_house() || !second.is_in_house())
}
