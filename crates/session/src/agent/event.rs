//! What an agent does, said the same for all dialects.

use serde_json::Value;

/// Something that an agent did.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It was given a prompt.
    TurnStarted {
        /// The turn's number in this session, from 1.
        turn: u64,
    },
    /// It said something.
    Text {
        /// What.
        text: String,
        /// Whether this goes on where the last text ended, rather than being whole. A text that
        /// came in pieces does not come whole again.
        delta: bool,
    },
    /// It thought something.
    Thinking {
        /// What.
        text: String,
    },
    /// It began to use a tool.
    ToolStarted {
        /// Of this use.
        id: String,
        /// The tool's.
        name: String,
        /// What the tool was given.
        input: Value,
    },
    /// A tool was done.
    ToolFinished {
        /// As in [`Event::ToolStarted`].
        id: String,
        /// Whether it went well.
        ok: bool,
        /// What came out.
        output: String,
    },
    /// Something that people should know.
    Notice {
        /// What.
        message: String,
    },
    /// The turn is over.
    TurnEnded {
        /// Its number.
        turn: u64,
        /// How it ended.
        outcome: Outcome,
        /// What went wrong.
        error: Option<String>,
        /// The agent's final answer.
        text: Option<String>,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The agent was done.
    Completed,
    /// Somebody ended it.
    Interrupted,
    /// Something went wrong.
    Failed,
}

/// What a turn took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens that the model read, those from its cache included.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// In US dollars, where the agent says it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// What `total` has more than `self`. A total that is smaller than what was known is of a
    /// count that began anew, and taken whole.
    pub(crate) fn until(self, total: Self) -> Self {
        let anew =
            total.input_tokens < self.input_tokens || total.output_tokens < self.output_tokens;
        let before = if anew { Self::default() } else { self };
        Self {
            input_tokens: total.input_tokens - before.input_tokens,
            output_tokens: total.output_tokens - before.output_tokens,
            cost_usd: total.cost_usd,
        }
    }
}
