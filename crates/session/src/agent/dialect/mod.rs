//! Dialects: the arguments, output and input of each kind of agent.
//!
//! - `contract`: what a dialect is; [`Dialect`]: one running session's; [`AgentOutput`]: what a line of it means
//! - [`open`]: a dialect by its provider's name; [`KNOWN`]: the names, and how to install them;
//!   [`interactive`]: the same programs for a person at a terminal
//! - `claude`, `codex`, `gemini`, `opencode`: one kind of program each; `run`: what the last three share
//! - `acp`: any program that speaks the Agent Client Protocol
//! - `json`, `words`: looking into what they say

mod acp;
mod claude;
mod codex;
pub(crate) mod contract;
mod gemini;
mod json;
mod known;
mod opencode;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod words;

pub use self::{
    acp::AcpCommand,
    contract::{AgentOutput, Decision, Dialect, Halt, ParsedLine, Start, TurnResult},
    known::{BuiltIn, KNOWN, interactive, known, open},
};
