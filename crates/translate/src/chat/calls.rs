//! Assigns pieces of tool calls to their calls, and detects when a call is complete.
//!
//! A piece names its call by `index`. Backends differ: some leave the index out, some give every
//! call index 0 and tell calls apart by their ids (Ollama), some repeat the name in every piece,
//! some invent a new id for every piece (older vLLM).

use std::borrow::Cow;

use super::chunk::ToolCall;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

/// The parts of a call so far.
#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the call that a piece belongs to; `None` if it begins a new call.
    pub(super) fn of_piece(&self, piece: &ToolCall<'_>) -> Option<usize> {
        let number = self.0.iter().rposition(|call| call.may_have(piece))?;
        (!self.0[number].ended_before(piece)).then_some(number)
    }

    /// Begins a new call with its first piece.
    pub(super) fn begin(&mut self, piece: &ToolCall<'_>) {
        let (index, id, name) = (piece.index.0, String::new(), String::new());
        self.0.push(Call { index, id, name, arguments: Arguments::default() });
    }

    /// Takes a piece of a call. Returns the arguments that can be written now: nothing after the end
    /// of their object, and nothing while the object is empty.
    pub(super) fn take<'a>(&mut self, number: usize, piece: &'a ToolCall<'_>) -> Cow<'a, str> {
        let call = &mut self.0[number];
        if call.id.is_empty() {
            call.id.push_str(&piece.id);
        }
        if call.name.is_empty() {
            call.name.push_str(&piece.function.name);
        }
        call.arguments.take(piece.function.arguments())
    }

    /// The unwritten rest of the arguments of a call that has ended.
    pub(super) fn rest(&mut self, number: usize) -> String {
        std::mem::take(&mut self.0[number].arguments.empty)
    }

    /// Whether nothing more belongs to a call.
    pub(super) fn is_complete(&self, number: usize) -> bool {
        self.0[number].arguments.end.is_closed()
    }
}

impl Call {
    fn may_have(&self, piece: &ToolCall<'_>) -> bool {
        match piece.index.0 {
            Some(index) => self.index == Some(index),
            None => piece.id.is_empty() || piece.function.name.is_empty() || *piece.id == self.id,
        }
    }

    /// Whether a piece with this call's index is the first piece of another call.
    fn ended_before(&self, piece: &ToolCall<'_>) -> bool {
        let differs = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
        let other_id = differs(&piece.id, &self.id);
        let other_name = piece.index.0.is_none() && differs(&piece.function.name, &self.name);
        let is_another = piece.id.is_empty() && self.arguments.is_object();
        !piece.function.name.is_empty() && (other_id || other_name || is_another)
    }
}

/// The longest beginning of an object that is kept as it came, in bytes.
const MAX_EMPTY: usize = 256;

/// The arguments of a call, up to the end of their object.
///
/// Some backends send `{}` as a placeholder before the real arguments. So an empty object is kept until
/// something else follows, or the call ends.
#[derive(Debug, Default)]
struct Arguments {
    /// An empty object, or the beginning of one, that is not written yet.
    empty: String,
    end: ObjectEnd,
}

impl Arguments {
    fn take<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.end.has_begun() {
            return Cow::Borrowed(&piece[..self.end.feed(piece)]);
        }
        let so_far = match self.empty.as_str() {
            "" => Cow::Borrowed(piece),
            empty => Cow::Owned(format!("{empty}{piece}")),
        };
        let Some(real) = behind_placeholders(&so_far) else {
            self.empty = last_placeholder(&so_far);
            return Cow::Borrowed("");
        };
        self.empty.clear();
        let len = self.end.feed(real);
        Cow::Owned(real[..len].to_owned())
    }

    /// Whether a whole object has come, which may be empty.
    fn is_object(&self) -> bool {
        self.end.is_closed() || self.empty.trim_end().ends_with('}')
    }
}

/// The arguments without the empty objects before them; `None` as long as only empty objects have
/// come.
fn behind_placeholders(arguments: &str) -> Option<&str> {
    let mut rest = arguments.trim_start();
    loop {
        let within = match rest.strip_prefix('{') {
            Some(within) => within.trim_start(),
            None if rest.is_empty() => return None,
            None => return Some(rest),
        };
        let Some(behind) = within.strip_prefix('}') else {
            return (!within.is_empty()).then_some(rest);
        };
        match behind.trim_start() {
            "" => return None,
            next if next.starts_with('{') => rest = next,
            _ => return Some("{}"),
        }
    }
}

/// The last of some empty objects, or its beginning. It replaces the earlier ones. Of a long one the white space
/// is left out, so that an endless one takes no memory.
fn last_placeholder(empty: &str) -> String {
    let last = &empty[empty.rfind('{').unwrap_or(empty.len())..];
    match last.len() {
        0..=MAX_EMPTY => last.to_owned(),
        _ => last.split_whitespace().collect(),
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
    fn has_begun(&self) -> bool {
        self.closed || self.depth > 0 || self.in_string
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many of the next bytes belong to the object.
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
            calls.take(number, &piece);
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
    fn without_an_index_or_ids_another_name_is_another_call() {
        let pieces = [
            r#"{"function":{"name":"f","arguments":""}}"#,
            r#"{"function":{"name":"g"}}"#,
            r#"{"function":{"arguments":"{}"}}"#,
        ];
        assert_eq!(numbers(&pieces), [0, 1, 1]);
    }

    #[test]
    fn an_id_that_comes_late_is_the_calls() {
        let pieces = [
            r#"{"index":0,"function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":"{"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ];
        assert_eq!(numbers(&pieces), [0, 0, 1]);
    }

    /// The text that is written for these pieces of arguments, and the text at the end.
    fn written(pieces: &[&str]) -> (String, String) {
        let mut arguments = Arguments::default();
        let written = pieces.iter().map(|piece| arguments.take(piece).into_owned()).collect();
        (written, arguments.empty)
    }

    #[test]
    fn an_empty_object_gives_way_to_the_real_arguments() {
        let real = (r#"{"a":{}}"#.to_owned(), String::new());
        for pieces in [
            &["{}", r#"{"a":{}}"#][..],
            &["{}", r#"{"a""#, ":{}}"],
            &["{", "}", " {", r#""a":{}}"#],
            &[r#"{ } {}{"a":{}} rest"#, "{}"],
            &["", "\n", r#"{"a":{}}"#],
        ] {
            assert_eq!(written(pieces), real, "{pieces:?}");
        }
        assert_eq!(written(&["{", "\n", "}"]), (String::new(), "{\n}".to_owned()));
        assert_eq!(written(&["{}", "x"]), ("{}".to_owned(), String::new()));
        assert_eq!(written(&["no object"]), ("no object".to_owned(), String::new()));
    }

    #[test]
    fn endless_placeholders_take_no_memory() {
        for pieces in [["{}", "{}"], ["{", "}"], ["{", "\n"], [" ", "\n"], ["{}", "\n "]] {
            let mut arguments = Arguments::default();
            for at in 0..10_000 {
                // A second `{` would begin real arguments.
                let piece = if pieces == ["{", "\n"] && at > 0 { "\n" } else { pieces[at % 2] };
                assert_eq!(arguments.take(piece), "", "{pieces:?}");
                assert!(arguments.empty.len() <= MAX_EMPTY, "{pieces:?}");
            }
        }
        let mut arguments = Arguments::default();
        assert_eq!(arguments.take(&format!("{{{}", " ".repeat(2 * MAX_EMPTY))), "");
        assert_eq!(arguments.take("\"a\":1} rest"), "{\"a\":1}");
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
