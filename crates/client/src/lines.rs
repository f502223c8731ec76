//! An answer that arrives as lines of JSON.

use std::{marker::PhantomData, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::ClientError;

/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;

/// An answer whose lines are values in JSON, as they come.
#[derive(Debug)]
pub struct JsonLines<T> {
    value: PhantomData<T>,
    body: Incoming,
    url: String,
    /// The longest silence.
    patience: Duration,
    lines: Lines,
}

impl<T: DeserializeOwned> JsonLines<T> {
    pub(crate) fn new(body: Incoming, url: String, patience: Duration) -> Self {
        Self { value: PhantomData, body, url, patience, lines: Lines::default() }
    }

    /// The value of the next line; `None` after the last. Empty lines are skipped. Cancel safe.
    ///
    /// # Errors
    /// When the connection broke, nothing came for too long, or something else came.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        let strange = |reason: String| ClientError::Strange { url: self.url.clone(), reason };
        loop {
            if let Some(line) = self.lines.next().map_err(|long| strange(long.to_owned()))? {
                return read(&line).map(Some).map_err(strange);
            }
            let late = |_| ClientError::Late { url: self.url.clone(), after: self.patience };
            // The time begins again with each frame: long work is no error, but long silence is.
            match timeout(self.patience, self.body.frame()).await.map_err(late)? {
                None => {
                    return self.lines.last().map(|line| read(&line)).transpose().map_err(strange);
                }
                Some(Ok(frame)) => self.lines.feed(frame.data_ref()),
                Some(Err(error)) => {
                    let reason = error.to_string();
                    return Err(ClientError::Unreachable { url: self.url.clone(), reason });
                }
            }
        }
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Bytes that are read line by line.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn feed(&mut self, bytes: Option<&Bytes>) {
        self.0.extend_from_slice(bytes.map_or(&[], |bytes| bytes));
    }

    /// The next whole line that is not empty.
    fn next(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = self.0.drain(..=end).collect();
            line.pop();
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        // Whole lines are gone by now, so this bounds the one that has not ended.
        if self.0.len() > LONGEST { Err("a line that does not end") } else { Ok(None) }
    }

    /// The rest at the end of the answer, if it is not empty: a last line without a line break.
    fn last(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.0)).filter(|rest| !rest.trim_ascii().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_however_they_come() {
        let mut lines = Lines::default();
        lines.feed(Some(&Bytes::from_static(b"{\"a\":1}\n\r\n{\"b")));
        assert_eq!(lines.next(), Ok(Some(b"{\"a\":1}".to_vec())));
        assert_eq!(lines.next(), Ok(None));
        lines.feed(Some(&Bytes::from_static(b"\":2}\n")));
        assert_eq!(lines.next(), Ok(Some(b"{\"b\":2}".to_vec())));
        lines.feed(None);
        assert_eq!((lines.next(), lines.last()), (Ok(None), None));
    }

    #[test]
    fn the_last_line_needs_no_line_break() {
        let mut lines = Lines::default();
        lines.feed(Some(&Bytes::from_static(b"{}\n{\"a\":1}")));
        assert_eq!((lines.next(), lines.next()), (Ok(Some(b"{}".to_vec())), Ok(None)));
        assert_eq!((lines.last(), lines.last()), (Some(b"{\"a\":1}".to_vec()), None));
        lines.feed(Some(&Bytes::from_static(b" \r")));
        assert_eq!(lines.last(), None);
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let mut lines = Lines::default();
        lines.feed(Some(&Bytes::from(vec![b'x'; LONGEST + 1])));
        assert!(lines.next().is_err());
    }
}
