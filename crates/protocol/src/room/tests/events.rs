//! Named events, byte for byte as in the captures.

use super::{participant, summary};
use crate::room::{
    Protocol, RoomEvent,
    event::{
        Connected, EventEnvelope, LlmDone, LlmFailed, LlmStarted, ParticipantRef, RoomClosed, Stage,
    },
    message::LlmToken,
    types::AnswerMetrics,
};

/// Frames of a stock server, and what they say.
fn captures() -> Vec<(&'static str, RoomEvent)> {
    let done = |request_id: &str, metrics| {
        RoomEvent::LlmComplete(LlmDone {
            request_id: request_id.to_owned(),
            participant_id: "worker-1".to_owned(),
            model: "mock-1".to_owned(),
            protocol: Protocol::ChatCompletions,
            metrics,
        })
    };
    vec![
        (
            "event: connected\ndata: {\"type\":\"connected\",\"timestamp\":1795170982644,\"roomCode\":\"ZAIWXC\",\"data\":{\"clientId\":\"6d51be1f\"}}\n\n",
            RoomEvent::Connected(Connected { client_id: "6d51be1f".to_owned() }),
        ),
        (
            "event: llm.request\ndata: {\"type\":\"llm.request\",\"timestamp\":1795170986688,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"249fe54f\",\"participantId\":\"worker-1\",\"model\":\"*\",\"protocol\":\"chatCompletions\"}}\n\n",
            RoomEvent::LlmRequest(LlmStarted {
                request_id: "249fe54f".to_owned(),
                participant_id: "worker-1".to_owned(),
                model: "*".to_owned(),
                protocol: Protocol::ChatCompletions,
            }),
        ),
        (
            "event: llm.complete\ndata: {\"type\":\"llm.complete\",\"timestamp\":1795170986710,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"249fe54f\",\"participantId\":\"worker-1\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"metrics\":{\"ttftMs\":22,\"durationMs\":22,\"inputTokens\":3,\"outputTokens\":4,\"totalTokens\":7,\"tokensPerSecond\":181.8181818181818}}}\n\n",
            done("249fe54f", AnswerMetrics::new(22, 22, Some(3), Some(4))),
        ),
        (
            "event: llm.complete\ndata: {\"type\":\"llm.complete\",\"timestamp\":1795170986851,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"c117fc52\",\"participantId\":\"worker-1\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"metrics\":{\"ttftMs\":52,\"durationMs\":119}}}\n\n",
            done("c117fc52", AnswerMetrics::new(52, 119, None, None)),
        ),
        (
            "event: llm.error\ndata: {\"type\":\"llm.error\",\"timestamp\":1795171734287,\"roomCode\":\"1CIQIR\",\"data\":{\"requestId\":\"dd52c816\",\"participantId\":\"w1\",\"nickname\":\"w1\",\"endpoint\":\"http://127.0.0.1:3921\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"stage\":\"stream\",\"error\":\"Error: Participant tunnel disconnected.\"}}\n\n",
            RoomEvent::LlmError(LlmFailed {
                request_id: "dd52c816".to_owned(),
                participant_id: "w1".to_owned(),
                nickname: "w1".to_owned(),
                endpoint: "http://127.0.0.1:3921".to_owned(),
                model: "mock-1".to_owned(),
                protocol: Protocol::ChatCompletions,
                stage: Stage::Stream,
                error: "Error: Participant tunnel disconnected.".to_owned(),
            }),
        ),
        (
            "event: participant.left\ndata: {\"type\":\"participant.left\",\"timestamp\":1795171198228,\"roomCode\":\"NZZ6LS\",\"data\":{\"participantId\":\"p9\"}}\n\n",
            RoomEvent::ParticipantLeft(ParticipantRef { participant_id: "p9".to_owned() }),
        ),
    ]
}

fn read(frame: &str) -> EventEnvelope {
    let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    EventEnvelope::decode(data.as_bytes()).unwrap()
}

#[test]
fn frames_are_those_of_the_captures_byte_for_byte() {
    for (frame, event) in captures() {
        let envelope = read(frame);
        assert_eq!(envelope.event, event);
        assert_eq!(event.frame(None, envelope.timestamp, &envelope.room_code), frame);
        let with_id = event.frame(Some(7), envelope.timestamp, &envelope.room_code);
        assert_eq!(with_id, format!("id: 7\n{frame}"));
    }
}

#[test]
fn every_event_is_one_frame_of_one_data_line_and_is_read_again() {
    let who = || ParticipantRef { participant_id: "a\nb\u{2028}\"".to_owned() };
    let token = LlmToken {
        request_id: "q".to_owned(),
        participant_id: "p".to_owned(),
        token: "\r\n\n".to_owned(),
        seq: 3,
    };
    let others = [
        RoomEvent::RoomCreated(summary()),
        RoomEvent::RoomClosed(RoomClosed { reason: "closed by its host".to_owned() }),
        RoomEvent::ParticipantJoined(participant()),
        RoomEvent::ParticipantUpdated(participant()),
        RoomEvent::ParticipantLeft(who()),
        RoomEvent::ParticipantOffline(who()),
        RoomEvent::LlmToken(token),
    ];
    for event in others.into_iter().chain(captures().into_iter().map(|(_, event)| event)) {
        let frame = event.frame(None, 5, "AB_-12");
        assert!(frame.ends_with("}\n\n") && frame.lines().count() == 3 && !frame.contains('\r'));
        assert!(frame.starts_with(&format!("event: {}\ndata: {{\"type\":\"{0}\",", event.name())));
        let expected = EventEnvelope { event, timestamp: 5, room_code: "AB_-12".to_owned() };
        assert_eq!(read(&frame), expected);
        let derived = serde_json::to_string(&expected).unwrap();
        assert_eq!(EventEnvelope::decode(derived.as_bytes()), Ok(expected));
    }
}

#[test]
fn an_envelope_is_read_whatever_the_order_of_its_fields() {
    let data = br#"{"data":{"participantId":"p","new":1},"roomCode":"X","new":[],"timestamp":1,"type":"participant.left"}"#;
    let envelope = EventEnvelope::decode(data).unwrap();
    let who = ParticipantRef { participant_id: "p".to_owned() };
    assert_eq!(envelope.event, RoomEvent::ParticipantLeft(who));
    for bad in [
        &br#"{"type":"dance","timestamp":1,"roomCode":"X","data":{}}"#[..],
        br#"{"type":"participant.left","timestamp":1,"roomCode":"X"}"#,
        br#"{"type":"participant.left","timestamp":1,"data":{"participantId":"p"}}"#,
        b"{}",
        b"",
    ] {
        assert!(EventEnvelope::decode(bad).is_err());
    }
}
