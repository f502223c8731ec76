//! The usage of a turn. Its events are the protocol's [`AgentEvent`]s.
//!
//! [`AgentEvent`]: protocol::workspace::AgentEvent

use serde::{Deserialize, Serialize};

/// The usage of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that the model read, those from its cache included.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// The cost in US dollars, where the agent reports it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The sum of two usages. Its cost is unknown only if neither of them has a cost.
    pub(crate) fn and(self, more: Self) -> Self {
        let costs = [self.cost_usd, more.cost_usd];
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cost_usd: costs.into_iter().flatten().reduce(|one, other| one + other),
        }
    }

    /// The usage since `self`, where `self` and `total` are totals of one count. If `total` is smaller
    /// than `self`, the count has started again, and `total` itself is the usage. The cost is always that
    /// of `total`.
    pub(crate) fn until(self, total: Self) -> Self {
        let restarted =
            total.input_tokens < self.input_tokens || total.output_tokens < self.output_tokens;
        let before = if restarted { Self::default() } else { self };
        Self {
            input_tokens: total.input_tokens - before.input_tokens,
            output_tokens: total.output_tokens - before.output_tokens,
            cost_usd: total.cost_usd,
        }
    }
}
