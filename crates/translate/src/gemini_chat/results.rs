//! Calls and their results. An id is optional in this API: without it, a result belongs to a call of its name.

use std::borrow::Cow;

use protocol::json::{
    BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{conversation::list, part};
use crate::chat_request::{FAILED, Message, Part, join};

/// The calls so far that have no result.
#[derive(Default)]
pub(super) struct Calls<'a> {
    open: Vec<Open<'a>>,
}

struct Open<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
}

impl<'a> Calls<'a> {
    /// Notes a call, and returns its id. A call without one gets an id made of its position: the
    /// content, and the part in it.
    pub(super) fn begin(
        &mut self,
        id: Option<Cow<'a, str>>,
        name: &Cow<'a, str>,
        (content, part): (usize, usize),
    ) -> Cow<'a, str> {
        let id = id.unwrap_or_else(|| format!("call_{content}_{part}").into());
        self.open.push(Open { id: id.clone(), name: name.clone() });
        id
    }

    /// The id of the call that a result belongs to: the call with the given id, or else the first
    /// open call with the name.
    fn end(&mut self, id: Option<Cow<'a, str>>, name: &str) -> Cow<'a, str> {
        let by_id = |id: &Cow<'a, str>| self.open.iter().position(|open| open.id == *id);
        let place = match &id {
            Some(id) => by_id(id),
            None => self.open.iter().position(|open| open.name == name),
        };
        match place {
            Some(place) => self.open.remove(place).id,
            // No call has this result, so `in_order` will make it the user's words.
            None => id.unwrap_or_else(|| format!("call_of_{name}").into()),
        }
    }
}

/// A tool's result.
pub(super) struct Response<'a> {
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    response: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

impl<'a> Response<'a> {
    pub(super) fn read(raw: &'a RawValue, path: &str) -> Result<Self, BadRequest> {
        let response: AskedResponse<'a> = fields::value(raw, path)?;
        Ok(Self {
            id: response.id.map(|Text(id)| id).filter(|id| !id.is_empty()),
            name: fields::text(response.name, format!("{path}.name"))?,
            response: response.response,
            parts: response.parts,
        })
    }

    /// The tool's message, and its files, which a tool's message cannot hold.
    pub(super) fn into_message(
        self,
        calls: &mut Calls<'a>,
        path: &str,
    ) -> Result<(Message<'a>, Vec<Part<'a>>), BadRequest> {
        let path = format!("{path}.functionResponse");
        let said = self.response.map_or(Ok(Cow::Borrowed("{}")), |raw| words(raw, &path))?;
        let mut files = Vec::new();
        let parts_path = format!("{path}.parts");
        let parts = self.parts.map(|raw| list(raw, &parts_path)).transpose()?;
        for (at, raw) in parts.into_iter().flatten().enumerate() {
            let path = format!("{parts_path}[{at}]");
            files.extend(part::read(raw, &path)?.into_part(&path)?);
        }
        let id = calls.end(self.id, &self.name);
        Ok((Message::tool(id, said), files))
    }
}

/// The text of a tool's result: its `output` or its `error`, if it has no other field, or else the
/// whole object.
fn words<'a>(raw: &'a RawValue, path: &str) -> Result<Cow<'a, str>, BadRequest> {
    let path = format!("{path}.response");
    fields::object(Some(raw), &path)?;
    let Ok(outcome) = serde_json::from_str::<Outcome<'a>>(raw.get()) else {
        return Ok(Cow::Borrowed(raw.get()));
    };
    match (outcome.output, outcome.error) {
        (Some(output), None) => Ok(plain(output)),
        (None, Some(error)) => Ok(join(FAILED.into(), "", &plain(error))),
        _ => Ok(Cow::Borrowed(raw.get())),
    }
}

/// A text as it is, anything else as JSON.
fn plain(raw: &RawValue) -> Cow<'_, str> {
    serde_json::from_str::<Text<'_>>(raw.get()).map_or(Cow::Borrowed(raw.get()), |Text(text)| text)
}

/// The fields that have a meaning of their own. A result with other fields is given to the model as a
/// whole.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), deny_unknown_fields)]
struct Outcome<'a> {
    output: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedResponse<'a> {
    id: Option<Text<'a>>,
    name: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}
