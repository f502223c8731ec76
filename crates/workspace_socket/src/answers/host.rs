//! The machine's own directories, for administrators.

use std::{
    collections::BinaryHeap,
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

use super::{
    asker::{Answer, Asker},
    files::tell_cut,
};

/// The most entries that are listed at once.
const MOST: usize = 20_000;
/// The deadline for reading a directory, which may lie on another machine.
const WITHIN: Duration = Duration::from_secs(30);

pub(crate) async fn list(asker: &Asker, request: ListDirectory) -> Answer {
    let ListDirectory { path, after } = request;
    let wants_parts = after.is_some();
    let listing = task::spawn_blocking(move || listing(&path, after.as_deref(), MOST));
    let listing = timeout(WITHIN, listing).await;
    let listing = listing.map_err(|_| Refusal::invalid("the directory does not answer"))?;
    let listing = listing.map_err(|error| Refusal::failed(&error))??;
    if listing.next.is_some() && !wants_parts {
        tell_cut(asker, &listing.path, listing.entries.len());
    }
    Ok(Some(ServerMessage::DirectoryListing(listing)))
}

/// Lists a directory: subdirectories first, and each group by name; at most `most` entries, those that
/// follow the entry `after`.
fn listing(dir: &str, after: Option<&str>, most: usize) -> Result<DirectoryListing, Refusal> {
    let path = full(dir)?;
    let refused = |error: std::io::Error| {
        Refusal::Failed(format!("{} cannot be listed: {error}", path.display()))
    };
    let after = after.filter(|after| !after.is_empty());
    let after = after.map(|name| (!name.ends_with('/'), name.to_owned()));
    // The greatest entry is on top, and is removed first.
    let (mut found, mut is_cut) = (BinaryHeap::new(), false);
    for entry in fs::read_dir(&path).map_err(refused)? {
        let entry = shown(&entry.map_err(refused)?);
        if after.as_ref().is_some_and(|after| entry <= *after) {
            continue;
        }
        found.push(entry);
        if found.len() > most {
            found.pop();
            is_cut = true;
        }
    }
    let entries = found.into_sorted_vec().into_iter().map(|(_, name)| name);
    let entries: Vec<String> = entries.collect();
    Ok(DirectoryListing {
        parent: path.parent().map(|parent| parent.display().to_string()),
        path: path.display().to_string(),
        next: entries.last().filter(|_| is_cut).cloned(),
        entries,
    })
}

fn full(dir: &str) -> Result<PathBuf, Refusal> {
    let path = match dir.strip_prefix('~') {
        Some("") => users::home(None)?,
        Some(rest) if rest.starts_with('/') => {
            users::home(None)?.join(rest.trim_start_matches('/'))
        }
        _ if dir.is_empty() => users::home(None)?,
        _ => PathBuf::from(dir),
    };
    match path.is_absolute() && !dir.contains('\0') {
        true => Ok(path),
        false => Err(Refusal::Invalid(format!("{dir:?} is no full path: begin it with / or ~"))),
    }
}

/// The key by which an entry is sorted: whether it is something other than a directory or a link to one, and
/// its name. The name of a directory ends with a slash.
fn shown(entry: &DirEntry) -> (bool, String) {
    let kind = entry.file_type();
    let leads_to_one = |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_dir());
    let is_dir =
        kind.is_ok_and(|kind| kind.is_dir() || (kind.is_symlink() && leads_to_one(&entry.path())));
    let name = entry.file_name().to_string_lossy().into_owned();
    (!is_dir, if is_dir { name + "/" } else { name })
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
        let listed = all(dir.path().to_str().unwrap()).unwrap();
        assert_eq!(listed.entries, ["a/", "b/", "z/", "a.txt", "b.txt", "dangling"]);
        assert_eq!(listed.parent.as_deref(), dir.path().parent().unwrap().to_str());
        assert_eq!(all("/").unwrap().parent, None);
        assert!(all("~").is_ok() && all("").is_ok());
    }

    fn all(path: &str) -> Result<DirectoryListing, Refusal> {
        listing(path, None, MOST)
    }

    #[test]
    fn a_large_directory_is_listed_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        ["b", "d"].iter().for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        ["a", "c", "e"].iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        let part = |after| {
            let part = listing(dir.path().to_str().unwrap(), after, 2).unwrap();
            (part.entries, part.next)
        };
        let of = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        assert_eq!(part(None), (of(["b/", "d/"]), Some("d/".to_owned())));
        assert_eq!(part(Some("")), part(None));
        fs::remove_dir(dir.path().join("d")).unwrap();
        assert_eq!(part(Some("d/")), (of(["a", "c"]), Some("c".to_owned())));
        assert_eq!(part(Some("c")), (vec!["e".to_owned()], None));
    }

    #[test]
    fn a_refused_directory_is_named() {
        for path in ["relative", "~nobody", "/no/such/directory", "/etc/passwd", "/a\0b"] {
            let refused = all(path).unwrap_err().to_string();
            assert!(refused.contains(path.trim_end_matches("\0b")), "{refused}");
        }
    }
}
