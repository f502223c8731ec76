//! Odd messages, one by one.

use base::Thermal;
use serde_json::{Value, json};

use crate::mesh::{
    WireId,
    cluster::{BadMessage, ClusterMessage, Dialect, ErrorCode, FailedRequest, decode, encode},
    frame::MAX_FRAME,
};

fn read(text: &str) -> ClusterMessage {
    decode(text.as_bytes()).unwrap_or_else(|bad| panic!("{bad} of {text}")).message
}

fn bad(text: &str) -> BadMessage {
    decode(text.as_bytes()).expect_err(text)
}

fn heartbeat(fields: &str) -> crate::mesh::cluster::Heartbeat {
    match read(&format!("{{\"heartbeat\":{fields}}}")) {
        ClusterMessage::Heartbeat(heartbeat) => *heartbeat,
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_two_top_level_keys_the_first_counts() {
    let two = r#"{"modelQuery":{"modelID":"m"},"heartbeat":{"_0":{}}}"#;
    assert!(matches!(read(two), ClusterMessage::ModelQuery(query) if query.model_id == "m"));
    assert_eq!(bad(r#"{"what":{},"modelQuery":{"modelID":"m"}}"#).kind, "what");
}

#[test]
fn the_wrapped_form_is_seen_beside_other_members_and_the_first_counts() {
    for text in [
        r#"{"heartbeat":{"x":1,"_0":{"queueDepth":2}}}"#,
        r#"{"heartbeat":{"_0":{"queueDepth":2},"x":[{"_0":3}]}}"#,
        r#"{"heartbeat":{"_0":{"queueDepth":2},"_0":{"queueDepth":4}}}"#,
        "{ \"heartbeat\" : {\n\t\"_0\" : { \"queueDepth\" : 2 } } }",
    ] {
        let decoded = decode(text.as_bytes()).unwrap();
        assert_eq!(decoded.dialect, Dialect::Wrapped, "{text}");
        let ClusterMessage::Heartbeat(heartbeat) = decoded.message else { panic!("{text}") };
        assert_eq!(heartbeat.queue_depth, 2, "{text}");
    }
    let inside = r#"{"heartbeat":{"loadedModels":["\"_0\""],"x":{"_0":1},"queueDepth":2}}"#;
    assert_eq!(decode(inside.as_bytes()).unwrap().dialect, Dialect::Flat);
    assert_eq!(bad(r#"{"hello":{"_0":null}}"#).dialect, Dialect::Wrapped);
}

#[test]
fn a_field_with_the_name_of_the_wrapped_form_is_not_passed_on() {
    let odd = read(r#"{"heartbeat":{"_0":{"queueDepth":2,"_0":{"queueDepth":4},"x":1}}}"#);
    let again = decode(&encode(&odd, Dialect::Flat)).unwrap();
    assert_eq!(again.dialect, Dialect::Flat);
    let ClusterMessage::Heartbeat(heartbeat) = again.message else { panic!("another message") };
    assert_eq!((heartbeat.queue_depth, heartbeat.extra.len()), (2, 1));
}

#[test]
fn a_field_that_appears_twice_is_told_and_what_was_asked_as_well() {
    let twice = bad(r#"{"inferenceRequest":{"requestID":"a","requestID":"b","request":{}}}"#);
    assert!(twice.why.contains("duplicate field"), "{twice}");
    assert_eq!(twice.request, Some(FailedRequest::Inference("a".into())));
}

#[test]
fn slashes_that_are_escaped_and_ids_in_either_case_are_the_same() {
    let text = r#"{"modelTransferChunk":{"_0":{"transferID":"550E8400-E29B-41D4-A716-446655440000","fileName":"a\/b","offset":1048576.0,"data":"\/\/8=","isLastChunk":false}}}"#;
    let ClusterMessage::ModelTransferChunk(chunk) = read(text) else { panic!("a chunk") };
    assert_eq!(chunk.transfer_id, WireId::from("550e8400-e29b-41d4-a716-446655440000"));
    assert_eq!((chunk.file_name.as_str(), chunk.data.as_str()), ("a/b", "//8="));
    assert_eq!((chunk.offset, chunk.is_last_chunk), (1_048_576, false));
}

#[test]
fn an_offset_that_is_no_size_is_refused() {
    for offset in ["-1", "0.5", "1e300", "\"7\"", "null", "{}", "18446744073709551616"] {
        let text = format!(
            "{{\"modelTransferChunk\":{{\"transferID\":\"t\",\"fileName\":\"f\",\"offset\":{offset},\
             \"data\":\"\"}}}}"
        );
        assert!(bad(&text).why.contains("whole number of bytes"), "{offset}");
    }
}

#[test]
fn every_field_of_a_heartbeat_may_be_missing_null_or_of_another_type() {
    let empty = heartbeat("{}");
    assert_eq!((empty.thermal_level, empty.throttle_level), (Thermal::Nominal, 100));
    assert_eq!((empty.device_id.as_str(), empty.ewma_tokens_per_second), ("", None));
    let names = [
        "deviceID",
        "timestamp",
        "thermalLevel",
        "throttleLevel",
        "loadedModels",
        "isGenerating",
        "queueDepth",
        "organizationID",
        "ownerUserID",
        "ewmaTokensPerSecond",
        "maxConcurrentRequests",
    ];
    for name in names {
        for value in ["null", "[]", "{}", "[[1],{\"a\":2}]", "{\"a\":[]}", "-1e300", "true"] {
            heartbeat(&format!("{{\"{name}\":{value}}}"));
        }
    }
    assert_eq!(heartbeat(r#"{"throttleLevel":null}"#).throttle_level, 100);
    assert_eq!(heartbeat(&format!("{{\"deviceID\":\"{}\"}}", "x".repeat(129))), empty);
}

#[test]
fn a_hello_needs_only_the_device() {
    let text = r#"{"hello":{"_0":{"deviceInfo":{"hardware":null,"id":7,"registeredAt":"now"},"protocolVersion":null,"warren":{"nodeID":5}}}}"#;
    let ClusterMessage::Hello(hello) = read(text) else { panic!("a hello") };
    assert_eq!((hello.protocol_version, hello.warren), (1, None));
    assert_eq!((hello.device_info.id.as_str(), hello.device_info.hardware.tier), ("7", 4));
    assert!(bad(r#"{"hello":{"_0":{}}}"#).why.contains("deviceInfo"));
}

#[test]
fn one_bad_address_costs_no_other_fact_of_a_warren() {
    let warren = json!({"nodeID": "ab".repeat(32), "psk": true, "instance": u64::MAX,
        "addresses": ["10.0.0.1:9180", "nonsense", 5, "[::1]:1"]});
    let text = json!({"hello": {"deviceInfo": {}, "warren": warren}}).to_string();
    let ClusterMessage::Hello(hello) = read(&text) else { panic!("a hello") };
    let warren = hello.warren.unwrap();
    assert_eq!((warren.addresses.len(), warren.instance), (2, Some(u64::MAX)));
}

#[test]
fn an_error_with_an_unknown_code_is_still_an_error() {
    for (code, is) in [
        ("\"queue_full\"", Some(ErrorCode::QueueFull)),
        ("\"on_fire\"", Some(ErrorCode::InternalError)),
        ("null", None),
        ("[{}]", None),
    ] {
        let text = format!("{{\"inferenceError\":{{\"requestID\":\"r\",\"code\":{code}}}}}");
        let ClusterMessage::InferenceError(error) = read(&text) else { panic!("an error") };
        assert_eq!(error.code, is, "{code}");
    }
}

#[test]
fn requests_and_chunks_are_objects_and_kept_word_for_word() {
    for value in ["null", "[]", "\"{}\"", "7"] {
        let text = format!("{{\"inferenceRequest\":{{\"requestID\":\"R\",\"request\":{value}}}}}");
        assert_eq!(bad(&text).request, Some(FailedRequest::Inference("r".into())), "{value}");
        let text = format!("{{\"inferenceChunk\":{{\"requestID\":\"R\",\"chunk\":{value}}}}}");
        assert_eq!(bad(&text).request, Some(FailedRequest::Nothing("r".into())), "{value}");
    }
    let body = r#"{ "b":1.10, "a":"\/\u00e9", "b":2, "n":123456789012345678901234567890 }"#;
    for text in [
        format!("{{\"inferenceRequest\":{{\"request\": {body} ,\"requestID\":\"r\"}}}}"),
        format!("{{\"inferenceRequest\":{{\"_0\":{{\"requestID\":\"r\",\"request\":{body}}}}}}}"),
    ] {
        let ClusterMessage::InferenceRequest(request) = read(&text) else { panic!("{text}") };
        assert_eq!((request.request.get(), request.streaming), (body, false));
    }
}

#[test]
fn ids_are_bounded_and_a_long_one_is_answered_if_it_is_not_very_long() {
    let asked = |length: usize| {
        let id = "x".repeat(length);
        let text = json!({"inferenceRequest": {"requestID": id, "request": {}}}).to_string();
        decode(text.as_bytes()).map(|_| ()).map_err(|bad| bad.request.is_some())
    };
    assert_eq!((asked(128), asked(129), asked(257)), (Ok(()), Err(true), Err(false)));
}

#[test]
fn lists_of_models_are_bounded() {
    let many: Vec<String> = (0..5_000).map(|number| format!("m{number}")).collect();
    let long = json!(["x".repeat(513), "short", null, 5]);
    assert_eq!(heartbeat(&json!({ "loadedModels": many }).to_string()).loaded_models.len(), 4_096);
    assert_eq!(heartbeat(&json!({ "loadedModels": long }).to_string()).loaded_models, ["short"]);
}

#[test]
fn an_overlong_message_is_refused_with_the_request_it_belongs_to() {
    let long = "x".repeat(256 * 1024);
    assert!(bad(&json!({"heartbeat": {"x": long}}).to_string()).why.contains("at most 262144"));
    let query = json!({"modelQuery": {"modelID": "m", "x": long}}).to_string();
    assert_eq!(bad(&query).request, Some(FailedRequest::Model("m".into())));
    let large = json!({"inferenceRequest": {"requestID": "r", "request": {"x": long}}});
    read(&large.to_string());
}

#[test]
fn depth_and_length_do_no_harm() {
    let depth = 4_000_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for text in [
        deep.clone(),
        format!("{{\"hello\":{deep}}}"),
        format!("{{\"hello\":{{\"deviceInfo\":{deep}}}}}"),
        format!("{{\"heartbeat\":{{\"_0\":{deep}}}}}"),
        format!("{{\"modelTransferRequest\":{{\"transferID\":{deep}}}}}"),
        format!("{{\"inferenceRequest\":{{\"requestID\":\"r\",\"request\":{deep}}}}}"),
    ] {
        assert!(bad(&text).why.len() <= 256);
    }
    let nested = format!("{{\"heartbeat\":{{\"x\":{}1{}}}}}", "[".repeat(9_999), "]".repeat(9_999));
    assert!(bad(&nested).why.contains("recursion"));
}

#[test]
fn text_repeated_from_a_stranger_is_cut() {
    let long = "é".repeat(1_000);
    let odd = bad(&json!({ long.as_str(): {} }).to_string());
    assert_eq!(odd.kind, "é".repeat(32));
    let text = json!({"modelManifest": {"transferID": "t", "modelID": "m", "files": long}});
    assert!((200..=256).contains(&bad(&text.to_string()).why.len()));
}

#[test]
fn further_messages_of_macs_are_an_unknown_kind() {
    for kind in ["agentMessage", "usdcTransferRequest", "groupMessage", "ptnJoinRequest"] {
        let bad = bad(&json!({ kind: {"_0": {"data": "eyJ9"}} }).to_string());
        assert_eq!((bad.kind.as_str(), bad.request), (kind, None));
        assert_eq!(bad.dialect, Dialect::Wrapped);
    }
}

#[test]
fn a_message_as_long_as_a_frame_is_read_and_written() {
    let text = "x".repeat(MAX_FRAME - 100);
    let message = json!({"inferenceChunk": {"chunk": {"x": text}, "requestID": "r"}}).to_string();
    let message = read(&message);
    let written = encode(&message, Dialect::Wrapped);
    assert!(written.len() <= MAX_FRAME);
    let read: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(read["inferenceChunk"]["_0"]["chunk"]["x"], text);
}
