//! The owner of a process, and whether it is Claude.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::SystemTime,
};

use process::{Adopted, User};

use crate::{refusal::Refusal, sessions::moving::dashed, users};

/// The arguments that name a conversation.
const NAMED_BY: [&str; 3] = ["--resume", "-r", "--session-id"];

/// The facts about an adopted process.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// The process's owner; `None`: the daemon's own user.
    pub(super) user: Option<User>,
    /// The known facts about the process if it is Claude.
    pub(super) claude: Option<Claude>,
}

/// A running Claude.
#[derive(Debug, Clone)]
pub(super) struct Claude {
    /// Where its transcripts are.
    pub(super) folder: PathBuf,
    /// The value of its variable `CLAUDE_CONFIG_DIR`.
    pub(super) config: Option<String>,
    /// The conversation that its arguments name.
    pub(super) named: Option<String>,
    /// When it was started.
    pub(super) since: SystemTime,
    /// The process's working directory.
    pub(super) working_dir: PathBuf,
}

impl Subject {
    /// Examines a process. It is refused unless it belongs to the daemon's own user or to a user
    /// that sessions may run as. It blocks.
    pub(super) fn new(process: &Adopted, run_as: &[String]) -> Result<Self, Refusal> {
        let user = owner(process, run_as)?;
        let claude = match is_claude(process.command_line()) {
            true => Claude::find(process, user.as_ref()),
            false => None,
        };
        Ok(Self { user, claude })
    }

    /// Runs `f`, which accesses the process's files, with the rights of the process's user only.
    pub(super) fn as_its_user<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Refusal> {
        users::with_rights_of(self.user.as_ref(), f)
    }
}

impl Claude {
    fn find(process: &Adopted, user: Option<&User>) -> Option<Self> {
        let of = |name: &str| {
            let value = process.variable(name)?.into_string().ok();
            value.filter(|value| !value.is_empty())
        };
        let config = of("CLAUDE_CONFIG_DIR");
        let home = of("HOME").map(PathBuf::from).or_else(|| users::home(user).ok());
        let dir = config.as_ref().map(PathBuf::from).or_else(|| Some(home?.join(".claude")))?;
        let working_dir = process.working_dir()?.clone();
        Some(Self {
            folder: dir.join("projects").join(dashed(&working_dir)),
            config,
            named: named(process.command_line()),
            since: process.started_at(),
            working_dir,
        })
    }
}

fn owner(process: &Adopted, run_as: &[String]) -> Result<Option<User>, Refusal> {
    if users::current()?.uid == process.owner() {
        return Ok(None);
    }
    let users = run_as.iter().filter_map(|name| User::lookup(name).ok());
    let found = users.into_iter().find(|user| user.uid == process.owner());
    found.map(Some).ok_or_else(|| {
        Refusal::Invalid(format!(
            "process {} belongs to another user: an administrator allows it with run_as_users in \
             the section [workspace] of the configuration",
            process.pid()
        ))
    })
}

/// Whether a command line starts Claude, by its name or as a script of its package.
fn is_claude(command_line: &[OsString]) -> bool {
    // The program itself, or an interpreter and its script.
    command_line.iter().take(2).any(|word| {
        let path = Path::new(word);
        path.file_name() == Some(OsStr::new("claude"))
            || path.to_string_lossy().contains("/claude-code/")
    })
}

fn named(command_line: &[OsString]) -> Option<String> {
    let words: Vec<&str> = command_line.iter().filter_map(|word| word.to_str()).collect();
    let alone = words.windows(2).filter(|pair| NAMED_BY.contains(&pair[0])).map(|pair| pair[1]);
    let joined = words.iter().filter_map(|word| {
        let (flag, value) = word.split_once('=')?;
        NAMED_BY.contains(&flag).then_some(value)
    });
    // A fork has an id of its own, which is not in the arguments.
    let forks = words.contains(&"--fork-session");
    let mut named = alone.chain(joined).filter(|id| !forks && is_id(id));
    named.next().map(str::to_owned)
}

/// Whether this is the id of a conversation. Anything else must not become part of a path.
pub(super) fn is_id(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn claude_is_known_by_its_name_or_its_package() {
        assert!(is_claude(&words(&["claude"])));
        assert!(is_claude(&words(&["/usr/bin/claude", "-p"])));
        let package = "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js";
        assert!(is_claude(&words(&["node", package])));
        assert!(!is_claude(&words(&["vim", "notes", "claude"])));
        assert!(!is_claude(&[]));
    }

    #[test]
    fn a_conversation_is_named_by_arguments_of_several_forms() {
        let id = "0b1c2d3e-0000-4000-8000-123456789abc";
        for given in [&["claude", "--resume", id][..], &["claude", "-r", id]] {
            assert_eq!(named(&words(given)).as_deref(), Some(id));
        }
        assert_eq!(named(&words(&["claude", &format!("--session-id={id}")])).as_deref(), Some(id));
        assert_eq!(named(&words(&["claude", "--resume", "../../etc/passwd"])), None);
        assert_eq!(named(&words(&["claude", "--resume", id, "--fork-session"])), None);
        assert_eq!(named(&words(&["claude", "--resume"])), None);
    }

    #[test]
    fn a_directory_has_a_folder_of_its_own() {
        assert_eq!(dashed(Path::new("/home/a.b/my_app")), "-home-a-b-my-app");
    }
}
