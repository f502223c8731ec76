//! The server's own answers: errors and the list of models.

use serde::Serialize;

use crate::json;

/// The body of an error answer. `kind` is the error's `type`, as `invalid_request_error`; `param`
/// the field that is wrong; `code` a word for programs.
pub fn error_body(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> String {
    json::write(&ErrorBody { error: ErrorDetail { message, kind, param, code } })
}

/// The event that ends a failed stream of chat completions or completions.
pub fn error_event(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> String {
    format!("data: {}\n\n", error_body(message, kind, param, code))
}

/// The event that ends a failed stream of responses. `kind` and `code` are those of [`error_body`];
/// `sequence_number` counts the stream's events.
///
/// Its fields come twice. OpenAI's description of the API has them at the top; its packages, and other
/// programs that read its streams, look for `error` and ignore an event without it.
pub fn response_error_event(
    message: &str,
    kind: &str,
    code: Option<&str>,
    sequence_number: u64,
) -> String {
    let code = code.unwrap_or(kind);
    let error = ErrorDetail { message, kind, param: None, code: Some(code) };
    let event = ResponseError { kind: "error", code, message, param: None, sequence_number, error };
    format!("event: error\ndata: {}\n\n", json::write(&event))
}

/// The list of models: of each its name, when it was first seen in seconds since 1970, and whose it is.
pub fn model_list<'a>(models: impl IntoIterator<Item = (&'a str, u64, &'a str)>) -> String {
    let models = models.into_iter();
    let data =
        models.map(|(id, created, owned_by)| Model { id, object: "model", created, owned_by });
    json::write(&ModelList { object: "list", data: data.collect() })
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorDetail<'a>,
}

#[derive(Serialize)]
struct ErrorDetail<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

#[derive(Serialize)]
struct ResponseError<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
    sequence_number: u64,
    error: ErrorDetail<'a>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'a str,
    created: u64,
    owned_by: &'a str,
}

#[derive(Serialize)]
struct ModelList<'a> {
    object: &'a str,
    data: Vec<Model<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_shape_of_the_api() {
        let body = error_body("no \"x\"", "invalid_request_error", Some("model"), None);
        let expected = r#"{"error":{"message":"no \"x\"","type":"invalid_request_error","param":"model","code":null}}"#;
        assert_eq!(body, expected);
        let event = error_event("no \"x\"", "invalid_request_error", Some("model"), None);
        assert_eq!(event, format!("data: {expected}\n\n"));
    }

    #[test]
    fn a_response_stream_ends_with_a_numbered_error() {
        assert_eq!(
            response_error_event("gone\n", "server_error", Some("worker_lost"), 7),
            "event: error\ndata: {\"type\":\"error\",\"code\":\"worker_lost\",\
             \"message\":\"gone\\n\",\"param\":null,\"sequence_number\":7,\
             \"error\":{\"message\":\"gone\\n\",\"type\":\"server_error\",\"param\":null,\
             \"code\":\"worker_lost\"}}\n\n"
        );
    }

    #[test]
    fn models_are_listed_with_all_four_fields() {
        let one = r#"{"id":"m/a","object":"model","created":5,"owned_by":"warren"}"#;
        let list = model_list([("m/a", 5, "warren")]);
        assert_eq!(list, format!(r#"{{"object":"list","data":[{one}]}}"#));
        assert_eq!(model_list([]), r#"{"object":"list","data":[]}"#);
    }
}
