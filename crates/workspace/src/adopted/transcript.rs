//! Where a conversation of Claude is on the disk, and its new lines.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::OFlags;
use session::agent::{Line, LineSplitter};

use super::subject::{Claude, is_id};
use crate::sessions::TranscriptPosition;

/// How much of the transcript's existing text is shown, in bytes.
const BEFORE: u64 = 256 * 1024;
/// How much is read at a time, in bytes.
const READ: u64 = 256 * 1024;
/// The longest conversation that is copied, in bytes.
const LONGEST: u64 = 256 * 1024 * 1024;
/// The most files of a folder that are examined.
const MOST_FILES: usize = 10_000;
/// How much older than its process a transcript may seem: clocks of file systems are coarse.
const COARSE: Duration = Duration::from_secs(2);

/// One transcript, as it is followed.
#[derive(Debug)]
pub(super) struct Transcript {
    path: PathBuf,
    pub(super) id: String,
    /// Device and inode of the file, once it was read.
    file: Option<(u64, u64)>,
    at: u64,
    lines: LineSplitter,
    /// Whether the bytes up to the next line end are skipped: their line was not read from its
    /// beginning.
    skips: bool,
}

impl Transcript {
    /// The transcript of a process: the one that its arguments name, otherwise the one that was
    /// last written since the process started, except the session's own copy.
    pub(super) fn find(claude: &Claude, copy: Option<&str>) -> Option<Self> {
        let path = match &claude.named {
            Some(id) => path(&claude.folder, id),
            None => newest(&claude.folder, claude.since, copy)?,
        };
        Self::of(claude, path.file_stem()?.to_str()?)
    }

    /// The transcript of a conversation, which is read from near its end.
    pub(super) fn of(claude: &Claude, id: &str) -> Option<Self> {
        let (path, id) = (path(&claude.folder, id), id.to_owned());
        let length = fs::metadata(&path).ok().filter(Metadata::is_file)?.len();
        let at = length.saturating_sub(BEFORE);
        // A place in the middle of the file is most likely in the middle of a line.
        Some(Self { path, id, file: None, at, lines: LineSplitter::default(), skips: at > 0 })
    }

    /// A transcript that was followed before, from the position that was reached.
    pub(super) fn resume(claude: &Claude, before: &TranscriptPosition) -> Option<Self> {
        let found = Self::of(claude, &before.conversation)?;
        Some(Self { file: Some(before.file), at: before.at, skips: false, ..found })
    }

    /// The identity of the file, and the position up to which whole lines are read. `None` before
    /// the first read, and within a line that is skipped.
    pub(super) fn position(&self) -> Option<((u64, u64), u64)> {
        let at = self.at.saturating_sub(self.lines.unfinished());
        self.file.filter(|_| !self.skips).map(|file| (file, at))
    }

    /// Some of the new lines; more may follow until [`Transcript::is_at_end`]. A file that was cut
    /// short or replaced is read from its beginning.
    pub(super) fn read(&mut self) -> io::Result<Vec<Line>> {
        let mut file = open(&self.path)?;
        let found = file.metadata()?;
        if self.file.is_some_and(|known| known != which(&found)) || found.len() < self.at {
            (self.at, self.skips, self.lines) = (0, false, LineSplitter::default());
        }
        self.file = Some(which(&found));
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        self.at += file.take(READ).read_to_end(&mut bytes)? as u64;
        Ok(self.whole_lines(&bytes))
    }

    /// Copies the conversation, up to its last whole line, to a new one. Returns the new id.
    pub(super) fn fork(&self) -> io::Result<String> {
        // The file is read whole below.
        let length = fs::metadata(&self.path)?.len();
        if length > LONGEST {
            return Err(io::Error::other(format!("the conversation has {length} bytes")));
        }
        // Bytes that are not UTF-8 are replaced, so that they do not keep the rest from being copied.
        let text = String::from_utf8_lossy(&fs::read(&self.path)?).into_owned();
        // Claude may be in the middle of writing a line.
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string();
        // Each line names its conversation.
        let forked = text[..end].replace(&self.id, &id);
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        options.open(path(folder, &id))?.write_all(forked.as_bytes())?;
        Ok(id)
    }

    fn whole_lines(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        if self.skips {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Vec::new() };
            bytes = &bytes[end + 1..];
            self.skips = false;
        }
        let mut lines = Vec::new();
        self.lines.push(bytes, &mut lines);
        lines.retain(|line| !line.text.is_empty());
        lines
    }

    /// Whether the file is read to its end.
    pub(super) fn is_at_end(&self) -> bool {
        // A file that is gone has no more lines.
        fs::metadata(&self.path).map_or(true, |found| found.len() <= self.at)
    }
}

/// Opens a regular file. Anything else is an error, and opening it does not wait.
fn open(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

fn which(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

fn newest(folder: &Path, since: SystemTime, but: Option<&str>) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().take(MOST_FILES);
    let transcripts = entries.filter_map(|entry| {
        let path = entry.path();
        let is_one = path.extension().is_some_and(|extension| extension == "jsonl")
            && path
                .file_stem()
                .and_then(|id| id.to_str())
                .is_some_and(|id| is_id(id) && Some(id) != but);
        let written = entry.metadata().ok().filter(Metadata::is_file)?.modified().ok()?;
        (is_one && written + COARSE >= since).then_some((written, path))
    });
    transcripts.max().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b1c2d3e-0000-4000-8000-123456789abc";

    fn claude(folder: &Path) -> Claude {
        Claude {
            folder: folder.to_owned(),
            config: None,
            named: None,
            since: SystemTime::now(),
            working_dir: "/".into(),
        }
    }

    fn find(folder: &Path) -> Option<Transcript> {
        Transcript::find(&claude(folder), None)
    }

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn add(folder: &Path, id: &str, text: &str) {
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(path(folder, id)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_are_read_once_each_when_they_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), ID, "one\ntwo\nthr");
        let mut transcript = find(dir.path()).unwrap();
        assert_eq!(texts(&transcript.read().unwrap()), ["one", "two"]);
        assert_eq!(texts(&transcript.read().unwrap()), [""; 0]);
        add(dir.path(), ID, "ee\n\nfour\n");
        assert_eq!(texts(&transcript.read().unwrap()), ["three", "four"]);
        assert!(transcript.is_at_end());
    }

    #[test]
    fn one_that_is_cut_short_or_replaced_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), ID, "one\ntwo\n");
        let mut transcript = find(dir.path()).unwrap();
        transcript.read().unwrap();
        fs::write(path(dir.path(), ID), "new\n").unwrap();
        assert_eq!(texts(&transcript.read().unwrap()), ["new"]);
        fs::write(dir.path().join("other"), "another file\n").unwrap();
        fs::rename(dir.path().join("other"), path(dir.path(), ID)).unwrap();
        assert_eq!(texts(&transcript.read().unwrap()), ["another file"]);
    }

    #[test]
    fn of_a_long_one_the_end_is_shown_and_of_long_lines_what_is_short() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!(r#"{{"text":"{}","uuid":"u"}}"#, "x".repeat(20 << 20));
        add(dir.path(), ID, &format!("first\n{}\nlast\n", "y".repeat(300_000)));
        let mut transcript = find(dir.path()).unwrap();
        add(dir.path(), ID, &format!("{long}\nend\n"));
        let mut lines = Vec::new();
        while !transcript.is_at_end() {
            lines.extend(transcript.read().unwrap());
        }
        assert_eq!(texts(&[lines[0].clone(), lines[2].clone()]), ["last", "end"]);
        assert!(lines[1].text.len() < 1 << 20 && lines[1].text.ends_with(r#""uuid":"u"}"#));
    }

    #[test]
    fn the_newest_since_the_start_is_the_one_and_what_is_no_transcript_is_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes.jsonl"), "x\n").unwrap();
        let mut claude = claude(dir.path());
        assert!(Transcript::find(&claude, None).is_none());
        add(dir.path(), ID, "one\n");
        assert_eq!(Transcript::find(&claude, None).unwrap().id, ID);
        claude.since = SystemTime::now() + Duration::from_secs(60);
        assert!(Transcript::find(&claude, None).is_none(), "of an earlier process");
        claude.named = Some(ID.to_owned());
        assert_eq!(Transcript::find(&claude, None).unwrap().id, ID);
    }

    #[test]
    fn a_copy_of_ours_is_not_the_processs_though_it_was_written_last() {
        let dir = tempfile::tempdir().unwrap();
        let claude = claude(dir.path());
        add(dir.path(), ID, "one\n");
        let copy = find(dir.path()).unwrap().fork().unwrap();
        assert_eq!(Transcript::find(&claude, Some(&copy)).unwrap().id, ID);
        assert!(Transcript::find(&claude, Some(ID)).is_some_and(|found| found.id == copy));
    }

    #[test]
    fn one_that_was_followed_before_goes_on_with_the_first_line_that_was_not_whole() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), ID, "one\ntwo\nthr");
        let mut transcript = find(dir.path()).unwrap();
        assert_eq!(transcript.position(), None, "nothing is read");
        transcript.read().unwrap();
        let (file, at) = transcript.position().unwrap();
        let before = TranscriptPosition { conversation: ID.to_owned(), file, at, seq: 2 };
        add(dir.path(), ID, "ee\nfour\n");
        let resume = || Transcript::resume(&claude(dir.path()), &before);
        assert_eq!(texts(&resume().unwrap().read().unwrap()), ["three", "four"]);
        fs::rename(path(dir.path(), ID), dir.path().join("kept")).unwrap();
        assert!(resume().is_none(), "it may come back");
        add(dir.path(), ID, "another file\n");
        assert_eq!(texts(&resume().unwrap().read().unwrap()), ["another file"]);
    }

    #[test]
    fn a_fork_is_a_conversation_of_its_own_even_of_text_that_is_no_utf8() {
        let dir = tempfile::tempdir().unwrap();
        let said = [
            b"{\"a\":\"\xff\"}\n".to_vec(),
            format!("{{\"sessionId\":\"{ID}\"}}\n{{\"half").into(),
        ];
        fs::write(path(dir.path(), ID), said.concat()).unwrap();
        let transcript = find(dir.path()).unwrap();
        let fork = transcript.fork().unwrap();
        assert_ne!(fork, ID);
        let text = fs::read_to_string(path(dir.path(), &fork)).unwrap();
        let expected = format!("{{\"a\":\"\u{fffd}\"}}\n{{\"sessionId\":\"{fork}\"}}\n");
        assert_eq!(text, expected);
    }
}
