//! Bytes of the messages between daemon and supervisor: numbers, and texts that need not be UTF-8.
//!
//! Both ends are the same binary, so there is neither a version nor anything that could be skipped.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use uuid::Uuid;

/// Puts values one after the other.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn starting_with(tag: u8) -> Self {
        Self(vec![tag])
    }

    pub(crate) fn flag(self, value: bool) -> Self {
        self.raw(&[u8::from(value)])
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn id(self, value: Uuid) -> Self {
        self.raw(value.as_bytes())
    }

    pub(crate) fn text(self, value: &OsStr) -> Self {
        self.count(value.len()).raw(value.as_bytes())
    }

    /// A list: its length, then each item as `put` does it.
    pub(crate) fn list<T>(self, items: &[T], put: impl Fn(Self, &T) -> Self) -> Self {
        items.iter().fold(self.count(items.len()), put)
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Messages are far smaller than this could hold: [`crate::MAX_COMMAND`] is checked before.
    fn count(self, value: usize) -> Self {
        self.u32(u32::try_from(value).unwrap_or(u32::MAX))
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Takes values off the front; `None` when there are not enough bytes.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.raw(1).map(|bytes| bytes[0])
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.u8().map(|byte| byte != 0)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    pub(crate) fn text(&mut self) -> Option<OsString> {
        let length = self.u32()? as usize;
        self.raw(length).map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    /// Grows with what is there, never with what a length claims.
    pub(crate) fn list<T>(&mut self, take: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.u32()?).map(|_| take(self)).collect()
    }

    /// The value, if nothing is left over.
    pub(crate) fn finish<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.raw(N)?.try_into().ok()
    }

    fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
