//! The JSON messages, field for field (relay specification, "Message Type Summary").
//!
//! Unknown fields are ignored; empty optional fields are not written.

use serde::Serialize;

use super::{decode, request::encode_request};
use crate::json;

pub use super::{
    decode::{MessageError, Problem},
    from_server::{
        Cancel, CancelCause, GracefulShutdown, ModelMessage, ModelsRefresh, Ping, RegisterAck,
        Request,
    },
    from_worker::{
        ModelDone, ModelsUpdate, Pong, Register, ResponseChunk, ResponseComplete, TokenCounts,
        WorkerError, WorkerParticipant,
    },
};

/// A message from a server to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The registration was accepted (walkthrough 1).
    RegisterAck(RegisterAck),
    /// A request to serve (walkthroughs 2 and 3).
    Request(Request),
    /// Stop serving a request (walkthrough 4).
    Cancel(Cancel),
    /// Heartbeat (walkthrough 1).
    Ping(Ping),
    /// Finish the jobs in flight; no new ones will come (walkthrough 8).
    GracefulShutdown(GracefulShutdown),
    /// Report the models again (walkthrough 9).
    ModelsRefresh(ModelsRefresh),
    /// Load a model. Not part of the specification.
    LoadModel(ModelMessage),
    /// Unload a model. Not part of the specification.
    UnloadModel(ModelMessage),
}

impl ServerMessage {
    /// Reads a text message. An error holds the readable parts of the message.
    pub fn decode(text: &str) -> Result<Self, MessageError> {
        match &*decode::kind_of(text)? {
            "register_ack" => decode::body(text).map(Self::RegisterAck),
            "request" => decode::body(text).map(Self::Request),
            "cancel" => decode::body(text).map(Self::Cancel),
            "ping" => decode::body(text).map(Self::Ping),
            "graceful_shutdown" => decode::body(text).map(Self::GracefulShutdown),
            "models_refresh" => decode::body(text).map(Self::ModelsRefresh),
            "load_model" => decode::body(text).map(Self::LoadModel),
            "unload_model" => decode::body(text).map(Self::UnloadModel),
            _ => Err(MessageError::new(text, Problem::UnknownType)),
        }
    }

    /// Writes the text message.
    pub fn encode(&self) -> String {
        match self {
            Self::Request(Request {
                request_id,
                model,
                endpoint_path,
                is_streaming,
                body,
                headers,
            }) => encode_request(request_id, model, endpoint_path, *is_streaming, body, headers),
            _ => json::write(self),
        }
    }
}

/// A message from a worker to a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerMessage {
    /// The first message of a connection (walkthrough 1).
    Register(Register),
    /// The models have changed (walkthrough 9).
    ModelsUpdate(ModelsUpdate),
    /// Bytes of a streamed answer (walkthrough 3).
    ResponseChunk(ResponseChunk),
    /// The end of an answer, or all of it (walkthroughs 2 and 3).
    ResponseComplete(ResponseComplete),
    /// The reply to a ping (walkthrough 1).
    Pong(Pong),
    /// A request has failed at the worker.
    Error(WorkerError),
    /// How the load or unload of a model went. Not part of the specification.
    ModelDone(ModelDone),
}

impl WorkerMessage {
    /// Reads a text message. An error holds the readable parts of the message.
    pub fn decode(text: &str) -> Result<Self, MessageError> {
        match &*decode::kind_of(text)? {
            "register" => decode::body(text).map(Self::Register),
            "models_update" => decode::body(text).map(Self::ModelsUpdate),
            "response_chunk" => decode::body(text).map(Self::ResponseChunk),
            "response_complete" => decode::body(text).map(Self::ResponseComplete),
            "pong" => decode::body(text).map(Self::Pong),
            "error" => decode::body(text).map(Self::Error),
            "model_done" => decode::body(text).map(Self::ModelDone),
            _ => Err(MessageError::new(text, Problem::UnknownType)),
        }
    }

    /// Writes the text message.
    pub fn encode(&self) -> String {
        json::write(self)
    }
}

#[cfg(test)]
mod tests {
    use base::{CancelReason, Endpoints};
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::relay::Headers;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The message is written as `text` and read from it.
    fn server(text: &str, message: ServerMessage) {
        assert_eq!(message.encode(), text);
        assert_eq!(ServerMessage::decode(text), Ok(message));
    }

    fn worker(text: &str, message: WorkerMessage) {
        assert_eq!(message.encode(), text);
        assert_eq!(WorkerMessage::decode(text), Ok(message));
    }

    #[test]
    fn register_ack_as_captured() {
        let version = Some("2026-04-bridge-v1".to_owned());
        server(
            r#"{"type":"register_ack","worker_id":"worker-2","models":["m-a"],"protocol_version":"2026-04-bridge-v1"}"#,
            ServerMessage::RegisterAck(RegisterAck {
                worker_id: "worker-2".into(),
                models: texts(&["m-a"]),
                warnings: vec![],
                protocol_version: version.clone(),
                ..RegisterAck::default()
            }),
        );
        server(
            r#"{"type":"register_ack","worker_id":"w","models":[],"acknowledge":true}"#,
            ServerMessage::RegisterAck(RegisterAck {
                worker_id: "w".into(),
                acknowledge: true,
                ..RegisterAck::default()
            }),
        );
        server(
            r#"{"type":"register_ack","worker_id":"worker-4","models":[],"warnings":["worker_name was empty after trimming","worker registered without any routable models"],"protocol_version":"2026-04-bridge-v1"}"#,
            ServerMessage::RegisterAck(RegisterAck {
                worker_id: "worker-4".into(),
                models: vec![],
                warnings: Register::default().normalised().warnings,
                protocol_version: version,
                ..RegisterAck::default()
            }),
        );
    }

    #[test]
    fn request_as_captured() {
        let plain = Request {
            request_id: "request-6".into(),
            model: "m-a".into(),
            endpoint_path: "/v1/chat/completions".into(),
            is_streaming: false,
            body: "{\"model\": \"m-a\"}".into(),
            headers: Headers::new(),
        };
        server(
            r#"{"type":"request","request_id":"request-6","model":"m-a","endpoint_path":"/v1/chat/completions","is_streaming":false,"body":"{\"model\": \"m-a\"}"}"#,
            ServerMessage::Request(plain.clone()),
        );
        let headers = headers(&[("content-type", "application/json"), ("x-foo", "2")]);
        server(
            r#"{"type":"request","request_id":"request-6","model":"m-a","endpoint_path":"/v1/chat/completions","is_streaming":true,"body":"{\"model\": \"m-a\"}","headers":{"content-type":"application/json","x-foo":"2"}}"#,
            ServerMessage::Request(Request { is_streaming: true, headers, ..plain }),
        );
    }

    #[test]
    fn every_cancel_reason() {
        let cancel = |reason| ServerMessage::Cancel(Cancel { request_id: "r-1".into(), reason });
        let reasons = [
            (r#""client_disconnect""#, CancelCause::Known(CancelReason::ClientDisconnect)),
            (r#""timeout""#, CancelCause::Known(CancelReason::Timeout)),
            (r#""graceful_shutdown""#, CancelCause::Known(CancelReason::GracefulShutdown)),
            (r#""worker_disconnect""#, CancelCause::Known(CancelReason::WorkerDisconnect)),
            (r#""requeue_exhausted""#, CancelCause::Known(CancelReason::RequeueExhausted)),
            (r#""server_shutdown""#, CancelCause::Known(CancelReason::ServerShutdown)),
            (r#"{"other":"tea"}"#, CancelCause::Other { other: "tea".into() }),
        ];
        for (wire, reason) in reasons {
            let text = format!(r#"{{"type":"cancel","request_id":"r-1","reason":{wire}}}"#);
            server(&text, cancel(reason));
        }
        let unknown = r#"{"type":"cancel","request_id":"r-1","reason":"tea"}"#;
        let read = ServerMessage::decode(unknown);
        assert_eq!(read, Ok(cancel(CancelCause::Other { other: "tea".into() })));
    }

    #[test]
    fn server_control_messages() {
        server(r#"{"type":"ping"}"#, ServerMessage::Ping(Ping::default()));
        server(
            r#"{"type":"ping","timestamp_unix_ms":1700000000000}"#,
            ServerMessage::Ping(Ping { timestamp_unix_ms: Some(1_700_000_000_000) }),
        );
        server(
            r#"{"type":"graceful_shutdown","reason":"maintenance","drain_timeout_secs":30}"#,
            ServerMessage::GracefulShutdown(GracefulShutdown {
                reason: Some("maintenance".into()),
                drain_timeout_secs: Some(30),
            }),
        );
        server(
            r#"{"type":"models_refresh","reason":"periodic"}"#,
            ServerMessage::ModelsRefresh(ModelsRefresh { reason: Some("periodic".into()) }),
        );
        let message = || ModelMessage { number: 3, model: "org/m".into() };
        server(
            r#"{"type":"load_model","number":3,"model":"org/m"}"#,
            ServerMessage::LoadModel(message()),
        );
        server(
            r#"{"type":"unload_model","number":3,"model":"org/m"}"#,
            ServerMessage::UnloadModel(message()),
        );
    }

    #[test]
    fn register_as_captured() {
        worker(
            r#"{"type":"register","worker_name":"w1","models":["m-a","m-z"],"max_concurrent":4,"protocol_version":"2026-04-bridge-v1","current_load":0}"#,
            WorkerMessage::Register(Register {
                worker_name: "w1".into(),
                models: texts(&["m-a", "m-z"]),
                max_concurrent: 4,
                protocol_version: Some("2026-04-bridge-v1".into()),
                current_load: 0,
                ..Register::default()
            }),
        );
        let of_a_warren = r#"{"type":"register","worker_name":"w","models":[],"max_concurrent":1,"current_load":0,"link":"5f","acknowledges":true}"#;
        worker(
            of_a_warren,
            WorkerMessage::Register(Register {
                worker_name: "w".into(),
                max_concurrent: 1,
                link: Some("5f".into()),
                acknowledges: true,
                ..Register::default()
            }),
        );
        let least = r#"{"type":"register","worker_name":"","models":[],"max_concurrent":0,"current_load":null,"new":[{}]}"#;
        let read = WorkerMessage::decode(least);
        assert_eq!(read, Ok(WorkerMessage::Register(Register::default())));
    }

    #[test]
    fn answers_as_captured() {
        worker(
            r#"{"type":"response_chunk","request_id":"r-2","chunk":"data: {\"i\":0}\n\n"}"#,
            WorkerMessage::ResponseChunk(ResponseChunk {
                request_id: "r-2".into(),
                chunk: "data: {\"i\":0}\n\n".into(),
            }),
        );
        worker(
            r#"{"type":"response_complete","request_id":"r-3","status_code":429,"headers":{"content-type":"application/json; charset=utf-8","retry-after":"7"},"body":""}"#,
            WorkerMessage::ResponseComplete(ResponseComplete {
                request_id: "r-3".into(),
                status_code: 429,
                headers: headers(&[
                    ("content-type", "application/json; charset=utf-8"),
                    ("retry-after", "7"),
                ]),
                body: Some(String::new()),
                token_counts: None,
            }),
        );
    }

    #[test]
    fn completion_with_token_counts() {
        worker(
            r#"{"type":"response_complete","request_id":"r-001","status_code":200,"token_counts":{"prompt_tokens":42,"completion_tokens":128,"total_tokens":170}}"#,
            WorkerMessage::ResponseComplete(ResponseComplete {
                request_id: "r-001".into(),
                status_code: 200,
                token_counts: Some(TokenCounts {
                    prompt_tokens: Some(42),
                    completion_tokens: Some(128),
                    total_tokens: Some(170),
                }),
                ..ResponseComplete::default()
            }),
        );
    }

    #[test]
    fn worker_control_messages() {
        let pong =
            |timestamp_unix_ms| WorkerMessage::Pong(Pong { current_load: 1, timestamp_unix_ms });
        worker(r#"{"type":"pong","current_load":1}"#, pong(None));
        worker(r#"{"type":"pong","current_load":1,"timestamp_unix_ms":17}"#, pong(Some(17)));
        worker(
            r#"{"type":"models_update","models":["m-a","m-b"],"current_load":0}"#,
            WorkerMessage::ModelsUpdate(ModelsUpdate {
                models: texts(&["m-a", "m-b"]),
                ..ModelsUpdate::default()
            }),
        );
        worker(
            r#"{"type":"models_update","models":[],"current_load":0,"none_left":true}"#,
            WorkerMessage::ModelsUpdate(ModelsUpdate {
                none_left: true,
                ..ModelsUpdate::default()
            }),
        );
        let error = |request_id| {
            let (code, message) = ("oom".into(), "no memory".into());
            WorkerMessage::Error(WorkerError { request_id, code, message })
        };
        worker(
            r#"{"type":"error","request_id":"r-1","code":"oom","message":"no memory"}"#,
            error(Some("r-1".into())),
        );
        worker(r#"{"type":"error","code":"oom","message":"no memory"}"#, error(None));
    }

    fn any_headers() -> impl Strategy<Value = Headers> {
        proptest::collection::btree_map(any::<String>(), any::<String>(), 0..3)
    }

    fn any_server_message() -> impl Strategy<Value = ServerMessage> {
        let names = || vec(any::<String>(), 0..3);
        let text = || any::<String>();
        prop_oneof![
            (text(), names(), names(), option::of(text())).prop_map(
                |(worker_id, models, warnings, protocol_version)| ServerMessage::RegisterAck(
                    RegisterAck {
                        worker_id,
                        models,
                        warnings,
                        protocol_version,
                        ..RegisterAck::default()
                    }
                )
            ),
            (text(), text(), text(), any::<bool>(), text(), any_headers()).prop_map(
                |(request_id, model, endpoint_path, is_streaming, body, headers)| {
                    ServerMessage::Request(Request {
                        request_id,
                        model,
                        endpoint_path,
                        is_streaming,
                        body,
                        headers,
                    })
                }
            ),
            (text(), text()).prop_map(|(request_id, other)| ServerMessage::Cancel(Cancel {
                request_id,
                reason: CancelCause::Other { other }
            })),
            any::<Option<u64>>()
                .prop_map(|timestamp_unix_ms| ServerMessage::Ping(Ping { timestamp_unix_ms })),
            (option::of(text()), any::<Option<u64>>()).prop_map(|(reason, drain_timeout_secs)| {
                ServerMessage::GracefulShutdown(GracefulShutdown { reason, drain_timeout_secs })
            }),
        ]
    }

    fn any_endpoints() -> impl Strategy<Value = Endpoints> {
        let assumed: Vec<_> = Endpoints::NATIVE.iter().collect();
        proptest::sample::subsequence(assumed.clone(), 0..=assumed.len())
            .prop_map(|endpoints| endpoints.into_iter().collect())
    }

    fn any_worker_message() -> impl Strategy<Value = WorkerMessage> {
        let names = || vec(any::<String>(), 0..3);
        let text = || any::<String>();
        let counts = any::<(Option<u32>, Option<u32>, Option<u32>)>().prop_map(
            |(prompt_tokens, completion_tokens, total_tokens)| TokenCounts {
                prompt_tokens,
                completion_tokens,
                total_tokens,
            },
        );
        prop_oneof![
            (
                (text(), names(), any::<u32>(), option::of(text()), any::<u32>()),
                option::of(any_endpoints())
            )
                .prop_map(|(told, endpoints)| {
                    let (worker_name, models, max_concurrent, protocol_version, current_load) =
                        told;
                    WorkerMessage::Register(Register {
                        worker_name,
                        models,
                        max_concurrent,
                        protocol_version,
                        current_load,
                        endpoints,
                        ..Register::default()
                    })
                }),
            (names(), any::<u32>(), option::of(any_endpoints())).prop_map(
                |(models, current_load, endpoints)| {
                    WorkerMessage::ModelsUpdate(ModelsUpdate {
                        models,
                        current_load,
                        endpoints,
                        ..ModelsUpdate::default()
                    })
                }
            ),
            (text(), text()).prop_map(|(request_id, chunk)| WorkerMessage::ResponseChunk(
                ResponseChunk { request_id, chunk }
            )),
            (text(), any::<u16>(), any_headers(), option::of(text()), option::of(counts)).prop_map(
                |(request_id, status_code, headers, body, token_counts)| {
                    WorkerMessage::ResponseComplete(ResponseComplete {
                        request_id,
                        status_code,
                        headers,
                        body,
                        token_counts,
                    })
                }
            ),
            (option::of(text()), text(), text()).prop_map(|(request_id, code, message)| {
                WorkerMessage::Error(WorkerError { request_id, code, message })
            }),
        ]
    }

    proptest! {
        #[test]
        fn server_messages_read_back(message in any_server_message()) {
            prop_assert_eq!(ServerMessage::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn worker_messages_read_back(message in any_worker_message()) {
            prop_assert_eq!(WorkerMessage::decode(&message.encode()), Ok(message));
        }
    }
}
