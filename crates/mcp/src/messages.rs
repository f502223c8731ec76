//! The agent's messages, repaired before they are read: a message that cannot be read is never answered,
//! and the agent's turn waits for the answer.

use std::borrow::Cow;

use protocol::json::repair::{Bounds, repaired};
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
    DuplexStream, duplex,
};

/// The longest message that is repaired, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;
/// The bytes on their way to the reader.
const AHEAD: usize = 64 * 1024;

/// The lines of `source`; those that strict readers refuse are repaired where that is possible.
pub(crate) fn readable(source: impl AsyncRead + Unpin + Send + 'static) -> DuplexStream {
    let (to, from) = duplex(AHEAD);
    tokio::spawn(async move {
        // An error means that one of the two ends is closed, and then so is the other one.
        let _closed = pass_on(source, to).await;
    });
    from
}

async fn pass_on(source: impl AsyncRead + Unpin, mut to: DuplexStream) -> std::io::Result<()> {
    let (mut source, mut line) = (BufReader::new(source), Vec::new());
    while (&mut source).take(LONGEST).read_until(b'\n', &mut line).await? > 0 {
        to.write_all(&right(&line)).await?;
        line.clear();
    }
    Ok(())
}

fn right(line: &[u8]) -> Cow<'_, [u8]> {
    if serde_json::from_slice::<Value>(line).is_ok() {
        return line.into();
    }
    match repaired(line, Bounds::WHOLE) {
        Some(repaired) => (repaired.text + "\n").into_bytes().into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_that_strict_readers_refuse_are_repaired_and_the_others_stay() {
        let said = concat!(
            r#"{"id":1,"a":"\u00e9"}"#,
            "\r\n",
            r#"{"id":2,"a":"cut \ud83d","b":NaN}"#,
            "\nprose\n",
            r#"{"id":3}"#
        );
        let mut read = String::new();
        readable(said.as_bytes()).read_to_string(&mut read).await.unwrap();
        let expected = concat!(
            r#"{"id":1,"a":"\u00e9"}"#,
            "\r\n",
            r#"{"id":2,"a":"cut "#,
            "\u{fffd}",
            r#"","b":null}"#,
            "\nprose\n",
            r#"{"id":3}"#
        );
        assert_eq!(read, expected);
    }

    #[tokio::test]
    async fn a_line_without_end_is_passed_on_in_pieces() {
        let (mut to, from) = duplex(AHEAD);
        let mut read = readable(from);
        let writing = tokio::spawn(async move {
            for _ in 0..20 {
                to.write_all(&vec![b'x'; 1024 * 1024]).await.unwrap();
            }
        });
        let mut piece = vec![0; 1024 * 1024];
        for _ in 0..20 {
            read.read_exact(&mut piece).await.unwrap();
        }
        writing.await.unwrap();
    }
}
