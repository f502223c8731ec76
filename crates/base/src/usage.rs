//! By what usage is summed up.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

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
