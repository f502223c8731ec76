//! The ledger: one row for each job that ended, never changed, without any content.
//!
//! - `days`: the whole days that rows are summed up by

pub(crate) mod days;

use std::{borrow::Cow, sync::Arc};

use base::{Endpoint, JobId, KeyId, ModelName, Money, UsageBy, UsageCounts};

use crate::StoreError;

/// The most groups in one answer.
pub const MAX_GROUPS: usize = 10_000;

/// A job that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageEntry {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its id.
    pub job: JobId,
    /// The key that it is counted for.
    pub key: KeyId,
    /// The model that was asked for.
    pub model: ModelName,
    /// The model that served it, if that is another.
    pub served_model: Option<ModelName>,
    /// The name of the last provider that had it.
    pub provider: Option<Arc<str>>,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// How it ended, in one word: `answered`, `client_gone`, or an error.
    pub outcome: Cow<'static, str>,
    /// The answer's HTTP status, if it was answered to its end.
    pub status: Option<u16>,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    pub completion_tokens: Option<u64>,
    /// Whether any of the tokens are estimated.
    pub estimated: bool,
    /// From acceptance to the last assignment, in milliseconds.
    pub queue_ms: u64,
    /// From acceptance to the head of the answer, in milliseconds.
    pub first_byte_ms: Option<u64>,
    /// From acceptance to the end, in milliseconds.
    pub total_ms: u64,
    /// Whether a stream was asked for.
    pub streaming: bool,
    /// How often it was moved to another provider.
    pub requeues: u32,
    /// Its cost by the prices of that time, if the model had one.
    pub cost: Option<Money>,
    /// Where its answer broke off and another provider went on with it, as JSON: a list of objects. Each has the
    /// names of the two providers, `from` and `to`, and the `characters` that had passed. `to` is null where only the
    /// end was missing.
    pub resumes: Option<Arc<str>>,
}

/// A query of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Jobs that ended at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Jobs that ended before this time, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// Only jobs of this key.
    pub key: Option<String>,
    /// Only jobs of this model.
    pub model: Option<String>,
    /// Only jobs of the provider of this name.
    pub provider: Option<String>,
    /// The groupings, each at most once.
    pub by: Vec<UsageBy>,
}

/// Sums over a group of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageGroup {
    /// The names of the group, in the order of [`UsageQuery::by`]. An unknown provider
    /// is empty, and a day is `YYYY-MM-DD`.
    pub names: Vec<String>,
    /// The sums over the group.
    pub sums: UsageCounts,
}

/// The answer to a [`UsageQuery`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageAnswer {
    /// The groups with the most tokens first; [`MAX_GROUPS`] at most. Empty without a
    /// grouping.
    pub groups: Vec<UsageGroup>,
    /// Whether there are more groups than that.
    pub truncated: bool,
    /// The sums over all groups.
    pub totals: UsageCounts,
}

/// A store of the ledger.
pub trait UsageStore: Send + Sync {
    /// Adds jobs, all or none.
    ///
    /// # Errors
    /// When they cannot be written.
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError>;

    /// Answers a query.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError>;

    /// Deletes at most `most` jobs that ended before a time, in milliseconds since 1970, so that
    /// others wait only briefly. Returns their number.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError>;
}

impl UsageEntry {
    /// The counts of this job alone.
    pub(crate) fn counts(&self) -> UsageCounts {
        let prompt_tokens = self.prompt_tokens.unwrap_or(0);
        let completion_tokens = self.completion_tokens.unwrap_or(0);
        UsageCounts {
            requests: 1,
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            estimated: u64::from(self.estimated),
            errors: u64::from(!is_well(&self.outcome)),
            cost: self.cost.unwrap_or_default(),
        }
    }
}

/// The outcome of most jobs, in [`UsageEntry::outcome`].
pub(crate) const ANSWERED: &str = "answered";

/// Whether this outcome does not count as an error.
fn is_well(outcome: &str) -> bool {
    matches!(outcome, ANSWERED | "client_gone")
}
