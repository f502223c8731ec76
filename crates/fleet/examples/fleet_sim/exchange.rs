//! One job between two servers: the stream, and what each side has of it.

use std::time::{Duration, Instant};

use base::{JobId, ProviderId};
use bytes::Bytes;
use fleet::{ServerId, Stream};

/// The most bytes that are written at once.
const PIECE: u64 = 60_000;

#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) peer: ServerId,
    pub(crate) stream: Stream,
    pub(crate) side: Side,
}

#[derive(Debug)]
pub(crate) enum Side {
    /// At the home of the job: how much of the answer came.
    Home { job: JobId, provider: ProviderId, got: u64, ended: bool },
    /// A request comes.
    Asked { request: Vec<u8> },
    /// A fellow's job: `written` of `may` of `bytes` bytes.
    Serving {
        job: JobId,
        theirs: JobId,
        takes_ms: u64,
        bytes: u64,
        may: u64,
        written: u64,
        is_ended: bool,
        is_finished: bool,
    },
}

/// A home's request to a fellow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) provider: ProviderId,
    pub(crate) job: JobId,
    pub(crate) bytes: u64,
    pub(crate) takes_ms: u64,
    pub(crate) model: u8,
}

impl Exchange {
    /// Writes what may be written of an answer.
    pub(crate) fn write(&mut self, now: Instant) {
        let Side::Serving { theirs, bytes, may, written, is_ended, is_finished, .. } =
            &mut self.side
        else {
            return;
        };
        while !*is_finished && !self.stream.is_over() {
            let piece = (*may - *written).min(PIECE).min(self.stream.room() as u64);
            let is_last = *is_ended && *written + piece == *bytes;
            if piece == 0 && !is_last {
                return;
            }
            let content = Request::part(*theirs, *written, piece);
            self.stream.write(now, content, is_last);
            *written += piece;
            *is_finished = is_last;
        }
    }
}

impl Side {
    pub(crate) fn serving(job: JobId, request: &Request) -> Self {
        Self::Serving {
            job,
            theirs: request.job,
            takes_ms: request.takes_ms,
            bytes: request.bytes,
            may: 0,
            written: 0,
            is_ended: false,
            is_finished: false,
        }
    }

    /// How long the worker takes, if this is that fellow's job.
    pub(crate) fn served(&self, wanted: JobId) -> Option<u64> {
        match self {
            Self::Serving { job, takes_ms, is_finished: false, .. } if *job == wanted => {
                Some(*takes_ms)
            }
            _ => None,
        }
    }

    pub(crate) fn is_home_of(&self, wanted: JobId, of: ProviderId) -> bool {
        matches!(self, Self::Home { job, provider, .. } if *job == wanted && *provider == of)
    }

    pub(crate) fn may_write_half(&mut self) {
        if let Self::Serving { may, bytes, .. } = self {
            *may = *bytes / 2;
        }
    }

    pub(crate) fn may_write_all(&mut self) {
        if let Self::Serving { may, bytes, is_ended, .. } = self {
            (*may, *is_ended) = (*bytes, true);
        }
    }

    /// The job whose answer is written, once.
    pub(crate) fn take_written(&mut self) -> Option<JobId> {
        match self {
            Self::Serving { job, is_finished: true, takes_ms, .. } if *takes_ms != u64::MAX => {
                *takes_ms = u64::MAX;
                Some(*job)
            }
            _ => None,
        }
    }
}

impl Request {
    pub(crate) fn encode(&self, sent: Duration) -> Bytes {
        let sent = u64::try_from(sent.as_micros()).unwrap_or(u64::MAX);
        let numbers =
            [self.provider.bits(), self.bytes, self.takes_ms, u64::from(self.model), sent];
        let mut bytes = self.job.bits().to_be_bytes().to_vec();
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
        bytes.into()
    }

    /// The request, and when it was sent.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, Duration)> {
        let job = JobId::from_random(u128::from_be_bytes(bytes.get(..16)?.try_into().ok()?));
        let number = |at: usize| {
            let at = 16 + at * 8;
            Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        let provider = ProviderId::from_random(number(0)?);
        let model = u8::try_from(number(3)?).ok()?;
        let request = Self { provider, job, bytes: number(1)?, takes_ms: number(2)?, model };
        Some((request, Duration::from_micros(number(4)?)))
    }

    /// Bytes of the answer to a job: each knows its place.
    fn part(job: JobId, from: u64, count: u64) -> Bytes {
        (from..from + count).map(|at| byte(job, at)).collect()
    }

    pub(crate) fn is_part(job: JobId, from: u64, bytes: &[u8]) -> bool {
        (from..).zip(bytes).all(|(at, is)| byte(job, at) == *is)
    }
}

fn byte(job: JobId, at: u64) -> u8 {
    // The low bits of both are enough.
    (job.bits() as u8).wrapping_add((at % 251) as u8)
}
