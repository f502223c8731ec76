//! Usage: the tokens of one job, by what it is summed up, and the counts.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Money;

/// One thing that usage is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageBy {
    /// The key it is counted for.
    Key,
    /// The model that was asked for.
    Model,
    /// The name of the provider that answered.
    Provider,
    /// The path that was asked.
    Api,
    /// The day on which it ended, in UTC.
    Day,
}

impl UsageBy {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Key, Self::Model, Self::Provider, Self::Api, Self::Day];

    /// Its name, as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Api => "api",
            Self::Day => "day",
        }
    }
}

impl fmt::Display for UsageBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UsageBy {
    type Err = NotADimension;

    fn from_str(text: &str) -> Result<Self, NotADimension> {
        Self::ALL.into_iter().find(|by| by.as_str() == text).ok_or(NotADimension)
    }
}

/// A word that names no dimension of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotADimension;

impl fmt::Display for NotADimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected key, model, provider, api or day")
    }
}

impl std::error::Error for NotADimension {}

/// The counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCounts {
    /// Requests that ended.
    pub requests: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Those requests whose tokens are estimated, or partly so.
    pub estimated: u64,
    /// The failed requests. A request whose client left does not count.
    pub errors: u64,
    /// Their cost. Requests to models without a price cost nothing.
    #[serde(default)]
    pub cost: Money,
}

impl UsageCounts {
    /// The names of the counts, without the cost, in the order of [`UsageCounts::values`].
    pub const NAMES: [&'static str; 6] =
        ["requests", "prompt_tokens", "completion_tokens", "total_tokens", "estimated", "errors"];

    /// The counts, in the order of [`UsageCounts::NAMES`].
    pub fn values(&self) -> [u64; 6] {
        [
            self.requests,
            self.prompt_tokens,
            self.completion_tokens,
            self.total_tokens,
            self.estimated,
            self.errors,
        ]
    }

    /// The counts of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            estimated: self.estimated + other.estimated,
            errors: self.errors + other.errors,
            cost: self.cost.plus(other.cost),
        }
    }
}

/// The tokens used by one job, as far as known.
/// An explicit zero is a count. Servers of a fleet send it in the order of its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobUsage {
    /// Whether some of it is estimated, here or by the provider.
    pub estimated: bool,
    /// Tokens of the prompt (`prompt_tokens` or `input_tokens`).
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer (`completion_tokens` or `output_tokens`).
    pub completion_tokens: Option<u64>,
    /// Those tokens of the prompt that the provider read from its cache, as far as it says so.
    pub cached_tokens: Option<u64>,
}

impl JobUsage {
    /// This usage, with unknown counts filled in from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            estimated: self.estimated || (self.lacks(other) && other.estimated),
            prompt_tokens: self.prompt_tokens.or(other.prompt_tokens),
            completion_tokens: self.completion_tokens.or(other.completion_tokens),
            cached_tokens: self.cached_tokens.or(other.cached_tokens),
        }
    }

    /// The usage of an answer of which this is the rest: its prompt was the first one's and what was delivered.
    #[must_use]
    pub fn after(self, delivered: u64) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.map(|count| count.saturating_sub(delivered)),
            completion_tokens: self.completion_tokens.map(|count| count.saturating_add(delivered)),
            ..self
        }
    }

    /// Whether every count is known.
    pub fn is_whole(self) -> bool {
        self.prompt_tokens.is_some() && self.completion_tokens.is_some()
    }

    /// Whether `other` knows a count that this one does not.
    fn lacks(self, other: Self) -> bool {
        let lacks = |this: Option<u64>, other: Option<u64>| this.is_none() && other.is_some();
        lacks(self.prompt_tokens, other.prompt_tokens)
            || lacks(self.completion_tokens, other.completion_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_what_they_show() {
        for by in UsageBy::ALL {
            assert_eq!(by.to_string().parse(), Ok(by));
        }
        assert_eq!("week".parse::<UsageBy>(), Err(NotADimension));
    }

    fn usage(estimated: bool, prompt: Option<u64>, completion: Option<u64>) -> JobUsage {
        JobUsage {
            estimated,
            prompt_tokens: prompt,
            completion_tokens: completion,
            ..JobUsage::default()
        }
    }

    #[test]
    fn known_counts_win_over_reported_ones() {
        let told = usage(false, Some(7), None);
        assert_eq!(told.or(usage(false, Some(1), Some(2))), usage(false, Some(7), Some(2)));
        assert_eq!(JobUsage::default().or(told), told);
        assert_eq!(told.or(JobUsage::default()), told);
    }

    #[test]
    fn an_estimate_marks_only_what_it_adds_to() {
        let whole = usage(false, Some(7), Some(3));
        let guess = usage(true, Some(1), Some(2));
        assert_eq!(whole.or(guess), whole);
        assert_eq!(usage(false, Some(7), None).or(guess), usage(true, Some(7), Some(2)));
        let empty_guess = usage(true, None, None);
        assert_eq!(usage(false, Some(7), None).or(empty_guess), usage(false, Some(7), None));
        assert_eq!(guess.or(whole), guess, "an estimate stays one");
    }
}
