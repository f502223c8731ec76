//! The wishes of a request in matters of stored responses. Pure.

use super::{failure, items, members::Members};
use crate::error::ApiError;

/// The wishes of a request in matters of stored responses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether the response is to be kept; `None` if the request does not say.
    pub(crate) store: Option<bool>,
    /// Whether the response is to be made in the background.
    pub(crate) background: bool,
    /// Whether the response is to be a stream.
    pub(crate) stream: bool,
    /// The response that it continues.
    pub(crate) previous: Option<String>,
    /// The conversation that it belongs to.
    pub(crate) conversation: Option<String>,
}

impl Wishes {
    /// Reads a request.
    ///
    /// # Errors
    /// 400 when the value of a field is not valid, or two fields exclude each other.
    pub(crate) fn of(request: &Members<'_>) -> Result<Self, ApiError> {
        let wishes = Self {
            store: truth(request, "store")?,
            background: truth(request, "background")?.unwrap_or(false),
            stream: request.get("stream").is_some_and(|raw| raw.get() == "true"),
            previous: previous(request)?,
            conversation: conversation(request)?,
        };
        if wishes.previous.is_some() && wishes.conversation.is_some() {
            return Err(failure::mutually_exclusive("previous_response_id", "conversation"));
        }
        if wishes.background && wishes.store == Some(false) {
            return Err(failure::invalid(
                "background",
                "needs a response that is kept: leave `store` out, or say true",
            ));
        }
        Ok(wishes)
    }

    /// Whether the response is to be kept. A request that does not say gets `usual`; but true if it asks for a
    /// response in the background or in a conversation, which makes sense only with a response that is kept.
    pub(crate) fn keeps(&self, usual: bool) -> bool {
        self.store.unwrap_or(usual || self.background || self.conversation.is_some())
    }

    /// The first field of the request that needs a server that keeps responses.
    pub(crate) fn needs_store(&self) -> Option<&'static str> {
        let fields = [
            (self.previous.is_some(), "previous_response_id"),
            (self.conversation.is_some(), "conversation"),
            (self.background, "background"),
        ];
        fields.into_iter().find_map(|(is_asked, name)| is_asked.then_some(name))
    }
}

fn truth(request: &Members<'_>, name: &'static str) -> Result<Option<bool>, ApiError> {
    match request.get(name).map(|raw| raw.get()) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(failure::invalid(name, "must be true or false")),
    }
}

fn previous(request: &Members<'_>) -> Result<Option<String>, ApiError> {
    const NAME: &str = "previous_response_id";
    if request.get(NAME).is_none() {
        return Ok(None);
    }
    let id =
        request.text(NAME).ok_or_else(|| failure::invalid(NAME, "must be the id of a response"))?;
    if items::is_id(&id) { Ok(Some(id)) } else { Err(failure::no_previous(&id)) }
}

/// The conversation's id. The field is the id, or an object that has it.
fn conversation(request: &Members<'_>) -> Result<Option<String>, ApiError> {
    const NAME: &str = "conversation";
    let Some(raw) = request.get(NAME) else { return Ok(None) };
    let id = request.text(NAME).or_else(|| Members::read(raw.get())?.text("id"));
    let id = id.ok_or_else(|| failure::invalid(NAME, "must be the id of a conversation"))?;
    if items::is_id(&id) { Ok(Some(id)) } else { Err(failure::no_conversation(&id)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(request: &str) -> Result<Wishes, ApiError> {
        Wishes::of(&Members::read(request).unwrap())
    }

    #[test]
    fn nothing_is_kept_unless_something_says_so() {
        let keeps = |request: &str, usual| of(request).unwrap().keeps(usual);
        for (request, unasked, usually) in [
            ("{}", false, true),
            (r#"{"store":null}"#, false, true),
            (r#"{"store":false}"#, false, false),
            (r#"{"store":true}"#, true, true),
            (r#"{"previous_response_id":"resp_1"}"#, false, true),
            (r#"{"background":true}"#, true, true),
            (r#"{"conversation":"conv_1"}"#, true, true),
            (r#"{"conversation":{"id":"conv_1"},"store":false}"#, false, false),
        ] {
            assert_eq!(
                (keeps(request, false), keeps(request, true)),
                (unasked, usually),
                "{request}"
            );
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_field() {
        for (request, param) in [
            (r#"{"store":1}"#, Some("store")),
            (r#"{"background":"true"}"#, Some("background")),
            (r#"{"background":true,"store":false}"#, Some("background")),
            (r#"{"previous_response_id":7}"#, Some("previous_response_id")),
            (r#"{"previous_response_id":""}"#, Some("previous_response_id")),
            (r#"{"previous_response_id":"a/b"}"#, Some("previous_response_id")),
            (r#"{"conversation":{}}"#, Some("conversation")),
            (r#"{"conversation":"../x"}"#, None),
            (r#"{"previous_response_id":"r","conversation":"c"}"#, Some("previous_response_id")),
        ] {
            assert_eq!(of(request).unwrap_err().param.as_deref(), param, "{request}");
        }
    }

    #[test]
    fn the_fields_that_need_a_store_are_known() {
        let needs = |request: &str| of(request).unwrap().needs_store();
        assert_eq!(needs(r#"{"store":true,"background":false,"stream":true}"#), None);
        assert_eq!(needs(r#"{"background":true}"#), Some("background"));
        assert_eq!(needs(r#"{"conversation":"c"}"#), Some("conversation"));
    }
}
