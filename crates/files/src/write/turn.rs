//! The writers of one file, one after the other.
//!
//! Each file has a turn of its own: a write to a file server that does not answer delays no other file.

use std::{
    collections::BTreeSet,
    ffi::CString,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::fstat;

use crate::{
    error::{FileError, doing},
    root::{Identity, NameInDir},
};

/// The names that are being written. There are as many as threads that write.
static WRITTEN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
/// Tells those that wait that a name has become free.
static FREE: Condvar = Condvar::new();

/// A directory, and a name in it.
type Name = (Identity, CString);

/// The turn of one writer. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn(Name);

impl Turn {
    /// Waits for the file's turn. The wait is short on a disk that answers, since a writer writes at most 1 MiB and
    /// computes the digest of one other file.
    ///
    /// # Errors
    ///
    /// As for every path.
    pub(super) fn take(place: &NameInDir) -> Result<Self, FileError> {
        let dir = fstat(place.dir()).map_err(doing("look at it"))?;
        let name = (Identity::from(&dir), place.name().to_owned());
        let mut written = written();
        while !written.insert(name.clone()) {
            written = FREE.wait(written).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(Self(name))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        written().remove(&self.0);
        FREE.notify_all();
    }
}

fn written() -> MutexGuard<'static, BTreeSet<Name>> {
    // No code that could panic changes the set half way.
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::sync_channel, thread, time::Duration};

    use super::*;
    use crate::tests::{Project, path, promptly};

    #[test]
    fn a_file_that_is_being_written_delays_its_own_writers_and_no_other_file() {
        let project = Project::new();
        let place = |name: &str| project.root.place(&path(name)).unwrap();
        let first = Turn::take(&place("f")).unwrap();
        let others: Vec<_> = (0..300).map(|n| place(&format!("{n}"))).collect();
        promptly(move || others.iter().for_each(|place| drop(Turn::take(place).unwrap())));
        let (again, (tell, told)) = (place("f"), sync_channel(1));
        let waiting = thread::spawn(move || {
            let turn = Turn::take(&again);
            tell.send(()).unwrap();
            turn.is_ok()
        });
        assert!(told.try_recv().is_err());
        drop(first);
        assert!(told.recv_timeout(Duration::from_secs(30)).is_ok(), "its turn has come");
        assert!(waiting.join().unwrap());
    }
}
