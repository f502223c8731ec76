//! A command to run for a session.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
};

use uuid::Uuid;

use crate::{User, error::ProcessError};

/// The most bytes that a command may take with its arguments and its environment.
pub const MAX_COMMAND: usize = 128 * 1024;

/// A command to run for a session.
#[derive(Clone)]
pub struct Command {
    /// The session. A session has one command at a time.
    pub id: Uuid,
    /// A path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited. See [`clean_environment`](crate::clean_environment).
    pub env: Vec<(OsString, OsString)>,
    /// The directory to start in, which is entered as the command's user.
    pub working_dir: PathBuf,
    /// Its stdin, stdout and stderr.
    pub stdio: Stdio,
    /// The user to run the command as; `None` for the daemon's user.
    pub run_as: Option<User>,
    /// The most processes and threads at once. If the session has a control group, those of the
    /// session count. Otherwise the limit counts from the user's present number on, and does not
    /// apply to root.
    pub max_processes: Option<u32>,
}

/// The input and output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// A terminal of its own.
    Terminal {
        /// The number of columns.
        cols: u16,
        /// The number of lines.
        rows: u16,
    },
    /// Three pipes.
    Pipes,
}

impl Command {
    /// Refuses a command that the kernel would not take, or that does not fit into a packet.
    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        valid(!self.program.is_empty() && no_nul(&self.program), "the program's name")?;
        valid(self.args.iter().all(|arg| no_nul(arg)), "an argument")?;
        valid(self.env.iter().all(|(name, value)| is_variable(name, value)), "a variable")?;
        valid(no_nul(self.working_dir.as_os_str()), "the working directory")?;
        let size = self.size();
        if size > MAX_COMMAND {
            return Err(ProcessError::TooLarge { size, limit: MAX_COMMAND });
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let args = self.args.iter().map(|arg| arg.len() + 5).sum::<usize>();
        let env = self.env.iter().map(|(name, value)| name.len() + value.len() + 10).sum::<usize>();
        let groups = self.run_as.as_ref().map_or(0, User::size);
        self.program.len() + self.working_dir.as_os_str().len() + args + env + groups
    }
}

/// Shows only the numbers of arguments and variables, since both may hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("id", &self.id)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.len())
            .field("working_dir", &self.working_dir)
            .field("stdio", &self.stdio)
            .field("run_as", &self.run_as)
            .field("max_processes", &self.max_processes)
            .finish()
    }
}

fn valid(is: bool, what: &'static str) -> Result<(), ProcessError> {
    if is { Ok(()) } else { Err(ProcessError::InvalidText { what }) }
}

fn no_nul(text: &OsStr) -> bool {
    !text.as_encoded_bytes().contains(&0)
}

fn is_variable(name: &OsStr, value: &OsStr) -> bool {
    !name.is_empty() && !name.as_encoded_bytes().contains(&b'=') && no_nul(name) && no_nul(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command {
            id: Uuid::from_u128(1),
            program: "true".into(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: "/".into(),
            stdio: Stdio::Pipes,
            run_as: None,
            max_processes: None,
        }
    }

    #[test]
    fn a_command_that_the_kernel_would_refuse_is_refused_with_the_reason() {
        let refused = |change: fn(&mut Command)| {
            let mut command = command();
            change(&mut command);
            match command.check() {
                Err(ProcessError::InvalidText { what }) => what,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refused(|it| it.program.clear()), "the program's name");
        assert_eq!(refused(|it| it.args.push("a\0b".into())), "an argument");
        assert_eq!(refused(|it| it.env.push(("A=B".into(), "".into()))), "a variable");
        assert_eq!(refused(|it| it.env.push(("".into(), "".into()))), "a variable");
        assert_eq!(refused(|it| it.working_dir = "/a\0".into()), "the working directory");
    }

    #[test]
    fn a_command_may_take_its_limit_and_no_byte_more() {
        let mut command = command();
        command.args.push("a".repeat(MAX_COMMAND - command.size() - 5).into());
        assert!(command.check().is_ok());
        command.args[0].push("a");
        let too_large = command.check();
        assert!(
            matches!(too_large, Err(ProcessError::TooLarge { size, .. }) if size == MAX_COMMAND + 1)
        );
    }

    #[test]
    fn neither_variables_nor_arguments_show_in_debug_output() {
        let mut command = command();
        command.env.push(("KEY".into(), "very-secret".into()));
        command.args.push("also-secret".into());
        assert!(!format!("{command:?}").contains("secret"));
    }
}
