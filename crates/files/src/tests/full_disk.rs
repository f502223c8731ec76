//! A full disk, in two forms: a small file system in memory, where the tests may mount one, and a
//! limit on the size of files in a process of its own.

use std::{env, ffi::OsStr, fs, path::Path, process::Command};

use super::{names, path};
use crate::{FileError, Root, change, read, write};

/// The variable that holds the directory of the limited process.
const LIMITED: &str = "WARREN_FILES_LIMITED";
/// More bytes than fit.
const LARGE: usize = 600 << 10;

/// A file system of 512 KiB, unmounted when this is dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512k", "none"])
            .arg(dir.path())
            .output();
        mount.is_ok_and(|done| done.status.success()).then_some(Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_the_old_file_stays_and_nothing_unfinished() {
    let Some(small) = Small::mount() else {
        println!("no file system can be mounted here; the limited process stands in");
        return;
    };
    let dir = small.0.path();
    fails_cleanly(dir);
    fs::create_dir(dir.join("tree")).unwrap();
    fs::write(dir.join("tree/a"), vec![b'a'; 150 << 10]).unwrap();
    fs::write(dir.join("tree/b"), vec![b'b'; 150 << 10]).unwrap();
    let root = Root::open(dir).unwrap();
    let copied = change::copy(&root, &path("tree"), &path("copy"));
    assert!(matches!(copied, Err(FileError::NoSpace)), "{copied:?}");
    assert_eq!(names(dir), ["old", "tree"]);
}

#[test]
fn another_file_system_below_is_neither_moved_nor_deleted() {
    let Some(small) = Small::mount() else { return };
    fs::write(small.0.path().join("f"), "theirs").unwrap();
    let above = small.0.path().parent().unwrap();
    let name = small.0.path().file_name().and_then(OsStr::to_str).unwrap();
    let root = Root::open(above).unwrap();
    let deleted = change::delete(&root, &path(name));
    assert!(matches!(deleted, Err(FileError::OtherFileSystem)), "{deleted:?}");
    let moved = change::move_entry(&root, &path(&format!("{name}/f")), &path("moved-from-there"));
    assert!(matches!(moved, Err(FileError::OtherFileSystem)), "{moved:?}");
    assert_eq!(fs::read_to_string(small.0.path().join("f")).unwrap(), "theirs");
}

#[test]
fn over_the_limit_of_a_process_the_old_file_stays_and_nothing_unfinished() {
    let dir = tempfile::tempdir().unwrap();
    // The signal that comes with the limit is ignored, as in a daemon.
    let script = r#"trap "" XFSZ; ulimit -f 64; exec "$0" --exact tests::full_disk::limited"#;
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(LIMITED, dir.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(names(dir.path()), ["old"]);
}

/// Does nothing unless this is the limited process.
#[test]
fn limited() {
    if let Some(dir) = env::var_os(LIMITED) {
        fails_cleanly(Path::new(&dir));
    }
}

fn fails_cleanly(dir: &Path) {
    let root = Root::open(dir).unwrap();
    let base = write::text(&root, &path("old"), "old text", None).unwrap();
    let large = "x".repeat(LARGE);
    for base in [None, Some(&*base)] {
        let written = write::text(&root, &path("old"), &large, base);
        assert!(matches!(written, Err(FileError::NoSpace)), "{written:?}");
    }
    let written = write::text(&root, &path("new"), &large, None);
    assert!(matches!(written, Err(FileError::NoSpace)), "{written:?}");
    let uploaded = change::upload(&root, &path("new"), large.as_bytes());
    assert!(matches!(uploaded, Err(FileError::NoSpace)), "{uploaded:?}");
    let mut parts = change::Upload::begin(&root, &path("new")).unwrap();
    parts.take(0, b"fits").unwrap();
    let taken = parts.take(4, large.as_bytes());
    assert!(matches!(taken, Err(FileError::NoSpace)), "{taken:?}");
    assert_eq!(parts.length(), 4, "it can be sent again");
    drop(parts);
    assert_eq!(read::text(&root, &path("old")).unwrap().content, "old text");
    assert_eq!(names(dir), ["old"]);
}
