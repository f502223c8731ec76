//! The rights and limits of a key, the same in the store, on the wire and where they are enforced.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    ResumeAnswers,
    money::{Money, MoneyBudget},
};

/// A right that a key gives its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyScope {
    /// Use models.
    Inference,
    /// Lend models: relay workers and model nodes.
    Worker,
    /// See the workspace: sessions and their output, files, changes.
    #[serde(rename = "workspace:read")]
    WorkspaceRead,
    /// Use the workspace: type, run, write. Keys of before there were roles say `workspace`.
    #[serde(rename = "workspace:write", alias = "workspace")]
    WorkspaceWrite,
    /// Use the workspace, and say where projects lie and whose processes they run.
    #[serde(rename = "workspace:admin")]
    WorkspaceAdmin,
    /// Be a peer of the mesh.
    Peer,
    /// Administer the server, its keys included.
    Admin,
    /// Read `/metrics`.
    Metrics,
    /// Make rooms, from other machines too.
    Rooms,
}

impl KeyScope {
    /// All there are.
    pub const ALL: [Self; 9] = [
        Self::Inference,
        Self::Worker,
        Self::WorkspaceRead,
        Self::WorkspaceWrite,
        Self::WorkspaceAdmin,
        Self::Peer,
        Self::Admin,
        Self::Metrics,
        Self::Rooms,
    ];

    /// Its name, as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Worker => "worker",
            Self::WorkspaceRead => "workspace:read",
            Self::WorkspaceWrite => "workspace:write",
            Self::WorkspaceAdmin => "workspace:admin",
            Self::Peer => "peer",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
            Self::Rooms => "rooms",
        }
    }
}

/// The span of time that a budget is for; both are the calendar's, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

impl Period {
    /// Its name, as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// Tokens that may be used in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, read and written together.
    pub tokens: u64,
    /// In each of these.
    pub per: Period,
}

/// How much may be done with a key. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyLimits {
    /// Requests a minute.
    pub rpm: Option<u32>,
    /// Tokens a minute, read and written together.
    pub tpm: Option<u64>,
    /// Requests at the same time.
    pub concurrent: Option<u32>,
    /// Tokens a day or a month.
    pub budget: Option<Budget>,
    /// Money a day or a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_money: Option<MoneyBudget>,
    /// Whether its requests go to no cloud.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_cloud: bool,
    /// Whether its streamed answers are resumed when their provider is lost; `None`: as for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_answers: Option<ResumeAnswers>,
}

impl KeyLimits {
    /// Whether there is no limit at all.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The name of a limit that is zero and so lets nothing through; revoking says that better.
    pub fn zero(&self) -> Option<&'static str> {
        let zeros = [
            ("rpm", self.rpm == Some(0)),
            ("tpm", self.tpm == Some(0)),
            ("concurrent", self.concurrent == Some(0)),
            ("budget", self.budget.is_some_and(|budget| budget.tokens == 0)),
            ("budget", self.budget_money.is_some_and(|budget| budget.amount == Money(0))),
        ];
        zeros.into_iter().find(|(_, zero)| *zero).map(|(name, _)| name)
    }
}

/// The kind that a text does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotA(&'static str);

impl fmt::Display for NotA {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for NotA {}

impl FromStr for KeyScope {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        let found = found.or((text == "workspace").then_some(Self::WorkspaceWrite));
        found.ok_or(NotA(
            "inference, worker, workspace:read, workspace:write, workspace:admin, peer, admin, \
             metrics or rooms",
        ))
    }
}

impl FromStr for Period {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let found = [Self::Day, Self::Month].into_iter().find(|period| period.as_str() == text);
        found.ok_or(NotA("day or month"))
    }
}

/// `N/day` or `N/month`.
impl FromStr for Budget {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let bad = NotA("TOKENS/day or TOKENS/month");
        let (tokens, per) = text.split_once('/').ok_or_else(|| bad.clone())?;
        let (tokens, per) = (tokens.trim().parse(), per.trim().parse());
        Ok(Self { tokens: tokens.map_err(|_| bad.clone())?, per: per.map_err(|_| bad)? })
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tokens, self.per.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_budgets_read_back_what_they_show() {
        for scope in KeyScope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        for per in [Period::Day, Period::Month] {
            let budget = Budget { tokens: 5_000, per };
            assert_eq!(budget.to_string().parse(), Ok(budget));
        }
    }

    #[test]
    fn a_malformed_budget_is_refused() {
        for text in ["", "5", "5/", "/day", "-1/day", "5/week", "5/day/month"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_named() {
        assert_eq!(KeyLimits { tpm: Some(0), ..KeyLimits::default() }.zero(), Some("tpm"));
        assert_eq!(KeyLimits { rpm: Some(1), ..KeyLimits::default() }.zero(), None);
        assert!(KeyLimits::default().is_unlimited());
    }
}
