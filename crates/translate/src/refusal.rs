//! A refusal of a request that became Chat Completions first, in the names of the client's own API.

use protocol::json::BadRequest;

/// Where the fields of a Chat Completions request are in the client's.
pub(crate) struct ClientNames {
    /// Fields with another name there.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// The list or text that the messages are made of.
    pub(crate) said: &'static str,
    /// Of each message, the place in that list of what it is made of, if it is made of one.
    pub(crate) origins: fn(&[u8]) -> Vec<Option<usize>>,
}

impl ClientNames {
    /// For a client of Chat Completions itself.
    pub(crate) const SAME: Self = Self { fields: &[], said: "messages", origins: |_| Vec::new() };

    /// The refusal of the Chat Completions request that was made of this body.
    pub(crate) fn renamed(&self, bad: BadRequest, body: &[u8]) -> BadRequest {
        let Some(param) = bad.param else { return bad };
        let own = self.own(&param, body);
        let message = bad.message.replace(&format!("`{param}`"), &format!("`{own}`"));
        BadRequest::new(own, message)
    }

    fn own(&self, param: &str, body: &[u8]) -> String {
        let end = param.find(['.', '[']).unwrap_or(param.len());
        let (field, rest) = param.split_at(end);
        match field {
            "messages" => self.place(rest, body),
            // Their order may be another one.
            "tools" => field.to_owned(),
            _ => {
                let other = self.fields.iter().find(|(name, _)| *name == field);
                other.map_or_else(|| param.to_owned(), |(_, own)| (*own).to_owned())
            }
        }
    }

    /// The client's place of what is at `[3].content[0]` in `messages`.
    fn place(&self, rest: &str, body: &[u8]) -> String {
        let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let origin = indexed.and_then(|(at, within)| {
            let at: usize = at.parse().ok()?;
            let origin = (self.origins)(body).get(at).copied().flatten()?;
            Some((origin, within.starts_with(".content")))
        });
        match origin {
            Some((at, true)) => format!("{}[{at}].content", self.said),
            Some((at, false)) => format!("{}[{at}]", self.said),
            None => self.said.to_owned(),
        }
    }
}
