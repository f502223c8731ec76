//! An answer for a client of Gemini's API that is one object: it is kept until it is complete.

use protocol::failure::{BadAnswer, Failure, MAX_KEPT};

use crate::{
    answer::{Answer, Body},
    errors,
};

/// Keeps the provider's answer, and writes the client's at its end.
pub(crate) struct WholeAnswer<W> {
    error: Option<u16>,
    kept: Vec<u8>,
    /// Makes the client's answer of the provider's.
    write: W,
}

impl<W: Fn(&[u8]) -> Result<String, BadAnswer> + Send> WholeAnswer<W> {
    pub(crate) fn new(write: W) -> Self {
        Self { error: None, kept: Vec::new(), write }
    }
}

impl<W: Fn(&[u8]) -> Result<String, BadAnswer> + Send> Answer for WholeAnswer<W> {
    fn head(&mut self, status: u16, _: Body) -> (u16, Body) {
        self.error = (status >= 400).then_some(status);
        (status, Body::Json)
    }

    fn feed(&mut self, chunk: &[u8], _: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.kept.len() + chunk.len() > MAX_KEPT {
            return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
        }
        self.kept.extend_from_slice(chunk);
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let answer = match self.error {
            Some(status) => errors::for_gemini(status, &Failure::read(&self.kept)),
            None => (self.write)(&self.kept)?,
        };
        out.extend_from_slice(answer.as_bytes());
        Ok(())
    }
}
