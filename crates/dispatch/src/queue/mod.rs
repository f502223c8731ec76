//! The queues: one for each scope and model with waiting jobs.

mod line;
mod outlooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use base::{JobId, KeyId, ModelName, ProviderId, Scope};

use crate::{config::Config, input::JobSpec, job::Job};

pub(crate) use line::{Line, MOST_COUNTED, Reach};
use outlooks::Outlooks;

/// The provider that a line waits for: any, or the pinned one.
type Pin = Option<ProviderId>;

/// All queues that hold a job.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: BTreeMap<(Scope, ModelName), Queue>,
    /// The lines of each scope and pin, the one whose next job is oldest first.
    heads: BTreeMap<(Scope, Pin), BTreeSet<(u64, ModelName)>>,
    /// The jobs that have fallbacks left.
    outlooks: Outlooks,
    jobs: usize,
    bytes: u64,
}

/// The jobs of one scope and model. Those pinned to a provider have a line of their own, so that
/// they do not block others.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    len: usize,
    by_key: BTreeMap<KeyId, usize>,
    lines: BTreeMap<Pin, Line>,
}

impl Queues {
    /// The number of waiting jobs.
    pub(crate) fn depth(&self) -> usize {
        self.jobs
    }

    /// Whether a new job may be added within all bounds.
    pub(crate) fn has_room(&self, spec: &JobSpec, config: &Config) -> bool {
        let bytes = self.bytes.checked_add(spec.size);
        let room = bytes.is_some_and(|bytes| bytes <= config.max_queued_bytes);
        let (len, of_key) = match self.get(&spec.scope, &spec.model) {
            Some(queue) => (queue.len, queue.by_key.get(&spec.key).copied().unwrap_or(0)),
            None if self.queues.len() >= config.max_queues => return false,
            None => (0, 0),
        };
        // A key that floods the queue is refused while others still find a place.
        room && len < config.max_queue_len && of_key < config.max_queue_len.div_ceil(2)
    }

    /// Adds a job: behind the other jobs of its key, or in front of all if it is being requeued.
    pub(crate) fn push(&mut self, job: &Job) {
        let (spec, seq) = (&job.spec, job.seq);
        self.change(spec, |queue| {
            queue.len += 1;
            *queue.by_key.entry(spec.key.clone()).or_default() += 1;
            let line = queue.lines.entry(spec.pinned).or_default();
            // A job that was at a provider has had its turn.
            match job.assigned {
                0 => line.push(seq, spec),
                _ => line.push_requeued(seq, spec),
            }
        });
        self.outlooks.add(job);
        self.jobs += 1;
        self.bytes = self.bytes.saturating_add(spec.size);
    }

    /// Takes out a job that leaves without being served.
    pub(crate) fn remove(&mut self, job: &Job) {
        self.take(job, Line::remove);
    }

    /// Takes out a job that is served now.
    pub(crate) fn serve(&mut self, job: &Job) {
        self.take(job, Line::serve);
    }

    /// The number of jobs that are before a waiting one in its line.
    pub(crate) fn ahead(&self, job: &Job) -> usize {
        let line = self.line(&job.spec.scope, &job.spec.model, job.spec.pinned);
        line.map_or(0, |line| line.ahead(job.seq, &job.spec))
    }

    /// The lines of this model; `*` stands for every model.
    pub(crate) fn lines_of<'a>(
        &'a self,
        scope: &Scope,
        model: &ModelName,
    ) -> impl Iterator<Item = &'a Line> + use<'a> {
        // All models of the scope follow the empty name.
        let first = (scope.clone(), if model.is_wildcard() { "".into() } else { model.clone() });
        let (scope, model) = (scope.clone(), model.clone());
        let queues = self.queues.range(first..).take_while(move |((other, name), _)| {
            *other == scope && (model.is_wildcard() || *name == model)
        });
        queues.flat_map(|(_, queue)| queue.lines.values())
    }

    /// The number of jobs that wait for the model.
    pub(crate) fn len(&self, scope: &Scope, model: &ModelName) -> usize {
        self.get(scope, model).map_or(0, |queue| queue.len)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Scope, &ModelName, &Queue)> {
        self.queues.iter().map(|((scope, model), queue)| (scope, model, queue))
    }

    pub(crate) fn line(&self, scope: &Scope, model: &ModelName, pin: Pin) -> Option<&Line> {
        self.get(scope, model)?.lines.get(&pin)
    }

    /// The number of lines that a provider of the scope might serve.
    pub(crate) fn lines(&self, scope: &Scope, provider: ProviderId) -> usize {
        let count = |pin| self.heads_of(scope, pin).map_or(0, BTreeSet::len);
        count(None) + count(Some(provider))
    }

    /// The lines that a provider of the scope might serve, the one whose next job is oldest first.
    pub(crate) fn oldest_first<'a>(
        &'a self,
        scope: &Scope,
        provider: ProviderId,
    ) -> impl Iterator<Item = (&'a ModelName, Pin)> {
        let pinned = Some(provider);
        let mut any = self.heads_of(scope, None).into_iter().flatten().peekable();
        let mut own = self.heads_of(scope, pinned).into_iter().flatten().peekable();
        iter::from_fn(move || match (any.peek(), own.peek()) {
            (Some((a, _)), Some((b, _))) if b < a => own.next().map(|(_, model)| (model, pinned)),
            (None, _) => own.next().map(|(_, model)| (model, pinned)),
            _ => any.next().map(|(_, model)| (model, None)),
        })
    }

    /// The lines of a scope that wait for any provider, the one whose next job is oldest first.
    pub(crate) fn unpinned(&self, scope: &Scope) -> impl Iterator<Item = (&ModelName, &Line)> {
        let heads = self.heads_of(scope, None).into_iter().flatten();
        heads.filter_map(move |(_, model)| Some((model, self.line(scope, model, None)?)))
    }

    /// All jobs that wait for this pinned provider.
    pub(crate) fn pinned_to(&self, scope: &Scope, provider: ProviderId) -> Vec<JobId> {
        let models = self.heads_of(scope, Some(provider)).into_iter().flatten();
        let lines = models.filter_map(|(_, model)| self.line(scope, model, Some(provider)));
        lines.flat_map(Line::all).collect()
    }

    /// The jobs with fallbacks left that may use one of these models, now or later, oldest first;
    /// `*` stands for every model. O(those jobs).
    pub(crate) fn with_fallbacks(&self, scope: &Scope, models: &BTreeSet<ModelName>) -> Vec<JobId> {
        self.outlooks.of(scope, models)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let maps = (self.queues.is_empty(), self.heads.is_empty(), self.outlooks.is_empty());
        maps == (true, true, true) && self.jobs == 0 && self.bytes == 0
    }

    fn get(&self, scope: &Scope, model: &ModelName) -> Option<&Queue> {
        self.queues.get(&(scope.clone(), model.clone()))
    }

    fn heads_of(&self, scope: &Scope, pin: Pin) -> Option<&BTreeSet<(u64, ModelName)>> {
        self.heads.get(&(scope.clone(), pin))
    }

    fn take(&mut self, job: &Job, how: fn(&mut Line, u64, &JobSpec)) {
        self.change(&job.spec, |queue| {
            if let Some(line) = queue.lines.get_mut(&job.spec.pinned) {
                how(line, job.seq, &job.spec);
            }
            queue.uncount(&job.spec);
        });
        self.outlooks.remove(job);
        self.jobs -= 1;
        self.bytes = self.bytes.saturating_sub(job.spec.size);
    }

    /// Changes the job's queue and updates the order of the lines.
    fn change(&mut self, spec: &JobSpec, change: impl FnOnce(&mut Queue)) {
        let name = (spec.scope.clone(), spec.model.clone());
        let queue = self.queues.entry(name.clone()).or_default();
        let before = queue.head(spec.pinned);
        change(queue);
        let after = queue.head(spec.pinned);
        if queue.len == 0 {
            self.queues.remove(&name);
        }
        if before != after {
            self.move_head(name, spec.pinned, before, after);
        }
    }

    fn move_head(
        &mut self,
        (scope, model): (Scope, ModelName),
        pin: Pin,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        let heads = self.heads.entry((scope.clone(), pin)).or_default();
        if let Some(seq) = before {
            heads.remove(&(seq, model.clone()));
        }
        if let Some(seq) = after {
            heads.insert((seq, model));
        }
        if heads.is_empty() {
            self.heads.remove(&(scope, pin));
        }
    }
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The job that was accepted first.
    pub(crate) fn oldest(&self) -> Option<JobId> {
        self.lines.values().filter_map(Line::oldest).min().map(|(_, job)| job)
    }

    fn head(&self, pin: Pin) -> Option<u64> {
        self.lines.get(&pin)?.head()
    }

    fn uncount(&mut self, spec: &JobSpec) {
        self.len -= 1;
        // Keys come and go. Counters at zero would be kept for ever.
        if let Some(count) = self.by_key.get_mut(&spec.key) {
            *count -= 1;
            if *count == 0 {
                self.by_key.remove(&spec.key);
            }
        }
        if self.lines.get(&spec.pinned).is_some_and(Line::is_empty) {
            self.lines.remove(&spec.pinned);
        }
    }
}
