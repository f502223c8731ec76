//! The faults of an answer.

use super::{
    answer::MAX_INTERIM,
    body::{MAX_EXTENSIONS, MAX_TRAILERS},
    head::{MAX_FIELDS, MAX_HEAD},
};

/// Why bytes are no answer, or not a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes that came are no head of an answer.
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
    /// There are too many heads that only announce the answer.
    #[error("more than {MAX_INTERIM} interim answers came before its answer")]
    ManyInterim,
    /// Another protocol is to be spoken, which nobody asked for.
    #[error("it switches to another protocol unasked")]
    Switched,
    /// The body has a length and is in chunks: the end of the answer is unclear.
    #[error("its answer has both content-length and transfer-encoding")]
    BothLengths,
    /// A length that is no number, or several that differ.
    #[error("its answer has an invalid content-length")]
    Length,
    /// A coding of the body other than chunks, or chunks in an answer of HTTP/1.0.
    #[error("its answer has a transfer-encoding that is not understood")]
    Coding,
    /// The line before a chunk, or the end of one.
    #[error("its answer has an invalid chunk")]
    Chunk,
    /// The text behind the sizes of chunks is too long.
    #[error("the chunks of its answer have more than {MAX_EXTENSIONS} bytes of extensions")]
    Extensions,
    /// The headers behind the body are invalid.
    #[error("its answer has invalid trailers")]
    Trailers,
    /// The headers behind the body are too long or too many.
    #[error("the trailers of its answer have more than {MAX_TRAILERS} bytes or {MAX_FIELDS} lines")]
    ManyTrailers,
    /// The connection ended before the head was whole.
    #[error("the connection was closed before its answer began")]
    NoHead,
    /// The connection ended in the middle of the body.
    #[error("the connection was closed in the middle of its answer")]
    CutOff,
}
