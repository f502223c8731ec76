//! Messages that pass from one node to another.

use std::borrow::Cow;

use base64::Engine as _;
use serde::{Deserialize, de::DeserializeOwned};

use super::{MAX_SESSION_ID, envelope::Envelope, fault::Fault, id::RelayNodeId, object::Object};
use crate::{json::push_escaped, lenient_base64::LENIENT};

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForwardKind {
    /// Asks for a direct connection.
    Offer,
    /// Accepts a direct connection, and says where.
    Answer,
    /// A further address to try.
    IceCandidate,
    /// Begins a relay session.
    RelayOpen,
    /// The other end is ready.
    RelayReady,
    /// Bytes.
    RelayData,
    /// Ends a relay session.
    RelayClose,
}

impl ForwardKind {
    const ALL: [Self; 7] = [
        Self::Offer,
        Self::Answer,
        Self::IceCandidate,
        Self::RelayOpen,
        Self::RelayReady,
        Self::RelayData,
        Self::RelayClose,
    ];

    /// The message's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offer => "offer",
            Self::Answer => "answer",
            Self::IceCandidate => "iceCandidate",
            Self::RelayOpen => "relayOpen",
            Self::RelayReady => "relayReady",
            Self::RelayData => "relayData",
            Self::RelayClose => "relayClose",
        }
    }

    /// The message of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is about a relay session, rather than about a direct connection.
    pub const fn is_of_session(self) -> bool {
        !matches!(self, Self::Offer | Self::Answer | Self::IceCandidate)
    }
}

/// A message from one node to another. A relay reads its sender, its recipient and its session; the
/// rest passes unchanged, including unknown fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward<'a> {
    /// Which message it is.
    pub kind: ForwardKind,
    /// The sender that it names.
    pub from: Cow<'a, str>,
    /// The recipient.
    pub to: Cow<'a, str>,
    /// The session; empty where an offer, an answer or a candidate does not name one.
    pub session: Cow<'a, str>,
    pub(super) payload: &'a str,
    pub(super) data: Option<&'a str>,
    pub(super) verbatim: bool,
}

impl<'a> Forward<'a> {
    pub(super) fn read(kind: ForwardKind, envelope: &Envelope<'a>) -> Result<Self, Fault> {
        let (object, payload) = Object::unwrap(kind.name(), envelope.payload)?;
        let session = match object.opt_text("sessionID")? {
            Some(session) if session.len() <= MAX_SESSION_ID => session,
            None if !kind.is_of_session() => Cow::Borrowed(""),
            _ => return Err(object.bad("sessionID")),
        };
        if session.is_empty() && kind.is_of_session() {
            return Err(object.bad("sessionID"));
        }
        Ok(Self {
            kind,
            from: node(&object, "fromNodeID")?,
            to: node(&object, "toNodeID")?,
            session,
            payload,
            data: object.get("data").map(serde_json::value::RawValue::get),
            verbatim: envelope.alone && payload.len() == envelope.payload.get().len(),
        })
    }

    /// Whether the text that it was read from may pass unchanged. Otherwise that text holds more,
    /// or is wrapped, and [`Forward::encode`] gives the text to pass on.
    pub fn is_verbatim(&self) -> bool {
        self.verbatim
    }

    /// Whether it is small and rare, unlike the bytes of a relay session.
    pub fn is_control(&self) -> bool {
        self.kind != ForwardKind::RelayData
    }

    /// The message in the flat form.
    pub fn encode(&self) -> String {
        let name = self.kind.name();
        let mut out = String::with_capacity(name.len() + self.payload.len() + 5);
        for part in ["{\"", name, "\":", self.payload, "}"] {
            out.push_str(part);
        }
        out
    }

    /// The bytes that a `relayData` carries: base64, and, since stock nodes also accept these, JSON
    /// as text or an array of numbers.
    ///
    /// # Errors
    /// [`Fault::Field`] when there are no such bytes.
    pub fn data(&self) -> Result<Vec<u8>, Fault> {
        let bad = Fault::Field { kind: self.kind.name(), field: "data" };
        self.data.and_then(bytes).ok_or(bad)
    }

    /// The payload as a type: [`Offer`](super::Offer) for an offer or an answer,
    /// [`Candidate`](super::Candidate) for a candidate.
    ///
    /// # Errors
    /// [`Fault::NoPayload`] when it cannot be read as that.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.payload).map_err(|_| Fault::NoPayload(self.kind.name()))
    }
}

fn node<'a>(object: &Object<'a>, field: &'static str) -> Result<Cow<'a, str>, Fault> {
    let id = object.text(field)?;
    if RelayNodeId::fits(&id) { Ok(id) } else { Err(object.bad(field)) }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Data<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Numbers(Vec<u8>),
}

fn bytes(raw: &str) -> Option<Vec<u8>> {
    // Text without escapes need not be unescaped or copied: it is up to 16 MiB.
    let plain = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(bytes) = plain.and_then(|text| LENIENT.decode(text).ok()) {
        return Some(bytes);
    }
    match serde_json::from_str::<Data<'_>>(raw).ok()? {
        Data::Numbers(bytes) => Some(bytes),
        Data::Text(text) => match LENIENT.decode(text.as_bytes()) {
            Ok(bytes) => Some(bytes),
            Err(_) => text.starts_with('{').then(|| text.into_owned().into_bytes()),
        },
    }
}

/// A message of a relay session that carries no bytes: [`ForwardKind::RelayOpen`],
/// [`ForwardKind::RelayReady`] or [`ForwardKind::RelayClose`].
pub fn relay_session(kind: ForwardKind, from: &str, to: &str, session: &str) -> String {
    let mut out = begin(kind, 0);
    out.push_str("\"fromNodeID\":\"");
    ends(&mut out, from, to, session);
    out
}

/// Bytes for the other end of a relay session.
pub fn relay_data(from: &str, to: &str, session: &str, data: &[u8]) -> String {
    let mut out = begin(ForwardKind::RelayData, data.len().div_ceil(3) * 4);
    out.push_str("\"data\":\"");
    LENIENT.encode_string(data, &mut out);
    out.push_str("\",\"fromNodeID\":\"");
    ends(&mut out, from, to, session);
    out
}

fn begin(kind: ForwardKind, data: usize) -> String {
    const BESIDE_THE_DATA: usize = 320;
    let mut out = String::with_capacity(BESIDE_THE_DATA + data);
    out.push_str("{\"");
    out.push_str(kind.name());
    out.push_str("\":{");
    out
}

fn ends(out: &mut String, from: &str, to: &str, session: &str) {
    push_escaped(out, from);
    out.push_str("\",\"sessionID\":\"");
    push_escaped(out, session);
    out.push_str("\",\"toNodeID\":\"");
    push_escaped(out, to);
    out.push_str("\"}}");
}
