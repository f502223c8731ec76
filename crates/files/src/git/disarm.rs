//! What is said to git so that it executes nothing and waits for nobody.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use super::GitError;
use crate::path::RelPath;

/// Said to each git that runs.
pub(super) const ENVIRONMENT: [(&str, &str); 8] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // No protocol is allowed: nothing is fetched, whoever asks for it.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_LITERAL_PATHSPECS", "1"),
];

/// Configuration that is the same for all.
const SETTINGS: [&str; 9] = [
    // What is larger is compared without being held in memory, and said to differ.
    "core.bigFileThreshold=16m",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.sshCommand=false",
    "core.pager=cat",
    "diff.external=",
    "protocol.allow=never",
    "submodule.recurse=false",
];

/// The words after `git` that each command begins with.
pub(super) fn always(root: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--no-optional-locks".into(), "--no-pager".into()];
    words.push("-C".into());
    words.push(root.into());
    SETTINGS.iter().for_each(|setting| set(&mut words, setting));
    // The project is known to the workspace, whoever owns its files.
    let mut safe = OsString::from("safe.directory=");
    safe.push(root);
    set(&mut words, safe);
    words
}

/// Asks for all filters, with where each is configured.
pub(super) fn ask_for_filters() -> Vec<OsString> {
    ["config", "--list", "--show-scope", "--includes", "-z"].map(OsString::from).to_vec()
}

/// The words that switch off what the repository itself has configured, and leave what the user
/// and the system have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disarmed {
    words: Vec<OsString>,
    part: bool,
}

impl Disarmed {
    /// Reads git's answer to [`ask_for_filters`]. `part`: the project is a part of a work tree.
    pub(super) fn read(answer: &[u8], part: bool) -> Result<Self, GitError> {
        let mut words = Vec::new();
        for (key, value) in overridden(answer) {
            // What comes after the first equals sign is the value, so such a name cannot be said.
            if key.contains('=') {
                return Err(GitError::Filter(key));
            }
            set(&mut words, format!("{key}={value}"));
        }
        Ok(Self { words, part })
    }

    /// The words of a status.
    pub(super) fn status(mut self) -> Vec<OsString> {
        let status = ["status", "--porcelain=v2", "--branch", "-z", "--find-renames"];
        self.say(&status);
        self.say(&["--untracked-files=normal", "--ignore-submodules=dirty"]);
        if self.part {
            self.say(&["--", "."]);
        }
        self.words
    }

    /// The words of a diff.
    pub(super) fn diff(mut self, path: &RelPath, staged: bool) -> Vec<OsString> {
        self.say(&["diff", "--patch", "--no-ext-diff", "--no-textconv", "--no-color"]);
        self.say(&["--src-prefix=a/", "--dst-prefix=b/", "--relative", "--submodule=short"]);
        self.say(&["--ignore-submodules=dirty"]);
        if staged {
            self.say(&["--cached"]);
        }
        self.say(&["--", if path.is_root() { "." } else { path.as_str() }]);
        self.words
    }

    fn say(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(OsString::from));
    }
}

fn set(words: &mut Vec<OsString>, setting: impl Into<OsString>) {
    words.push("-c".into());
    words.push(setting.into());
}

/// Filters that the repository names, with the value that they would have without it.
fn overridden(answer: &[u8]) -> BTreeMap<String, String> {
    let mut trusted = BTreeMap::new();
    let mut own = Vec::new();
    let mut fields = answer.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
        let Some(name) = filter_name(key) else { continue };
        match &*scope {
            "system" | "global" => drop(trusted.insert(key.to_owned(), value.to_owned())),
            "command" => {}
            _ => own.push(name.to_owned()),
        }
    }
    let keys = own.iter().flat_map(|name| FILTER.map(|what| format!("filter.{name}.{what}")));
    keys.map(|key| (key.clone(), trusted.remove(&key).unwrap_or_default())).collect()
}

/// All that a filter may have. An empty command is none, and an empty `required` is false.
const FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];

fn filter_name(key: &str) -> Option<&str> {
    key.strip_prefix("filter.")?.rsplit_once('.').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answer: &[u8]) -> Vec<String> {
        let words = Disarmed::read(answer, false).unwrap().words;
        words.iter().filter(|w| *w != "-c").map(|w| w.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_only_user_and_system_configure_is_left_alone() {
        let answer = b"system\0filter.lfs.process\ngit-lfs\0global\0filter.lfs.required\ntrue\0";
        assert!(said(answer).is_empty());
    }

    #[test]
    fn a_filter_of_the_repository_is_switched_off() {
        let expected = [
            "filter.a.b.clean=",
            "filter.a.b.process=",
            "filter.a.b.required=",
            "filter.a.b.smudge=",
        ];
        assert_eq!(said(b"local\0filter.a.b.clean\nrm -rf ~\0local\0core.bare\nfalse\0"), expected);
        assert_eq!(said(b"worktree\0filter.a.b.process\0"), expected);
        assert_eq!(said(b"something new\0filter.a.b.required\ntrue\0"), expected);
    }

    #[test]
    fn what_the_repository_overrides_is_as_the_user_has_it() {
        let answer = b"global\0filter.lfs.process\nmine\0local\0filter.lfs.process\ntheirs\0";
        assert!(said(answer).contains(&"filter.lfs.process=mine".to_owned()));
        assert!(said(answer).contains(&"filter.lfs.clean=".to_owned()));
    }

    #[test]
    fn a_filter_whose_name_would_be_misread_is_refused() {
        let read = Disarmed::read(b"local\0filter.a=b.clean\nx\0", false);
        assert!(matches!(read, Err(GitError::Filter(_))));
    }
}
