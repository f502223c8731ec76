//! Headers in binary frames: names and values in turn, each with its length in front.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor},
};

use super::heads::{header_bytes, header_text};

/// The memory reserved for the fields of a head, in bytes: enough for a usual one.
const USUAL: usize = 256;

/// Headers in their order, with repetitions, in one piece of memory. In JSON they are pairs of text,
/// with values written by [`header_text`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HeaderFields(Bytes);

impl HeaderFields {
    /// The fields in these bytes, whose memory they share. `None` if a length does not fit, or a name is
    /// not text.
    pub fn read(bytes: Bytes) -> Option<Self> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (name, behind) = split(rest)?;
            std::str::from_utf8(name).ok()?;
            (_, rest) = split(behind)?;
        }
        Some(Self(bytes))
    }

    /// The bytes that [`HeaderFields::read`] reads.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names and values, in order. They need not be valid in HTTP.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        Pairs(&self.0)
    }

    /// One of the values from [`HeaderFields::iter`], as bytes that share the memory of all fields.
    ///
    /// # Panics
    /// If the value is not part of these fields.
    pub fn share(&self, value: &[u8]) -> Bytes {
        self.0.slice_ref(value)
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for HeaderFields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut fields = BytesMut::with_capacity(USUAL);
        for (name, value) in pairs {
            put(&mut fields, name.as_ref());
            put(&mut fields, value.as_ref());
        }
        Self(fields.freeze())
    }
}

impl fmt::Debug for HeaderFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, value)| (text(name), text(value)))).finish()
    }
}

impl Serialize for HeaderFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|(name, value)| (text(name), header_text(value))))
    }
}

impl<'de> Deserialize<'de> for HeaderFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(OfPairs)
    }
}

/// Reads pairs of text.
struct OfPairs;

impl<'de> Visitor<'de> for OfPairs {
    type Value = HeaderFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs of text")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<HeaderFields, A::Error> {
        let mut fields = BytesMut::with_capacity(USUAL);
        while let Some((name, value)) = pairs.next_element::<(String, String)>()? {
            put(&mut fields, name.as_bytes());
            put(&mut fields, &header_bytes(&value));
        }
        Ok(HeaderFields(fields.freeze()))
    }
}

/// The names and values in bytes that [`HeaderFields::read`] has checked.
#[derive(Clone)]
struct Pairs<'a>(&'a [u8]);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = split(self.0)?;
        let (value, rest) = split(rest)?;
        self.0 = rest;
        Some((name, value))
    }
}

/// Reads bytes with their length in front, and returns them and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Removes bytes with their length from the front.
pub(super) fn take(bytes: &mut Bytes) -> Option<Bytes> {
    let length = split(bytes)?.0.len();
    let mut taken = bytes.split_to(size_of::<u32>() + length);
    Some(taken.split_off(size_of::<u32>()))
}

/// Writes bytes with their length in front.
pub(super) fn put(out: &mut BytesMut, bytes: &[u8]) {
    // Readers refuse a head of this length anyway.
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_keep_order_and_repeats_and_values_share_their_memory() {
        let fields = HeaderFields::from_iter([("a", &b"1"[..]), ("b", b"caf\xe9"), ("a", b"")]);
        assert_eq!(
            fields.as_bytes(),
            b"\0\0\0\x01a\0\0\0\x011\0\0\0\x01b\0\0\0\x04caf\xe9\0\0\0\x01a\0\0\0\0"
        );
        let read = HeaderFields::read(Bytes::copy_from_slice(fields.as_bytes())).unwrap();
        assert_eq!(read, fields);
        let (name, value) = read.iter().nth(1).unwrap();
        assert_eq!((name, read.share(value).as_ptr()), (&b"b"[..], read.as_bytes()[19..].as_ptr()));
    }

    #[test]
    fn fields_that_are_cut_or_no_text_are_none() {
        let whole = HeaderFields::from_iter([("name", "value")]);
        for length in 1..whole.as_bytes().len() {
            let cut = Bytes::copy_from_slice(&whole.as_bytes()[..length]);
            assert_eq!(HeaderFields::read(cut), None, "{length}");
        }
        for bad in [&b"\xff\xff\xff\xffa"[..], b"\0\0\0\x01\xff\0\0\0\0"] {
            assert_eq!(HeaderFields::read(bad.into()), None);
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_back_through_json_and_bytes(
            pairs: Vec<(String, Vec<u8>)>, noise: Vec<u8>,
        ) {
            let fields: HeaderFields = pairs.iter().map(|(name, value)| (name, value)).collect();
            let json = serde_json::to_string(&fields).unwrap();
            prop_assert_eq!(&serde_json::from_str::<HeaderFields>(&json).unwrap(), &fields);
            let bytes = Bytes::copy_from_slice(fields.as_bytes());
            prop_assert_eq!(HeaderFields::read(bytes), Some(fields));
            let _ = HeaderFields::read(noise.into());
        }
    }
}
