//! The next provider's stream as the rest of the first one's.

use protocol::{failure::BadAnswer, json::JsonReader, sse::EventReader};

use super::{delivered::Delivered, shape::Stitch};
use crate::answer::{Answer, Body};

/// Makes the rest of the first provider's answer from the next provider's, which is of the same endpoint. Notes
/// what is passed on, since this provider may be lost as well.
#[derive(Debug)]
pub struct Seam {
    delivered: Delivered,
    stitch: Box<dyn Stitch>,
    reader: EventReader,
    json: JsonReader,
}

impl Seam {
    /// A seam before the first byte of the next provider's answer.
    pub fn new(mut delivered: Delivered) -> Self {
        delivered.break_off();
        let stitch = delivered.shape.stitch(&delivered.record);
        Self { delivered, stitch, reader: EventReader::default(), json: JsonReader::default() }
    }

    /// All that was delivered so far, of all providers.
    pub fn delivered(&mut self) -> &mut Delivered {
        &mut self.delivered
    }

    /// The same, for reading only.
    pub fn so_far(&self) -> &Delivered {
        &self.delivered
    }

    /// The same, for the next loss.
    pub fn into_delivered(self) -> Delivered {
        self.delivered
    }
}

impl Answer for Seam {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        (status, body)
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let Self { stitch, json, .. } = self;
        let before = out.len();
        let fed = self.reader.feed(chunk, |data| stitch.event(data, json, out));
        self.delivered.note(&out[before..]);
        fed
    }

    fn is_over(&self) -> bool {
        self.stitch.is_over()
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let Self { stitch, json, .. } = self;
        let before = out.len();
        let ended = self.reader.end(|data| stitch.event(data, json, out));
        self.delivered.note(&out[before..]);
        ended
    }
}
