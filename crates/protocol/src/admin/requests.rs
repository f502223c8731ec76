//! The JSON of `/admin/requests`: the requests that ended last, and below it those that have not ended.

use base::Money;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Requests that a server remembers; older ones are in its ledger only.
pub const KEPT: usize = 500;

/// Answer of `GET /admin/requests?after=N&limit=M`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestList {
    /// The newest first.
    pub requests: Vec<RequestJson>,
}

/// One request that became a job and ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestJson {
    /// A running number, from 1 at the server's start. A caller that asks for those after the
    /// largest number it knows, before [`KEPT`] more have ended, gets each once. For a number that
    /// was not assigned yet it gets all: the server has restarted.
    pub n: u64,
    /// The request's id, the same as in the `x-request-id` of its answer.
    pub id: String,
    /// When it ended.
    pub at: Timestamp,
    /// The key that it counts for, or `local` if none was needed.
    pub key: String,
    /// Where its provider was looked for, if not among the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The model, by the name that the client used.
    pub model: String,
    /// The model that served it, where that is another one.
    pub served_model: Option<String>,
    /// The endpoint, by its path.
    pub endpoint: String,
    /// The name of the last provider that had it.
    pub provider: Option<String>,
    /// Its outcome, as metrics name it, such as `answered` or `client_gone`.
    pub outcome: String,
    /// The answer's HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The tokens read, if known.
    pub prompt_tokens: Option<u64>,
    /// The tokens written, if known.
    pub completion_tokens: Option<u64>,
    /// Whether any of the tokens are an estimate.
    pub estimated: bool,
    /// Milliseconds from its acceptance until a provider got it.
    pub queue_ms: u64,
    /// Milliseconds from its acceptance to the head of the answer.
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from its acceptance to the first text of the answer. Of an answer in one piece that reports its
    /// tokens, it is not known.
    #[serde(default)]
    pub first_token_ms: Option<u64>,
    /// Milliseconds from its acceptance to its end.
    pub total_ms: u64,
    /// Whether it asked for a stream.
    pub streaming: bool,
    /// How often it was given to a provider again.
    pub requeues: u32,
    /// Where its answer broke off and was gone on with, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumes: Vec<ResumeJson>,
    /// Its cost in the server's currency, where its model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl RequestJson {
    /// The names of the providers that wrote its answer, in order: those that were lost, then the last one.
    pub fn providers(&self) -> Vec<&str> {
        let lost = self.resumes.iter().map(|resume| resume.from.as_str());
        let mut all: Vec<_> = lost.chain(self.provider.as_deref()).collect();
        all.dedup();
        all
    }
}

/// A place in an answer where its provider was lost and the answer went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeJson {
    /// The name of the provider that was lost.
    pub from: String,
    /// The name of the provider that went on; null where only the end of the answer was missing, and was added.
    pub to: Option<String>,
    /// The characters of the answer's text that had passed.
    pub characters: u64,
}

/// Requests that [`RunningList`] has at most.
pub const MOST_RUNNING: usize = 500;

/// Answer of `GET /admin/requests/running`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningList {
    /// The oldest first. Beyond [`MOST_RUNNING`] the newest are left out.
    pub requests: Vec<RunningJson>,
}

/// One request that became a job and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningJson {
    /// The request's id, the same as in the `x-request-id` of its answer.
    pub id: String,
    /// The model, by the name that the client used.
    pub model: String,
    /// The endpoint, by its path.
    pub endpoint: String,
    /// The id of the key that it counts for; null if none was needed.
    pub key: Option<String>,
    /// Where its provider is looked for, if not among the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The name of the provider that has it; null while it waits for one.
    pub worker: Option<String>,
    /// Whether a provider has it.
    pub state: RunningState,
    /// Milliseconds from its acceptance until its provider got it, or until now.
    pub waiting_ms: u64,
    /// Milliseconds since then; 0 while it waits.
    pub running_ms: u64,
    /// The tokens written so far, if known; mostly an estimate.
    pub tokens: Option<u64>,
}

/// Where a request is that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunningState {
    /// It waits for a provider.
    Queued,
    /// A provider has it.
    Running,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_the_server_itself_names_no_scope() {
        let json = r#"{"n":7,"id":"r-1","at":"2026-11-20T16:00:00Z","key":"local","model":"fast",
            "served_model":"m","endpoint":"/v1/messages","provider":"gpu","outcome":"answered",
            "status":200,"prompt_tokens":3,"completion_tokens":null,"estimated":false,
            "queue_ms":0,"first_byte_ms":12,"first_token_ms":15,"total_ms":40,"streaming":true,"requeues":1}"#;
        let request: RequestJson = serde_json::from_str(json).unwrap();
        assert_eq!((request.n, &request.scope), (7, &None));
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(json).unwrap());
    }
}
