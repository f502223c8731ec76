//! The transcript of an adopted process as its output: each line once, across restarts of the daemon, too.
//!
//! The position is stored after the output up to there is on the disk. So after a daemon was
//! killed, the output may have more lines than the stored position says, but never fewer. These
//! lines are skipped when they are read again.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use protocol::{json::repair, workspace::AgentEvent};
use session::agent::{AgentOutput, Line, open};
use tokio::{task, time::sleep};

use super::{subject::Subject, transcript::Transcript};
use crate::sessions::{Facts, Feed, TranscriptPosition};

/// The time between two looks for new lines in a transcript.
const BETWEEN: Duration = Duration::from_millis(300);

/// The conversation that is followed, once it is found.
pub(super) type FollowedConversation = Arc<OnceLock<String>>;

/// Reads what a process writes to its transcript.
pub(super) struct Follower {
    feed: Feed,
    subject: Subject,
    /// The position that an earlier daemon had reached.
    before: Option<TranscriptPosition>,
    /// The session's copy of the conversation. The process does not write to it, so it is not followed.
    copy: Option<String>,
    found: FollowedConversation,
    /// The lines that an earlier daemon fed to the session after it had last stored its position, and how often each.
    fed: HashMap<String, usize>,
}

struct TranscriptRead {
    transcript: Option<Transcript>,
    lines: Vec<Line>,
    /// Whether the transcript is read to its end.
    is_at_end: bool,
}

impl Follower {
    pub(super) fn new(facts: &Facts, feed: Feed, subject: Subject) -> Self {
        let (before, copy) = (facts.transcript.clone(), facts.conversation.clone());
        let found = FollowedConversation::default();
        if let Some(before) = &before {
            // The cell is new, so it is still empty.
            let _first = found.set(before.conversation.clone());
        }
        Self { feed, subject, before, copy, found, fed: HashMap::new() }
    }

    pub(super) fn found(&self) -> FollowedConversation {
        Arc::clone(&self.found)
    }

    pub(super) async fn run(mut self) {
        if let Some(before) = &self.before {
            for line in self.feed.lines_after(before.seq).await {
                *self.fed.entry(line).or_default() += 1;
            }
        }
        let mut transcript = None;
        loop {
            let (subject, before, copy) =
                (self.subject.clone(), self.before.clone(), self.copy.clone());
            let look = move || look(&subject, transcript, before.as_ref(), copy.as_deref());
            // This fails only while the runtime ends.
            let Ok(looked) = task::spawn_blocking(look).await else { return };
            match &looked.transcript {
                Some(found) if !looked.lines.is_empty() => {
                    self.take(found, looked.lines, looked.is_at_end).await;
                }
                _ => sleep(BETWEEN).await,
            }
            transcript = looked.transcript;
        }
    }

    async fn take(&mut self, transcript: &Transcript, lines: Vec<Line>, is_at_end: bool) {
        let _known = self.found.set(transcript.id.clone());
        for line in lines {
            self.tell(line);
        }
        if is_at_end {
            // All lines of the transcript that were fed before have been read again. What is left came from the copy.
            self.fed.clear();
        }
        let Some((file, at)) = transcript.position() else { return };
        // While some of the lines that were fed before have not been read again, the old seq is kept, since
        // those lines come after it.
        let before = self.before.as_ref().filter(|_| !self.fed.is_empty());
        let seq = before.map_or_else(|| self.feed.last_seq(), |before| before.seq);
        let conversation = transcript.id.clone();
        self.feed.followed(TranscriptPosition { conversation, file, at, seq }).await;
    }

    /// Feeds a line of the transcript as if the process had printed it. A line that was fed before
    /// is skipped.
    fn tell(&mut self, Line { text: line, .. }: Line) {
        if let Some(times) = self.fed.get_mut(&line).filter(|times| **times > 0) {
            *times -= 1;
            return;
        }
        let events = match (repair::value(&line), open("claude", &[], Default::default())) {
            (Some(value), Ok(mut dialect)) => dialect.parse(&value).outputs,
            _ => Vec::new(),
        };
        self.feed.line(line + "\n", events.into_iter().filter_map(event).collect());
    }
}

fn event(said: AgentOutput) -> Option<AgentEvent> {
    match said {
        AgentOutput::Event(event) => Some(event),
        _ => None,
    }
}

/// The new lines of the transcript, once it exists.
fn look(
    subject: &Subject,
    mut transcript: Option<Transcript>,
    before: Option<&TranscriptPosition>,
    copy: Option<&str>,
) -> TranscriptRead {
    let looked = subject.as_its_user(|| {
        let claude = subject.claude.as_ref()?;
        let found = || match before {
            Some(before) => Transcript::resume(claude, before),
            None => Transcript::find(claude, copy),
        };
        transcript = transcript.take().or_else(found);
        let transcript = transcript.as_mut()?;
        Some((next_lines(transcript), transcript.is_at_end()))
    });
    let (lines, is_at_end) = looked.ok().flatten().unwrap_or((Vec::new(), true));
    // After an error, too: another transcript would begin at the old position.
    TranscriptRead { transcript, lines, is_at_end }
}

/// Some of the new lines; none if the transcript cannot be read just now.
fn next_lines(transcript: &mut Transcript) -> Vec<Line> {
    loop {
        let Ok(lines) = transcript.read() else { return Vec::new() };
        // A line that is longer than one read would cost a pause for each part.
        if !lines.is_empty() || transcript.is_at_end() {
            return lines;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _, time::SystemTime};

    use super::*;
    use crate::adopted::subject::Claude;

    #[test]
    fn a_transcript_that_cannot_be_read_for_a_while_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let claude = Claude {
            folder: dir.path().to_owned(),
            config: None,
            named: None,
            since: SystemTime::now(),
            working_dir: "/".into(),
        };
        let subject = Subject { user: None, claude: Some(claude) };
        let (path, kept) = (
            dir.path().join("0b1c2d3e-0000-4000-8000-123456789abc.jsonl"),
            dir.path().join("kept"),
        );
        fs::write(&path, "one\n").unwrap();
        let mut transcript = None;
        let mut lines = || {
            let read = look(&subject, transcript.take(), None, None);
            transcript = read.transcript;
            read.lines.into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(lines(), ["one"]);
        // Longer than what was read of the file, but no file.
        fs::rename(&path, &kept).unwrap();
        fs::create_dir_all(path.join("x".repeat(200))).unwrap();
        assert_eq!(lines(), [""; 0]);
        fs::remove_dir_all(&path).unwrap();
        fs::File::options().append(true).open(&kept).unwrap().write_all(b"two\n").unwrap();
        fs::rename(&kept, &path).unwrap();
        assert_eq!(lines(), ["two"]);
    }
}
