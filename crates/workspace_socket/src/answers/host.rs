//! The machine's own directories, for administrators.

use std::{
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    time::Duration,
};

use protocol::workspace::{
    ServerMessage,
    client::{DirectoryListing, ListDirectory},
};
use tokio::{task, time::timeout};
use workspace::{Refusal, users};

use super::asker::Answer;

/// The most entries that are listed.
const MOST: usize = 20_000;
/// The deadline for reading a directory, which may lie on another machine.
const WITHIN: Duration = Duration::from_secs(30);

pub(crate) async fn list(asked: ListDirectory) -> Answer {
    let listing = timeout(WITHIN, task::spawn_blocking(move || listing(&asked.path))).await;
    let listing = listing.map_err(|_| Refusal::invalid("the directory does not answer"))?;
    let listing = listing.map_err(|error| Refusal::failed(&error))??;
    Ok(Some(ServerMessage::DirectoryListing(listing)))
}

/// Lists a directory: subdirectories first, and each group by name.
fn listing(asked: &str) -> Result<DirectoryListing, Refusal> {
    let path = full(asked)?;
    let refused = |error: std::io::Error| {
        Refusal::Failed(format!("{} cannot be listed: {error}", path.display()))
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path).map_err(refused)? {
        if entries.len() >= MOST {
            let shown = path.display();
            return Err(Refusal::Invalid(format!("{shown} has more than {MOST} entries")));
        }
        entries.push(shown(&entry.map_err(refused)?));
    }
    entries.sort_by(|(one_is_dir, one), (other_is_dir, other)| {
        (!one_is_dir, one).cmp(&(!other_is_dir, other))
    });
    Ok(DirectoryListing {
        parent: path.parent().map(|parent| parent.display().to_string()),
        path: path.display().to_string(),
        entries: entries.into_iter().map(|(_, name)| name).collect(),
    })
}

fn full(asked: &str) -> Result<PathBuf, Refusal> {
    let path = match asked.strip_prefix('~') {
        Some("") => users::home(None)?,
        Some(rest) if rest.starts_with('/') => {
            users::home(None)?.join(rest.trim_start_matches('/'))
        }
        _ if asked.is_empty() => users::home(None)?,
        _ => PathBuf::from(asked),
    };
    match path.is_absolute() && !asked.contains('\0') {
        true => Ok(path),
        false => Err(Refusal::Invalid(format!("{asked:?} is no full path: begin it with / or ~"))),
    }
}

/// Whether the entry is a directory or a link to one; and its name, with a slash after it if so.
fn shown(entry: &DirEntry) -> (bool, String) {
    let kind = entry.file_type();
    let leads_to_one = |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_dir());
    let is_dir =
        kind.is_ok_and(|kind| kind.is_dir() || (kind.is_symlink() && leads_to_one(&entry.path())));
    let name = entry.file_name().to_string_lossy().into_owned();
    (is_dir, if is_dir { name + "/" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_first_with_a_slash() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(format!("{name}.txt")), "").unwrap();
        }
        std::os::unix::fs::symlink("a", dir.path().join("z")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
        let listed = listing(dir.path().to_str().unwrap()).unwrap();
        assert_eq!(listed.entries, ["a/", "b/", "z/", "a.txt", "b.txt", "dangling"]);
        assert_eq!(listed.parent.as_deref(), dir.path().parent().unwrap().to_str());
        assert_eq!(listing("/").unwrap().parent, None);
        assert!(listing("~").is_ok() && listing("").is_ok());
    }

    #[test]
    fn a_refused_directory_is_named() {
        for path in ["relative", "~nobody", "/no/such/directory", "/etc/passwd", "/a\0b"] {
            let refused = listing(path).unwrap_err().to_string();
            assert!(refused.contains(path.trim_end_matches("\0b")), "{refused}");
        }
    }
}
