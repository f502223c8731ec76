//! A participant's tunnel, frame by frame as in the captures.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::{
    relay::Problem,
    room::tunnel::{
        BadFrame, FromParticipant, ResponseChunk, ResponseEnd, ResponseError, ResponseStart, Tick,
        ToParticipant, TunnelRequest, operation,
    },
};

fn bad(text: &str) -> BadFrame {
    FromParticipant::decode(text).unwrap_err()
}

#[test]
fn a_request_is_written_as_in_the_captures_and_its_body_as_it_is() {
    let body: &RawValue = serde_json::from_str("{\"model\": \"m\", \"n\":1.50}").unwrap();
    let request = ToParticipant::Request(TunnelRequest {
        request_id: Cow::Borrowed("R1"),
        operation: Cow::Borrowed(operation("POST", "/v1/chat/completions")),
        method: Cow::Borrowed("POST"),
        path: Cow::Borrowed("/v1/chat/completions"),
        headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
        body: Some(body),
        stream: true,
    });
    let text = r#"{"type":"tunnel.request","requestId":"R1","operation":"chat.completions.create","method":"POST","path":"/v1/chat/completions","headers":{"Content-Type":"application/json"},"body":{"model": "m", "n":1.50},"stream":true}"#;
    assert_eq!(request.encode(), text);
    let Ok(ToParticipant::Request(read)) = ToParticipant::decode(text) else { panic!("{text}") };
    assert_eq!(read.body.unwrap().get(), body.get());
    assert!(read.stream && read.headers.len() == 1 && read.path == "/v1/chat/completions");
    let cancel = r#"{"type":"tunnel.cancel","requestId":"R1"}"#;
    let told =
        ToParticipant::Cancel(crate::room::tunnel::TunnelCancel { request_id: "R1".to_owned() });
    assert_eq!(told.encode(), cancel);
    assert!(matches!(ToParticipant::decode(cancel), Ok(ToParticipant::Cancel(_))));
    let pong = r#"{"type":"tunnel.pong","timestamp":1795171909121}"#;
    assert_eq!(ToParticipant::Pong(Tick { timestamp: 1_795_171_909_121 }).encode(), pong);
    assert!(matches!(ToParticipant::decode(pong), Ok(ToParticipant::Pong(_))));
    assert!(ToParticipant::decode(r#"{"type":"tunnel.cancel"}"#).is_err());
}

#[test]
fn a_request_without_a_body_has_no_field_for_it() {
    let text = r#"{"metadata":{"x":[]},"type":"tunnel.request","requestId":"R","operation":"responses.get","method":"GET","path":"/v1/responses/a"}"#;
    let read = ToParticipant::decode(text).unwrap();
    assert_eq!(
        read.encode(),
        r#"{"type":"tunnel.request","requestId":"R","operation":"responses.get","method":"GET","path":"/v1/responses/a","headers":{},"stream":false}"#
    );
}

#[test]
fn every_frame_of_a_participant_is_that_of_the_captures() {
    let request_id = || "R1".to_owned();
    let headers = BTreeMap::from([("content-type".to_owned(), "text/event-stream".to_owned())]);
    let frames = [
        (
            r#"{"type":"tunnel.response.start","requestId":"R1","status":200,"headers":{"content-type":"text/event-stream"}}"#,
            FromParticipant::Start(ResponseStart {
                request_id: request_id(),
                status: 200,
                headers,
            }),
        ),
        (
            r#"{"type":"tunnel.response.chunk","requestId":"R1","chunk":"ZGF0YTo="}"#,
            FromParticipant::Chunk(ResponseChunk {
                request_id: request_id(),
                chunk: Bytes::from_static(b"data:"),
            }),
        ),
        (
            r#"{"type":"tunnel.response.end","requestId":"R1"}"#,
            FromParticipant::End(ResponseEnd { request_id: request_id() }),
        ),
        (
            r#"{"type":"tunnel.response.error","requestId":"R1","stage":"proxy","message":"refused"}"#,
            FromParticipant::Error(ResponseError {
                request_id: request_id(),
                stage: "proxy".to_owned(),
                message: "refused".to_owned(),
            }),
        ),
        (
            r#"{"type":"tunnel.ping","timestamp":1795171909121}"#,
            FromParticipant::Ping(Tick { timestamp: 1_795_171_909_121 }),
        ),
    ];
    for (text, frame) in frames {
        assert_eq!(frame.encode(), text);
        assert_eq!(FromParticipant::decode(text).unwrap(), frame);
        let spaced = text.replace("\":", "\" : ").replace('}', ",\"new\":[1] }");
        if !text.contains("headers") {
            assert_eq!(FromParticipant::decode(&spaced).unwrap(), frame, "{spaced}");
        }
    }
}

#[test]
fn a_bad_frame_names_its_request_where_it_can() {
    let named = [
        r#"{"type":"tunnel.response.chunk","requestId":"R1","chunk":"*"}"#,
        r#"{"type":"tunnel.response.chunk","requestId":"R1","chunk":"QUI"#,
        r#"{"type":"tunnel.response.chunk","requestId":"R1","chunk":7}"#,
        r#"{"type":"tunnel.response.chunk","requestId":"R1"}"#,
        r#"{"requestId":"R1","type":"tunnel.response.start","status":70000}"#,
        r#"{"type":"tunnel.response.start","requestId":"R1","status":200,"headers":[]}"#,
        r#"{"type":"tunnel.response.dance","requestId":"R1"}"#,
    ];
    for text in named {
        let wrong = bad(text);
        assert_eq!(wrong.request_id.as_deref(), Some("R1"), "{text}");
        assert!(wrong.kind.unwrap().starts_with("tunnel.response."));
    }
    for text in ["", "7", "{}", r#"{"type":"tunnel.response.end"}"#, r#"{"type":"tunnel.ping"}"#] {
        assert_eq!(bad(text).request_id, None, "{text}");
    }
    let words = bad(named[0]).to_string();
    assert!(words.starts_with("bad field: not base64: "), "{words}");
    assert_eq!(bad(named[6]).problem, Problem::UnknownType);
}

#[test]
fn base64_is_read_with_escapes_and_without_padding() {
    let chunk = |chunk: &str| {
        let text =
            format!(r#"{{"type":"tunnel.response.chunk","requestId":"R","chunk":"{chunk}"}}"#);
        match FromParticipant::decode(&text) {
            Ok(FromParticipant::Chunk(chunk)) => Some(chunk.chunk),
            _ => None,
        }
    };
    assert_eq!(chunk("/w==").unwrap(), &[0xff][..]);
    assert_eq!(chunk("\\/w\\u003d=").unwrap(), &[0xff][..]);
    assert_eq!(chunk("/w").unwrap(), &[0xff][..]);
    assert_eq!(chunk("").unwrap(), &[][..]);
    for none in ["/===w", "_w==", "/x==", "A", " /w==", "é"] {
        assert_eq!(chunk(none), None, "{none}");
    }
}

#[test]
fn operations_have_their_stock_names() {
    let names = [
        ("POST", "/v1/chat/completions", "chat.completions.create"),
        ("POST", "/v1/responses", "responses.create"),
        ("GET", "/v1/responses/r_1?include=x", "responses.get"),
        ("DELETE", "/v1/responses/r_1", "responses.delete"),
        ("POST", "/v1/responses/r_1/cancel", "responses.cancel"),
        ("GET", "/v1/responses/r_1/input_items?limit=2", "responses.input_items"),
        ("POST", "/v1/embeddings", "embeddings.create"),
        ("POST", "/v1/completions", "completions.create"),
        ("POST", "/v1/messages", "messages.create"),
        ("POST", "/v1/messages/count_tokens", "messages.count_tokens"),
        ("GET", "/v1/models", "models.list"),
        ("GET", "/x", "request"),
    ];
    for (method, path, name) in names {
        assert_eq!(operation(method, path), name, "{method} {path}");
    }
}

proptest! {
    #[test]
    fn any_bytes_of_an_answer_arrive_as_they_were(bytes: Vec<u8>, request_id in "\\PC{0,20}") {
        let chunk = ResponseChunk { request_id, chunk: bytes.into() };
        let frame = FromParticipant::Chunk(chunk);
        prop_assert_eq!(FromParticipant::decode(&frame.encode()), Ok(frame));
    }

    #[test]
    fn any_text_is_an_error_and_no_panic(text: String) {
        prop_assert!(FromParticipant::decode(&text).is_err());
        prop_assert!(ToParticipant::decode(&text).is_err());
    }
}
