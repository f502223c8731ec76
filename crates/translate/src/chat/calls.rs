//! Assigns pieces of tool calls to their calls, and detects when a call is complete.
//!
//! A piece names its call by `index`. Backends differ: some leave the index out, some give every
//! call index 0 and tell calls apart by their ids (Ollama), some repeat the name in every piece,
//! some invent a new id for every piece (older vLLM).

use super::chunk::ToolCall;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

/// The parts of a call so far.
#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    end: ObjectEnd,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the call that a piece belongs to; `None`: it begins a new one.
    pub(super) fn of_piece(&self, piece: &ToolCall<'_>) -> Option<usize> {
        let number = self.0.iter().rposition(|call| call.may_have(piece))?;
        (!self.0[number].ended_before(piece)).then_some(number)
    }

    /// Begins the call that a piece is the first of.
    pub(super) fn begin(&mut self, piece: &ToolCall<'_>) {
        let (index, id) = (piece.index.0, piece.id.to_string());
        self.0.push(Call { index, id, end: ObjectEnd::default() });
    }

    /// Takes more of a call's arguments. Returns the part that belongs to the call: nothing once
    /// the object is closed.
    pub(super) fn take<'a>(&mut self, number: usize, arguments: &'a str) -> &'a str {
        &arguments[..self.0[number].end.feed(arguments)]
    }

    /// Whether nothing more belongs to a call.
    pub(super) fn is_complete(&self, number: usize) -> bool {
        self.0[number].end.is_closed()
    }
}

impl Call {
    fn may_have(&self, piece: &ToolCall<'_>) -> bool {
        match piece.index.0 {
            Some(index) => self.index == Some(index),
            None => piece.id.is_empty() || piece.function.name.is_empty() || *piece.id == self.id,
        }
    }

    /// Whether a piece with this call's index is the first of another.
    fn ended_before(&self, piece: &ToolCall<'_>) -> bool {
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && *piece.id != self.id;
        let again = piece.id.is_empty() && self.end.is_closed();
        !piece.function.name.is_empty() && (other_id || again)
    }
}

/// Finds the end of a JSON object without parsing its content.
#[derive(Debug, Default)]
struct ObjectEnd {
    depth: u32,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl ObjectEnd {
    fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many of the next bytes are not behind the end.
    fn feed(&mut self, text: &str) -> usize {
        if self.closed {
            return 0;
        }
        let end = text.bytes().position(|byte| self.closes(byte));
        end.map_or(text.len(), |at| at + 1)
    }

    fn closes(&mut self, byte: u8) -> bool {
        if self.in_string {
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.closed = self.depth == 0;
            }
            _ => {}
        }
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the call that each piece goes to.
    fn numbers(pieces: &[&str]) -> Vec<usize> {
        let mut calls = Calls::default();
        let mut numbers = Vec::new();
        for piece in pieces {
            let piece: ToolCall<'_> = serde_json::from_str(piece).unwrap();
            let number = calls.of_piece(&piece).unwrap_or_else(|| {
                calls.begin(&piece);
                calls.len() - 1
            });
            calls.take(number, &piece.function.arguments());
            numbers.push(number);
        }
        numbers
    }

    #[test]
    fn an_index_names_a_call() {
        let pieces = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ];
        assert_eq!(numbers(&pieces), [0, 1, 0, 1]);
    }

    #[test]
    fn calls_of_one_index_are_told_apart() {
        let by_id = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ];
        assert_eq!(numbers(&by_id), [0, 1]);
        let by_end = [
            r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
        ];
        assert_eq!(numbers(&by_end), [0, 1]);
    }

    #[test]
    fn repeated_names_and_changing_ids_are_one_call() {
        let named = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#,
        ];
        assert_eq!(numbers(&named), [0, 0]);
        let new_ids = [
            r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
            r#"{"index":0,"id":"b","function":{"name":null,"arguments":"{"}}"#,
        ];
        assert_eq!(numbers(&new_ids), [0, 0]);
    }

    #[test]
    fn without_an_index_a_new_id_is_a_new_call() {
        let pieces = [
            r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"function":{"arguments":"}"}}"#,
            r#"{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ];
        assert_eq!(numbers(&pieces), [0, 0, 1]);
    }

    #[test]
    fn an_object_ends_where_its_braces_do() {
        let text = r#"{"a":"}\"{\\","b":[{}]} rest"#;
        let mut end = ObjectEnd::default();
        let taken: usize =
            text.as_bytes().chunks(3).map(|piece| end.feed(str::from_utf8(piece).unwrap())).sum();
        assert_eq!(&text[..taken], r#"{"a":"}\"{\\","b":[{}]}"#);
        assert!(end.is_closed());
        assert_eq!(ObjectEnd::default().feed("}"), 1);
    }
}
