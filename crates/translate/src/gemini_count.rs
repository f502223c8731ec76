//! From Gemini's count of a prompt's tokens to the count of Messages.
//!
//! The prompt is `contents`, or a whole request in `generateContentRequest`. It becomes a Messages request,
//! reduced to the fields that a count takes. The answer is `totalTokens`.

use std::borrow::Cow;

use protocol::{
    failure::BadAnswer,
    json::{
        self, BadRequest,
        fields::{self, Text},
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    answer::{Answer, Context, WholeAnswer},
    chat_messages, gemini_chat,
    schema::Members,
};

/// The fields that a count of Messages takes.
const COUNTED: [&str; 5] = ["model", "system", "messages", "tools", "tool_choice"];

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: CountRequest<'_> = fields::body(body)?;
    let prompt = match request.generate_content_request {
        Some(raw) => Cow::Owned(named(raw, request.model)?.into_bytes()),
        None => Cow::Borrowed(body),
    };
    let chat = gemini_chat::request(&prompt, context)?;
    let messages = chat_messages::request(&chat, context)
        .map_err(|bad| gemini_chat::NAMES.renamed(bad, &prompt))?;
    let Members(members) = fields::body(&messages)?;
    let counted = members.iter().filter(|(name, _)| COUNTED.contains(&&**name));
    let counted = counted.map(|(name, value)| format!("{}:{}", json::write(name), value.get()));
    Ok(format!("{{{}}}", counted.collect::<Vec<_>>().join(",")).into_bytes())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct CountRequest<'a> {
    model: Option<Text<'a>>,
    #[serde(rename = "generateContentRequest", alias = "generate_content_request")]
    generate_content_request: Option<&'a RawValue>,
}

/// The inner request under the outer one's model.
fn named(raw: &RawValue, model: Option<Text<'_>>) -> Result<String, BadRequest> {
    let path = "generateContentRequest";
    let Members(members) = fields::value(fields::object(Some(raw), path)?, path)?;
    let own = members.iter().filter(|(name, _)| !matches!(&**name, "model" | "stream" | "alt"));
    let own = own.map(|(name, value)| format!("{}:{}", json::write(name), value.get()));
    let model = model.map(|Text(model)| format!("\"model\":{}", json::write(&model)));
    Ok(format!("{{{}}}", model.into_iter().chain(own).collect::<Vec<_>>().join(",")))
}

/// The client's answer for this number of tokens.
pub fn total(tokens: u64) -> String {
    format!("{{\"totalTokens\":{tokens}}}")
}

/// Reads the provider's answer.
pub fn answer(_: &Context, _: &[u8]) -> impl Answer + use<> {
    WholeAnswer::for_gemini(|body, _| {
        let unread = |_| BadAnswer("the backend's count is not understood".to_owned());
        Ok(total(serde_json::from_slice::<TokenCount>(body).map_err(unread)?.input_tokens))
    })
}

#[derive(Deserialize)]
struct TokenCount {
    input_tokens: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{answer::Body, kit::answered};

    fn context() -> Context {
        Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming: false }
    }

    #[test]
    fn a_prompt_is_counted_alone_or_in_its_request() {
        let contents = json!([{"role": "user", "parts": [{"text": "Hi"}]}]);
        let alone = json!({"model": "m", "stream": false, "contents": contents});
        let whole = json!({"model": "m", "stream": false, "generateContentRequest": {
            "model": "models/m", "contents": contents, "generationConfig": {"maxOutputTokens": 5}}});
        for given in [alone, whole] {
            let made = request(given.to_string().as_bytes(), &context()).unwrap();
            let made: Value = serde_json::from_slice(&made).unwrap();
            assert_eq!(
                made,
                json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]})
            );
        }
        let bad = request(br#"{"model":"m","generateContentRequest":7}"#, &context()).unwrap_err();
        assert_eq!(bad.param.as_deref(), Some("generateContentRequest"));
        assert!(request(br#"{"model":"m"}"#, &context()).is_err());
    }

    #[test]
    fn a_count_and_an_error_are_told_in_googles_form() {
        let answer_of = |status, text: &str| {
            answered(answer(&context(), b""), status, Body::Json, &[text.as_bytes()])
        };
        assert_eq!(answer_of(200, r#"{"input_tokens":12}"#).unwrap(), r#"{"totalTokens":12}"#);
        assert!(answer_of(200, "{}").is_err());
        assert!(answer_of(404, r#"{"error":{"message":"no"}}"#).unwrap().contains("NOT_FOUND"));
    }
}
