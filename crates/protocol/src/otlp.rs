//! Spans in OTLP: the messages of `opentelemetry/proto/trace/v1` in protobuf, as a collector accepts them over HTTP.
//!
//! Only sent messages are here: of a collector's answer only the status is read.

use base::trace::{SpanId, TraceId};

/// The path of spans, appended to the path of a collector's endpoint.
pub const TRACES: &str = "/v1/traces";

/// The content type of the messages.
pub const PROTOBUF: &str = "application/x-protobuf";

/// A part of a trace: what was done, from when to when.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is a part of; `None`: it is the first of its trace.
    pub parent: Option<SpanId>,
    /// The kind of operation, without anything that differs with each request.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// When it ended, likewise.
    pub end: u64,
    /// The known facts about it, by the names of the semantic conventions.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it is a failure; `None`: it is not one, or that is unknown.
    pub error: Option<String>,
}

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of the work within a process.
    Internal = 1,
    /// A received request.
    Server = 2,
    /// A sent request.
    Client = 3,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// An `ExportTraceServiceRequest` with these spans. `resource` describes the program that made them; `version` is its
/// version.
pub fn export(resource: &[(&'static str, Value)], version: &str, spans: &[Span]) -> Vec<u8> {
    let mut of_resource = Message::default();
    of_resource.attributes(1, resource);
    let mut scope = Message::default();
    scope.text(1, "warren");
    scope.text(2, version);
    let mut of_scope = Message::default();
    of_scope.message(1, &scope);
    spans.iter().for_each(|span| of_scope.message(2, &encode(span)));
    let mut of_spans = Message::default();
    of_spans.message(1, &of_resource);
    of_spans.message(2, &of_scope);
    let mut request = Message::default();
    request.message(1, &of_spans);
    request.0
}

fn encode(span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &span.trace);
    message.bytes(2, &span.id);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(6, span.kind as u64);
    message.fixed(7, span.start);
    message.fixed(8, span.end);
    message.attributes(9, &span.attributes);
    if let Some(why) = &span.error {
        let mut status = Message::default();
        status.text(2, why);
        status.number(3, 2);
        message.message(15, &status);
    }
    message
}

/// A message that is being written. The caller may write fields in any order, as protobuf allows.
#[derive(Default)]
struct Message(Vec<u8>);

/// How a field's value is written.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const WITH_LENGTH: u64 = 2;

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, VARINT);
        self.varint(number);
    }

    fn fixed(&mut self, field: u64, number: u64) {
        self.key(field, FIXED_64);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, WITH_LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn attributes(&mut self, field: u64, attributes: &[(&'static str, Value)]) {
        for (name, value) in attributes {
            let mut of_value = Self::default();
            match value {
                Value::Text(text) => of_value.text(1, text),
                Value::Flag(flag) => of_value.number(2, (*flag).into()),
                // Negative numbers are written as their two's complement.
                Value::Number(number) => of_value.number(3, *number as u64),
            }
            let mut attribute = Self::default();
            attribute.text(1, name);
            attribute.message(2, &of_value);
            self.message(field, &attribute);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        Span {
            trace: [0x11; 16],
            id: [0x22; 8],
            parent: Some([0x33; 8]),
            name: "chat m".to_owned(),
            kind: SpanKind::Server,
            start: 1,
            end: 0x0102,
            attributes: vec![("a", "b".into()), ("n", 300_u64.into())],
            error: Some("no".to_owned()),
        }
    }

    /// Written down by hand from the specification of protobuf and the numbers of the fields.
    #[test]
    fn a_message_is_as_the_specification_has_it() {
        let expected = [
            &[0x0a, 0][..],            // resource_spans
            &[0x0a, 0x09, 0x0a, 0x07], // resource { attributes
            &[0x0a, 0x01, b's', 0x12, 0x02, 0x0a, 0x00],
            &[0x12, 0],                // scope_spans
            &[0x0a, 0x0b, 0x0a, 0x06], // scope
            b"warren",
            &[0x12, 0x01, b'1'],
            &[0x12, 0], // span
            &[0x0a, 0x10],
            &[0x11; 16],
            &[0x12, 0x08],
            &[0x22; 8],
            &[0x22, 0x08],
            &[0x33; 8],
            &[0x2a, 0x06],
            b"chat m",
            &[0x30, 0x02],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x41, 2, 1, 0, 0, 0, 0, 0, 0],
            &[0x4a, 0x08, 0x0a, 0x01, b'a', 0x12, 0x03, 0x0a, 0x01, b'b'],
            &[0x4a, 0x08, 0x0a, 0x01, b'n', 0x12, 0x03, 0x18, 0xac, 0x02],
            &[0x7a, 0x06, 0x12, 0x02, b'n', b'o', 0x18, 0x02],
        ]
        .concat();
        let written = export(&[("s", "".into())], "1", &[span()]);
        let spans = expected.len() - 2;
        let mut expected = expected;
        // The lengths of what is around the rest, which follow from the rest.
        expected[1] = u8::try_from(spans).unwrap();
        expected[14] = u8::try_from(spans - 13).unwrap();
        expected[29] = u8::try_from(spans - 28).unwrap();
        assert_eq!(written, expected);
    }

    #[test]
    fn long_messages_and_negative_numbers_have_lengths_of_several_bytes() {
        let long = Span { name: "x".repeat(300), ..span() };
        let written = export(&[], "1", &[long]);
        let name = [&[0x2a, 0xac, 0x02][..], "x".repeat(300).as_bytes()].concat();
        assert!(written.windows(name.len()).any(|window| window == name));
        let mut message = Message::default();
        message.attributes(9, &[("f", true.into()), ("n", Value::Number(-1))]);
        assert!(message.0.starts_with(&[0x4a, 0x07, 0x0a, 0x01, b'f', 0x12, 0x02, 0x10, 0x01]));
        assert!(message.0.ends_with(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]));
    }
}
