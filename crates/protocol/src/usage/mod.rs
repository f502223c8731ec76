//! Token counts, read from a side copy of an answer while it is forwarded unchanged.
//!
//! - `reported`: the counts that an answer reports
//! - `generated`: counts of the generated text, for answers that report nothing or break off
//! - `silent`: the part of a stream's line that the count can skip
//! - `estimate`: an estimate of the tokens of a prompt or a text
//! - `counter`: all of these together, for one answer

mod counter;
mod estimate;
mod generated;
#[cfg(test)]
mod reference;
mod reported;
mod silent;

pub use base::JobUsage as Usage;
pub use counter::AnswerCounter;
pub use estimate::{IMAGE_TOKENS, Tally, estimate_tokens, prompt_tokens};
pub use generated::GeneratedCounter;
pub use reported::{MAX_OBJECT, UsageScanner};
