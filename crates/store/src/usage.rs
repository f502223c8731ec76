//! The ledger: one row for each job that ended, never changed, without any content.

use std::sync::Arc;

use base::{Endpoint, JobId, KeyId, ModelName, UsageBy};

use crate::StoreError;

/// The most rows that one question is answered with.
pub const MAX_GROUPS: usize = 10_000;

/// A job that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageEntry {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its id.
    pub job: JobId,
    /// Whom it is counted for.
    pub key: KeyId,
    /// The model that was asked for.
    pub model: ModelName,
    /// The model that it was last asked of, where that is another.
    pub served_model: Option<ModelName>,
    /// The name of the last provider that had it.
    pub provider: Option<Arc<str>>,
    /// What was asked.
    pub endpoint: Endpoint,
    /// How it ended, in one word: `answered`, `client_gone`, or what went wrong.
    pub outcome: &'static str,
    /// The answer's HTTP status, if it was answered to its end.
    pub status: Option<u16>,
    /// Tokens read.
    pub prompt_tokens: Option<u64>,
    /// Tokens written.
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
}

/// What is asked about the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// What ended at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// What ended before this time, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// Of this key only.
    pub key: Option<String>,
    /// Of this model only.
    pub model: Option<String>,
    /// Of the providers of this name only.
    pub provider: Option<String>,
    /// What the sums are told apart by, each at most once.
    pub by: Vec<UsageBy>,
}

/// Sums over jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// How many jobs.
    pub requests: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Jobs whose tokens are estimated, or partly so.
    pub estimated: u64,
    /// Jobs that failed. One whose client left did not.
    pub errors: u64,
}

/// Sums over the jobs that have something in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageGroup {
    /// What they have in common, in the order of [`UsageQuery::by`]. A provider that is not known
    /// is empty, a day is `YYYY-MM-DD`.
    pub names: Vec<String>,
    /// Their sums.
    pub sums: UsageSums,
}

/// The answer to a [`UsageQuery`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageAnswer {
    /// The groups with the most tokens first; [`MAX_GROUPS`] at most. None when nothing is told
    /// apart.
    pub groups: Vec<UsageGroup>,
    /// Whether there are more groups than that.
    pub truncated: bool,
    /// The sums over all groups.
    pub totals: UsageSums,
}

/// Where the ledger is kept.
pub trait UsageStore: Send + Sync {
    /// Adds jobs, all or none.
    ///
    /// # Errors
    /// When they cannot be written.
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError>;

    /// Answers a question.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError>;

    /// Forgets jobs that ended before a time, in milliseconds since 1970: so many at most, so that
    /// nobody waits long for it. How many it were.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is changed.
    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError>;
}

impl UsageSums {
    /// Tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Those of one job.
    pub(crate) fn of(entry: &UsageEntry) -> Self {
        Self {
            requests: 1,
            prompt_tokens: entry.prompt_tokens.unwrap_or(0),
            completion_tokens: entry.completion_tokens.unwrap_or(0),
            estimated: u64::from(entry.estimated),
            errors: u64::from(!is_well(entry.outcome)),
        }
    }

    /// These and others.
    #[must_use]
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            estimated: self.estimated + other.estimated,
            errors: self.errors + other.errors,
        }
    }
}

/// The outcome of most jobs, in [`UsageEntry::outcome`].
pub(crate) const ANSWERED: &str = "answered";

/// Whether this is how a job ends that did not fail.
fn is_well(outcome: &str) -> bool {
    matches!(outcome, ANSWERED | "client_gone")
}
