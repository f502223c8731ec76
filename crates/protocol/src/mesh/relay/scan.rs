//! Finds the usual `relayData` without a parser: a relay reads mostly this message, and most of it
//! is one long text that need not be examined.
//!
//! Only text as peers usually write it matches: no white space, no escapes, the four fields in any
//! order and nothing else. The parser handles all other input, and gives the same result for this
//! form.

use std::borrow::Cow;

use super::{
    MAX_SESSION_ID,
    forward::{Forward, ForwardKind},
    id::RelayNodeId,
};

const BEGIN: &str = "{\"relayData\":{";
const END: &str = "\"}}";
const BETWEEN: &str = "\",";

/// A `relayData` in the usual form.
pub(super) fn relay_data(text: &str) -> Option<Forward<'_>> {
    let mut rest = text.strip_prefix(BEGIN)?;
    let mut found = RelayFields::default();
    loop {
        let name;
        (name, rest) = quoted(rest)?;
        let value = rest.strip_prefix("\":\"")?;
        let end = end_of_text(value)?;
        found.put(name, value.get(..end)?, value_with_quotes(rest, end)?)?;
        rest = value.get(end..)?;
        if rest == END {
            break;
        }
        rest = rest.strip_prefix(BETWEEN)?;
    }
    found.forward(text)
}

#[derive(Default)]
struct RelayFields<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    session: Option<&'a str>,
    data: Option<&'a str>,
}

impl<'a> RelayFields<'a> {
    /// `None` for a repeated or unknown field.
    fn put(&mut self, name: &str, value: &'a str, quoted: &'a str) -> Option<()> {
        let (slot, value) = match name {
            "fromNodeID" => (&mut self.from, value),
            "toNodeID" => (&mut self.to, value),
            "sessionID" => (&mut self.session, value),
            "data" => (&mut self.data, quoted),
            _ => return None,
        };
        slot.replace(value).is_none().then_some(())
    }

    fn forward(self, text: &'a str) -> Option<Forward<'a>> {
        let payload = text.get(BEGIN.len() - 1..text.len() - 1)?;
        let node = |id: &'a str| RelayNodeId::fits(id).then_some(Cow::Borrowed(id));
        let session = self.session.filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_ID)?;
        Some(Forward {
            kind: ForwardKind::RelayData,
            from: node(self.from?)?,
            to: node(self.to?)?,
            session: Cow::Borrowed(session),
            payload,
            data: Some(self.data?),
            verbatim: true,
        })
    }
}

/// The text after an opening quote, and what follows it, from its closing quote on.
fn quoted(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix('"')?;
    let end = end_of_text(rest)?;
    Some((rest.get(..end)?, rest.get(end..)?))
}

/// From a name's closing quote on, the value and both of its quotes.
fn value_with_quotes(rest: &str, end: usize) -> Option<&str> {
    rest.get(2..end + 4)
}

/// Where a text's closing quote is, when nothing in it is escaped and nothing should be.
fn end_of_text(text: &str) -> Option<usize> {
    let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
    let (inside, rest) = text.as_bytes().split_at(end);
    // Without a branch for each byte, so that the compiler can use vectors.
    let control = inside.iter().fold(false, |any, byte| any | (*byte < 0x20));
    (rest.first() == Some(&b'"') && !control).then_some(end)
}
