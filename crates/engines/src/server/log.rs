//! The lines that a server writes, kept within bounds: the last ones in memory, more of them in a file.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base::plain;
use tokio::{
    fs::{self, File, OpenOptions},
    io::AsyncWriteExt,
    time::Instant,
};

/// The most lines in memory.
const MOST_LINES: usize = 40;
/// The longest line in memory, in bytes.
const MOST_LINE: usize = 400;
/// The size from which a new file is begun, in bytes. The previous file is kept beside it.
const MOST_FILE: u64 = 1 << 20;
/// The most that goes into the file at once, and the rate after that: bytes, and bytes per second.
const BURST: u64 = 512 * 1024;
const A_SECOND: u64 = 64 * 1024;
/// Lines that some servers write whenever they are asked whether they are ready. They are left out.
const NOISE: [&str; 2] = ["GET /health", "GET /v1/models"];
/// The longest name of a file, without its ending, in bytes.
const MOST_NAME: usize = 200;

/// The log of one model's servers.
#[derive(Debug)]
pub(crate) struct ServerLog {
    dir: PathBuf,
    path: PathBuf,
    lines: Mutex<Lines>,
    file: tokio::sync::Mutex<LogFile>,
}

#[derive(Debug, Default)]
struct Lines {
    whole: VecDeque<String>,
    /// A line without its end.
    half: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    file: Option<File>,
    length: u64,
    /// How many bytes may be written now, and when that was last computed.
    left: u64,
    at: Instant,
    /// How many bytes were not written since the last note about them.
    dropped: u64,
}

impl ServerLog {
    pub(crate) fn new(dir: &Path, model: &str) -> Self {
        let dir = dir.join("logs");
        let path = dir.join(format!("{}.log", file_name(model)));
        let file = LogFile { file: None, length: 0, left: BURST, at: Instant::now(), dropped: 0 };
        let file = tokio::sync::Mutex::new(file);
        Self { dir, path, lines: Mutex::default(), file }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The last lines, oldest first, safe for a terminal.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let lines = self.lines();
        let half = Some(text(&lines.half)).filter(|line| !line.is_empty());
        lines.whole.iter().cloned().chain(half).collect()
    }

    /// Begins the log of a server that is started with this command.
    pub(super) async fn begin(&self, program: &OsStr, args: &[OsString]) {
        *self.lines() = Lines::default();
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        let line = format!("\n$ {} {}\n", program.to_string_lossy(), words.join(" "));
        self.write(line.as_bytes()).await;
    }

    /// Takes output of a server.
    pub(super) async fn add(&self, bytes: &[u8]) {
        self.lines().add(bytes);
        self.write(bytes).await;
    }

    async fn write(&self, bytes: &[u8]) {
        let mut file = self.file.lock().await;
        let part = file.allowed(bytes);
        if part.is_empty() {
            return;
        }
        if let Err(error) = self.append(&mut file, part).await {
            // The last lines are still in memory.
            tracing::debug!(path = ?self.path, %error, "a model server's log is not kept");
            file.file = None;
        }
    }

    async fn append(&self, to: &mut LogFile, bytes: &[u8]) -> io::Result<()> {
        if to.length >= MOST_FILE {
            to.file = None;
            match fs::rename(&self.path, self.path.with_extension("log.1")).await {
                // Somebody has removed it: a new one is begun all the same.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if to.file.is_none() {
            fs::create_dir_all(&self.dir).await?;
            let file = OpenOptions::new().create(true).append(true).open(&self.path).await?;
            to.length = file.metadata().await?.len();
            to.file = Some(file);
        }
        let note = match std::mem::take(&mut to.dropped) {
            0 => String::new(),
            dropped => format!("\n({dropped} bytes were written too fast to be kept)\n"),
        };
        let Some(file) = &mut to.file else { return Ok(()) };
        file.write_all(note.as_bytes()).await?;
        file.write_all(bytes).await?;
        file.flush().await?;
        to.length += (note.len() + bytes.len()) as u64;
        Ok(())
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogFile {
    /// The part of these bytes that may be written now; the rest is counted.
    fn allowed<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let passed = self.at.elapsed().min(Duration::from_secs(60));
        self.at = Instant::now();
        let more = A_SECOND as f64 * passed.as_secs_f64();
        self.left = self.left.saturating_add(more as u64).min(BURST);
        let part = &bytes[..bytes.len().min(self.left as usize)];
        self.left -= part.len() as u64;
        self.dropped += (bytes.len() - part.len()) as u64;
        part
    }
}

impl Lines {
    /// Takes output. Only the end of a long one can stay, so the rest is skipped.
    fn add(&mut self, bytes: &[u8]) {
        let most = MOST_LINES * MOST_LINE;
        let bytes = &bytes[bytes.len().saturating_sub(most)..];
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MOST_LINE.saturating_sub(self.half.len());
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            self.half.extend_from_slice(&line[..line.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = text(&std::mem::take(&mut self.half));
        if line.is_empty() || NOISE.iter().any(|noise| line.contains(noise)) {
            return;
        }
        if self.whole.len() >= MOST_LINES {
            self.whole.pop_front();
        }
        self.whole.push_back(line);
    }
}

fn text(bytes: &[u8]) -> String {
    plain::stripped(String::from_utf8_lossy(bytes).trim())
}

/// A model's name as the name of a file. Two models have two files, unless their names are long and begin alike: other
/// bytes than letters, digits and `-_.` are written as in a URL.
fn file_name(model: &str) -> String {
    let mut name = String::new();
    for (at, byte) in model.bytes().enumerate() {
        let is_safe = byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        // A file whose name begins with a dot is hidden.
        match is_safe || (byte == b'.' && at > 0) {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.truncate(MOST_NAME);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let log = ServerLog::new(dir.path(), "org/../m:8b");
        log.begin(OsStr::new("serve"), &["-x".into()]).await;
        for number in 0..50 {
            log.add(format!("line {number}\r\n\n").as_bytes()).await;
        }
        log.add(b"127.0.0.1 - \"GET /health HTTP/1.1\" 503\n").await;
        log.add(b"ha").await;
        log.add(b"lf \x1b[31mred").await;
        let lines = log.last_lines();
        assert_eq!((lines.len(), &*lines[0], &*lines[39]), (MOST_LINES + 1, "line 10", "line 49"));
        assert_eq!(lines[40], "half [31mred");
        let text = std::fs::read_to_string(dir.path().join("logs/org%2F..%2Fm%3A8b.log")).unwrap();
        assert!(text.starts_with("\n$ serve -x\nline 0\r\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_writes_for_ever_fills_no_disk() {
        let dir = tempfile::tempdir().unwrap();
        let log = ServerLog::new(dir.path(), "m");
        let much = vec![b'x'; 64 * 1024];
        for _ in 0..100 {
            log.add(&much).await;
        }
        let length =
            |name: &str| std::fs::metadata(dir.path().join("logs").join(name)).map(|it| it.len());
        assert!(length("m.log").unwrap() <= BURST + A_SECOND * 2, "{:?}", length("m.log"));
        for _ in 0..100 {
            tokio::time::advance(Duration::from_secs(10)).await;
            log.add(&much).await;
        }
        assert!(length("m.log").unwrap() <= MOST_FILE + 2 * BURST);
        assert!(length("m.log.1").unwrap() <= MOST_FILE + 2 * BURST);
        assert_eq!(std::fs::read_dir(dir.path().join("logs")).unwrap().count(), 2);
        assert!(log.last_lines().iter().all(|line| line.len() <= MOST_LINE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_was_removed_is_begun_again() {
        let dir = tempfile::tempdir().unwrap();
        let log = ServerLog::new(dir.path(), "m");
        let much = vec![b'x'; BURST as usize];
        for _ in 0..2 {
            log.add(&much).await;
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        std::fs::remove_file(log.path()).unwrap();
        log.add(b"again").await;
        assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "again");
    }

    #[test]
    fn a_name_leads_to_no_other_place() {
        assert_eq!(file_name("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
        assert_ne!(file_name("a/b"), file_name("a_b"));
        assert_eq!(file_name("Qwen3-8B-Q4_K_M"), "Qwen3-8B-Q4_K_M");
        assert_eq!(file_name(&"x".repeat(300)).len(), MOST_NAME);
    }
}
