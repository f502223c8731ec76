//! The conversion from a provider's bytes to a client's, for any shapes.

use protocol::{
    failure::{BadAnswer, Failure, MAX_KEPT},
    json::JsonReader,
    sse::{self, EventReader},
};

use super::writer::Writer;
use crate::answer::{Answer, Body};

/// Reads an answer in one provider's shape and passes its parts to a [`Writer`].
pub trait ProviderReader: Default + Send {
    /// Reads the data of an event of a stream, or a line of one, with the one reader for all its JSON. Data after the end
    /// of the answer is ignored.
    ///
    /// # Errors
    /// [`BadAnswer`] when it is invalid.
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer>;

    /// Reads an answer that is one JSON value.
    ///
    /// # Errors
    /// As [`ProviderReader::event`].
    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer>;

    /// Whether the answer is complete, or has failed.
    fn is_over(&self) -> bool;

    /// The stream is over, whether it was complete or not.
    ///
    /// # Errors
    /// As [`ProviderReader::event`].
    fn end<W: Writer>(&mut self, writer: &mut W, out: &mut Vec<u8>) -> Result<(), BadAnswer>;
}

/// The progress of an answer at its client.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    begun: bool,
    /// The client has the whole answer, or an error; everything after that is ignored.
    pub(crate) over: bool,
}

impl Progress {
    /// The answer begins, if it has not yet.
    pub(crate) fn begin<W: Writer>(&mut self, writer: &mut W, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            writer.begin(out);
        }
    }

    /// [`Progress::fail`] with these words alone.
    ///
    /// # Errors
    /// As [`Progress::fail`].
    pub(crate) fn fail_with<W: Writer>(
        &mut self,
        words: &str,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.fail(&Failure::new(words), writer, out)
    }

    /// Handles an error within the answer: a stream reports it to its client; without a stream the
    /// job fails.
    ///
    /// # Errors
    /// [`BadAnswer`] when the client does not get a stream.
    pub(crate) fn fail<W: Writer>(
        &mut self,
        failure: &Failure,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.over = true;
        if writer.body() == Body::Json {
            return Err(BadAnswer(failure.message.clone()));
        }
        writer.fail(failure, out);
        Ok(())
    }
}

/// The provider's answer cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it by value")]
pub(crate) fn not_understood(error: serde_json::Error) -> BadAnswer {
    BadAnswer(format!("the backend's answer is not understood: {error}"))
}

/// Makes the answer of a client's shape, which `W` writes, of one of a provider's, which `R` reads.
///
/// Either kind of answer is read for either kind of client: a provider that answers whole although
/// a stream was asked for gets its client a stream.
#[derive(Debug)]
pub struct FromProvider<R, W> {
    writer: W,
    kind: Kind,
    events: EventReader,
    json: JsonReader,
    /// The bytes so far of an answer that is not a stream, or of a line.
    kept: Vec<u8>,
    taken: usize,
    reading: R,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer(Body),
    Error(u16),
}

impl<R: ProviderReader, W: Writer> FromProvider<R, W> {
    /// Before the head of the answer.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            kind: Kind::Answer(Body::Json),
            events: EventReader::default(),
            json: JsonReader::default(),
            kept: Vec::new(),
            taken: 0,
            reading: R::default(),
        }
    }

    /// The writer of the client's answer.
    pub fn writer(&mut self) -> &mut W {
        &mut self.writer
    }

    fn keep(&mut self, chunk: &[u8]) -> Result<(), BadAnswer> {
        if self.kept.len() + chunk.len() > MAX_KEPT {
            return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
        }
        self.kept.extend_from_slice(chunk);
        Ok(())
    }

    /// Checks the size. For a client that gets the whole answer at once, the writer holds the text.
    fn measure(&mut self, chunk: &[u8]) -> Result<(), BadAnswer> {
        self.taken += chunk.len();
        if self.writer.body() == Body::Json && self.taken > MAX_KEPT {
            return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
        }
        Ok(())
    }

    fn read_events(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let Self { events, json, reading, writer, .. } = self;
        events.feed(chunk, |data| reading.event(data, json, writer, out))
    }

    fn end_events(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let Self { events, json, reading, writer, .. } = self;
        events.end(|data| reading.event(data, json, writer, out))?;
        reading.end(writer, out)
    }

    fn read_lines(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.kept.is_empty() {
                self.reading.event(line, &mut self.json, &mut self.writer, out)?;
                continue;
            }
            self.keep(line)?;
            self.end_line(out)?;
        }
        self.keep(rest)
    }

    /// Reads the line that is kept.
    fn end_line(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let mut line = std::mem::take(&mut self.kept);
        let read = self.reading.event(&line, &mut self.json, &mut self.writer, out);
        line.clear();
        self.kept = line;
        read
    }

    fn end_lines(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.end_line(out)?;
        self.reading.end(&mut self.writer, out)
    }

    fn end_whole(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let kept = std::mem::take(&mut self.kept);
        if sse::looks_like_sse(&kept) {
            self.read_events(&kept, out)?;
            return self.end_events(out);
        }
        self.reading.whole(&kept, &mut self.writer, out)
    }
}

impl<R: ProviderReader, W: Writer> Answer for FromProvider<R, W> {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        if status >= 400 {
            self.kind = Kind::Error(status);
            return (status, Body::Json);
        }
        self.kind = Kind::Answer(body);
        (status, self.writer.body())
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.taken == 0 && chunk.starts_with(b"{") && self.kind == Kind::Answer(Body::Events) {
            // No stream of events begins like this: it is a whole answer that was announced wrong.
            self.kind = Kind::Answer(Body::Json);
        }
        self.measure(chunk)?;
        match self.kind {
            Kind::Answer(Body::Events) => self.read_events(chunk, out),
            Kind::Answer(Body::Lines | Body::NdJson) => self.read_lines(chunk, out),
            // No provider streams an array.
            Kind::Answer(Body::Json | Body::Array) | Kind::Error(_) => self.keep(chunk),
        }
    }

    fn is_over(&self) -> bool {
        self.reading.is_over()
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        match self.kind {
            Kind::Answer(Body::Events) => self.end_events(out),
            Kind::Answer(Body::Lines | Body::NdJson) => self.end_lines(out),
            Kind::Answer(Body::Json | Body::Array) => self.end_whole(out),
            Kind::Error(status) => {
                self.writer.refuse(status, &Failure::read(&self.kept), out);
                Ok(())
            }
        }
    }
}
