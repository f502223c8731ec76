//! The faults of an answer.

use super::{
    answer::MAX_INTERIM,
    body::{MAX_EXTENSIONS, MAX_TRAILERS},
    head::{MAX_FIELDS, MAX_HEAD},
};

/// Why bytes are not an answer, or not a complete one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes that came are not the head of an answer.
    #[error("its answer is no HTTP ({0})")]
    NoHttp(httparse::Error),
    /// A status that HTTP does not have.
    #[error("its answer has an invalid status")]
    Status,
    /// The head has more than [`MAX_HEAD`] bytes.
    #[error("the head of its answer is longer than {MAX_HEAD} bytes")]
    LongHead,
    /// The head has more than [`MAX_FIELDS`] header lines.
    #[error("its answer has more than {MAX_FIELDS} header lines")]
    ManyFields,
    /// There are too many interim heads before the answer.
    #[error("more than {MAX_INTERIM} interim answers came before its answer")]
    ManyInterim,
    /// The server switches to another protocol, which no request asked for.
    #[error("it switches to another protocol unasked")]
    Switched,
    /// The head gives both a length and a transfer encoding, so the end of the answer is unclear.
    #[error("its answer has both content-length and transfer-encoding")]
    BothLengths,
    /// A length that is no number, or several that differ.
    #[error("its answer has an invalid content-length")]
    Length,
    /// A coding of the body other than chunks, or chunks in an answer of HTTP/1.0.
    #[error("its answer has a transfer-encoding that is not understood")]
    Coding,
    /// The size line or the end of a chunk is invalid.
    #[error("its answer has an invalid chunk")]
    Chunk,
    /// The chunk extensions are too long.
    #[error("the chunks of its answer have more than {MAX_EXTENSIONS} bytes of extensions")]
    Extensions,
    /// The trailers after the body are invalid.
    #[error("its answer has invalid trailers")]
    Trailers,
    /// The trailers after the body are too long or too many.
    #[error("the trailers of its answer have more than {MAX_TRAILERS} bytes or {MAX_FIELDS} lines")]
    ManyTrailers,
    /// The connection ended before the head was complete.
    #[error("the connection was closed before its answer began")]
    NoHead,
    /// The connection ended in the middle of the body.
    #[error("the connection was closed in the middle of its answer")]
    CutOff,
}
