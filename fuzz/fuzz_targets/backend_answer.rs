//! A backend's answer: however its bytes are split, it is read the same, and as hyper's client reads it. The
//! first byte of the input says where to split, the second to which method it is the answer.
//!
//! Ours is stricter than hyper, which takes the first of two lengths for the true one, passes coded bodies
//! on, skips interim answers without end and takes any number for a length: see `stricter`.
#![no_main]

use std::{
    collections::VecDeque,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use backend::http1::{AnswerReader, Malformed};
use hyper::{
    HeaderMap, Method, Request,
    body::Body,
    client::conn::http1::Builder,
    rt::{Read, ReadBufCursor, Write},
};
use libfuzzer_sys::fuzz_target;

/// More than any input of this size takes.
const POLLS: usize = 100_000;

/// A status, headers and a body.
type Answer = (u16, HeaderMap, Vec<u8>);

fn stricter(error: Malformed) -> bool {
    use Malformed::{BothLengths, Coding, Length, ManyInterim, Switched};
    matches!(error, BothLengths | Coding | Length | ManyInterim | Switched)
}

/// The answer, and whether its connection may be used again.
fn ours<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    method: &Method,
) -> Result<(Answer, bool), Malformed> {
    let mut reader = AnswerReader::new(method == Method::HEAD);
    let (mut head, mut body) = (None, Vec::new());
    for piece in pieces {
        let mut piece = piece.to_vec();
        let fed = reader.feed(&mut piece)?;
        assert!(head.is_none() || fed.head.is_none());
        head = head.or(fed.head);
        body.extend_from_slice(&piece[fed.content]);
    }
    let goes_on = reader.may_go_on();
    reader.close()?;
    assert!(reader.is_over());
    let head = head.ok_or(Malformed::NoHead)?;
    Ok(((head.status.as_u16(), head.headers, body), goes_on))
}

/// A connection that brings these pieces once something is written, and then ends.
struct Script<'a> {
    pieces: VecDeque<&'a [u8]>,
    asked: bool,
}

impl Read for Script<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            return Poll::Pending;
        }
        if let Some(piece) = self.pieces.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            if !later.is_empty() {
                self.pieces.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Script<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.asked = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Hyper's reading; `None` where it refuses.
fn theirs(pieces: &[&[u8]], method: &Method) -> Option<Answer> {
    let mut cx = Context::from_waker(Waker::noop());
    let script = Script { pieces: pieces.iter().copied().collect(), asked: false };
    let mut builder = Builder::new();
    builder.max_buf_size(64 * 1024);
    let Poll::Ready(made) = pin!(builder.handshake(script)).poll(&mut cx) else { panic!() };
    let (mut sender, connection) = made.unwrap();
    let mut connection = Some(Box::pin(connection));
    let request = Request::builder().method(method).uri("/").body(String::new()).unwrap();
    let mut asked = pin!(sender.send_request(request));
    let mut body = None;
    let mut answer: Option<Answer> = None;
    for _ in 0..POLLS {
        if let Some(running) = &mut connection
            && running.as_mut().poll(&mut cx).is_ready()
        {
            connection = None;
        }
        let Some(body) = &mut body else {
            if let Poll::Ready(response) = asked.as_mut().poll(&mut cx) {
                let (head, incoming) = response.ok()?.into_parts();
                answer = Some((head.status.as_u16(), head.headers, Vec::new()));
                body = Some(incoming);
            }
            continue;
        };
        match Pin::new(body).poll_frame(&mut cx) {
            Poll::Ready(Some(frame)) => {
                let data = frame.ok()?.into_data().unwrap_or_default();
                answer.iter_mut().for_each(|(.., body)| body.extend_from_slice(&data));
            }
            Poll::Ready(None) => return answer,
            Poll::Pending => {}
        }
    }
    panic!("hyper does not come to an end");
}

fuzz_target!(|data: &[u8]| {
    let [size, kind, stream @ ..] = data else { return };
    let method = if kind % 8 == 7 { Method::HEAD } else { Method::POST };
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(*size).max(1)).collect();
    let split = ours(pieces.iter().copied(), &method);
    let whole = ours(std::iter::once(stream), &method);
    let bytewise = ours(stream.chunks(1), &method);
    assert_eq!(split.as_ref().ok(), whole.as_ref().ok());
    assert_eq!(split.as_ref().ok(), bytewise.as_ref().ok());
    if split.as_ref().is_err_and(|error| stricter(*error)) {
        return;
    }
    let split = split.ok().map(|(answer, _)| answer);
    assert_eq!(split, theirs(&pieces, &method));
});
