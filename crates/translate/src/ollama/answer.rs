//! An answer that tells how long it took.

use std::time::Duration;

use protocol::failure::BadAnswer;

use super::OllamaWriter;
use crate::{
    answer::{Answer, Body},
    chat::{FromProvider, ProviderReader},
};

/// Reads a provider's shape, and writes Ollama's with its times.
pub(crate) struct TimedAnswer<R> {
    inner: FromProvider<R, OllamaWriter>,
}

impl<R: ProviderReader> TimedAnswer<R> {
    pub(crate) fn new(writer: OllamaWriter) -> Self {
        Self { inner: FromProvider::new(writer) }
    }
}

impl<R: ProviderReader> Answer for TimedAnswer<R> {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        if body != Body::Events {
            self.inner.writer().clock.comes_whole();
        }
        self.inner.head(status, body)
    }

    fn passed(&mut self, since: Duration) {
        self.inner.writer().clock.passed(since);
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.inner.feed(chunk, out)
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.inner.end(out)
    }
}
