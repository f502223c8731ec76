//! The event that ends an answer, in a stream that is forwarded unchanged.

use base::Endpoint;

use super::line::next_line;

/// How many bytes at the beginning of a line show whether it belongs to the last event.
const HEAD: usize = 64;

/// Follows a stream, split into pieces in any way, to its logical end: `[DONE]`, `message_stop` or an
/// `error` of Messages, or the event with the final state of a response. Anything after that is not
/// sent to the client, which has its answer, whatever happens to the connection.
#[derive(Debug)]
pub struct StreamEnd {
    endpoint: Endpoint,
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
    /// Whether the event that has not ended is the last one.
    is_last: bool,
    /// Whether the last byte was `\r`, so that a `\n` now would belong to it.
    after_cr: bool,
    is_over: bool,
}

impl StreamEnd {
    /// At the beginning of an answer in the form of this endpoint.
    pub fn of(endpoint: Endpoint) -> Self {
        let line = Vec::new();
        Self { endpoint, line, is_last: false, after_cr: false, is_over: false }
    }

    /// Takes the next bytes of the stream; returns how many of them belong to the answer.
    pub fn feed(&mut self, piece: &[u8]) -> usize {
        if self.is_over {
            return 0;
        }
        let mut at = usize::from(self.after_cr && piece.first() == Some(&b'\n'));
        self.after_cr = self.after_cr && piece.is_empty();
        while let Some(line) = next_line(piece, at) {
            self.after_cr = line.cut_after_cr;
            at = line.next;
            if self.ends_with(&piece[line.text]) {
                self.is_over = true;
                return at + self.empty_line(&piece[at..]);
            }
        }
        self.push(&piece[at..]);
        piece.len()
    }

    /// Whether the answer has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The bytes that close the last event, once the answer has ended. They are needed because the empty
    /// line after `[DONE]` is not waited for.
    pub fn closing(&self) -> &'static [u8] {
        match (self.is_over && !self.is_last, self.after_cr) {
            (false, _) => b"",
            (true, false) => b"\n",
            // The first `\n` would only complete the line end after the `\r`.
            (true, true) => b"\n\n",
        }
    }

    fn push(&mut self, text: &[u8]) {
        let room = HEAD - self.line.len();
        self.line.extend_from_slice(&text[..text.len().min(room)]);
    }

    /// The length of the empty line that may follow `[DONE]`.
    fn empty_line(&mut self, rest: &[u8]) -> usize {
        let empty = next_line(rest, 0).filter(|line| line.text.is_empty() && !self.is_last);
        self.is_last |= empty.is_some();
        empty.map_or(0, |line| line.next)
    }

    /// Whether the answer ends with the line that ends with these bytes.
    fn ends_with(&mut self, rest: &[u8]) -> bool {
        // Most lines arrive whole, and are read without a copy.
        if self.line.is_empty() {
            return self.ends_with_line(&rest[..rest.len().min(HEAD)]);
        }
        self.push(rest);
        let mut line = std::mem::take(&mut self.line);
        let ends = self.ends_with_line(&line);
        line.clear();
        self.line = line;
        ends
    }

    fn ends_with_line(&mut self, line: &[u8]) -> bool {
        match line.first() {
            None => self.is_last,
            Some(b'd') if self.is_done(line) => true,
            Some(b'd' | b'e') => {
                self.is_last |= is_of_one(last_events(self.endpoint), line);
                false
            }
            Some(_) => false,
        }
    }

    fn is_done(&self, line: &[u8]) -> bool {
        matches!(self.endpoint, Endpoint::ChatCompletions | Endpoint::Completions)
            && line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) == Some(b"[DONE]")
    }
}

/// The names of the events with which an answer in this form ends.
fn last_events(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::Messages => &["message_stop", "error"],
        Endpoint::Responses => &["response.completed", "response.incomplete", "response.failed"],
        _ => &[],
    }
}

/// Whether a line is the name of one of these events, or the beginning of its data.
fn is_of_one(events: &[&str], line: &[u8]) -> bool {
    let name = line.strip_prefix(b"event:").map(<[u8]>::trim_ascii);
    events.iter().any(|event| match name {
        Some(name) => name == event.as_bytes(),
        None => {
            let mut line = line.iter().filter(|byte| !byte.is_ascii_whitespace());
            let begins = [r#"data:{"type":""#, event, "\""];
            begins.iter().flat_map(|it| it.as_bytes()).all(|byte| line.next() == Some(byte))
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHAT: &str = "data: {\"a\":\"data: [DONE]\"}\n\n: hi\n\ndata: [DONE]\n\n";
    const MESSAGES: &str = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    const RESPONSES: &str = "data: {\"type\": \"response.created\"}\r\n\r\ndata: {\"type\": \"response.completed\",\"x\":\"\n\"}\r\n\r\n";

    /// The bytes that belong to the answer, and those that close it.
    fn answer(endpoint: Endpoint, pieces: &[&[u8]]) -> (String, &'static [u8]) {
        let mut end = StreamEnd::of(endpoint);
        let parts = pieces.iter().map(|piece| &piece[..end.feed(piece)]);
        let text: Vec<u8> = parts.flatten().copied().collect();
        (String::from_utf8(text).unwrap(), end.closing())
    }

    #[test]
    fn each_api_has_its_last_event() {
        let cases = [
            (Endpoint::ChatCompletions, CHAT, &b""[..]),
            (Endpoint::ChatCompletions, "data: [DONE]\n", b"\n"),
            (Endpoint::Completions, "data:[DONE]\r\n", b"\n"),
            (Endpoint::Messages, MESSAGES, b""),
            (Endpoint::Messages, "data: {\"type\":\"message_stop\"}\n\n", b""),
            (Endpoint::Messages, "event: error\ndata: {}\n\n", b""),
            (Endpoint::Responses, RESPONSES, b""),
            (Endpoint::Responses, "event: response.failed\ndata: {\"z\":1}\n\n", b""),
            (Endpoint::Responses, "event:response.incomplete\n\n", b""),
        ];
        for (endpoint, stream, closing) in cases {
            let told = answer(endpoint, &[stream.as_bytes(), b"data: late\n\n", b"more"]);
            assert_eq!(told, (stream.to_owned(), closing), "{endpoint}");
            let told = answer(endpoint, &[format!("{stream}data: late\n\n").as_bytes()]);
            let closing = if closing.is_empty() { closing } else { b"\n" };
            assert_eq!(told, (stream.to_owned(), closing), "{endpoint}");
        }
    }

    #[test]
    fn other_events_end_nothing() {
        for (endpoint, stream) in [
            (Endpoint::Messages, "data: [DONE]\n\nevent: message_stopped\n\n"),
            (Endpoint::Responses, "event: error\ndata: {\"type\":\"error\"}\n\ndata: [DONE]\n\n"),
            (
                Endpoint::ChatCompletions,
                "data: {\"error\":{}}\n\nevent: message_stop\n\n: [DONE]\n\ndata: [DONE]",
            ),
        ] {
            assert_eq!(answer(endpoint, &[stream.as_bytes()]), (stream.to_owned(), &b""[..]));
        }
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(cuts in proptest::collection::vec(0usize..150, 0..6), crlf: bool) {
            for (endpoint, stream) in [(Endpoint::ChatCompletions, CHAT), (Endpoint::Messages, MESSAGES), (Endpoint::Responses, RESPONSES)] {
                let stream = if crlf { stream.replace("\r\n", "\n").replace('\n', "\r\n") } else { stream.to_owned() };
                let all = format!("{stream}late\n\n");
                let bytes = all.as_bytes();
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
                // The other half of a cut `\r\n` may be missing.
                let (told, _) = answer(endpoint, &pieces);
                prop_assert_eq!(told.trim_end(), stream.trim_end());
            }
        }
    }
}
