//! A command line and what goes with it.

use std::fmt;

/// A program to start. No shell is involved: each argument arrives unchanged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The program's name or path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables to add to a clean environment. Some are secrets, so debug output shows only their
    /// names.
    pub env: Vec<(String, String)>,
    /// Files to write into the session's private directory before the start.
    pub files: Vec<PrivateFile>,
    /// The first input on its standard input.
    pub stdin: Option<Vec<u8>>,
    /// Whether more input will follow; otherwise the input ends after the first.
    pub keep_stdin_open: bool,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("files", &self.files)
            .field("stdin", &self.stdin.as_ref().map(Vec::len))
            .field("keep_stdin_open", &self.keep_stdin_open)
            .finish()
    }
}

/// A file that only the program's user may read, since it may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Its name in the private directory.
    pub name: String,
    /// Its content.
    pub contents: String,
}

impl fmt::Debug for PrivateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The process ended by itself, with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It is not known how it ended.
    Lost,
}

impl Exit {
    pub(crate) fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Lost => f.write_str("no word of how"),
        }
    }
}

/// A signal that a process may handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Stop the present work.
    Int,
    /// Clean up and end.
    Term,
}
