//! Fake command lines of agents: one program that is Claude Code, Codex, Gemini CLI, opencode or any
//! speaker of the Agent Client Protocol, by the name that it is started under.
//!
//! Its prompt says what it does: commands with `;` between them, in the prompt's last line.
//! Any other text is said.
//!
//! | Command | What it does |
//! | --- | --- |
//! | `say TEXT` | says it, in two pieces where its dialect has pieces |
//! | `ask TOOL` | asks for a tool, where its dialect can, and says how that went |
//! | `use TOOL` | uses a tool |
//! | `recall` | says all earlier prompts of this conversation |
//! | `pid`, `args`, `env NAME` | says its process id, its arguments, a variable or `unset` |
//! | `mcp TOOL JSON` | calls a tool of the MCP server that it is configured with, and says the result |
//! | `gateway` | asks the model that it is configured with, and says what it answered |
//! | `slow MS` | works for that long |
//! | `wait` | works until it is interrupted |
//! | `hang` | does nothing for ever, and reads nothing |
//! | `garbage` | prints what is no JSON, and JSON of no known kind |
//! | `flood` | prints a line of three megabytes |
//! | `crash` | complains, and ends with code 3 |
//! | `never exit` | does not end when it should: not at the end of its input, and not by SIGTERM |
//! | `background TEXT` | Claude Code: begins a turn of its own after this one, says it, and ends when a prompt waits |
//! | `daemonise` | leaves a process in a session of its own behind, which holds its output, and says its pid |
//!
//! It keeps its conversations in `state` beside the link that it is started by ([`FakeAgents`]), or
//! where `CLAUDE_CONFIG_DIR` says: one that it does not have it refuses as the real ones do.
//!
//! - [`FakeAgents`]: puts it into a directory under all its names
//! - [`main`]: the program, for an example or a binary of three lines
//! - `script`: what it does; `memory`: its conversations; `setting`: what it was started with
//! - `dialects`: how each speaks; `tools`: MCP servers; `model`: the gateway

mod dialects;
mod memory;
mod model;
mod script;
mod setting;
mod tools;

use std::{
    collections::BTreeMap,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

pub use dialects::main;

pub const NAMES: [&str; 5] = ["claude", "codex", "gemini", "opencode", "acp"];

/// The file name of the program, as an example of the crate `workspace`.
pub const PROGRAM: &str = "fake-agent";

#[derive(Debug)]
pub struct FakeAgents {
    dir: PathBuf,
}

impl FakeAgents {
    /// Puts links to `program` into `dir`, one for each name.
    pub fn install(program: &Path, dir: &Path) -> Self {
        std::fs::create_dir_all(dir.join("state")).expect("the directory can be made");
        for name in NAMES {
            let link = dir.join(name);
            if !link.exists() {
                symlink(program, &link).expect("a link can be made");
            }
        }
        Self { dir: dir.to_owned() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn all(&self) -> BTreeMap<String, PathBuf> {
        NAMES.iter().map(|name| ((*name).to_owned(), self.path(name))).collect()
    }

    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }
}

/// The program, where cargo puts it beside the tests and the binaries: it is there once the examples
/// of the crate `workspace` are built.
pub fn program() -> PathBuf {
    crate::processes::example(PROGRAM, "workspace")
}
