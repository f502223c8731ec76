//! Puts a response's state at this server into the answer of the provider that made it. Pure.

use bytes::{Bytes, BytesMut};
use protocol::{json, sse::MAX_EVENT};

use super::members::Members;

/// A response's state at this server, as its client sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseState {
    /// The response's id at this server. `None` for one that is not kept: the provider's id stays, as nobody can ask
    /// for it.
    pub(crate) id: Option<String>,
    /// Whether the response is kept.
    pub(crate) store: bool,
    /// Whether the response is made in the background.
    pub(crate) background: bool,
    /// The id of the response that it continues.
    pub(crate) previous: Option<String>,
    /// The id of the conversation that it belongs to.
    pub(crate) conversation: Option<String>,
}

impl ResponseState {
    /// The response with this state in it; `None` when `response` is not a JSON object.
    pub(crate) fn put(&self, response: &str) -> Option<String> {
        let members = Members::read(response)?;
        let (id, previous) = (json::write(&self.id), json::write(&self.previous));
        let truth = |is_so| Some(if is_so { "true" } else { "false" });
        let conversation =
            self.conversation.as_ref().map(|id| format!(r#"{{"id":{}}}"#, json::write(id)));
        let mut changes = vec![
            ("store", truth(self.store)),
            ("background", truth(self.background)),
            ("previous_response_id", Some(previous.as_str())),
        ];
        changes.extend(self.id.as_ref().map(|_| ("id", Some(id.as_str()))));
        changes.extend(
            conversation.as_deref().map(|conversation| ("conversation", Some(conversation))),
        );
        Some(members.with(&changes))
    }

    /// The event with this state in its response; `None` when the event has no response.
    pub(crate) fn event(&self, event: &[u8]) -> Option<Event> {
        if !contains(event, b"\"response\"") {
            return None;
        }
        let text = std::str::from_utf8(event).ok()?;
        let data = data(text);
        let members = Members::read(&data)?;
        let response = self.put(members.get("response")?.get())?;
        let kind = members.text("type")?;
        let written = members.with(&[("response", Some(response.as_str()))]);
        Some(Event { text: with_data(text, &written), kind, response })
    }
}

/// An event that has a response.
#[derive(Debug)]
pub(crate) struct Event {
    /// The whole event.
    pub(crate) text: String,
    kind: String,
    /// The response in it, as JSON.
    pub(crate) response: String,
}

impl Event {
    /// Whether no event about the response follows.
    fn is_last(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "response.completed" | "response.incomplete" | "response.failed"
        )
    }
}

/// A part of a stream that goes on to its client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes that go on as they are.
    Ready(Bytes),
    /// The event that ends the response, as its provider wrote it: the state is put in once the response is kept.
    Last(Bytes),
}

/// A stream of events on its way to a client. Only whole events come out of it, until an event is too long.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    state: ResponseState,
    /// The bytes that have come in and have not gone out yet.
    open: BytesMut,
    /// Where in `open` the last, incomplete line begins.
    line: usize,
    /// Whether an event was too long. From then on all bytes pass as they come.
    given_up: bool,
}

impl Stream {
    pub(crate) fn new(state: ResponseState) -> Self {
        Self { state, ..Self::default() }
    }

    /// Takes the next bytes of the answer. Returns the parts that go on to the client.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut looked = self.open.len();
        self.open.extend_from_slice(chunk);
        let mut begun = 0;
        while let Some(at) = self.open[looked..].iter().position(|&byte| byte == b'\n') {
            let end = looked + at + 1;
            let is_blank = matches!(&self.open[self.line..end], b"\n" | b"\r\n");
            (self.line, looked) = (end, end);
            if is_blank {
                begun = self.pass(begun, end, &mut parts);
                (self.line, looked) = (begun, begun);
            }
        }
        self.take(begun, &mut parts);
        if self.open.len() > MAX_EVENT || self.given_up {
            self.given_up = true;
            self.take(self.open.len(), &mut parts);
        }
        parts
    }

    /// Called at the end of the stream. Returns the bytes that are left.
    pub(crate) fn end(&mut self) -> Bytes {
        std::mem::take(&mut self.open).freeze()
    }

    /// Whether an event was too long to be read.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// Looks at the event between these places of `open`. If it has a response, passes it on: with the state put in,
    /// or as [`Part::Last`]. Returns where the next event begins.
    fn pass(&mut self, begins: usize, ends: usize, parts: &mut Vec<Part>) -> usize {
        if self.given_up {
            return ends;
        }
        let Some(event) = self.state.event(&self.open[begins..ends]) else { return ends };
        self.take(begins, parts);
        let given = self.open.split_to(ends - begins).freeze();
        self.line = 0;
        parts.push(if event.is_last() {
            Part::Last(given)
        } else {
            Part::Ready(event.text.into())
        });
        0
    }

    /// Lets the first `len` bytes go on as they are.
    fn take(&mut self, len: usize, parts: &mut Vec<Part>) {
        if len > 0 {
            parts.push(Part::Ready(self.open.split_to(len).freeze()));
            self.line = self.line.saturating_sub(len);
        }
    }
}

/// The data of an event.
fn data(event: &str) -> String {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// JSON as the data of one line. Line breaks are dropped: in JSON none is within a string.
pub(super) fn on_one_line(json: &str) -> String {
    json.split(['\n', '\r']).collect()
}

/// The event with `data`, which is JSON, in place of its own, on one line.
fn with_data(event: &str, data: &str) -> String {
    let mut out = String::with_capacity(event.len() + data.len());
    let others = event.lines().filter(|line| !line.starts_with("data:") && !line.is_empty());
    for line in others {
        out.push_str(line);
        out.push('\n');
    }
    out.push_str("data: ");
    out.push_str(&on_one_line(data));
    out.push_str("\n\n");
    out
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn state() -> ResponseState {
        ResponseState {
            id: Some("resp_here".to_owned()),
            store: true,
            background: false,
            previous: Some("resp_before".to_owned()),
            conversation: None,
        }
    }

    #[test]
    fn a_response_says_what_is_true_here() {
        let given =
            r#"{"id":"resp_there","object":"response","store":false,"output":[{"id":"msg_1"}]}"#;
        let value = |state: &ResponseState| {
            serde_json::from_str::<Value>(&state.put(given).unwrap()).unwrap()
        };
        let wanted = json!({"id": "resp_here", "object": "response", "store": true, "background": false,
            "previous_response_id": "resp_before", "output": [{"id": "msg_1"}]});
        assert_eq!(value(&state()), wanted);
        let conversation = Some("conv_1".to_owned());
        let plain = value(&ResponseState { conversation, ..ResponseState::default() });
        assert_eq!(
            (&plain["id"], &plain["previous_response_id"]),
            (&json!("resp_there"), &Value::Null)
        );
        assert_eq!(
            (&plain["store"], &plain["conversation"]),
            (&json!(false), &json!({"id": "conv_1"}))
        );
        assert!(state().put("[]").is_none());
    }

    const STREAM: &str = ": hi\n\nevent: response.created\r\ndata: {\"type\":\"response.created\",\r\n\
        data: \"response\":{\"id\":\"a\"},\"sequence_number\":0}\r\n\r\n\
        data: {\"type\":\"response.output_text.delta\",\"delta\":\"\\\"response\\\"\"}\n\n\
        event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"a\",\"output\":[]}}\n\n\
        data: [DONE]\n\nrest";

    /// The text that a client gets, and how many events ended the response.
    fn passed(stream: &[u8], piece: usize) -> (String, usize) {
        let (mut rewriting, mut out, mut last) = (Stream::new(state()), Vec::new(), 0);
        for chunk in stream.chunks(piece) {
            for part in rewriting.feed(chunk) {
                match part {
                    Part::Ready(bytes) => out.extend_from_slice(&bytes),
                    Part::Last(event) => {
                        last += 1;
                        out.extend_from_slice(state().event(&event).unwrap().text.as_bytes());
                    }
                }
            }
        }
        out.extend_from_slice(&rewriting.end());
        (String::from_utf8_lossy(&out).into_owned(), last)
    }

    #[test]
    fn an_event_that_is_too_long_passes_with_all_that_follows() {
        let mut rewriting = Stream::new(state());
        assert!(rewriting.feed(b"data: {\"response\":{").is_empty());
        let long = vec![b'x'; MAX_EVENT];
        let Part::Ready(all) = rewriting.feed(&long).remove(0) else { panic!("not the last") };
        assert_eq!(all.len(), MAX_EVENT + 19);
        assert!(rewriting.has_given_up());
        let after = b"\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n";
        assert_eq!(rewriting.feed(after), [Part::Ready(Bytes::from_static(after))]);
        assert!(rewriting.end().is_empty());
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_however_it_is_cut(piece in 1usize..200) {
            let (text, last) = passed(STREAM.as_bytes(), piece);
            prop_assert_eq!(last, 1);
            let ids: Vec<&str> = text.match_indices("\"id\":\"resp_here\"").map(|(_, id)| id).collect();
            prop_assert_eq!(ids.len(), 2, "{}", text);
            prop_assert!(text.contains("event: response.created\ndata: {"), "{}", text);
            prop_assert!(text.starts_with(": hi\n\n") && text.ends_with("data: [DONE]\n\nrest"));
            prop_assert!(text.contains("\"delta\":\"\\\"response\\\"\"}\n\n"), "{}", text);
        }

        #[test]
        fn what_has_no_response_passes_unchanged(
            stream in "([a-z: ]{0,9}(\n|\r\n)){0,20}[a-z]{0,3}", piece in 1usize..50,
        ) {
            prop_assert_eq!(passed(stream.as_bytes(), piece), (stream, 0));
        }

        #[test]
        fn any_bytes_pass(stream: Vec<u8>, piece in 1usize..50) {
            passed(&stream, piece);
        }
    }
}
