//! The events of an agent's turns, numbered: the newest in memory, and all of them on the disk soon.
//! An agent's lines of output alone do not say what happened: the prompts are not among them, nor is
//! the end of a turn that the agent did not report.

use jiff::Timestamp;
use protocol::workspace::{AgentEvent, client::StoredEvent};
use serde_json::Value;
use session::terminal::log::{Chunk, Log, RESTART_GAP};

/// The most bytes of events that are kept in memory.
const IN_MEMORY: usize = 512 * 1024;
/// The most bytes of a text. A stored event must fit into one chunk of a log, however much its text is escaped.
const TEXT: usize = 128 * 1024;
/// The most bytes of a tool's output, of a notice and of an error.
const TOOL_OUTPUT: usize = 4 * 1024;
/// The most bytes of each text in a tool's input.
const INPUT_TEXT: usize = 1024;
/// A tool's input that is still longer than this many bytes is not stored.
const INPUT: usize = 32 * 1024;

/// The events of one session.
pub(crate) struct TurnLog {
    log: Log,
    /// The number up to which events are on the disk, or never will be.
    written: u64,
}

impl TurnLog {
    pub(crate) fn new() -> Self {
        Self { log: Log::new(IN_MEMORY), written: 0 }
    }

    /// The events in memory, each as JSON.
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// Keeps an event. Returns its number.
    pub(crate) fn append(&mut self, event: &AgentEvent, at: Timestamp) -> u64 {
        let number = self.log.last_seq() + 1;
        let stored = StoredEvent { number, at, event: shortened(event) };
        // Numbers, text and JSON are always JSON.
        let json = serde_json::to_vec(&stored).unwrap_or_default();
        self.log.append(json.into())
    }

    /// Continues the numbers after the events of an earlier daemon, which are on the disk.
    pub(crate) fn continue_after(&mut self, number: u64) {
        self.log.resume_at(number + RESTART_GAP);
        self.written = self.log.last_seq();
    }

    /// The events that are not on the disk, as far as they are kept.
    pub(crate) fn unwritten(&self) -> Vec<Chunk> {
        match self.log.after(self.written) {
            Ok(chunks) => chunks.collect(),
            Err(_) => self.log.all().collect(),
        }
    }

    /// Notes that the events up to this number are on the disk.
    pub(crate) const fn note_written(&mut self, last: u64) {
        self.written = last;
    }
}

/// Reads stored events. Events that this version does not know are left out.
pub(crate) fn read(chunks: &[Chunk]) -> Vec<StoredEvent> {
    chunks.iter().filter_map(|chunk| serde_json::from_slice(&chunk.text).ok()).collect()
}

/// The event with its long texts cut.
fn shortened(event: &AgentEvent) -> AgentEvent {
    let mut event = event.clone();
    match &mut event {
        AgentEvent::TurnStarted { prompt, .. } => prompt.iter_mut().for_each(|it| cut(it, TEXT)),
        AgentEvent::Text { text, .. } | AgentEvent::Thinking { text } => cut(text, TEXT),
        AgentEvent::ToolStarted { input, .. } => shorten(input),
        AgentEvent::ToolFinished { output, .. } => cut(output, TOOL_OUTPUT),
        AgentEvent::Notice { message } => cut(message, TOOL_OUTPUT),
        AgentEvent::TurnEnded { error, text, .. } => {
            error.iter_mut().for_each(|it| cut(it, TOOL_OUTPUT));
            text.iter_mut().for_each(|it| cut(it, TEXT));
        }
    }
    event
}

fn shorten(input: &mut Value) {
    cut_texts(input);
    if input.to_string().len() > INPUT {
        *input = Value::Null;
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => cut(text, INPUT_TEXT),
        Value::Array(values) => values.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        _ => {}
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::TurnOutcome;
    use serde_json::json;
    use session::terminal::log::MAX_CHUNK;

    use super::*;

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn notice(message: &str) -> AgentEvent {
        AgentEvent::Notice { message: message.to_owned() }
    }

    #[test]
    fn events_are_numbered_and_wait_until_they_are_written() {
        let mut log = TurnLog::new();
        assert_eq!((log.append(&notice("a"), AT), log.append(&notice("b"), AT)), (1, 2));
        let events = read(&log.unwritten());
        assert_eq!(events.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(events[1].event, notice("b"));
        log.note_written(2);
        assert!(log.unwritten().is_empty());
        log.continue_after(2);
        assert!(log.append(&notice("c"), AT) > 2 + RESTART_GAP - 1);
        assert_eq!(read(&log.unwritten()).len(), 1);
    }

    #[test]
    fn the_longest_event_is_one_chunk() {
        let mut log = TurnLog::new();
        let long = || "\u{1}".repeat(4 * MAX_CHUNK);
        let events = [
            AgentEvent::TurnStarted { turn: 1, prompt: Some(long()) },
            AgentEvent::Text { text: long(), delta: false, unasked: false },
            AgentEvent::ToolStarted {
                id: "t".to_owned(),
                name: "Write".to_owned(),
                input: json!({"file_path": "a", "content": long(), "edits": [long()]}),
            },
            AgentEvent::ToolFinished { id: "t".to_owned(), ok: true, output: long() },
            AgentEvent::TurnEnded {
                turn: 1,
                outcome: TurnOutcome::Failed,
                error: Some(long()),
                text: Some(long()),
            },
        ];
        for (number, event) in (1..).zip(&events) {
            assert_eq!(log.append(event, AT), number, "{number}");
        }
        let stored = read(&log.unwritten());
        assert_eq!(stored.last().map(|it| it.number), Some(5));
        let started = serde_json::to_value(&events[2]).unwrap();
        assert_eq!(started["input"]["file_path"], "a");
    }

    #[test]
    fn an_input_of_very_many_fields_is_left_out() {
        let many: Vec<u32> = (0..20_000).collect();
        let input = json!({ "many": many });
        let event = AgentEvent::ToolStarted { id: "t".to_owned(), name: "n".to_owned(), input };
        let AgentEvent::ToolStarted { input, .. } = shortened(&event) else { panic!() };
        assert_eq!(input, Value::Null);
    }
}
