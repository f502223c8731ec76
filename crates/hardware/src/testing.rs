//! Machines made up for tests: a root in a directory of its own, and tools that say what they are
//! told to.

use std::{collections::HashMap, fs, path::Path};

use crate::{Root, Tools};

/// A root under construction; gone when dropped.
pub(crate) struct MadeUp(tempfile::TempDir);

impl MadeUp {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file, and the directories that it lies in.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.0.path())
    }
}

/// The output of each program, by its name; others are not installed.
#[derive(Default)]
pub(crate) struct Says(HashMap<&'static str, String>);

impl Says {
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// This program says that, whatever it is asked. A program may be followed by its first
    /// arguments.
    pub(crate) fn of(mut self, program: &'static str, output: &str) -> Self {
        self.0.insert(program, output.to_owned());
        self
    }
}

impl Tools for Says {
    fn run(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let whole = format!("{program} {}", arguments.join(" "));
        self.0.get(program).or_else(|| self.0.get(whole.as_str())).cloned()
    }
}
