//! Usage that the server asked for and the client did not.

use bytes::Bytes;
use http::header;
use protocol::openai::UsageFilter;
use scheduler::{AnswerMap, Head, Untranslatable};

use crate::head::is_plain_event_stream;

/// Takes the chunk with the usage out of a stream again. Every other byte passes unchanged, and
/// every answer that is no stream.
#[derive(Default)]
pub(super) struct StripUsage(Option<UsageFilter>);

impl AnswerMap for StripUsage {
    fn head(&mut self, mut head: Head) -> Head {
        if is_plain_event_stream(&head) {
            self.0 = Some(UsageFilter::default());
            // It may come out shorter than it was announced.
            head.headers.remove(header::CONTENT_LENGTH);
        }
        head
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Untranslatable> {
        Ok(match &mut self.0 {
            Some(filter) => filter.feed(chunk),
            None => chunk,
        })
    }

    fn end(&mut self) -> Result<Bytes, Untranslatable> {
        Ok(self.0.as_mut().map(UsageFilter::end).unwrap_or_default())
    }
}
