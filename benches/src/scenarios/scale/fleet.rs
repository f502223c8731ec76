//! Workers, and which of the models each of them offers.

use super::MODELS;

/// A number of workers of the same sort.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    pub(super) name: &'static str,
    pub(super) workers: u64,
    /// The models that each offers.
    pub(super) each: usize,
    /// Those of them that it has in memory.
    pub(super) in_memory: usize,
}

impl Fleet {
    /// Each offers a tenth of the models; then all of them; then all, of which it has ten in memory.
    pub(super) const ALL: [Self; 5] = [
        Self::of("10 workers", 10, MODELS / 10, MODELS),
        Self::of("100 workers", 100, MODELS / 10, MODELS),
        Self::of("500 workers", 500, MODELS / 10, MODELS),
        Self::of("500, all models", 500, MODELS, MODELS),
        Self::of("500, on disk", 500, MODELS, 10),
    ];

    const fn of(name: &'static str, workers: u64, each: usize, in_memory: usize) -> Self {
        Self { name, workers, each, in_memory }
    }

    /// How much further the models of a worker begin than those of the one before.
    pub(super) const fn step(self) -> usize {
        if self.each < MODELS / 10 { self.each } else { MODELS / 10 }
    }

    /// The models of a worker, by number: the first of them are those in memory. All together offer all.
    pub(super) fn models_of(self, worker: u64) -> impl Iterator<Item = usize> {
        let first = worker as usize * self.step();
        (0..self.each).map(move |number| (first + number) % MODELS)
    }
}
