//! The options that keep git from executing the repository's programs and from waiting for input.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

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
    // git refuses directories of other users. This one is a project that the workspace knows, so it
    // is allowed.
    trust(&mut words, root);
    words
}

/// The arguments that list the whole configuration, with the scope of each setting. The filters are read from the
/// answer.
pub(super) fn ask_for_filters() -> Vec<OsString> {
    ["config", "--list", "--show-scope", "--includes", "-z"].map(OsString::from).to_vec()
}

/// The arguments that list the entries of the index with their modes, by which [`submodule`] tells submodules.
pub(super) fn ask_for_index() -> Vec<OsString> {
    ["ls-files", "--stage", "-z"].map(OsString::from).to_vec()
}

/// The path of a submodule in a record of git's answer to [`ask_for_index`]; `None` for a file.
pub(super) fn submodule(record: &[u8]) -> Option<&[u8]> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    record.starts_with(b"160000 ").then(|| &record[tab + 1..])
}

/// The settings that switch off the filters of the repository itself and of its submodules, and keep
/// those of the user and the system. Git passes them on to the git that it starts in a submodule.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FilterOverrides {
    settings: BTreeMap<String, String>,
    /// The submodules' directories.
    submodules: Vec<PathBuf>,
    /// Whether the project is a part of a work tree.
    part: bool,
    /// Whether git may look into the submodules.
    looks_into: bool,
}

impl FilterOverrides {
    /// Reads git's answer to [`ask_for_filters`]. `part`: the project is only a part of its work tree.
    pub(super) fn read(answer: &[u8], part: bool) -> Result<Self, GitError> {
        let mut overrides = Self { part, ..Self::default() };
        overrides.add(answer)?;
        Ok(overrides)
    }

    fn add(&mut self, answer: &[u8]) -> Result<(), GitError> {
        let settings = overridden(answer);
        // git takes everything after the first equals sign as the value, so a key with one
        // cannot be set.
        if let Some(key) = settings.keys().find(|key| key.contains('=')) {
            return Err(GitError::Filter(key.clone()));
        }
        self.settings.extend(settings);
        Ok(())
    }

    /// Adds a submodule, by git's answer to [`ask_for_filters`] in it.
    pub(super) fn add_submodule(&mut self, dir: PathBuf, answer: &[u8]) -> Result<(), GitError> {
        self.add(answer)?;
        self.submodules.push(dir);
        Ok(())
    }

    /// The number of submodules that have been added.
    pub(super) fn submodules(&self) -> usize {
        self.submodules.len()
    }

    /// Lets git look into the submodules. Allowed only if all of them have been added: the filters of others are not
    /// off.
    pub(super) fn looking_into(self) -> Self {
        Self { looks_into: true, ..self }
    }

    /// The same, but git does not look into submodules; `None` if it already does not.
    pub(super) fn not_looking_into(&self) -> Option<Self> {
        self.looks_into.then(|| Self { looks_into: false, ..self.clone() })
    }

    pub(super) fn status(&self) -> Vec<OsString> {
        let mut words = self.words();
        let status = ["status", "--porcelain=v2", "--branch", "-z", "--find-renames"];
        say(&mut words, &status);
        say(&mut words, &["--untracked-files=normal"]);
        self.say_depth(&mut words);
        if self.part {
            say(&mut words, &["--", "."]);
        }
        words
    }

    pub(super) fn diff(&self, path: &RelPath, staged: bool) -> Vec<OsString> {
        let mut words = self.words();
        say(&mut words, &["diff", "--patch", "--no-ext-diff", "--no-textconv", "--no-color"]);
        say(&mut words, &["--src-prefix=a/", "--dst-prefix=b/", "--relative", "--submodule=short"]);
        self.say_depth(&mut words);
        if staged {
            say(&mut words, &["--cached"]);
        }
        say(&mut words, &["--", if path.is_root() { "." } else { path.as_str() }]);
        words
    }

    fn say_depth(&self, words: &mut Vec<OsString>) {
        if !self.looks_into {
            say(words, &["--ignore-submodules=dirty"]);
        }
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        for (key, value) in &self.settings {
            set(&mut words, format!("{key}={value}"));
        }
        self.submodules.iter().for_each(|dir| trust(&mut words, dir));
        words
    }
}

fn say(words: &mut Vec<OsString>, said: &[&str]) {
    words.extend(said.iter().map(OsString::from));
}

/// Allows git to use a directory of another user.
fn trust(words: &mut Vec<OsString>, dir: &Path) {
    let mut safe = OsString::from("safe.directory=");
    safe.push(dir);
    set(words, safe);
}

fn set(words: &mut Vec<OsString>, setting: impl Into<OsString>) {
    words.push("-c".into());
    words.push(setting.into());
}

/// The settings of all filters that the repository configures, with the values that they would have
/// without the repository's own configuration.
fn overridden(answer: &[u8]) -> BTreeMap<String, String> {
    let mut trusted = BTreeMap::new();
    // A repository usually has several settings of one filter.
    let mut own = BTreeSet::new();
    let mut fields = answer.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((&entry, ""));
        let Some(name) = filter_name(key) else { continue };
        match &*scope {
            "system" | "global" => drop(trusted.insert(key.to_owned(), value.to_owned())),
            "command" => {}
            _ => drop(own.insert(name.to_owned())),
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
        let words = FilterOverrides::read(answer, false).unwrap().words();
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
        let answer = b"global\0filter.lfs.process\nmine\0\
                       local\0filter.lfs.process\ntheirs\0local\0filter.lfs.clean\ntheirs\0";
        assert!(said(answer).contains(&"filter.lfs.process=mine".to_owned()), "two settings");
        assert!(said(answer).contains(&"filter.lfs.clean=".to_owned()), "two settings");
    }

    #[test]
    fn a_submodules_filter_is_switched_off_and_git_looks_into_it_only_when_all_are_known() {
        let mut overrides = FilterOverrides::read(b"", false).unwrap();
        overrides.add_submodule("/p/sub".into(), b"local\0filter.evil.clean\nx\0").unwrap();
        let words = overrides.status();
        assert!(words.contains(&"filter.evil.clean=".into()));
        assert!(words.contains(&"safe.directory=/p/sub".into()));
        assert!(words.contains(&"--ignore-submodules=dirty".into()));
        let looking = overrides.clone().looking_into();
        assert!(!looking.status().contains(&"--ignore-submodules=dirty".into()));
        assert_eq!(looking.not_looking_into(), Some(overrides.clone()));
        assert_eq!(overrides.not_looking_into(), None);
        assert_eq!(submodule(b"160000 0123 0\ta b"), Some(&b"a b"[..]));
        assert_eq!(submodule(b"100644 0123 0\ta"), None);
    }

    #[test]
    fn a_filter_whose_name_would_be_misread_is_refused() {
        let read = FilterOverrides::read(b"local\0filter.a=b.clean\nx\0", false);
        assert!(matches!(read, Err(GitError::Filter(_))));
    }
}
