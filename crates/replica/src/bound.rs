//! Bounds of decoded lists and texts. They are checked before anything is built from the bytes.
//!
//! A message of another member may be damaged. The lengths that it announces must not make this
//! member reserve memory.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// Reads a list of at most `MOST` elements.
pub(crate) fn list<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(Elements::<T, MOST>(PhantomData))
}

/// Reads a list of at most `MOST` elements that may be missing.
pub(crate) fn optional_list<'de, D, T, const MOST: usize>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(bound = "T: Deserialize<'de>")]
    struct List<T, const MOST: usize>(#[serde(deserialize_with = "list::<_, T, MOST>")] Vec<T>);
    Ok(Option::<List<T, MOST>>::deserialize(from)?.map(|list| list.0))
}

/// Reads a text of at most `MOST` bytes.
pub(crate) fn text<'de, D, const MOST: usize>(from: D) -> Result<Arc<str>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = <&str>::deserialize(from)?;
    if text.len() > MOST {
        return Err(D::Error::custom("a text is too long"));
    }
    Ok(text.into())
}

struct Elements<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        if elements.size_hint().is_none_or(|length| length > MOST) {
            return Err(A::Error::custom("a list is too long"));
        }
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(list)
    }
}
