//! Uploads that come in parts, on any connection: uploads that are begun, given up, or complete.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use files::{FileError, RelPath, Root, change::Upload};
use protocol::workspace::ProjectId;
use tokio::time::{Instant, sleep_until};
use workspace::Refusal;

use crate::project_files::ProjectFiles;

/// The most uploads that are begun and not complete, of one project and of all.
const OF_ONE: usize = 8;
const OF_ALL: usize = 64;
/// An upload is removed when no part of it has come for this long.
const GIVEN_UP: Duration = Duration::from_secs(60 * 60);
/// How many complete uploads are remembered: a client that lost the answer sends its last part again.
const COMPLETE: usize = 256;

/// A part of an upload.
pub(crate) struct Part {
    pub(crate) project: ProjectId,
    pub(crate) path: String,
    pub(crate) upload_id: String,
    /// Where it begins in the file, in bytes.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_last: bool,
}

/// All uploads in parts.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<State>);

#[derive(Default)]
struct State {
    begun: HashMap<Key, Begun>,
    /// The newest last.
    complete: VecDeque<Complete>,
    /// Whether a task waits for uploads that are given up.
    is_watched: bool,
}

/// An upload's project and id.
type Key = (ProjectId, String);

struct Begun {
    path: String,
    /// When a part last came.
    heard: Instant,
    file: Arc<Mutex<PartialFile>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Complete {
    key: Key,
    path: String,
    length: u64,
}

#[derive(Default)]
struct PartialFile {
    /// `None` before its first part, and when it is over.
    upload: Option<Upload>,
    is_over: bool,
}

impl Uploads {
    /// Takes a part. It blocks on the disk.
    ///
    /// # Errors
    /// As for every change of files; [`FileError::Gap`], in words, if bytes before the part are missing.
    pub(crate) fn take(&self, files: &ProjectFiles, part: &Part) -> Result<(), Refusal> {
        let key = (part.project, part.upload_id.clone());
        let Some(file) = self.lock().file(&key, part)? else { return Ok(()) };
        // Parts of one upload wait for each other, and for no other upload.
        let mut file = locked(&file);
        let file = &mut *file;
        let taken = files.act(part.project, |root| file.take(root, part));
        if file.upload.is_none() && !std::mem::replace(&mut file.is_over, true) {
            self.lock().end(key, &part.path, taken.as_ref().ok().copied().flatten());
        }
        taken.map(drop)
    }

    /// Whether the caller has to run [`watch`]: there are unfinished uploads, and no task watches them.
    pub(crate) fn needs_watch(&self) -> bool {
        let mut state = self.lock();
        !state.begun.is_empty() && !std::mem::replace(&mut state.is_watched, true)
    }

    /// Removes the uploads that are given up, as their projects' users.
    fn remove_given_up(&self, files: &ProjectFiles) {
        let given_up = self.lock().take_given_up(Instant::now());
        for ((project, id), begun) in given_up {
            tracing::info!(%project, id, path = begun.path, "an upload was given up");
            let mut file = locked(&begun.file);
            file.is_over = true;
            let upload = file.upload.take();
            // If the project is gone, the upload is dropped here all the same.
            let _gone = files.act(project, move |_| {
                drop(upload);
                Ok(())
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes uploads that are given up, until there are none.
pub(crate) async fn watch(files: Weak<ProjectFiles>) {
    let next = || files.upgrade().and_then(|files| files.uploads.lock().next_given_up());
    while let Some(at) = next() {
        sleep_until(at).await;
        let Some(files) = files.upgrade() else { return };
        let removed = files.run(|files| {
            files.uploads.remove_given_up(files);
            Ok(())
        });
        if let Err(refusal) = removed.await {
            tracing::warn!(%refusal, "an upload that was given up is not removed yet");
        }
    }
}

impl State {
    /// The file that a part belongs to; `None` if the upload is complete, with this part in it.
    fn file(&mut self, key: &Key, part: &Part) -> Result<Option<Arc<Mutex<PartialFile>>>, Refusal> {
        if self.has_complete(key, part) {
            return Ok(None);
        }
        if !self.begun.contains_key(key) {
            self.begin(key, part)?;
        }
        let Some(begun) = self.begun.get_mut(key) else { return Ok(None) };
        if begun.path != part.path {
            let words = format!("the upload {} is of {}: take another id", key.1, begun.path);
            return Err(Refusal::invalid(words));
        }
        begun.heard = Instant::now();
        Ok(Some(Arc::clone(&begun.file)))
    }

    fn begin(&mut self, key: &Key, part: &Part) -> Result<(), Refusal> {
        if part.offset > 0 {
            return Err(Refusal::failed(&FileError::Gap { expected: 0 }));
        }
        if self.begun.keys().filter(|(project, _)| *project == key.0).count() >= OF_ONE {
            return Err(too_many("unfinished uploads in this project", OF_ONE));
        }
        if self.begun.len() >= OF_ALL {
            return Err(too_many("unfinished uploads", OF_ALL));
        }
        let (path, file) = (part.path.clone(), Arc::default());
        self.begun.insert(key.clone(), Begun { path, heard: Instant::now(), file });
        Ok(())
    }

    /// Notes that an upload is over. It is complete if `length`, its length in bytes, is given.
    fn end(&mut self, key: Key, path: &str, length: Option<u64>) {
        self.begun.remove(&key);
        let Some(length) = length else { return };
        if self.complete.len() >= COMPLETE {
            self.complete.pop_front();
        }
        self.complete.push_back(Complete { key, path: path.to_owned(), length });
    }

    /// Whether this part is the last one of an upload that is complete.
    fn has_complete(&self, key: &Key, part: &Part) -> bool {
        let length = part.offset.saturating_add(part.bytes.len() as u64);
        let is = |it: &Complete| it.key == *key && it.path == part.path && it.length == length;
        part.is_last && self.complete.iter().any(is)
    }

    fn take_given_up(&mut self, now: Instant) -> Vec<(Key, Begun)> {
        self.begun.extract_if(|_, begun| begun.heard + GIVEN_UP <= now).collect()
    }

    /// When the next upload is given up. `None` if there is no upload: then the task that watches ends.
    fn next_given_up(&mut self) -> Option<Instant> {
        let next = self.begun.values().map(|begun| begun.heard + GIVEN_UP).min();
        self.is_watched = next.is_some();
        next
    }
}

impl PartialFile {
    /// Takes a part. Returns the file's length once it is complete.
    fn take(&mut self, root: &Root, part: &Part) -> Result<Option<u64>, FileError> {
        if self.is_over {
            return Err(FileError::Gap { expected: 0 });
        }
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => Upload::begin(root, &RelPath::parse(&part.path)?)?,
        };
        let taken = upload.take(part.offset, &part.bytes);
        if taken.is_err() || !part.is_last {
            self.upload = Some(upload);
            return taken.map(|()| None);
        }
        let length = upload.length();
        upload.finish().map(|()| Some(length))
    }
}

fn locked(file: &Mutex<PartialFile>) -> MutexGuard<'_, PartialFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn too_many(what: &'static str, most: usize) -> Refusal {
    Refusal::TooMany { what, most }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str, offset: u64) -> Part {
        Part {
            project: ProjectId::from_random(1),
            path: "f".to_owned(),
            upload_id: id.to_owned(),
            offset,
            bytes: vec![7; 4],
            is_last: true,
        }
    }

    fn key(id: &str) -> Key {
        (ProjectId::from_random(1), id.to_owned())
    }

    #[test]
    fn the_newest_complete_uploads_are_known() {
        let mut state = State::default();
        for number in 0..=COMPLETE {
            state.end(key(&number.to_string()), "f", Some(8));
        }
        assert_eq!(state.complete.len(), COMPLETE);
        let knows = |id: &str, offset| state.has_complete(&key(id), &part(id, offset));
        assert_eq!((knows("0", 4), knows("1", 4), knows("1", 0)), (false, true, false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_is_given_up_after_an_hour_without_a_part() {
        let mut state = State::default();
        assert_eq!(state.next_given_up(), None);
        assert!(state.file(&key("a"), &part("a", 0)).unwrap().is_some());
        tokio::time::advance(GIVEN_UP / 2).await;
        assert!(state.file(&key("a"), &part("a", 4)).unwrap().is_some());
        let at = Instant::now() + GIVEN_UP;
        assert_eq!(state.next_given_up(), Some(at));
        assert_eq!(state.take_given_up(at - Duration::from_secs(1)).len(), 0);
        assert_eq!(state.take_given_up(at).len(), 1);
        assert!(state.file(&key("a"), &part("a", 4)).is_err(), "it begins anew");
    }
}
