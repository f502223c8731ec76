//! A refusal in the names of the client's own API, for a request that was first translated into
//! Chat Completions.

use protocol::json::BadRequest;

/// The client's names for the fields of a Chat Completions request.
pub(crate) struct ClientNames {
    /// Fields of Chat Completions, each with the client's name for it.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// The client's field that the messages are made from.
    pub(crate) said: &'static str,
    /// For each message: the index in that list of the item that it is made from, if there is a
    /// single one.
    pub(crate) origins: fn(&[u8]) -> Vec<Option<usize>>,
}

impl ClientNames {
    /// For a client of Chat Completions itself.
    pub(crate) const SAME: Self = Self { fields: &[], said: "messages", origins: |_| Vec::new() };

    /// The refusal in the client's names. `body` is the client's own.
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
            // Without the index, since the order of tools may have changed.
            "tools" => field.to_owned(),
            _ => {
                let other = self.fields.iter().find(|(name, _)| *name == field);
                other.map_or_else(|| param.to_owned(), |(_, own)| (*own).to_owned())
            }
        }
    }

    /// The client's path for a path within `messages`, such as `[3].content[0]`.
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
