//! A session's output over any number of connections.

use serde_json::{Value, json};

use super::client::ServerMessage;

/// How far a client is with a session's output. It finds whatever is lost, and whatever comes twice.
#[derive(Debug, Clone)]
pub struct Follow {
    session: String,
    seq: Option<u64>,
    /// Since the last `attach`, until it is answered.
    is_beginning: bool,
    text: String,
    snapshots: usize,
}

/// The meaning of a message for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Reset the screen to these columns and rows, and paint this on it.
    Paint(u16, u16, String),
    Write(String),
}

impl Follow {
    /// From a session's present screen on.
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            seq: None,
            is_beginning: false,
            text: String::new(),
            snapshots: 0,
        }
    }

    pub fn attach(&mut self) -> Value {
        self.is_beginning = true;
        match self.seq {
            Some(seq) => {
                json!({"type": "attach", "session_id": self.session, "after_seq": seq})
            }
            None => json!({"type": "attach", "session_id": self.session}),
        }
    }

    pub fn seq(&self) -> u64 {
        self.seq.unwrap_or_default()
    }

    /// All text since the last snapshot, with that.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn snapshots(&self) -> usize {
        self.snapshots
    }

    /// Takes in a message.
    ///
    /// # Errors
    /// In words, when something is missing, comes twice, or does not belong there.
    pub fn take(&mut self, heard: &ServerMessage) -> Result<Step, String> {
        match heard {
            ServerMessage::Output(output) if output.session != self.session => {
                Err(format!("output of {}, which nobody asked for", output.session))
            }
            ServerMessage::Output(_) if self.is_beginning => {
                Err("output before session_history".to_owned())
            }
            ServerMessage::Output(output) => self.output(output.seq, &output.text),
            ServerMessage::Message(message) if message["session_id"] != self.session.as_str() => {
                Ok(Step::Nothing)
            }
            ServerMessage::Message(message) => match message["type"].as_str() {
                Some("session_history") => self.history(message),
                Some("session_snapshot") => self.snapshot(message),
                _ => Ok(Step::Nothing),
            },
        }
    }

    fn output(&mut self, seq: u64, text: &str) -> Result<Step, String> {
        let expected = self.seq() + 1;
        if seq != expected {
            return Err(format!("output {seq} came where {expected} should have"));
        }
        self.seq = Some(seq);
        self.text.push_str(text);
        Ok(Step::Write(text.to_owned()))
    }

    fn history(&mut self, message: &Value) -> Result<Step, String> {
        let last = message["last_seq"].as_u64().ok_or("no last_seq")?;
        self.is_beginning = false;
        if !message["snapshot"].is_null() {
            if message["snapshot"]["seq"] != last {
                return Err(format!("the snapshot is not of last_seq: {message}"));
            }
            return self.snapshot(&message["snapshot"]);
        }
        if self.seq != Some(last) {
            return Err(format!("it goes on after {last}, and not after {:?}", self.seq));
        }
        Ok(Step::Nothing)
    }

    fn snapshot(&mut self, snapshot: &Value) -> Result<Step, String> {
        let number = |field: &str| snapshot[field].as_u64().ok_or(format!("no {field}"));
        let seq = number("seq")?;
        let size = |field| number(field).map(|size| u16::try_from(size).unwrap_or_default());
        let (cols, rows) = (size("cols")?, size("rows")?);
        let data = snapshot["data"].as_str().ok_or("no data")?;
        self.snapshots += 1;
        self.seq = Some(seq);
        data.clone_into(&mut self.text);
        Ok(Step::Paint(cols, rows, data.to_owned()))
    }
}
