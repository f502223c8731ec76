//! The options that keep git from executing the repository's programs and from waiting for input.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use super::GitError;
use crate::path::RelPath;

/// The variables that are set for every git process.
pub(super) const ENVIRONMENT: [(&str, &str); 8] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // No protocol is allowed, so nothing can make git fetch.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_LITERAL_PATHSPECS", "1"),
];

/// The configuration for every command.
const SETTINGS: [&str; 9] = [
    // A larger file is not loaded into memory: git reports only that it differs.
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

/// The first arguments of every command.
pub(super) fn always(root: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--no-optional-locks".into(), "--no-pager".into()];
    words.push("-C".into());
    words.push(root.into());
    SETTINGS.iter().for_each(|setting| set(&mut words, setting));
    // git refuses directories of other users. The workspace knows its projects, so this one is
    // allowed.
    let mut safe = OsString::from("safe.directory=");
    safe.push(root);
    set(&mut words, safe);
    words
}

/// The arguments that list all filters and the scope in which each is configured.
pub(super) fn ask_for_filters() -> Vec<OsString> {
    ["config", "--list", "--show-scope", "--includes", "-z"].map(OsString::from).to_vec()
}

/// The arguments that switch off the filters of the repository itself, and keep those of the user
/// and the system.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disarmed {
    words: Vec<OsString>,
    part: bool,
}

impl Disarmed {
    /// Reads git's answer to [`ask_for_filters`]. `part` says that the project is a part of a work
    /// tree.
    pub(super) fn read(answer: &[u8], part: bool) -> Result<Self, GitError> {
        let mut words = Vec::new();
        for (key, value) in overridden(answer) {
            // git takes everything after the first equals sign as the value, so a key with one
            // cannot be set.
            if key.contains('=') {
                return Err(GitError::Filter(key));
            }
            set(&mut words, format!("{key}={value}"));
        }
        Ok(Self { words, part })
    }

    pub(super) fn status(mut self) -> Vec<OsString> {
        let status = ["status", "--porcelain=v2", "--branch", "-z", "--find-renames"];
        self.say(&status);
        self.say(&["--untracked-files=normal", "--ignore-submodules=dirty"]);
        if self.part {
            self.say(&["--", "."]);
        }
        self.words
    }

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

/// The settings of all filters that the repository configures, with the values that they would have
/// without the repository.
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

/// The settings of a filter. An empty command is no command, and an empty `required` is false.
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
    fn filters_of_user_and_system_stay() {
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
    fn a_filter_overridden_by_the_repository_is_the_users_again() {
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
