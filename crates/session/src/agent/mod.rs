//! An agent: a command line program that takes prompts and works on them in turns.
//!
//! This module is pure: a driver starts the program, passes in its output and the time, and carries
//! out the outputs of the machine.
//!
//! - [`Turns`]: the machine of one agent session: one turn at a time, whatever happens
//! - [`Dialect`]: the command line, output and input of one kind of program; [`open`]: the dialect
//!   of a provider, by its name; [`interactive`]: the command line for a person at a terminal
//! - [`Settings`]: model, working directory, permissions, gateway and MCP servers of a session
//! - [`Line`]: a line of an agent's output; [`LineSplitter`]: the lines of a stream
//! - [`Launch`]: a command line and what goes with it
//! - [`Usage`]: the usage of a turn; its events are the protocol's

mod dialect;
mod launch;
mod line;
mod settings;
mod turns;
mod usage;

pub use dialect::{
    AcpCommand, AgentOutput, BuiltIn, Decision, Dialect, Halt, KNOWN, ParsedLine, Start,
    TurnResult, interactive, known, open,
};
pub use launch::{Exit, Launch, PrivateFile, Signal};
pub use line::{Cut, Line, LineSplitter};
pub use settings::{BadSettings, Gateway, McpServer, PermissionMode, Settings};
pub use turns::{
    Config, Input, MAX_LINE, MAX_PENDING, MAX_PROMPT, MAX_QUEUED, MAX_QUEUED_BYTES, Output,
    Pending, TurnEnd, Turns, TurnsError,
};
pub use usage::Usage;
