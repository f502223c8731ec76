//! During every operation, a second thread swaps a directory for a link that leads outside, 10,000
//! times and more. No operation leaves the root.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Project, path};
use crate::{FileError, change, list, read, write};

const TRIES: usize = 10_000;

/// Swaps `door`, a directory, and `link`, which leads outside, until this is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(project: &Project) -> Self {
        project.file("door/f", "inside");
        project.link(
            "link",
            project.outside().strip_prefix("/").map_or_else(
                |_| unreachable!(),
                // The link goes many steps up: an absolute link could be refused by its text alone.
                |rest| std::path::Path::new("../../../../../../../..").join(rest),
            ),
        );
        let (door, link) = (project.at("door"), project.at("link"));
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (stop.clone(), swaps.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
            if door.is_symlink() {
                renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Repeats the attempt this often at least, and until the swaps are as many. Some attempts must
/// have succeeded and some must have been refused, or the test proves nothing.
fn race(project: &Project, mut attempt: impl FnMut(usize) -> Result<(), FileError>) {
    let swapping = Swapper::start(project);
    let (mut well, mut refused, mut tries) = (0, 0, 0);
    while tries < TRIES || swapping.swaps.load(Ordering::Relaxed) < TRIES {
        match attempt(tries) {
            Ok(()) => well += 1,
            Err(FileError::Escapes) => refused += 1,
            Err(_) => {}
        }
        tries += 1;
    }
    swapping.end();
    assert!(well > 0 && refused > 0, "{well} went well, {refused} were refused of {tries}");
    project.assert_untouched();
}

#[test]
fn reading_and_listing_never_get_outside() {
    let project = Project::new();
    race(&project, |n| {
        if n % 2 == 0 {
            let listed = list::list(&project.root, &path("door"), None)?;
            assert!(listed.entries.iter().all(|entry| entry.size == 6 && entry.name == "f"));
            let chunk = read::chunk(&project.root, &path("door/f"), 0, 100, false)?;
            assert_eq!(chunk.data, b"inside");
        } else {
            assert_eq!(read::text(&project.root, &path("door/f"))?.content, "inside");
        }
        Ok(())
    });
}

#[test]
fn writing_never_gets_outside() {
    let project = Project::new();
    race(&project, |n| write::text(&project.root, &path("door/f"), &n.to_string(), None).map(drop));
    assert_eq!(super::names(&project.at("door")), ["f"]);
}

#[test]
fn a_file_swapped_for_a_link_is_never_written_through() {
    let project = Project::new();
    project.file("plain/f", "inside");
    let swapping = Swapper::start(&project);
    // Here the entry itself is swapped, not a directory on the way to it.
    for n in 0..TRIES {
        match write::text(&project.root, &path("door"), &n.to_string(), None) {
            Err(FileError::Escapes | FileError::IsADirectory | FileError::Busy) => {}
            Err(FileError::Links | FileError::NotADirectory | FileError::NotFound) => {}
            other => panic!("{other:?}"),
        }
    }
    swapping.end();
    project.assert_untouched();
}

#[test]
fn creating_uploading_moving_and_deleting_never_get_outside() {
    let project = Project::new();
    let root = &project.root;
    race(&project, |n| {
        let (new, other) = (path(&format!("door/new{n}")), path(&format!("door/other{n}")));
        match n % 3 {
            0 => change::file(root, &new)?,
            1 => change::upload(root, &new, b"bytes")?,
            _ => change::directory(root, &new)?,
        }
        // The move may be refused both times; the entry then stays behind, inside the root.
        change::move_entry(root, &new, &other)
            .or_else(|_| change::move_entry(root, &new, &other))?;
        change::delete(root, &other)
    });
}

#[test]
fn deleting_all_behind_a_swapped_name_never_gets_outside() {
    let project = Project::new();
    let root = &project.root;
    project.file("tree/f", "inside");
    fs::create_dir(project.at("tree/door")).unwrap();
    race(&project, |_| {
        // The content of the copy must be that of the swapped directory.
        match change::copy(root, &path("door"), &path("copy")) {
            Ok(()) | Err(FileError::Exists) => {}
            Err(other) => return Err(other),
        }
        if let Ok(text) = read::text(root, &path("copy/f")) {
            assert_eq!(text.content, "inside");
        }
        change::delete(root, &path("copy"))?;
        read::text(root, &path("door/f")).map(drop)
    });
}

#[test]
fn a_recursive_delete_does_not_go_through_what_became_a_link() {
    let project = Project::new();
    let root = &project.root;
    for n in 0..200 {
        let name = |part: &str| format!("tree{n}/{part}");
        for part in 0..20 {
            project.file(&name(&format!("d{part}/f")), "inside");
            project.link(&name(&format!("l{part}")), project.outside());
        }
        let (tree, stop) = (project.at(&format!("tree{n}")), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut part = 0;
            while !stopped.load(Ordering::Relaxed) {
                part = (part + 1) % 20;
                let (dir, link) = (tree.join(format!("d{part}")), tree.join(format!("l{part}")));
                // One of the two may be gone.
                let _ = renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE);
            }
        });
        let deleted = change::delete(root, &path(&format!("tree{n}")));
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert!(matches!(deleted, Ok(()) | Err(FileError::Busy)), "{deleted:?}");
    }
    project.assert_untouched();
}
