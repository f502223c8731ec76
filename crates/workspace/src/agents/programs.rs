//! Where the programs of agents are, and how to install missing ones.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use session::agent::{BuiltIn, KNOWN, known};

use crate::refusal::Refusal;

/// Where the installers of agents put programs, below the home. A project's own `node_modules` is
/// not searched: otherwise a program in a project would run merely because it is there.
const BELOW_HOME: [&str; 7] = [
    ".local/bin",
    ".npm-global/bin",
    ".claude/local",
    ".opencode/bin",
    ".bun/bin",
    ".volta/bin",
    "bin",
];
/// Where the version manager of Node.js installs its versions, each with a `bin`.
const NODE_VERSIONS: &str = ".nvm/versions/node";
/// The most versions that are examined.
const MOST_VERSIONS: usize = 64;

/// Where programs are looked for.
pub(crate) struct Search<'a> {
    /// Configured places of programs, by the agent's or the program's name.
    pub(crate) set: &'a BTreeMap<String, PathBuf>,
    /// Searched instead of the daemon's own `PATH`.
    pub(crate) path: Option<&'a OsStr>,
    /// The home of the user that the program runs as.
    pub(crate) home: &'a Path,
}

impl Search<'_> {
    /// The program of an agent that needs no configuration.
    pub(crate) fn known(&self, provider: &str) -> Result<PathBuf, Refusal> {
        let of = known(provider).ok_or_else(|| unknown(provider))?;
        match self.set.get(provider).or_else(|| self.set.get(of.program)) {
            Some(set) => found_at(set, of.program).ok_or_else(|| not_there(provider, set)),
            None => self.look(of.program).ok_or_else(|| missing(of)),
        }
    }

    /// The program of a configured agent, as its command line names it.
    pub(crate) fn configured(&self, provider: &str, program: &str) -> Result<PathBuf, Refusal> {
        if let Some(set) = self.set.get(provider) {
            return found_at(set, program).ok_or_else(|| not_there(provider, set));
        }
        let found = match Path::new(program).is_absolute() {
            true => Some(PathBuf::from(program)).filter(|path| is_program(path)),
            false => self.look(program),
        };
        found.ok_or_else(|| {
            Refusal::Failed(format!(
                "the agent {provider:?} is to be started with {program:?}, which is not found: \
                 correct its command line in the section [workspace.agents] of the configuration"
            ))
        })
    }

    fn look(&self, program: &str) -> Option<PathBuf> {
        // A name with a slash could lead out of the places.
        if program.is_empty() || program.contains('/') {
            return None;
        }
        self.places().iter().map(|place| place.join(program)).find(|path| is_program(path))
    }

    fn places(&self) -> Vec<PathBuf> {
        let own = env::var_os("PATH");
        let path = self.path.or(own.as_deref()).unwrap_or_default();
        let mut places: Vec<PathBuf> =
            env::split_paths(path).filter(|place| place.is_absolute()).collect();
        places.extend(BELOW_HOME.map(|place| self.home.join(place)));
        places.extend(node_versions(&self.home.join(NODE_VERSIONS)));
        // The PATH of a service is often shorter than that of a login.
        places.push("/usr/local/bin".into());
        places
    }
}

/// The program at a configured place, which is the program itself or a directory that contains it.
fn found_at(set: &Path, program: &str) -> Option<PathBuf> {
    [set.to_owned(), set.join(program)].into_iter().find(|path| is_program(path))
}

/// The `bin` directories of all versions, the newest first.
fn node_versions(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_VERSIONS);
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.iter().map(|version| version.join("bin")).collect()
}

fn number(version: &Path) -> Vec<u64> {
    let name = version.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn unknown(provider: &str) -> Refusal {
    let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
    let provider = &provider[..provider.floor_char_boundary(100)];
    Refusal::Invalid(format!(
        "there is no agent {provider:?}; known are {}, and those of the configuration",
        names.join(", ")
    ))
}

fn missing(of: &BuiltIn) -> Refusal {
    Refusal::Failed(format!(
        "{} is not installed here: no program {:?} is in PATH or where it is usually put; \
         install it with: {}",
        of.name, of.program, of.install
    ))
}

fn not_there(provider: &str, set: &Path) -> Refusal {
    Refusal::Failed(format!(
        "no program is at {}, where the configuration says that {provider} is",
        set.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in a directory.
    fn put(dir: &Path, name: &str) -> PathBuf {
        fs::create_dir_all(dir).unwrap();
        let path = dir.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    struct Installed {
        dir: tempfile::TempDir,
        set: BTreeMap<String, PathBuf>,
    }

    impl Installed {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), set: BTreeMap::new() }
        }

        fn known(&self, provider: &str) -> Result<PathBuf, String> {
            let path = self.dir.path().join("path");
            let home = self.dir.path();
            let search = Search { set: &self.set, path: Some(path.as_os_str()), home };
            search.known(provider).map_err(|refusal| refusal.to_string())
        }
    }

    #[test]
    fn programs_in_the_path_go_before_those_below_the_home() {
        let place = Installed::new();
        let below = put(&place.dir.path().join(".local/bin"), "claude");
        assert_eq!(place.known("claude").unwrap(), below);
        let first = put(&place.dir.path().join("path"), "claude");
        assert_eq!(place.known("claude").unwrap(), first);
    }

    #[test]
    fn the_newest_version_of_node_is_looked_at_first() {
        let place = Installed::new();
        let versions = place.dir.path().join(NODE_VERSIONS);
        put(&versions.join("v9.1.0/bin"), "codex");
        let newest = put(&versions.join("v22.3.0/bin"), "codex");
        put(&versions.join("v18.0.0/bin"), "codex");
        assert_eq!(place.known("codex").unwrap(), newest);
    }

    #[test]
    fn one_that_is_missing_is_told_with_how_to_install_it() {
        let place = Installed::new();
        for (provider, install) in [
            ("claude", "npm install -g @anthropic-ai/claude-code"),
            ("codex", "npm install -g @openai/codex"),
            ("gemini-acp", "npm install -g @google/gemini-cli"),
            ("opencode", "npm install -g opencode-ai"),
        ] {
            // The machine itself may have one in /usr/local/bin.
            let found = place.known(provider);
            assert!(
                found.as_ref().is_ok_and(|it| it.starts_with("/usr/local/bin"))
                    || found.unwrap_err().contains(install)
            );
        }
        assert!(place.known("nobody").unwrap_err().contains("known are claude, codex"));
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_no_program() {
        let place = Installed::new();
        let path = put(&place.dir.path().join("path"), "opencode");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir_all(place.dir.path().join(".local/bin/opencode")).unwrap();
        assert_ne!(place.known("opencode").ok(), Some(path));
    }

    #[test]
    fn the_configuration_has_the_last_word() {
        let mut place = Installed::new();
        put(&place.dir.path().join("path"), "gemini");
        let set = put(&place.dir.path().join("opt"), "gemini");
        place.set.insert("gemini".to_owned(), place.dir.path().join("opt"));
        assert_eq!(place.known("gemini").unwrap(), set);
        assert_eq!(place.known("gemini-acp").unwrap(), set, "by the program's name");
        place.set.insert("gemini".to_owned(), "/nowhere/gemini".into());
        assert!(place.known("gemini").unwrap_err().contains("/nowhere/gemini"));
    }
}
