//! An agent: a command line program that takes prompts and works on them in turns.
//!
//! Pure: a driver starts the program, hands in what it prints and what time it is, and carries out
//! what comes back.
//!
//! - [`Turns`]: the machine of one agent session: one turn at a time, whatever happens
//! - [`Dialect`]: what one kind of program is started with, says and wants to hear;
//!   [`open`]: the dialect of a provider by its name; [`interactive`]: its own interface
//! - [`Settings`]: model, working directory, permissions, gateway and MCP servers of a session
//! - [`Launch`]: a command line and what goes with it
//! - [`Usage`]: what a turn used; what happens in it are the protocol's events

mod dialect;
mod launch;
mod settings;
mod turns;
mod usage;

pub use dialect::{
    AcpCommand, AgentOutput, BuiltIn, Decision, Dialect, Halt, KNOWN, ParsedLine, Start,
    TurnResult, interactive, known, open,
};
pub use launch::{Exit, Launch, PrivateFile, Signal};
pub use settings::{BadSettings, Gateway, McpServer, PermissionMode, Settings};
pub use turns::{
    Config, Input, MAX_LINE, MAX_PENDING, MAX_PROMPT, MAX_QUEUED, Output, Pending, TurnEnd, Turns,
    TurnsError,
};
pub use usage::Usage;
