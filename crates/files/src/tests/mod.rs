//! Tests across modules (links swapped during operations, full disks), and helpers for all tests.

mod full_disk;
mod swapped;

use std::{
    fs, os::unix::net::UnixListener, path::Path, sync::mpsc::sync_channel, thread, time::Duration,
};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tempfile::TempDir;

use crate::{path::RelPath, root::Root};

/// A root in memory, with a directory beside it that must stay untouched.
pub(crate) struct Project {
    base: TempDir,
    pub(crate) root: Root,
}

impl Project {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        fs::create_dir(base.path().join("root")).unwrap();
        fs::create_dir(base.path().join("outside")).unwrap();
        fs::write(base.path().join("outside/f"), "secret").unwrap();
        let root = Root::open(&base.path().join("root")).unwrap();
        Self { base, root }
    }

    pub(crate) fn at(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn outside(&self) -> std::path::PathBuf {
        self.base.path().join("outside")
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub(crate) fn link(&self, name: &str, to: impl AsRef<Path>) {
        std::os::unix::fs::symlink(to, self.at(name)).unwrap();
    }

    /// Asserts that the outside is unchanged and that no unfinished file is left inside.
    pub(crate) fn assert_untouched(&self) {
        self.assert_elsewhere_untouched();
        self.assert_no_left_overs();
    }

    pub(crate) fn assert_elsewhere_untouched(&self) {
        assert_eq!(names(&self.outside()), ["f"]);
        assert_eq!(fs::read_to_string(self.outside().join("f")).unwrap(), "secret");
    }

    pub(crate) fn assert_no_left_overs(&self) {
        let left: Vec<_> = names(self.root.path());
        assert!(!left.iter().any(|name| name.starts_with(".warren-")), "{left:?}");
    }

    /// Creates a FIFO, a socket and, if that is allowed, a device. Returns their names.
    pub(crate) fn special(&self) -> Vec<&'static str> {
        let make = |name, kind, device| mknodat(CWD, self.at(name), kind, Mode::RWXU, device);
        make("fifo", FileType::Fifo, 0).unwrap();
        drop(UnixListener::bind(self.at("socket")).unwrap());
        let device = make("device", FileType::CharacterDevice, makedev(1, 5));
        let mut names = vec!["fifo", "socket"];
        names.extend(device.is_ok().then_some("device"));
        names
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a function that must not block, with a deadline.
pub(crate) fn promptly<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, done) = sync_channel(1);
    thread::spawn(move || tell.send(run()));
    done.recv_timeout(Duration::from_secs(20)).expect("it blocks")
}
