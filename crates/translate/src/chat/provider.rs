//! The conversion from a provider's bytes to a client's, for any shapes.

use std::time::Duration;

use protocol::{
    failure::{BadAnswer, Failure},
    json::JsonReader,
    sse::{self, EventReader},
};

use super::writer::{Outcome, Writer};
use crate::answer::{Answer, Body, check_length, keep};

/// Reads an answer in one provider's shape, and passes its parts to the client's writer.
pub trait ProviderReader: Default + Send {
    /// Reads the data of one event, or one line, of a stream. `json` is the same reader for the whole
    /// stream.
    ///
    /// # Errors
    /// [`BadAnswer`] when it is invalid.
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer>;

    /// Reads an answer that is one JSON value.
    ///
    /// # Errors
    /// As [`ProviderReader::event`].
    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer>;

    /// Ends the parts of a complete answer, and says how it ended; `None` if the answer was cut
    /// off.
    fn outcome<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) -> Option<Outcome>;
}

/// The client's answer while it is written.
pub struct ClientAnswer<'a, W> {
    pub(crate) writer: &'a mut W,
    pub(crate) out: &'a mut Vec<u8>,
    progress: &'a mut Progress,
}

#[derive(Debug, Default)]
struct Progress {
    begun: bool,
    /// Whether the client has the whole answer, or an error. Everything after that is ignored.
    over: bool,
}

impl<W: Writer> ClientAnswer<'_, W> {
    /// Begins the answer, if it has not begun yet.
    pub(crate) fn begin(&mut self) {
        if !std::mem::replace(&mut self.progress.begun, true) {
            self.writer.begin(self.out);
        }
    }

    /// Passes an event, or a line, to the reader, unless the answer has ended.
    ///
    /// # Errors
    /// As [`ProviderReader::event`].
    pub(crate) fn read<R: ProviderReader>(
        &mut self,
        reader: &mut R,
        data: &[u8],
        json: &mut JsonReader,
    ) -> Result<(), BadAnswer> {
        if self.progress.over || data.is_empty() {
            return Ok(());
        }
        reader.event(data, json, self)
    }

    /// Ends the answer at the end of the provider's stream, whether the stream was complete or not.
    ///
    /// # Errors
    /// As [`ProviderReader::event`].
    pub(crate) fn end<R: ProviderReader>(&mut self, reader: &mut R) -> Result<(), BadAnswer> {
        if self.progress.over {
            return Ok(());
        }
        match reader.outcome(self) {
            Some(outcome) => self.finish(&outcome),
            None => self.fail_with("the backend's answer was cut off"),
        }
    }

    /// Ends a complete answer.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub(crate) fn finish(&mut self, outcome: &Outcome) -> Result<(), BadAnswer> {
        self.progress.over = true;
        self.writer.finish(outcome, self.out)
    }

    /// [`ClientAnswer::fail`] with these words alone.
    ///
    /// # Errors
    /// As [`ClientAnswer::fail`].
    pub(crate) fn fail_with(&mut self, words: &str) -> Result<(), BadAnswer> {
        self.fail(&Failure::new(words))
    }

    /// Handles an error within the answer: a stream reports it to its client; without a stream the
    /// job fails.
    ///
    /// # Errors
    /// [`BadAnswer`] when the client does not get a stream.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Result<(), BadAnswer> {
        self.progress.over = true;
        if self.writer.body() == Body::Json {
            return Err(BadAnswer(failure.message.clone()));
        }
        self.writer.fail(failure, self.out);
        Ok(())
    }
}

/// The error for a provider's answer that is not valid JSON.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it by value")]
pub(crate) fn not_understood(error: serde_json::Error) -> BadAnswer {
    BadAnswer(format!("the backend's answer is not understood: {error}"))
}

/// Makes an answer in a client's shape, which `W` writes, from one in a provider's shape, which `R`
/// reads.
///
/// Streams and whole answers can be read for either kind of client. If the provider sends a whole
/// answer although the client asked for a stream, the client still gets a stream.
#[derive(Debug)]
pub struct FromProvider<R, W> {
    writer: W,
    kind: Kind,
    events: EventReader,
    json: JsonReader,
    /// The bytes so far of an answer that is not a stream, or of a line.
    held: Vec<u8>,
    taken: usize,
    reader: R,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer(Body),
    Error(u16),
}

impl<R: ProviderReader, W: Writer> FromProvider<R, W> {
    /// A translation that waits for the head of the answer.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            kind: Kind::Answer(Body::Json),
            events: EventReader::default(),
            json: JsonReader::default(),
            held: Vec::new(),
            taken: 0,
            reader: R::default(),
            progress: Progress::default(),
        }
    }

    /// The writer of the client's answer.
    pub fn writer(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Checks the size for a client that gets the whole answer at once, since the writer then keeps
    /// all of the text.
    fn measure(&mut self, chunk: &[u8]) -> Result<(), BadAnswer> {
        self.taken += chunk.len();
        if self.writer.body() == Body::Json { check_length(self.taken) } else { Ok(()) }
    }

    fn split<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
    ) -> (ClientAnswer<'a, W>, &'a mut R, &'a mut JsonReader, &'a mut EventReader) {
        let Self { writer, progress, reader, json, events, .. } = self;
        (ClientAnswer { writer, out, progress }, reader, json, events)
    }

    fn read_events(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (mut client, reader, json, events) = self.split(out);
        events.feed(chunk, |data| client.read(reader, data, json))
    }

    fn end_events(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (mut client, reader, json, events) = self.split(out);
        events.end(|data| client.read(reader, data, json))?;
        client.end(reader)
    }

    fn read_lines(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.held.is_empty() {
                self.read_line(line, out)?;
                continue;
            }
            keep(&mut self.held, line)?;
            self.end_line(out)?;
        }
        keep(&mut self.held, rest)
    }

    fn read_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (mut client, reader, json, _) = self.split(out);
        client.read(reader, line, json)
    }

    /// Reads the line that is kept.
    fn end_line(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let mut line = std::mem::take(&mut self.held);
        let read = self.read_line(&line, out);
        line.clear();
        self.held = line;
        read
    }

    fn end_lines(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.end_line(out)?;
        let (mut client, reader, ..) = self.split(out);
        client.end(reader)
    }

    fn end_whole(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let held = std::mem::take(&mut self.held);
        if sse::looks_like_sse(&held) {
            self.read_events(&held, out)?;
            return self.end_events(out);
        }
        let (mut client, reader, json, _) = self.split(out);
        reader.whole(&held, json, &mut client)
    }
}

impl<R: ProviderReader, W: Writer> Answer for FromProvider<R, W> {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        self.writer.provider_body(body);
        if status >= 400 {
            self.kind = Kind::Error(status);
            return (status, self.writer.error_body());
        }
        self.kind = Kind::Answer(body);
        (status, self.writer.body())
    }

    fn passed(&mut self, since: Duration) {
        self.writer.passed(since);
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.taken == 0 && chunk.starts_with(b"{") && self.kind == Kind::Answer(Body::Events) {
            // No stream of events begins with a brace, so this is a whole answer with a wrong
            // content type.
            self.kind = Kind::Answer(Body::Json);
        }
        self.measure(chunk)?;
        match self.kind {
            Kind::Answer(Body::Events) => self.read_events(chunk, out),
            Kind::Answer(Body::Lines | Body::NdJson) => self.read_lines(chunk, out),
            // No provider streams an array.
            Kind::Answer(Body::Json | Body::Array) | Kind::Error(_) => keep(&mut self.held, chunk),
        }
    }

    fn is_over(&self) -> bool {
        self.progress.over
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        match self.kind {
            Kind::Answer(Body::Events) => self.end_events(out),
            Kind::Answer(Body::Lines | Body::NdJson) => self.end_lines(out),
            Kind::Answer(Body::Json | Body::Array) => self.end_whole(out),
            Kind::Error(status) => {
                self.writer.refuse(status, &Failure::read(&self.held), out);
                Ok(())
            }
        }
    }
}
