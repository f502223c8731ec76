//! Costs that grow with the number of keys, models, workers and waiting jobs.
//!
//! - [`dispatch`]: the dispatcher alone
//! - [`server`]: a whole server
//! - `fleet`: workers and their models; `spread`: times of microseconds

pub(super) mod dispatch;
mod fleet;
pub(super) mod server;
mod spread;

/// Keys, each with the same share of the jobs.
const KEYS: usize = 10_000;

const MODELS: usize = 200;

/// Jobs that a worker takes at once.
const SLOTS: u32 = 4;
