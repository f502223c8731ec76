//! Requests in the four APIs, and the text of their streams.

use serde_json::{Value, json};
use testkit::{Client, Request};

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Api {
    Chat,
    Completions,
    Messages,
    Responses,
}

pub(crate) const APIS: [Api; 4] = [Api::Chat, Api::Completions, Api::Messages, Api::Responses];

impl Api {
    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Messages => "/v1/messages",
            Self::Responses => "/v1/responses",
        }
    }

    /// A request for a stream, which goes on with the beginning of an answer if there is one.
    pub(crate) fn ask(self, client: &Client, prompt: &str, begun: &str, tokens: u64) -> Request {
        let mut said = vec![json!({"role": "user", "content": prompt})];
        if !begun.is_empty() {
            said.push(self.assistants(begun));
        }
        let mut body =
            json!({"model": super::house::MODEL, "stream": true, "temperature": 0, "seed": 7});
        let (field, value, most) = match self {
            Self::Chat => ("messages", said.into(), "max_tokens"),
            Self::Messages => ("messages", said.into(), "max_tokens"),
            Self::Completions => ("prompt", format!("{prompt}{begun}").into(), "max_tokens"),
            Self::Responses => ("input", said.into(), "max_output_tokens"),
        };
        body[field] = value;
        body[most] = tokens.into();
        if self == Self::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
        client.post(self.path(), &body)
    }

    /// A message of the assistant.
    fn assistants(self, text: &str) -> Value {
        match self {
            Self::Responses => {
                json!({"type": "message", "role": "assistant", "status": "in_progress",
                "content": [{"type": "output_text", "text": text, "annotations": []}]})
            }
            _ => json!({"role": "assistant", "content": text}),
        }
    }

    /// The text that an event brings.
    fn piece(self, event: &Value) -> Option<&str> {
        let place = match self {
            Self::Chat => "/choices/0/delta/content",
            Self::Completions => "/choices/0/text",
            Self::Messages => "/delta/text",
            Self::Responses => "/delta",
        };
        event.pointer(place)?.as_str()
    }

    /// Whether an event begins or ends an answer: each comes once.
    fn is_end(self, data: &str, event: &Value) -> bool {
        match self {
            Self::Chat | Self::Completions => data == "[DONE]",
            Self::Messages => event["type"] == "message_stop",
            Self::Responses => {
                matches!(event["type"].as_str(), Some("response.completed" | "response.incomplete"))
            }
        }
    }

    /// The id of the answer.
    fn id(self, event: &Value) -> Option<&str> {
        let place = match self {
            Self::Chat | Self::Completions => "/id",
            Self::Messages => "/message/id",
            Self::Responses => "/response/id",
        };
        event.pointer(place)?.as_str()
    }

    /// All of the text where the last event repeats it.
    fn whole(self, event: &Value) -> Option<&str> {
        let is_text = self == Self::Responses && event["type"] == "response.output_text.done";
        event["text"].as_str().filter(|_| is_text)
    }
}

/// A stream, as far as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    api: Api,
    /// The beginning of a line.
    line: Vec<u8>,
    pub(crate) text: String,
    /// How many pieces of text came.
    pub(crate) pieces: u64,
    /// How many characters, and how many pieces, were there at each seam.
    pub(crate) seams: Vec<(usize, u64)>,
    pub(crate) ended: bool,
    /// The fault in its events.
    pub(crate) wrong: Option<String>,
    /// The error that ended it.
    pub(crate) error: Option<String>,
    id: Option<String>,
    begins: u32,
}

impl Reading {
    pub(crate) fn of(api: Api) -> Self {
        let (line, text, seams) = (Vec::new(), String::new(), Vec::new());
        Self {
            api,
            line,
            text,
            pieces: 0,
            seams,
            ended: false,
            wrong: None,
            error: None,
            id: None,
            begins: 0,
        }
    }

    /// Reads the next bytes; returns whether they bring text.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        let before = self.text.len();
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            self.read(String::from_utf8_lossy(&line).trim_end());
        }
        self.text.len() > before
    }

    fn read(&mut self, line: &str) {
        if line.starts_with(": resumed") {
            let characters = self.text.chars().count();
            self.seams.push((characters, self.pieces));
            if line.rsplit(' ').nth(1) != Some(characters.to_string().as_str()) {
                self.note_wrong(format!("{line}, after {:?}", self.text));
            }
        }
        let Some(data) = line.strip_prefix("data: ") else { return };
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        if event["error"].is_object()
            || event["type"] == "error"
            || event["type"] == "response.failed"
        {
            self.error = Some(data.to_owned());
        }
        if self.ended {
            self.note_wrong(format!("after the end: {data}"));
        }
        self.ended |= self.api.is_end(data, &event);
        let is_begin = matches!(event["type"].as_str(), Some("message_start" | "response.created"))
            || event["choices"][0]["delta"]["role"].is_string();
        self.begins += u32::from(is_begin);
        if self.begins > 1 {
            self.note_wrong(format!("a second beginning: {data}"));
        }
        let id = self.api.id(&event).map(str::to_owned);
        let is_other = id.is_some() && self.id.is_some() && id != self.id;
        if is_other {
            self.note_wrong(format!("another id: {data}"));
        }
        self.id = self.id.take().or(id);
        if self.api.whole(&event).is_some_and(|whole| whole != self.text) {
            self.note_wrong(format!("{data} for {:?}", self.text));
        }
        let piece = self.api.piece(&event).unwrap_or_default();
        self.text.push_str(piece);
        self.pieces += u64::from(!piece.is_empty());
    }

    /// Notes what was wrong, the first of it.
    fn note_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}
