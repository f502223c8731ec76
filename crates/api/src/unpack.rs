//! Request bodies that come compressed.
//!
//! A body is unpacked once all of it has come: in pieces, each on a thread for blocking work. Its length is checked
//! after each piece, so a small body that grows without end takes no more memory than the limit.

use std::io::{Cursor, Read};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http::{HeaderMap, StatusCode, header};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::{
    error::{ApiError, Kind},
    read::{too_large, unsupported},
    uploads::HeldBody,
};

/// How many bytes are unpacked at once.
const PIECE: usize = 1024 * 1024;

/// The largest window of zstd that is taken, in bytes: the most that RFC 9659 allows for this coding.
const ZSTD_WINDOW: u64 = 8 * 1024 * 1024;

/// The largest window of brotli, in bytes (RFC 7932 section 9.1).
const BROTLI_WINDOW: u64 = 16 * 1024 * 1024;

/// The window of gzip, in bytes.
const GZIP_WINDOW: u64 = 32 * 1024;

/// The buffer between a body and its brotli decoder, in bytes.
const BUFFER: usize = 4096;

/// The `code` of the error for a coding that is not taken.
pub(crate) const UNKNOWN: &str = "unsupported_content_encoding";

/// A coding in which bodies are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// `gzip`, also called `x-gzip` (RFC 9110 section 8.4.1.3).
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
    /// `br` (RFC 7932).
    Brotli,
}

impl Coding {
    /// All codings, as `Accept-Encoding` names them.
    pub(crate) const TAKEN: &str = "zstd, br, gzip";

    /// The coding of a body, if it has one.
    ///
    /// # Errors
    /// 415 when the body has another coding, or several.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let lists = headers.get_all(header::CONTENT_ENCODING).iter();
        let each = lists.flat_map(|list| list.as_bytes().split(|&byte| byte == b','));
        // An empty name means no coding.
        let is_none = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
        let mut named = each.map(<[u8]>::trim_ascii).filter(|coding| !is_none(coding));
        let Some(first) = named.next() else { return Ok(None) };
        match (Self::named(first), named.next()) {
            (Some(coding), None) => Ok(Some(coding)),
            (_, Some(_)) => Err(refused("the request body has several codings")),
            (None, None) => {
                let first = String::from_utf8_lossy(first);
                Err(refused(&format!("the coding {first:?} of the request body is not known here")))
            }
        }
    }

    /// The coding of this name, whose case does not matter (RFC 9110 section 8.4.1).
    fn named(name: &[u8]) -> Option<Self> {
        let names = [
            (&b"gzip"[..], Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"zstd", Self::Zstd),
            (b"br", Self::Brotli),
        ];
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, it)| it)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "brotli",
        }
    }
}

/// Unpacks a body to at most `limit` bytes. Its memory, packed and unpacked, is held through `held`.
///
/// # Errors
/// 400 when it is damaged, cut off, or goes on after its end, 413 when it becomes too long, 429 when there is no
/// memory for it.
pub(crate) async fn unpack(
    coding: Coding,
    packed: Bytes,
    limit: usize,
    held: &mut HeldBody<'_>,
) -> Result<Bytes, ApiError> {
    let (mut unpacker, window) = Unpacker::new(coding, packed.clone())?;
    let beside = packed.len() + usize::try_from(window).unwrap_or(usize::MAX);
    let mut unpacked = Vec::new();
    loop {
        held.grow(beside + unpacked.len() + PIECE.min(limit)).await?;
        let most = PIECE.min(limit - unpacked.len() + 1);
        let step = move || {
            let ended = unpacker.step(&mut unpacked, most);
            (unpacker, unpacked, ended)
        };
        let stepped = tokio::task::spawn_blocking(step).await.map_err(|_| damaged(coding))?;
        let ended;
        (unpacker, unpacked, ended) = stepped;
        let ended = ended.map_err(|wrong| wrong.error(coding))?;
        if unpacked.len() > limit {
            return Err(too_large(limit));
        }
        if ended {
            return Ok(unpacked.into());
        }
    }
}

/// The decoder of a body.
enum Unpacker {
    Gzip(Box<GzDecoder<Cursor<Bytes>>>),
    Zstd(Box<StreamingDecoder<Cursor<Bytes>, FrameDecoder>>),
    Brotli(Box<Decompressor<Cursor<Bytes>>>),
}

/// The fault of a compressed body.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Damaged,
    GoesOn,
}

impl Unpacker {
    /// The unpacker of a body, and the memory that it needs for its window, in bytes.
    fn new(coding: Coding, packed: Bytes) -> Result<(Self, u64), ApiError> {
        let source = Cursor::new(packed);
        Ok(match coding {
            Coding::Gzip => (Self::Gzip(Box::new(GzDecoder::new(source))), GZIP_WINDOW),
            Coding::Brotli => {
                (Self::Brotli(Box::new(Decompressor::new(source, BUFFER))), BROTLI_WINDOW)
            }
            Coding::Zstd => {
                let window = zstd_window(source.get_ref()).ok_or_else(|| damaged(coding))?;
                if window > ZSTD_WINDOW {
                    return Err(too_wide(window));
                }
                let decoder = StreamingDecoder::new(source).map_err(|_| damaged(coding))?;
                (Self::Zstd(Box::new(decoder)), window)
            }
        })
    }

    /// Unpacks up to `most` bytes and appends them to `into`. Returns whether the body has ended. Blocks.
    fn step(&mut self, into: &mut Vec<u8>, most: usize) -> Result<bool, Wrong> {
        let read = match self {
            Self::Gzip(decoder) => decoder.by_ref().take(most as u64).read_to_end(into),
            Self::Zstd(decoder) => decoder.by_ref().take(most as u64).read_to_end(into),
            Self::Brotli(decoder) => decoder.by_ref().take(most as u64).read_to_end(into),
        };
        if read.map_err(|_| Wrong::Damaged)? == most {
            return Ok(false);
        }
        self.check_end().map(|()| true)
    }

    /// Checks, after the last byte, that nothing follows and that the checksum is right.
    fn check_end(&mut self) -> Result<(), Wrong> {
        let source = match self {
            // The decoder has compared the checksum itself.
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => {
                let frame = &decoder.decoder;
                let expected = frame.get_checksum_from_data();
                if expected.is_some() && expected != frame.get_calculated_checksum() {
                    return Err(Wrong::Damaged);
                }
                decoder.get_ref()
            }
            Self::Brotli(decoder) => {
                // The decoder fails here if bytes are left in its buffer.
                if decoder.read(&mut [0]).is_err() {
                    return Err(Wrong::GoesOn);
                }
                decoder.get_ref()
            }
        };
        if source.position() < source.get_ref().len() as u64 { Err(Wrong::GoesOn) } else { Ok(()) }
    }
}

impl Wrong {
    fn error(&self, coding: Coding) -> ApiError {
        match self {
            Self::Damaged => damaged(coding),
            Self::GoesOn => {
                let name = coding.name();
                bad(format!("the request body goes on after the end of its {name} data: send one"))
            }
        }
    }
}

/// The window that a frame of zstd asks for, in bytes (RFC 8878 section 3.1.1.1). `None` when this is not a frame.
fn zstd_window(packed: &[u8]) -> Option<u64> {
    const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
    let (&descriptor, rest) = packed.strip_prefix(&MAGIC)?.split_first()?;
    if descriptor & 0x20 == 0 {
        let byte = *rest.first()?;
        let base = 1_u64 << (10 + (byte >> 3));
        return Some(base + base / 8 * u64::from(byte & 7));
    }
    // The window is the whole content, whose length comes after the dictionary's id.
    let (skipped, length) = ([0, 1, 2, 4][usize::from(descriptor & 3)], descriptor >> 6);
    let field = |length: usize| rest.get(skipped..skipped + length);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &it| sum << 8 | u64::from(it));
    match length {
        0 => field(1).map(number),
        1 => field(2).map(|bytes| number(bytes) + 256),
        2 => field(4).map(number),
        _ => field(8).map(number),
    }
}

fn refused(words: &str) -> ApiError {
    let error = unsupported(format!("{words}: send it plain, or with one of {}", Coding::TAKEN));
    ApiError { code: Some(UNKNOWN), ..error }
}

fn damaged(coding: Coding) -> ApiError {
    bad(format!("the request body is no whole {} data: it is damaged or cut off", coding.name()))
}

fn too_wide(window: u64) -> ApiError {
    bad(format!(
        "the zstd data of the request body needs a window of {window} bytes, and the most is {ZSTD_WINDOW}"
    ))
}

fn bad(words: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
}

#[cfg(test)]
mod tests;
