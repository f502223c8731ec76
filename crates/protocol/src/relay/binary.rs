//! Binary frames between two Warrens: a kind, a job number, raw bytes.
//!
//! Every frame begins with one byte of kind and the job's number as 32 bits, big-endian. The number
//! is the server's, unique on its connection while the job lives. Decoding slices the frame:
//! payloads are never copied. Both versions' kinds are read on every link. Which of them are sent
//! depends on the agreed subprotocol.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Serialize, de::DeserializeOwned};

use crate::json::{self, clip};

pub use super::{
    fields::HeaderFields,
    heads::{
        FailureCode, JobFailure, RequestHead, ResponseEnd, ResponseHead, header_bytes, header_text,
    },
};

/// A version of the binary form. Two ends agree on one as the WebSocket subprotocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Heads are JSON, and every answer takes several frames.
    Two,
    /// Heads are fields, and a whole answer may be one frame.
    Three,
}

impl Version {
    /// The newest.
    pub const NEWEST: Self = Self::Three;

    /// The names of all versions as subprotocols, the newest first.
    pub const NAMES: [&'static str; 2] = [Self::Three.name(), Self::Two.name()];

    /// Its name as a subprotocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Two => "warren.relay.2",
            Self::Three => "warren.relay.3",
        }
    }

    /// The version of this subprotocol.
    pub fn of(subprotocol: &str) -> Option<Self> {
        [Self::Three, Self::Two].into_iter().find(|version| version.name() == subprotocol)
    }
}

/// The longest head of a frame, in bytes. A longer one is refused by the decoder.
pub const MAX_META: usize = 1024 * 1024;

/// Bytes before the payload: the kind and the job's number.
pub const PREFIX: usize = 5;

const REQUEST: u8 = 0x01;
const BODY: u8 = 0x02;
const CREDIT: u8 = 0x03;
const REQUEST_FIELDS: u8 = 0x04;
const HEAD: u8 = 0x11;
const CHUNK: u8 = 0x12;
const END: u8 = 0x13;
const FAIL: u8 = 0x14;
const ACCEPTED: u8 = 0x15;
const HEAD_FIELDS: u8 = 0x16;
const WHOLE: u8 = 0x17;

/// A frame from a server to a worker. A cancel stays a text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerFrame {
    /// `0x01`, in version 3 `0x04`: a job begins, with the first piece of its body.
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
    /// `0x11`, in version 3 `0x16`: the backend has answered.
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
    /// `0x15`: the worker has received the job, whose answer may take a while. Sent only to a
    /// server that wants it ([`RegisterAck::acknowledge`](super::RegisterAck::acknowledge)).
    Accepted {
        /// The job's number.
        job: u32,
    },
    /// `0x17`: head, body and end of an answer at once. Sent only in version 3.
    Whole {
        /// The job's number.
        job: u32,
        /// Status and headers.
        head: ResponseHead,
        /// All bytes of the answer, unchanged.
        body: Bytes,
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
    /// A kind that this end does not accept.
    #[error("unknown frame kind {0:#04x}")]
    UnknownKind(u8),
    /// The head is longer than [`MAX_META`].
    #[error("frame head of {0} bytes is over the limit")]
    MetaTooLong(usize),
    /// The head is invalid for its kind.
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

    /// Writes the frame for a link of this version.
    pub fn encode(&self, version: Version) -> Bytes {
        match self {
            Self::Request { job, head, body } => encode_request(version, *job, head, body),
            Self::Body { job, piece } => encode_raw(BODY, *job, piece),
            Self::Credit { job, bytes } => encode_raw(CREDIT, *job, &bytes.to_be_bytes()),
        }
    }

    /// Reads a frame; body pieces share its memory.
    pub fn decode(frame: Bytes) -> Result<Self, FrameError> {
        let (kind, job, payload) = split(frame)?;
        let read = match kind {
            REQUEST => decode_request(job, payload, |head| meta(&head)),
            REQUEST_FIELDS => decode_request(job, payload, |head| fields(RequestHead::read(head))),
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
            Self::Whole { job, .. } => *job,
        }
    }

    /// Writes the frame for a link of this version.
    pub fn encode(&self, version: Version) -> Bytes {
        match self {
            Self::Head { job, head } => encode_head(version, *job, head),
            Self::Chunk { job, bytes } => encode_raw(CHUNK, *job, bytes),
            Self::End { job, end } if end.token_counts.is_none() => encode_raw(END, *job, b""),
            Self::End { job, end } => encode_meta(END, *job, end),
            Self::Fail { job, failure } => encode_meta(FAIL, *job, failure),
            Self::Accepted { job } => encode_raw(ACCEPTED, *job, b""),
            Self::Whole { job, head, body } => encode_whole(*job, head, body),
        }
    }

    /// Reads a frame; chunks share its memory.
    pub fn decode(frame: Bytes) -> Result<Self, FrameError> {
        let (kind, job, payload) = split(frame)?;
        let read = match kind {
            HEAD => meta(&payload).map(|head| Self::Head { job, head }),
            HEAD_FIELDS => decode_head(payload).map(|head| Self::Head { job, head }),
            WHOLE => decode_whole(job, payload),
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

fn decode_request(
    job: u32,
    payload: Bytes,
    read: impl Fn(Bytes) -> Result<RequestHead, FrameProblem>,
) -> Result<ServerFrame, FrameProblem> {
    let (head, body) = split_head(payload)?;
    Ok(ServerFrame::Request { job, head: read(head)?, body })
}

fn decode_whole(job: u32, payload: Bytes) -> Result<WorkerFrame, FrameProblem> {
    let (head, body) = split_head(payload)?;
    Ok(WorkerFrame::Whole { job, head: decode_head(head)?, body })
}

/// Splits a payload that begins with the length of its head into the head and the rest.
fn split_head(mut payload: Bytes) -> Result<(Bytes, Bytes), FrameProblem> {
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
    Ok((rest, body))
}

fn decode_head(head: Bytes) -> Result<ResponseHead, FrameProblem> {
    if head.len() > MAX_META {
        return Err(FrameProblem::MetaTooLong(head.len()));
    }
    fields(ResponseHead::read(head))
}

fn fields<T>(read: Option<T>) -> Result<T, FrameProblem> {
    read.ok_or_else(|| FrameProblem::BadMeta("its fields do not fit".to_owned()))
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

fn encode_head(version: Version, job: u32, head: &ResponseHead) -> Bytes {
    if version == Version::Two {
        return encode_meta(HEAD, job, head);
    }
    let mut frame = prefix(HEAD_FIELDS, job, head.len());
    head.write(&mut frame);
    frame.freeze()
}

fn encode_whole(job: u32, head: &ResponseHead, body: &[u8]) -> Bytes {
    let mut frame = prefix(WHOLE, job, 4 + head.len() + body.len());
    put_length(&mut frame, head.len());
    head.write(&mut frame);
    frame.put_slice(body);
    frame.freeze()
}

/// Writes a length. One that does not fit into 32 bits is far beyond the decoder's limit anyway.
fn put_length(frame: &mut BytesMut, length: usize) {
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

fn encode_meta(kind: u8, job: u32, meta: &impl Serialize) -> Bytes {
    encode_raw(kind, job, json::write(meta).as_bytes())
}

/// The frame of a request for a link of this version.
pub fn encode_request<Text: AsRef<str> + Serialize>(
    version: Version,
    job: u32,
    head: &RequestHead<Text>,
    body: &[u8],
) -> Bytes {
    if version == Version::Three {
        let mut frame = prefix(REQUEST_FIELDS, job, 4 + head.len() + body.len());
        put_length(&mut frame, head.len());
        head.write(&mut frame);
        frame.put_slice(body);
        return frame.freeze();
    }
    let meta = json::write(head);
    let mut frame = prefix(REQUEST, job, 4 + meta.len() + body.len());
    put_length(&mut frame, meta.len());
    frame.put_slice(meta.as_bytes());
    frame.put_slice(body);
    frame.freeze()
}

#[cfg(test)]
mod tests;
