//! Binary frames between two Warrens: a kind, a job number, raw bytes.
//!
//! Every frame begins with one byte of kind and the job's number as 32 bits, big-endian. The
//! number is the server's, unique on its connection while the job lives. Decoding slices the
//! frame: payloads are never copied.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Serialize, de::DeserializeOwned};

use crate::json::{self, clip};

pub use super::heads::{
    FailureCode, HeaderPairs, JobFailure, RequestHead, ResponseEnd, ResponseHead, header_bytes,
    header_text,
};

/// The longest JSON part of a frame, in bytes. A longer one is refused by the decoder.
pub const MAX_META: usize = 1024 * 1024;

/// Bytes before the payload: the kind and the job's number.
pub const PREFIX: usize = 5;

const REQUEST: u8 = 0x01;
const BODY: u8 = 0x02;
const CREDIT: u8 = 0x03;
const HEAD: u8 = 0x11;
const CHUNK: u8 = 0x12;
const END: u8 = 0x13;
const FAIL: u8 = 0x14;
const ACCEPTED: u8 = 0x15;

/// A frame from a server to a worker. A cancel stays a text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerFrame {
    /// `0x01`: a job begins, with the first piece of its body.
    Request {
        /// The job's number.
        job: u32,
        /// Everything but the body.
        head: RequestHead,
        /// The first piece of the body, perhaps all of it.
        body: Bytes,
    },
    /// `0x02`: the next piece of a body.
    Body {
        /// The job's number.
        job: u32,
        /// The bytes.
        piece: Bytes,
    },
    /// `0x03`: the worker may send this many more bytes of the answer.
    Credit {
        /// The job's number.
        job: u32,
        /// How many bytes more.
        bytes: u32,
    },
}

/// A frame from a worker to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerFrame {
    /// `0x11`: the backend has answered.
    Head {
        /// The job's number.
        job: u32,
        /// Status and headers.
        head: ResponseHead,
    },
    /// `0x12`: bytes of the answer, unchanged.
    Chunk {
        /// The job's number.
        job: u32,
        /// The bytes.
        bytes: Bytes,
    },
    /// `0x13`: the answer is complete.
    End {
        /// The job's number.
        job: u32,
        /// The facts at the end of an answer.
        end: ResponseEnd,
    },
    /// `0x14`: the job has failed.
    Fail {
        /// The job's number.
        job: u32,
        /// Why.
        failure: JobFailure,
    },
    /// `0x15`: the worker has the job, whose answer may take its time. Sent only to a server that
    /// wants it ([`RegisterAck::acknowledge`](super::RegisterAck::acknowledge)).
    Accepted {
        /// The job's number.
        job: u32,
    },
}

/// A frame that could not be read, with its job when that much was there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct FrameError {
    /// The job's number, so that the frame costs only that job.
    pub job: Option<u32>,
    /// The fault.
    pub problem: FrameProblem,
}

/// The fault of a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameProblem {
    /// It is shorter than its kind requires.
    #[error("frame cut short")]
    Short,
    /// A kind that this end does not take.
    #[error("unknown frame kind {0:#04x}")]
    UnknownKind(u8),
    /// The JSON part is longer than [`MAX_META`].
    #[error("frame head of {0} bytes is over the limit")]
    MetaTooLong(usize),
    /// The JSON part is invalid for its kind.
    #[error("bad frame head: {0}")]
    BadMeta(String),
    /// Bytes after the end of a frame of fixed length.
    #[error("frame too long for its kind")]
    Trailing,
}

impl ServerFrame {
    /// The number of the job that the frame is about.
    pub fn job(&self) -> u32 {
        match self {
            Self::Request { job, .. } | Self::Body { job, .. } | Self::Credit { job, .. } => *job,
        }
    }

    /// Writes the frame.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Request { job, head, body } => encode_request(*job, head, body),
            Self::Body { job, piece } => encode_raw(BODY, *job, piece),
            Self::Credit { job, bytes } => encode_raw(CREDIT, *job, &bytes.to_be_bytes()),
        }
    }

    /// Reads a frame; body pieces share its memory.
    pub fn decode(frame: Bytes) -> Result<Self, FrameError> {
        let (kind, job, payload) = split(frame)?;
        let read = match kind {
            REQUEST => decode_request(job, payload),
            BODY => Ok(Self::Body { job, piece: payload }),
            CREDIT => decode_credit(job, &payload),
            _ => Err(FrameProblem::UnknownKind(kind)),
        };
        read.map_err(|problem| FrameError { job: Some(job), problem })
    }
}

impl WorkerFrame {
    /// The number of the job that the frame is about.
    pub fn job(&self) -> u32 {
        match self {
            Self::Head { job, .. } | Self::Chunk { job, .. } => *job,
            Self::End { job, .. } | Self::Fail { job, .. } | Self::Accepted { job } => *job,
        }
    }

    /// Writes the frame.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Head { job, head } => encode_meta(HEAD, *job, head),
            Self::Chunk { job, bytes } => encode_raw(CHUNK, *job, bytes),
            Self::End { job, end } if end.token_counts.is_none() => encode_raw(END, *job, b""),
            Self::End { job, end } => encode_meta(END, *job, end),
            Self::Fail { job, failure } => encode_meta(FAIL, *job, failure),
            Self::Accepted { job } => encode_raw(ACCEPTED, *job, b""),
        }
    }

    /// Reads a frame; chunks share its memory.
    pub fn decode(frame: Bytes) -> Result<Self, FrameError> {
        let (kind, job, payload) = split(frame)?;
        let read = match kind {
            HEAD => meta(&payload).map(|head| Self::Head { job, head }),
            CHUNK => Ok(Self::Chunk { job, bytes: payload }),
            END if payload.is_empty() => Ok(Self::End { job, end: ResponseEnd::default() }),
            END => meta(&payload).map(|end| Self::End { job, end }),
            FAIL => meta(&payload).map(|failure| Self::Fail { job, failure }),
            ACCEPTED if payload.is_empty() => Ok(Self::Accepted { job }),
            ACCEPTED => Err(FrameProblem::Trailing),
            _ => Err(FrameProblem::UnknownKind(kind)),
        };
        read.map_err(|problem| FrameError { job: Some(job), problem })
    }
}

fn split(mut frame: Bytes) -> Result<(u8, u32, Bytes), FrameError> {
    let Some(&[kind, a, b, c, d]) = frame.first_chunk() else {
        return Err(FrameError { job: None, problem: FrameProblem::Short });
    };
    let payload = frame.split_off(PREFIX);
    Ok((kind, u32::from_be_bytes([a, b, c, d]), payload))
}

fn decode_request(job: u32, mut payload: Bytes) -> Result<ServerFrame, FrameProblem> {
    let length = payload.first_chunk().ok_or(FrameProblem::Short)?;
    let length = u32::from_be_bytes(*length) as usize;
    if length > MAX_META {
        return Err(FrameProblem::MetaTooLong(length));
    }
    let mut rest = payload.split_off(4);
    if rest.len() < length {
        return Err(FrameProblem::Short);
    }
    let body = rest.split_off(length);
    Ok(ServerFrame::Request { job, head: meta(&rest)?, body })
}

fn decode_credit(job: u32, payload: &[u8]) -> Result<ServerFrame, FrameProblem> {
    let problem = if payload.len() < 4 { FrameProblem::Short } else { FrameProblem::Trailing };
    let bytes = <[u8; 4]>::try_from(payload).map_err(|_| problem)?;
    Ok(ServerFrame::Credit { job, bytes: u32::from_be_bytes(bytes) })
}

fn meta<T: DeserializeOwned>(json: &[u8]) -> Result<T, FrameProblem> {
    if json.len() > MAX_META {
        return Err(FrameProblem::MetaTooLong(json.len()));
    }
    serde_json::from_slice(json)
        .map_err(|error| FrameProblem::BadMeta(clip(&error.to_string(), 200).to_owned()))
}

fn prefix(kind: u8, job: u32, payload: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(PREFIX + payload);
    frame.put_u8(kind);
    frame.put_u32(job);
    frame
}

fn encode_raw(kind: u8, job: u32, payload: &[u8]) -> Bytes {
    let mut frame = prefix(kind, job, payload.len());
    frame.put_slice(payload);
    frame.freeze()
}

fn encode_meta(kind: u8, job: u32, meta: &impl Serialize) -> Bytes {
    encode_raw(kind, job, json::write(meta).as_bytes())
}

fn encode_request(job: u32, head: &RequestHead, body: &[u8]) -> Bytes {
    let meta = json::write(head);
    let mut frame = prefix(REQUEST, job, 4 + meta.len() + body.len());
    // A length that does not fit is over the decoder's limit all the more.
    frame.put_u32(u32::try_from(meta.len()).unwrap_or(u32::MAX));
    frame.put_slice(meta.as_bytes());
    frame.put_slice(body);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::relay::TokenCounts;

    fn request(body: &'static [u8]) -> ServerFrame {
        let head = RequestHead {
            request_id: "r-1".into(),
            model: "m".into(),
            endpoint_path: "/v1/x?y=1".into(),
            is_streaming: true,
            headers: vec![("a".into(), "1".into()), ("a".into(), "\u{e9}".into())],
            body_len: 9,
        };
        ServerFrame::Request { job: 0x0102_0304, head, body: Bytes::from_static(body) }
    }

    fn server(wire: &[u8], frame: ServerFrame) {
        assert_eq!(frame.encode(), wire);
        assert_eq!(ServerFrame::decode(Bytes::copy_from_slice(wire)), Ok(frame));
    }

    fn worker(wire: &[u8], frame: WorkerFrame) {
        assert_eq!(frame.encode(), wire);
        assert_eq!(WorkerFrame::decode(Bytes::copy_from_slice(wire)), Ok(frame));
    }

    #[test]
    fn server_frames_byte_for_byte() {
        let meta = "{\"request_id\":\"r-1\",\"model\":\"m\",\"endpoint_path\":\"/v1/x?y=1\",\
             \"is_streaming\":true,\"headers\":[[\"a\",\"1\"],[\"a\",\"é\"]],\"body_len\":9}";
        assert_eq!(meta.len(), 126);
        let wire = [b"\x01\x01\x02\x03\x04\0\0\0\x7e", meta.as_bytes(), b"\xff{}"].concat();
        server(&wire, request(b"\xff{}"));
        server(
            b"\x02\0\0\0\x07\xff\0",
            ServerFrame::Body { job: 7, piece: (&b"\xff\0"[..]).into() },
        );
        server(b"\x03\0\0\0\x07\0\x04\0\0", ServerFrame::Credit { job: 7, bytes: 256 * 1024 });
    }

    #[test]
    fn worker_frames_byte_for_byte() {
        let headers = vec![("set-cookie".into(), "a".into()), ("set-cookie".into(), "b".into())];
        worker(
            b"\x11\0\0\0\x07{\"status_code\":429,\"headers\":[[\"set-cookie\",\"a\"],[\"set-cookie\",\"b\"]]}",
            WorkerFrame::Head { job: 7, head: ResponseHead { status_code: 429, headers } },
        );
        worker(
            b"\x12\xff\xff\xff\xffdata",
            WorkerFrame::Chunk { job: u32::MAX, bytes: "data".into() },
        );
        worker(b"\x13\0\0\0\x07", WorkerFrame::End { job: 7, end: ResponseEnd::default() });
        let counts = TokenCounts { prompt_tokens: Some(0), ..TokenCounts::default() };
        worker(
            b"\x13\0\0\0\x07{\"token_counts\":{\"prompt_tokens\":0}}",
            WorkerFrame::End { job: 7, end: ResponseEnd { token_counts: Some(counts) } },
        );
        worker(b"\x15\0\0\0\x07", WorkerFrame::Accepted { job: 7 });
        let failure = JobFailure { code: FailureCode::Draining, message: "bye".into() };
        worker(
            b"\x14\0\0\0\x07{\"code\":\"draining\",\"message\":\"bye\"}",
            WorkerFrame::Fail { job: 7, failure },
        );
    }

    #[test]
    fn payloads_are_slices_of_the_frame() {
        let frame = WorkerFrame::Chunk { job: 1, bytes: "data".into() }.encode();
        let Ok(WorkerFrame::Chunk { bytes, .. }) = WorkerFrame::decode(frame.clone()) else {
            panic!("no chunk")
        };
        assert_eq!(bytes.as_ptr(), frame[PREFIX..].as_ptr());
        let frame = request(b"body").encode();
        let Ok(ServerFrame::Request { body, .. }) = ServerFrame::decode(frame.clone()) else {
            panic!("no request")
        };
        assert_eq!(body.as_ptr(), frame[frame.len() - 4..].as_ptr());
    }

    #[test]
    fn every_cut_of_a_request_head_is_an_error_of_its_job() {
        let whole = request(b"").encode();
        for length in 0..whole.len() {
            let error = ServerFrame::decode(whole.slice(..length)).unwrap_err();
            assert_eq!(error.job, (length >= PREFIX).then_some(0x0102_0304), "{length}");
            assert_eq!(error.problem, FrameProblem::Short, "{length}");
        }
    }

    #[test]
    fn bad_frames_name_their_problem() {
        let server = |wire: &'static [u8]| ServerFrame::decode(wire.into()).unwrap_err().problem;
        assert_eq!(server(b"\x11\0\0\0\x01{}"), FrameProblem::UnknownKind(0x11));
        assert_eq!(server(b"\x03\0\0\0\x01\0\0\0"), FrameProblem::Short);
        assert_eq!(server(b"\x03\0\0\0\x01\0\0\0\0\0"), FrameProblem::Trailing);
        assert_eq!(
            server(b"\x01\0\0\0\x01\xff\xff\xff\xff"),
            FrameProblem::MetaTooLong(0xffff_ffff)
        );
        let worker = |wire: &'static [u8]| WorkerFrame::decode(wire.into()).unwrap_err().problem;
        assert_eq!(worker(b"\x01\0\0\0\x01"), FrameProblem::UnknownKind(1));
        assert_eq!(worker(b"\x15\0\0\0\x01x"), FrameProblem::Trailing);
        for wire in
            [&b"\x11\0\0\0\x01"[..], b"\x11\0\0\0\x01{\"status_code\":-1}", b"\x14\0\0\0\x01\xff"]
        {
            assert!(matches!(worker(wire), FrameProblem::BadMeta(_)), "{wire:?}");
        }
    }

    #[test]
    fn a_head_has_a_bound_and_reaches_it() {
        let head = |value: usize| {
            let headers = vec![("a".to_owned(), "x".repeat(value))];
            WorkerFrame::Head { job: 1, head: ResponseHead { status_code: 200, headers } }
        };
        let around = head(0).encode().len() - PREFIX;
        let fits = head(MAX_META - around);
        assert_eq!(WorkerFrame::decode(fits.encode()), Ok(fits));
        let error = WorkerFrame::decode(head(MAX_META - around + 1).encode()).unwrap_err();
        assert_eq!(
            error,
            FrameError { job: Some(1), problem: FrameProblem::MetaTooLong(MAX_META + 1) }
        );
    }

    proptest! {
        #[test]
        fn any_bytes_read_back_as_they_were_read(
            kind in prop_oneof![Just(1u8), Just(2), Just(3), 0x11..=0x15u8, any::<u8>()],
            rest: Vec<u8>,
        ) {
            let wire = Bytes::from([&[kind][..], &rest].concat());
            if let Ok(frame) = ServerFrame::decode(wire.clone()) {
                prop_assert_eq!(ServerFrame::decode(frame.encode()), Ok(frame));
            }
            if let Ok(frame) = WorkerFrame::decode(wire) {
                prop_assert_eq!(WorkerFrame::decode(frame.encode()), Ok(frame));
            }
        }

        #[test]
        fn requests_read_back(
            job: u32, request_id: String, model: String, endpoint_path: String, is_streaming: bool,
            headers: Vec<(String, String)>, body_len: u64, body: Vec<u8>,
        ) {
            let head = RequestHead {
                request_id, model, endpoint_path, is_streaming, headers, body_len,
            };
            let frame = ServerFrame::Request { job, head, body: body.into() };
            prop_assert_eq!(ServerFrame::decode(frame.encode()), Ok(frame));
        }

        #[test]
        fn failures_read_back(job: u32, code: String, message: String) {
            let failure = JobFailure { code: code.into(), message };
            let frame = WorkerFrame::Fail { job, failure };
            prop_assert_eq!(WorkerFrame::decode(frame.encode()), Ok(frame));
        }
    }
}
