//! Usage: by what it is summed up, and the counts.

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
}
