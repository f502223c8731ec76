//! A command line, and what goes with it.

use std::fmt;

/// A program to start. There is no shell in between: each argument arrives unchanged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// Its name or path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to a clean environment. Some are secrets: only their names are shown.
    pub env: Vec<(String, String)>,
    /// To be written into the session's private directory first.
    pub files: Vec<PrivateFile>,
    /// Its first input.
    pub stdin: Option<Vec<u8>>,
    /// Whether it will be given more to read; otherwise its input ends here.
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

/// A file that only the program's user may read: it may hold secrets.
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
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows.
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

/// A signal that a process may answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Stop what you are doing.
    Int,
    /// Put everything away and end.
    Term,
}
