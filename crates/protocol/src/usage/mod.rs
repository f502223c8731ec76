//! Token counts, read from a side copy of an answer while it is forwarded unchanged.
//!
//! - `reported`: the counts that an answer reports
//! - `generated`: counts of the generated text, for answers that report nothing or break off
//! - `silent`: what it need not read of a stream's line
//! - `prompt`: an estimate of a request's prompt tokens
//! - `estimate`: an estimate of the tokens of a text
//! - `counter`: all of these together, for one answer

mod counter;
mod estimate;
mod generated;
mod prompt;
#[cfg(test)]
mod reference;
mod reported;
mod silent;

pub use counter::AnswerCounter;
pub use estimate::{IMAGE_TOKENS, Tally, estimate_tokens};
pub use generated::GeneratedCounter;
pub use prompt::prompt_tokens;
pub use reported::{MAX_OBJECT, UsageScanner};

/// Token counts of an answer, as far as it reported them. An explicit zero is a count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt (`prompt_tokens` or `input_tokens`).
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer (`completion_tokens` or `output_tokens`).
    pub completion_tokens: Option<u64>,
    /// Those tokens of the prompt that were read from the server's cache, which cost less at most
    /// clouds.
    pub cached_tokens: Option<u64>,
}
