//! Reads requests, and answers those that cannot be read.

use protocol::workspace::{
    BadMessage, ClientMessage, RequestKind, ServerMessage, decode_request,
    limits::{PATH_MAX, REQUEST_ID_MAX},
};
use serde::Deserialize;

use crate::{
    family::{ErrorFamily, Family},
    table::error_family,
};

/// The fields that are still read from a message that cannot be read as a whole.
#[derive(Deserialize)]
struct Hints {
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default)]
    path: Option<String>,
}

/// Reads a message.
///
/// # Errors
/// The answer to its sender.
pub(crate) fn read(text: &str) -> Result<ClientMessage, Box<ServerMessage>> {
    let answer = |bad: BadMessage| family_of(&bad, text).error(bad.to_string());
    decode_request(text).map_err(|bad| Box::new(answer(bad)))
}

/// The family of a message that cannot be read; `Plain` if a field that the family's error needs is
/// missing.
fn family_of(bad: &BadMessage, text: &str) -> Family {
    let kind = bad.kind.as_deref().and_then(RequestKind::from_name);
    let hints: Option<Hints> = serde_json::from_str(text).ok();
    let project = hints.as_ref().and_then(|hints| hints.project_id.as_deref()?.parse().ok());
    // Values over their bound are not repeated in the answer, which is kept in memory until the
    // client reads it.
    let path = hints.and_then(|hints| hints.path).filter(|path| path.len() <= PATH_MAX);
    let path = path.unwrap_or_default();
    let request = bad.request_id.clone().filter(|id| id.len() <= REQUEST_ID_MAX);
    let family = match kind.map_or(ErrorFamily::Plain, error_family) {
        ErrorFamily::Plain => None,
        ErrorFamily::File => project.map(|project| Family::File(project, path)),
        ErrorFamily::Chunk => request.map(Family::Chunk),
        ErrorFamily::Action => {
            project.zip(request).map(|(id, request)| Family::Action(id, request))
        }
        ErrorFamily::Git => project.map(Family::Git),
    };
    family.unwrap_or(Family::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: &str = "00000000-0000-4000-8000-000000000001";

    /// The type of the answer to a message that cannot be read, and its words.
    fn answer(rest: &str) -> (String, String) {
        let text = rest.replace("$P", P);
        let said = read(&text).unwrap_err().encode();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let field = |name: &str| said[name].as_str().unwrap().to_owned();
        (field("type"), field("message"))
    }

    #[test]
    fn an_unreadable_message_is_answered_in_its_family() {
        for (text, kind) in [
            (r#"{"type":"read_project_file","project_id":"$P"}"#, "project_file_error"),
            (r#"{"type":"write_project_file","project_id":"$P","path":7}"#, "error"),
            (r#"{"type":"list_project_files","project_id":"x"}"#, "error"),
            (
                r#"{"type":"read_project_file_chunk","request_id":"d","project_id":"$P"}"#,
                "project_file_chunk_error",
            ),
            (
                r#"{"type":"delete_project_entry","request_id":"d","project_id":"$P"}"#,
                "project_fs_action_error",
            ),
            (r#"{"type":"git_diff","project_id":"$P"}"#, "git_error"),
            (r#"{"type":"attach"}"#, "error"),
            (r#"{"type":"nonsense","project_id":"$P"}"#, "error"),
            ("[]", "error"),
            ("", "error"),
        ] {
            let (said, words) = answer(text);
            assert_eq!(said, kind, "{text}");
            assert!(!words.is_empty());
        }
    }

    #[test]
    fn an_answer_to_a_long_unreadable_message_is_short() {
        let long = "x".repeat(100_000);
        for kind in
            ["list_project_files", "read_project_file", "delete_project_entry", "attach", &long]
        {
            let text = serde_json::json!({
                "type": kind, "project_id": P, "path": long, "request_id": long, "session_id": long,
            });
            let said = read(&text.to_string()).unwrap_err().encode();
            assert!(said.len() < 2000, "{kind:.20}: {} bytes", said.len());
        }
    }
}
