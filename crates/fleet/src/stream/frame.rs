//! The frames of a stream, and their bytes.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

/// The most bytes that a frame carries. Half of what the transport takes in one message.
pub const MOST_PAYLOAD: usize = 512 * 1024;
/// The most bytes that a reset says of itself.
pub const MOST_DETAIL: usize = 1_024;
/// The bytes of a frame before what it carries.
pub const HEAD: usize = 42;

/// One stream: 128 random bits of the end that opened it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u128);

/// One message of one end to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The stream.
    pub stream: StreamId,
    /// The kind of the frame.
    pub kind: Kind,
    /// Whether its sender writes nothing after it; of [`Kind::Open`], [`Kind::Data`] and [`Kind::Probe`].
    pub is_last: bool,
    /// The number of its first byte; of a probe, how many bytes were sent; of a request for missing
    /// bytes, their end.
    pub offset: u64,
    /// How many bytes its sender has received without a hole, and one more if it knows the end.
    pub received: u64,
    /// How many bytes its sender takes in all.
    pub limit: u64,
    /// The bytes that it carries; of a reset, a text of at most [`MOST_DETAIL`] bytes.
    pub payload: Bytes,
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first bytes of the end that opens the stream.
    Open,
    /// More bytes.
    Data,
    /// Nothing but what each frame says.
    Credit,
    /// A question for a [`Kind::Credit`] or a [`Kind::Missing`].
    Probe,
    /// The bytes from `received` to `offset` are missing.
    Missing,
    /// The stream is over.
    Reset(Reason),
}

/// Why a stream was over before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The other end has no use for it any more.
    Cancelled,
    /// The other end does not know the stream.
    Unknown,
    /// The other end does not take it.
    Refused,
    /// The server at the other end is gone.
    Left,
    /// Nothing was heard of the other end.
    Silent,
    /// The other end broke the rules of streams.
    Breach,
    /// The time for it is over.
    TimedOut,
    /// The server at the other end stops.
    Stopping,
    /// The other end failed.
    Failed,
}

/// Bytes that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It is shorter than any frame.
    #[error("{0} bytes are no frame: it has {HEAD} at least")]
    Short(usize),
    /// It carries too much.
    #[error("a frame carries {0} bytes, more than it may")]
    Long(usize),
    /// It is of no known kind, or says what its kind does not.
    #[error("a frame of kind {0} is not known, or says what it may not")]
    Kind(u8),
    /// A number in it is too large to count with.
    #[error("a frame counts {0} bytes")]
    Count(u64),
}

/// More bytes than any stream has: sums of two offsets stay numbers.
const MOST_COUNT: u64 = 1 << 60;

const REASONS: [Reason; 9] = [
    Reason::Cancelled,
    Reason::Unknown,
    Reason::Refused,
    Reason::Left,
    Reason::Silent,
    Reason::Breach,
    Reason::TimedOut,
    Reason::Stopping,
    Reason::Failed,
];

impl StreamId {
    /// An id made of the caller's random bits.
    pub const fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Frame {
    /// The answer to a frame of a stream that is not known here. A reset needs none.
    pub fn unknown(stream: StreamId) -> Self {
        Self {
            stream,
            kind: Kind::Reset(Reason::Unknown),
            is_last: false,
            offset: 0,
            received: 0,
            limit: 0,
            payload: Bytes::new(),
        }
    }

    /// The frame as bytes.
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEAD + self.payload.len());
        bytes.put_u8(self.kind.code());
        bytes.put_u8(u8::from(self.is_last));
        bytes.put_u128(self.stream.0);
        bytes.put_u64(self.offset);
        bytes.put_u64(self.received);
        bytes.put_u64(self.limit);
        bytes.put_slice(&self.payload);
        bytes.freeze()
    }

    /// Reads a frame. What it carries stays where it is.
    pub fn decode(mut bytes: Bytes) -> Result<Self, BadFrame> {
        if bytes.len() < HEAD {
            return Err(BadFrame::Short(bytes.len()));
        }
        let payload = bytes.split_off(HEAD);
        let code = bytes[0];
        let kind = Kind::of(code).ok_or(BadFrame::Kind(code))?;
        let is_last = bytes[1] == 1;
        if bytes[1] > 1 || is_last && !kind.may_be_last() {
            return Err(BadFrame::Kind(code));
        }
        if payload.len() > kind.most_payload() {
            return Err(BadFrame::Long(payload.len()));
        }
        let mut stream = [0; 16];
        stream.copy_from_slice(&bytes[2..18]);
        let stream = StreamId(u128::from_be_bytes(stream));
        let (offset, received) = (count(&bytes[18..26])?, count(&bytes[26..34])?);
        let limit = count(&bytes[34..42])?;
        if kind == Kind::Open && offset != 0 {
            return Err(BadFrame::Count(offset));
        }
        Ok(Self { stream, kind, is_last, offset, received, limit, payload })
    }
}

fn count(bytes: &[u8]) -> Result<u64, BadFrame> {
    let mut number = [0; 8];
    number.copy_from_slice(bytes);
    let number = u64::from_be_bytes(number);
    if number < MOST_COUNT { Ok(number) } else { Err(BadFrame::Count(number)) }
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Data => 2,
            Self::Credit => 3,
            Self::Probe => 4,
            Self::Missing => 5,
            Self::Reset(reason) => 16 + reason as u8,
        }
    }

    fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Open),
            2 => Some(Self::Data),
            3 => Some(Self::Credit),
            4 => Some(Self::Probe),
            5 => Some(Self::Missing),
            _ => REASONS.get(usize::from(code.checked_sub(16)?)).map(|it| Self::Reset(*it)),
        }
    }

    fn may_be_last(self) -> bool {
        matches!(self, Self::Open | Self::Data | Self::Probe)
    }

    fn most_payload(self) -> usize {
        match self {
            Self::Open | Self::Data => MOST_PAYLOAD,
            Self::Reset(_) => MOST_DETAIL,
            Self::Credit | Self::Probe | Self::Missing => 0,
        }
    }
}
