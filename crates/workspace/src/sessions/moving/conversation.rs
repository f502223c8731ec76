//! Where agents keep their conversations: Claude Code and Codex in one file each.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Component, Path, PathBuf},
};

use process::User;

use crate::{
    host::EngineHost,
    refusal::Refusal,
    sessions::Facts,
    users::{self, with_rights_of},
};

/// The most directories and files that are looked into for a conversation.
const MOST: usize = 20_000;
/// The longest name of a folder that Claude Code makes of a path without cutting it.
const LONGEST_FOLDER: usize = 200;

/// The conversation of an agent.
pub(super) enum Found {
    /// Nothing was said yet.
    Nothing,
    /// In this file. [`place`] derives the file's place on the other machine from `name`.
    File { name: String, path: PathBuf },
    /// Its place is not known, or it is not there; the reason in words.
    Unknown(String),
}

/// The agents whose conversations are files that can go along.
enum Keeper {
    Claude,
    Codex,
}

impl Keeper {
    fn of(provider: &str) -> Option<Self> {
        match provider {
            "claude" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            _ => None,
        }
    }

    /// The directory below which the agent keeps its conversations.
    fn home(&self, host: &EngineHost, facts: &Facts) -> Result<PathBuf, Refusal> {
        let (variable, below) = match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        };
        let env = host.project_env(facts.project_id);
        if let Some((_, dir)) = env.into_iter().find(|(name, _)| name == variable) {
            return Ok(dir.into());
        }
        Ok(users::home(user(host, facts)?.as_ref())?.join(below))
    }
}

/// Looks for the conversation of an agent. It blocks.
pub(super) fn find(host: &EngineHost, facts: &Facts) -> Result<Found, Refusal> {
    let Some(id) = &facts.conversation else { return Ok(Found::Nothing) };
    let Some(keeper) = Keeper::of(&facts.provider) else {
        let words = format!("where {} keeps its conversations is not known", facts.provider);
        return Ok(Found::Unknown(words));
    };
    let home = keeper.home(host, facts)?;
    let dir = PathBuf::from(&facts.working_dir);
    let look = || match keeper {
        Keeper::Claude => of_claude(&home, &dir, id),
        Keeper::Codex => of_codex(&home, id),
    };
    Ok(match with_rights_of(user(host, facts)?.as_ref(), look)? {
        Some((name, path)) => Found::File { name, path },
        None => Found::Unknown(format!("its conversation is not in {}", home.display())),
    })
}

/// Opens a file as the agent's user. It blocks.
pub(super) fn open(host: &EngineHost, facts: &Facts, path: &Path) -> Result<File, Refusal> {
    let opened = with_rights_of(user(host, facts)?.as_ref(), || File::open(path))?;
    opened.map_err(|error| Refusal::Failed(format!("{}: {error}", path.display())))
}

/// The reason why an agent would not find a moved conversation if it works in its new directory; `None` if it would.
pub(super) fn obstacle(facts: &Facts) -> Option<String> {
    let is_claude = matches!(Keeper::of(&facts.provider), Some(Keeper::Claude));
    let is_long = dashed(Path::new(&facts.working_dir)).len() > LONGEST_FOLDER;
    (is_claude && is_long).then(|| {
        format!("the path {} is too long for a conversation that moved", facts.working_dir)
    })
}

/// Puts a conversation where the agent looks for it, in place of an older copy. It blocks.
pub(super) fn place(
    host: &EngineHost,
    facts: &Facts,
    name: &str,
    staged: &Path,
) -> Result<(), Refusal> {
    let keeper = Keeper::of(&facts.provider).filter(|_| is_sound(name));
    let keeper = keeper.ok_or_else(|| Refusal::Failed(format!("{name:?} has no place")))?;
    let home = keeper.home(host, facts)?;
    let path = match keeper {
        Keeper::Claude => folder(&home, &real(Path::new(&facts.working_dir))).join(name),
        Keeper::Codex => home.join(name),
    };
    let mut from = File::open(staged).map_err(|error| Refusal::failed(&error))?;
    let placed = with_rights_of(user(host, facts)?.as_ref(), || write(&mut from, &path))?;
    placed.map_err(|error| Refusal::Failed(format!("cannot write {}: {error}", path.display())))
}

fn write(from: &mut File, path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // The file gets its name once it is whole, so that the agent never reads half of it.
    let part = path.with_extension("moving");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    io::copy(from, &mut file)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    File::open(dir)?.sync_all()
}

fn user(host: &EngineHost, facts: &Facts) -> Result<Option<User>, Refusal> {
    users::find(&host.settings.run_as, facts.run_as_user.as_deref())
}

fn of_claude(home: &Path, dir: &Path, id: &str) -> Option<(String, PathBuf)> {
    let name = format!("{id}.jsonl");
    let likely = [folder(home, &real(dir)), folder(home, dir)];
    let others = fs::read_dir(home.join("projects")).into_iter().flatten().flatten();
    let others = others.take(MOST).map(|entry| entry.path());
    let mut paths = likely.into_iter().chain(others).map(|folder| folder.join(&name));
    paths.find(|path| path.is_file()).map(|path| (name.clone(), path))
}

/// Codex keeps a conversation in `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`.
fn of_codex(home: &Path, id: &str) -> Option<(String, PathBuf)> {
    let end = format!("{id}.jsonl");
    let mut dirs = vec![home.join("sessions")];
    let mut left = MOST;
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // Years of conversations must not hold up a move.
            left = left.checked_sub(1)?;
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if entry.file_name().to_string_lossy().ends_with(&end) {
                let name = path.strip_prefix(home).ok()?.to_str()?.to_owned();
                return Some((name, path));
            }
        }
    }
    None
}

/// Whether a name is a path of a few plain words, so that it does not lead out of the directory.
fn is_sound(name: &str) -> bool {
    let is_word = |word: Component<'_>| matches!(word, Component::Normal(_));
    let path = Path::new(name);
    path.components().all(is_word)
        && (1..=6).contains(&path.components().count())
        && path.extension().is_some_and(|extension| extension == "jsonl")
}

fn folder(home: &Path, dir: &Path) -> PathBuf {
    home.join("projects").join(dashed(dir))
}

/// The directory without links, as processes that work in it see it.
fn real(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}

/// The name of Claude's folder for a working directory.
pub(crate) fn dashed(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn the_conversations_of_claude_and_codex_are_found() {
        let home = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        assert!(of_claude(home.path(), dir.path(), ID).is_none());
        assert!(of_codex(home.path(), ID).is_none());
        let elsewhere = home.path().join("projects/-another-folder");
        fs::create_dir_all(&elsewhere).unwrap();
        let path = elsewhere.join(format!("{ID}.jsonl"));
        fs::write(&path, "{}\n").unwrap();
        let name = format!("{ID}.jsonl");
        assert_eq!(of_claude(home.path(), dir.path(), ID), Some((name, path)));
        let day = home.path().join("sessions/2026/11/26");
        fs::create_dir_all(&day).unwrap();
        let path = day.join(format!("rollout-2026-11-26T12-00-00-{ID}.jsonl"));
        fs::write(&path, "{}\n").unwrap();
        let name = format!("sessions/2026/11/26/rollout-2026-11-26T12-00-00-{ID}.jsonl");
        assert_eq!(of_codex(home.path(), ID), Some((name, path)));
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["a.jsonl", "sessions/2026/11/26/rollout-a.jsonl"] {
            assert!(is_sound(name), "{name}");
        }
        for name in
            ["", "/etc/a.jsonl", "../a.jsonl", "a/../../b.jsonl", "config.toml", "./a.jsonl"]
        {
            assert!(!is_sound(name), "{name}");
        }
    }

    #[test]
    fn a_conversation_takes_the_place_of_an_older_copy() {
        let dir = tempfile::tempdir().unwrap();
        let (staged, path) = (dir.path().join("staged"), dir.path().join("below/a.jsonl"));
        for text in ["old", "newer"] {
            fs::write(&staged, text).unwrap();
            write(&mut File::open(&staged).unwrap(), &path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
    }
}
