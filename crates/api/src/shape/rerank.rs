//! The ranking of documents. Its clients are Cohere's, Jina's and OpenAI's, at one path.

use base::{Endpoint, JobId};
use protocol::{openai, sse};
use serde_json::json;

use super::Shape;
use crate::error::ApiError;

pub(super) struct Rerank;

impl Shape for Rerank {
    fn endpoint(&self) -> Endpoint {
        Endpoint::Rerank
    }

    /// The message is in three places, where each sort of client looks for it: Cohere's in `message`, Jina's in
    /// `detail`, OpenAI's in `error`.
    fn error_body(&self, error: &ApiError, id: JobId) -> String {
        let ApiError { message, kind, code, param, .. } = error;
        let openais = json!({
            "message": message, "type": kind.openai(), "param": param, "code": code,
        });
        json!({"id": id.to_string(), "message": message, "detail": message, "error": openais})
            .to_string()
    }

    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        openai::error_event(&error.message, error.kind.openai(), error.param.as_deref(), error.code)
    }

    fn keepalive(&self) -> &'static [u8] {
        sse::KEEPALIVE
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::Value;

    use super::*;
    use crate::error::Kind;

    #[test]
    fn every_client_of_rankings_finds_the_words() {
        let error = ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, "no");
        let error = ApiError { param: Some("model".into()), ..error };
        let answer: Value =
            serde_json::from_str(&Rerank.error_body(&error, JobId::from_random(0))).unwrap();
        assert_eq!((&answer["message"], &answer["detail"]), (&"no".into(), &"no".into()));
        let openais = json!({
            "message": "no", "type": "invalid_request_error", "param": "model", "code": null,
        });
        assert_eq!(answer["error"], openais);
    }
}
