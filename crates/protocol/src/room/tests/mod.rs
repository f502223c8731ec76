//! Messages, bodies, events and frames, as they are written on the wire.

mod events;
mod frames;
mod messages;
mod plane;
mod refused;
mod sweep;

use serde_json::{Value, json};

use super::{
    config::{GenerationConfig, PublicConfig},
    types::*,
};

/// A participant of the stock captures, with every field that stock clients need.
fn participant() -> ParticipantInfo {
    ParticipantInfo {
        id: "p9".to_owned(),
        nickname: "Nine".to_owned(),
        model: "m".to_owned(),
        endpoint: "http://127.0.0.1:1".to_owned(),
        config: PublicConfig {
            generation: GenerationConfig { temperature: Some(0.5), ..GenerationConfig::default() },
            has_instructions: true,
        },
        specs: MachineSpecs {
            gpu: Some("RTX".to_owned()),
            vram: Some(24.0),
            ram: Some(64.0),
            cpu: Some("x".to_owned()),
        },
        capabilities: Capabilities::default(),
        connection: Connection {
            kind: ConnectionKind::Tunnel,
            connected: false,
            last_tunnel_seen_at: None,
        },
        status: Status::Offline,
        joined_at: 1_795_171_197_706,
        last_seen: 1_795_171_197_706,
        updated_at: 1_795_171_197_706,
        models: Vec::new(),
        max_concurrent: None,
        metrics: None,
    }
}

/// That participant as stock servers write it.
const PARTICIPANT: &str = r#"{"id":"p9","nickname":"Nine","model":"m","endpoint":"http://127.0.0.1:1","config":{"temperature":0.5,"hasInstructions":true},"specs":{"gpu":"RTX","vram":24,"ram":64,"cpu":"x"},"capabilities":{"openResponses":"unknown","chatCompletions":"unknown"},"connection":{"kind":"tunnel","connected":false,"lastTunnelSeenAt":null},"status":"offline","joinedAt":1795171197706,"lastSeen":1795171197706,"updatedAt":1795171197706}"#;

/// A room of the stock captures.
fn room() -> RoomInfo {
    RoomInfo {
        id: "cFwInO5OzqRhORr2jYdij".to_owned(),
        code: "4V9SXC".to_owned(),
        name: "Locked".to_owned(),
        host_id: "684b583f-0000".to_owned(),
        created_at: 1_795_170_970_726,
        defaults: Some(PublicConfig {
            generation: GenerationConfig {
                temperature: Some(0.2),
                max_tokens: Some(64),
                ..GenerationConfig::default()
            },
            has_instructions: true,
        }),
        password_protected: true,
        spoken_code: None,
        short_code: None,
        public: false,
        expires_at: None,
    }
}

/// That room in a list, as stock servers write it.
const SUMMARY: &str = r#"{"id":"cFwInO5OzqRhORr2jYdij","code":"4V9SXC","name":"Locked","hostId":"684b583f-0000","createdAt":1795170970726,"defaults":{"temperature":0.2,"max_tokens":64,"hasInstructions":true},"passwordProtected":true,"participantCount":0}"#;

fn summary() -> RoomSummary {
    RoomSummary { room: room(), participant_count: 0 }
}

/// The same JSON, but for how numbers are written: stock servers write 24, we write 24.0.
fn same(ours: &str, stock: &str) {
    assert_eq!(numbers(ours), numbers(stock));
}

/// The text with whole numbers written as such.
fn numbers(text: &str) -> String {
    text.replace(".0,", ",").replace(".0}", "}").replace(".0]", "]")
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn participants_and_rooms_are_written_as_stock_servers_write_them() {
    same(&serde_json::to_string(&participant()).unwrap(), PARTICIPANT);
    same(&serde_json::to_string(&summary()).unwrap(), SUMMARY);
    assert_eq!(serde_json::from_str::<ParticipantInfo>(PARTICIPANT).unwrap(), participant());
    assert_eq!(serde_json::from_str::<RoomSummary>(SUMMARY).unwrap(), summary());
}

#[test]
fn a_participant_of_an_older_server_is_read() {
    let mut old = value(PARTICIPANT);
    old.as_object_mut().unwrap().remove("capabilities");
    old["config"] = json!({});
    let read: ParticipantInfo = serde_json::from_value(old).unwrap();
    assert_eq!(read.capabilities, Capabilities::default());
    assert!(!read.config.has_instructions);
}
