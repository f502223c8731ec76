//! The relay worker protocol: workers dial out to a server, which sends them requests.
//!
//! Control messages are JSON text ([`message`]). Requests and answers are JSON too for stock peers,
//! and raw bytes in binary frames ([`binary`]) once both ends have agreed on a [`Version`] of them.
//! [`registration`] cleans a worker's registration; [`request`] writes a request for a stock
//! worker.

pub mod binary;
pub(crate) mod decode;
mod endpoints;
mod fields;
mod from_server;
mod from_worker;
mod heads;
pub mod message;
pub mod registration;
pub mod request;

pub use crate::json::escaped_len as json_escaped_len;
pub use binary::{
    FailureCode, FrameError, FrameProblem, HeaderFields, JobFailure, RequestHead, ResponseEnd,
    ResponseHead, ServerFrame, Version, WorkerFrame, header_bytes, header_text,
};
pub use decode::{MessageError, Problem};
pub use heads::Headers;
pub use message::{
    Cancel, CancelCause, GracefulShutdown, ModelDone, ModelMessage, ModelsRefresh, ModelsUpdate,
    Ping, Pong, Register, RegisterAck, Request, ResponseChunk, ResponseComplete, ServerMessage,
    TokenCounts, WorkerError, WorkerMessage, WorkerParticipant,
};
pub use registration::{Normalised, normalise_models};
pub use request::{encode_request, encoded_request_len};

/// The `protocol_version` of the specification, which Warrens send to each other.
pub const SPEC_VERSION: &str = "1";

/// The only `protocol_version` that a stock server accepts.
pub const STOCK_VERSION: &str = "2026-04-bridge-v1";

/// The reason with which a stock server closes (code 1008) to ask for a short wait: too many
/// clients have failed to authenticate, perhaps not this one. Any other reason with this code is a
/// refusal.
pub const STOCK_THROTTLED: &str = "worker authentication temporarily rate limited";

/// The longest encoded request, in bytes, that may be sent to a stock worker, which drops the
/// connection on a message of 64 MiB.
pub const STOCK_MAX_REQUEST: u64 = 60 * 1024 * 1024;

/// How many bytes of an answer a worker may send before the first credit frame.
pub const INITIAL_CREDIT: u32 = 256 * 1024;

/// The longest piece of a request body, in bytes, in one binary frame.
pub const BODY_PIECE: usize = 64 * 1024;
