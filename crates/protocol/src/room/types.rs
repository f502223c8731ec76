//! Participants, rooms and metrics, as every message shows them.
//!
//! Times are whole milliseconds since 1970. Stock clients drop fields that they do not know, so
//! those marked as ours are safe to send.

use serde::{Deserialize, Serialize};

use super::{
    config::PublicConfig,
    invalid::Invalid,
    limits::{MAX_SPEC, line, range},
};

/// The machine that a participant runs on, as the participant reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSpecs {
    /// The name of its GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Memory of the GPU, in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vram: Option<f64>,
    /// Memory of the machine, in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram: Option<f64>,
    /// The name of its CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
}

/// Whether a participant can be given requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It can.
    Online,
    /// It has the most requests that it takes at once.
    Busy,
    /// It is not connected.
    Offline,
}

/// Whether a participant's backend serves an API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// It does.
    Supported,
    /// It does not.
    Unsupported,
    /// Not known yet.
    #[default]
    Unknown,
}

/// The APIs that a participant's backend serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// OpenAI's Responses.
    pub open_responses: Capability,
    /// OpenAI's Chat Completions.
    pub chat_completions: Capability,
}

/// The connection of a participant. Stock clients know only `tunnel`, so they see that for every
/// kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionKind {
    /// Over a link that it opened itself.
    Tunnel,
}

/// A participant's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Its kind.
    pub kind: ConnectionKind,
    /// Whether it stands.
    pub connected: bool,
    /// When something last came over it.
    pub last_tunnel_seen_at: Option<u64>,
}

/// A participant's public description in its room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantInfo {
    /// Its id, which it chose itself.
    pub id: String,
    /// Its name, for people.
    pub nickname: String,
    /// Its model; of several, the first.
    pub model: String,
    /// The URL of its backend, as it reports it.
    pub endpoint: String,
    /// The default generation parameters of its model.
    pub config: PublicConfig,
    /// Its machine.
    pub specs: MachineSpecs,
    /// The endpoints of its backend.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Its connection.
    pub connection: Connection,
    /// Whether it can be given requests.
    pub status: Status,
    /// When it came.
    pub joined_at: u64,
    /// The time of its last sign of life.
    pub last_seen: u64,
    /// When anything of this changed.
    pub updated_at: u64,
    /// All its models. Ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// How many requests it takes at once. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// The metrics of its last answer. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<AnswerMetrics>,
}

/// A room's public description (the spec's `RoomInfoPublic`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomInfo {
    /// Its id.
    pub id: String,
    /// Its code: six characters where stock clients read it, the spoken one in the spec's messages.
    pub code: String,
    /// Its name, for people.
    pub name: String,
    /// The id of its maker.
    pub host_id: String,
    /// When it was made.
    pub created_at: u64,
    /// The default generation parameters of its participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<PublicConfig>,
    /// Whether joining and using it need a password.
    #[serde(default)]
    pub password_protected: bool,
    /// The spoken code, where `code` is the short one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken_code: Option<String>,
    /// The six characters, where `code` is the spoken one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_code: Option<String>,
    /// Whether it is listed publicly. Ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// The time at which it ends if it is not used. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// A room in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomSummary {
    /// The room.
    #[serde(flatten)]
    pub room: RoomInfo,
    /// How many participants it has.
    pub participant_count: u32,
}

/// How an answer went (spec, "LlmMetrics").
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmMetrics {
    /// Tokens generated.
    pub tokens: u64,
    /// Milliseconds until the first token.
    pub latency_first_token_ms: u64,
    /// Milliseconds in all.
    pub duration_ms: u64,
    /// Tokens in each second.
    pub tokens_per_second: f64,
}

/// How an answer went, as stock clients of today read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerMetrics {
    /// Milliseconds until the first byte.
    pub ttft_ms: u64,
    /// Milliseconds in all.
    pub duration_ms: u64,
    /// Tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Tokens written in each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
}

/// The API of a request, by the stock name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// Responses.
    OpenResponses,
    /// Chat Completions, and every other.
    ChatCompletions,
}

impl MachineSpecs {
    /// Whether it can be shown: names of at most 256 bytes, sizes from 0 to a million GB.
    ///
    /// # Errors
    /// [`Invalid`], with the fields that are not fit.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut invalid = Invalid::default();
        self.check_at("", &mut invalid);
        invalid.or(())
    }

    /// The same, where it is part of something. `place` is its path with a dot at the end.
    pub(super) fn check_at(&self, place: &str, invalid: &mut Invalid) {
        for (name, text) in [("gpu", &self.gpu), ("cpu", &self.cpu)] {
            let text = text.as_deref().filter(|text| !text.is_empty());
            let fit = text.map_or(Ok(()), |text| line(text, MAX_SPEC));
            invalid.hold(&format!("{place}{name}"), fit);
        }
        for (name, size) in [("vram", self.vram), ("ram", self.ram)] {
            let fit = size.map_or(Ok(()), |size| range(size, 0.0, 1e6));
            invalid.hold(&format!("{place}{name}"), fit);
        }
    }
}

impl AnswerMetrics {
    /// The metrics of an answer whose first byte came after `ttft_ms` and whose end after
    /// `duration_ms`.
    pub fn new(ttft_ms: u64, duration_ms: u64, input: Option<u64>, output: Option<u64>) -> Self {
        let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
        Self {
            ttft_ms,
            duration_ms,
            input_tokens: input,
            output_tokens: output,
            total_tokens: total,
            tokens_per_second: output
                .map(|tokens| tokens as f64 * 1000.0 / duration_ms.max(1) as f64),
        }
    }

    /// The same metrics in the spec's form.
    pub fn as_spec(&self) -> LlmMetrics {
        LlmMetrics {
            tokens: self.output_tokens.unwrap_or(0),
            latency_first_token_ms: self.ttft_ms,
            duration_ms: self.duration_ms,
            tokens_per_second: self.tokens_per_second.unwrap_or(0.0),
        }
    }
}
