//! Adds a request for a stream and for its usage to a body.

use bytes::Bytes;

use super::{
    ask_usage::{AskUsage, ask_usage},
    peek::{BadBody, Peek, peek},
    splice::{Edit, model_edit, object_end, splice},
};

/// A request of Chat Completions that asks for a stream and for its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// The body, with no other change.
    pub body: Bytes,
    /// The peeked fields of the body.
    pub peek: Peek,
    /// Whether the client asked for usage. If not, a chunk with only usage is not for the client.
    pub asked_usage: bool,
}

/// Changes a body to ask for a stream and its usage, and for `model`, if one is given. Options that
/// are not an object are left for the backend to refuse.
///
/// # Errors
/// [`BadBody`] when it is no request.
pub fn streamed(body: &Bytes, model: Option<&str>) -> Result<Streamed, BadBody> {
    let peek = peek(body)?;
    let mut edits = Vec::new();
    if let Some(model) = model.filter(|model| *model != peek.model) {
        edits.push(model_edit(peek.model_span.clone(), model));
    }
    edits.extend(stream_edit(body, &peek));
    let ask = ask_usage(body, peek.stream_options_span.clone());
    let asked_usage = ask == AskUsage::Asked;
    if let AskUsage::Edit(edit) = ask {
        edits.push(edit);
    }
    Ok(Streamed { body: splice(body, edits), peek, asked_usage })
}

fn stream_edit(body: &[u8], peek: &Peek) -> Option<Edit> {
    match &peek.stream_span {
        _ if peek.stream => None,
        Some(span) => Some(Edit { span: span.clone(), text: "true".to_owned() }),
        None => {
            let end = object_end(body)?;
            Some(Edit { span: end..end, text: r#","stream":true"#.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(body: &'static str, model: Option<&str>) -> (String, bool) {
        let streamed = streamed(&Bytes::from_static(body.as_bytes()), model).unwrap();
        (String::from_utf8(streamed.body.to_vec()).unwrap(), streamed.asked_usage)
    }

    #[test]
    fn a_stream_and_its_usage_are_asked_for_and_all_else_stays() {
        let expected = concat!(
            r#"{"model":"m", "top_k":1.50,"stream":true,"#,
            r#""stream_options":{"include_usage":true}}"#
        );
        assert_eq!(asking(r#"{"model":"m", "top_k":1.50}"#, None), (expected.to_owned(), false));
        let expected = r#"{"stream":true,"stream_options":{"include_usage":true},"model":"n"}"#;
        let refused = r#"{"stream":false,"stream_options":null,"model":"m"}"#;
        assert_eq!(asking(refused, Some("n")), (expected.to_owned(), false));
    }

    #[test]
    fn a_request_for_both_is_left_as_it_is() {
        let body = r#"{"model":"m","stream": true,"stream_options":{"include_usage":true}}"#;
        assert_eq!(asking(body, Some("m")), (body.to_owned(), true));
    }

    #[test]
    fn a_body_that_is_no_request_is_refused() {
        assert_eq!(streamed(&Bytes::from_static(b"[]"), None), Err(BadBody::NotAnObject));
    }
}
