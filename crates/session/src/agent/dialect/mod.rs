//! Dialects: the arguments, output and input of each kind of agent.
//!
//! - `contract`: the trait [`Dialect`], of which each running session has its own; [`AgentOutput`]:
//!   the meaning of a line of output
//! - [`open`]: a dialect by its provider's name; [`KNOWN`]: the names, and how to install the
//!   programs; [`interactive`]: the same programs for a person at a terminal
//! - `claude`, `codex`, `gemini`, `opencode`: one kind of program each; `run`: code shared by the
//!   last three
//! - `acp`: any program that speaks the Agent Client Protocol
//! - `started`: the tool uses that have begun
//! - `json`, `words`: read JSON lines and text that the programs print

mod acp;
mod claude;
mod codex;
pub(crate) mod contract;
mod gemini;
mod json;
mod opencode;
mod providers;
mod run;
mod started;
#[cfg(test)]
mod tests;
pub(crate) mod words;

pub use self::{
    acp::AcpCommand,
    contract::{AgentOutput, Decision, Dialect, Halt, ParsedLine, Start, TurnResult},
    providers::{BuiltIn, KNOWN, interactive, known, open},
};
