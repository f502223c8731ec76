//! Lists of models, in the OpenAI form (`/v1/models`) and in Ollama's (`/api/tags`).

use std::time::Duration;

use http::Response;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;

/// How long a backend may take to give its list.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// The longest list that is read, in bytes.
pub const MAX_LIST: usize = 4 * 1024 * 1024;

/// The header by which a Warren tells itself from a model server.
const WARREN_HEADER: &str = "x-warren-version";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelList {
    /// The names, as they come.
    pub(crate) names: Vec<String>,
    /// Whether a Warren gave it.
    pub(crate) is_warren: bool,
}

/// The list in a response, or what is wrong with it.
pub(crate) async fn read(response: Response<Incoming>) -> Result<ModelList, String> {
    let status = response.status();
    let told = response.headers().contains_key(WARREN_HEADER);
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let body = Limited::new(response.into_body(), MAX_LIST).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    let list = parse(&body).ok_or("what it answered is none")?;
    Ok(ModelList { is_warren: told || list.is_warren, ..list })
}

/// A list in either form; `None` when it is neither.
fn parse(body: &[u8]) -> Option<ModelList> {
    match serde_json::from_slice(body).ok()? {
        AnyList::OpenAi { data } => {
            let is_warren = data.iter().any(|item| item.owned_by.as_deref() == Some("warren"));
            Some(ModelList { names: data.into_iter().map(|item| item.id).collect(), is_warren })
        }
        AnyList::Ollama { models } => {
            let names = models.into_iter().map(|item| item.name).collect();
            Some(ModelList { names, is_warren: false })
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyList {
    OpenAi { data: Vec<OpenAiModel> },
    Ollama { models: Vec<OllamaModel> },
}

#[derive(Deserialize)]
struct OpenAiModel {
    id: String,
    #[serde(default)]
    owned_by: Option<String>,
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let openai = br#"{"object":"list","data":[{"id":"a","owned_by":"x"},{"id":"b"}]}"#;
        assert_eq!(parse(openai).unwrap().names, ["a", "b"]);
        let ollama = br#"{"models":[{"name":"llama3:8b","size":1}]}"#;
        assert_eq!(parse(ollama).unwrap().names, ["llama3:8b"]);
        let both = br#"{"models":[{"name":"m"}],"object":"list","data":[{"id":"m"}]}"#;
        assert_eq!(parse(both).unwrap().names, ["m"]);
    }

    #[test]
    fn a_warren_is_known_by_its_items() {
        assert!(parse(br#"{"data":[{"id":"a","owned_by":"warren"}]}"#).unwrap().is_warren);
        assert!(!parse(br#"{"data":[]}"#).unwrap().is_warren);
    }

    #[test]
    fn anything_else_is_no_list() {
        for other in ["", "[]", "{}", "<html>", r#"{"data":{}}"#, r#"{"data":[{"name":1}]}"#] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
