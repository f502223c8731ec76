//! Every message of a relay and to one, as stock peers write it and otherwise.

use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};

use super::{
    forward::{relay_data, relay_session},
    *,
};
use crate::mesh::date::AppleTime;

fn forward(text: &str) -> Forward<'_> {
    match ToRelay::read(text) {
        Ok(ToRelay::Forward(forward)) => forward,
        other => panic!("{other:?} of {text}"),
    }
}

fn fault(text: &str) -> Fault {
    ToRelay::read(text).expect_err(text)
}

fn told(text: &str) -> (String, String) {
    let reply = fault(text).reply();
    (reply.code.into_owned(), reply.message)
}

#[test]
fn messages_that_stock_relays_refuse_are_refused_in_their_words() {
    let is = |text: &str, code: &str, words: &str| {
        assert_eq!(told(text), (code.to_owned(), words.to_owned()), "{text}");
    };
    for text in ["", "{", "nonsense", "{\"discover\":{}}x", "{'a':1}", "\u{0}"] {
        is(text, "invalid_json", "Could not decode relay message");
    }
    for text in ["{}", "[]", "7", "null", "true", "\"x\"", "[{}]"] {
        is(text, "invalid_message", "Empty relay message");
    }
    let nobody = "Missing nodeID in register payload";
    for payload in ["{}", "null", "[]", "7", r#"{"nodeID":5}"#, r#"{"nodeID":""}"#, r#"{"_0":{}}"#]
    {
        is(&format!("{{\"register\":{payload}}}"), "invalid_register", nobody);
    }
    is(r#"{"dance":{}}"#, "unsupported_message", "Unsupported relay message: dance");
    let long = fault(&format!("{{\"{}\":1}}", "x".repeat(1000)));
    assert_eq!(long, Fault::Unsupported("x".repeat(64)));
}

#[test]
fn a_message_that_crashes_stock_relays_is_an_error() {
    let payloads = ["null", "5", "[]", "\"x\"", "{}", r#"{"_0":null}"#, r#"{"_0":{"_0":{}}}"#];
    let kinds = ["relayData", "relayOpen", "relayClose", "offer", "iceCandidate"];
    for (kind, payload) in kinds.iter().flat_map(|kind| payloads.map(|payload| (kind, payload))) {
        let text = format!("{{\"{kind}\":{payload}}}");
        assert_eq!(fault(&text).code(), Code::InvalidMessage, "{text}");
    }
    for ends in [
        json!({"fromNodeID": 5, "toNodeID": "b", "sessionID": "s"}),
        json!({"fromNodeID": "a", "toNodeID": null, "sessionID": "s"}),
        json!({"fromNodeID": "a", "toNodeID": "b", "sessionID": {}}),
        json!({"fromNodeID": "a", "toNodeID": "b"}),
        json!({"fromNodeID": "a", "toNodeID": "b", "sessionID": "s".repeat(129)}),
        json!({"fromNodeID": "a".repeat(129), "toNodeID": "b", "sessionID": "s"}),
    ] {
        let text = json!({ "relayData": ends }).to_string();
        assert_eq!(fault(&text).code(), Code::InvalidMessage, "{text}");
    }
}

#[test]
fn a_field_that_appears_twice_is_refused_because_readers_differ_on_which_counts() {
    for text in [
        r#"{"relayData":{"fromNodeID":"a","fromNodeID":"x","toNodeID":"b","sessionID":"s","data":""}}"#,
        r#"{"relayData":{"fromNodeID":"a","toNodeID":"b","sessionID":"s","data":"","fromNode\u0049D":"x"}}"#,
        r#"{"relayOpen":{"fromNodeID":"a","toNodeID":"b","sessionID":"s","sessionID":"t"}}"#,
        r#"{"relayOpen":{"_0":{"fromNodeID":"a","toNodeID":"b","sessionID":"s"},"_0":{}}}"#,
    ] {
        assert!(matches!(fault(text), Fault::Twice(_)), "{text}");
    }
}

#[test]
fn a_message_with_endless_fields_is_refused() {
    let fields: Vec<String> = (0..100).map(|n| format!("\"f{n}\":1")).collect();
    let text = format!("{{\"relayOpen\":{{{}}}}}", fields.join(","));
    assert_eq!(fault(&text), Fault::Crowded("relayOpen"));
}

/// Read without the quick way.
fn parsed(text: &str) -> Forward<'_> {
    let envelope = envelope::Envelope::read(text).unwrap();
    Forward::read(ForwardKind::RelayData, &envelope).unwrap()
}

const DATA: &str =
    r#"{"relayData":{"data":"eyJhIjoxfQ==","fromNodeID":"N","sessionID":"39bd-a","toNodeID":"G"}}"#;

#[test]
fn relay_data_goes_on_as_it_came() {
    for text in [
        DATA.to_owned(),
        DATA.replace(",\"", ", \""),
        DATA.replace("\"toNodeID\"", "\"extra\":{\"a\":[1]},\"toNodeID\""),
        DATA.replace("eyJ", "\\/yJ"),
    ] {
        let forward = forward(&text);
        assert!(forward.is_verbatim(), "{text}");
        assert_eq!((&*forward.from, &*forward.to, &*forward.session), ("N", "G", "39bd-a"));
        assert_eq!(forward.encode().parse::<Value>().unwrap(), text.parse::<Value>().unwrap());
    }
}

#[test]
fn a_wrapped_message_goes_on_flat_and_the_second_of_two_keys_does_not() {
    let inner = r#"{"fromNodeID":"a","toNodeID":"b","sessionID":"s","mine":16.0}"#;
    let flat = format!("{{\"relayOpen\":{inner}}}");
    for text in [
        format!("{{\"relayOpen\":{{\"_0\":{inner}}}}}"),
        format!("{{\"relayOpen\":{{\"fromNodeID\":\"x\", \"_0\":{inner}}}}}"),
        format!("{{\"relayOpen\":{inner},\"relayData\":{{}}}}"),
    ] {
        let forward = forward(&text);
        assert!(!forward.is_verbatim());
        assert_eq!((forward.encode(), &*forward.from), (flat.clone(), "a"), "{text}");
    }
}

#[test]
fn the_quick_way_reads_what_the_parser_reads_and_leaves_it_the_rest() {
    assert_eq!(scan::relay_data(DATA), Some(parsed(DATA)));
    for text in [
        DATA.replace("eyJ", "\\/yJ"),
        DATA.replace("{\"relayData", "{ \"relayData"),
        DATA.replace("eyJ", "\u{1}"),
        DATA.replace("\"data\"", "\"fromNodeID\""),
        DATA.replace("\"data\"", "\"_0\""),
        DATA.replace("39bd-a", ""),
        format!("{DATA} "),
        DATA[..DATA.len() - 1].to_owned(),
        DATA.replace("}}", ",}}"),
    ] {
        assert_eq!(scan::relay_data(&text), None, "{text}");
    }
}

#[test]
fn data_is_read_in_each_form_that_stock_nodes_take() {
    let bytes = |data: Value| {
        let ends = json!({"fromNodeID": "a", "toNodeID": "b", "sessionID": "s", "data": data});
        let text = json!({ "relayData": ends }).to_string();
        forward(&text).data()
    };
    assert_eq!(bytes(json!("eyJhIjoxfQ==")).unwrap(), br#"{"a":1}"#);
    assert_eq!(bytes(json!("eyJhIjoxfQ")).unwrap(), br#"{"a":1}"#);
    assert_eq!(bytes(json!(r#"{"a":1}"#)).unwrap(), br#"{"a":1}"#);
    assert_eq!(bytes(json!([1, 255])).unwrap(), [1, 255]);
    assert_eq!(bytes(json!("")).unwrap(), b"");
    for bad in [json!(null), json!(5), json!("no base64!"), json!([256]), json!({})] {
        assert!(bytes(bad.clone()).is_err(), "{bad}");
    }
    let escaped =
        r#"{"relayData":{"data":"\/\/8=","fromNodeID":"a","sessionID":"s","toNodeID":"b"}}"#;
    assert_eq!(forward(escaped).data().unwrap(), [0xff, 0xff]);
}

#[test]
fn clients_write_as_stock_nodes_do() {
    assert_eq!(relay_data("N", "G", "39bd-a", br#"{"a":1}"#), DATA);
    assert_eq!(
        relay_session(ForwardKind::RelayReady, "N", "G", "39bd-a"),
        r#"{"relayReady":{"fromNodeID":"N","sessionID":"39bd-a","toNodeID":"G"}}"#
    );
    let discover = Discover { node: RelayNodeId::new("N").unwrap(), filter: None };
    assert_eq!(discover.encode(), r#"{"discover":{"requestingNodeID":"N"}}"#);
}

fn a_register(text: &str) -> Register {
    match ToRelay::read(text) {
        Ok(ToRelay::Register(register)) => *register,
        other => panic!("{other:?}"),
    }
}

/// Captured from a stock node, but for the id.
const STOCK: &str = r#"{"register":{"capabilities":{"effectiveContext":8192,"hardware":{"chipFamily":"intelCPU","chipName":"Intel(R) Xeon(R) Processor","gpuBackend":"cpu","gpuCoreCount":0,"memoryBandwidthGBs":50.0,"platform":"linux","tier":2,"totalRAMGB":23.540584564208984},"isAvailable":true,"loadedModels":["qwen/qwen3-8b"],"maxConcurrentRequests":2,"maxModelSizeGB":17.65543842315674,"onACPower":true},"displayName":"Loopback Node D","nodeID":"N","publicKey":"N","signature":"e76ee3dd"}}"#;

#[test]
fn a_stock_registration_is_read_and_its_capabilities_are_kept_word_for_word() {
    let register = a_register(STOCK);
    assert_eq!((register.node.as_str(), &*register.display_name), ("N", "Loopback Node D"));
    assert!(STOCK.contains(register.capabilities.get()));
    let facts = Facts::read(&register.capabilities);
    assert_eq!((facts.tier, facts.max_concurrent, facts.is_available), (2, Some(2), true));
    assert_eq!(facts.loaded_models, ["qwen/qwen3-8b"]);
    let wrapped = STOCK.replace("{\"register\":", "{\"register\":{\"_0\":") + "}";
    assert_eq!(a_register(&wrapped).encode(), register.encode());
    assert_eq!(a_register(&register.encode()).encode(), register.encode());
}

#[test]
fn a_registration_is_bounded_and_its_key_is_its_id() {
    let id = "ab".repeat(32);
    let with = |fields: Value| {
        let mut register = json!({"nodeID": id, "displayName": "é".repeat(100)});
        register.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "register": register }).to_string()
    };
    let register = a_register(&with(json!({"publicKey": id.to_uppercase(), "wgPublicKey": null})));
    assert_eq!((register.public_key, register.display_name.len()), (id.clone(), 128));
    for (field, value) in [
        ("publicKey", json!("cd".repeat(32))),
        ("signature", json!("x".repeat(257))),
        ("wgPublicKey", json!(7)),
        ("capabilities", json!("x".repeat(register::MAX_CAPABILITIES))),
    ] {
        assert_eq!(fault(&with(json!({ field: value }))), Fault::Register(field));
    }
}

#[test]
fn capabilities_of_any_shape_cost_nobody_its_registration() {
    for odd in ["null", "7", "[]", r#"{"hardware":7,"loadedModels":"x","tier":{}}"#, "\"x\""] {
        let text = format!(r#"{{"register":{{"nodeID":"N","capabilities":{odd}}}}}"#);
        let register = a_register(&text);
        assert_eq!(register.capabilities.get(), odd);
        assert_eq!(Facts::read(&register.capabilities).tier, 4);
    }
}

#[test]
fn filters_are_honoured() {
    let facts = Facts::read(&a_register(STOCK).capabilities);
    let passes = |filter: Value| facts.pass(&serde_json::from_value(filter).unwrap());
    assert!(passes(json!({})));
    assert!(passes(json!({"modelID": "Qwen/Qwen3-8B", "minRAMGB": 23, "minTier": 2})));
    assert!(!passes(json!({"modelID": "qwen"})));
    assert!(!passes(json!({"minRAMGB": 24})));
    assert!(!passes(json!({"minTier": 1})), "1 is best");
    assert!(passes(json!({"modelID": null, "minRAMGB": {}, "minTier": [], "maxPeers": "x"})));
    let swappable: Box<RawValue> =
        serde_json::from_str(r#"{"swappableModels":["big"],"loadedModels":[]}"#).unwrap();
    assert!(
        Facts::read(&swappable).pass(&Filter { model_id: Some("big".into()), ..Filter::default() })
    );
}

#[test]
fn a_list_of_nodes_is_as_stock_relays_write_it() {
    let record = PeerRecord::new(&a_register(STOCK));
    let text = DiscoverResponse::encode([(&record, AppleTime(816_863_452.994))].into_iter());
    let value: Value = text.parse().unwrap();
    let peer = &value["discoverResponse"]["peers"][0];
    let stock: Value = STOCK.parse().unwrap();
    assert_eq!(peer["capabilities"], stock["register"]["capabilities"]);
    assert_eq!(peer["lastSeen"], json!(816_863_452.994));
    assert_eq!((&peer["natType"], &peer["endpoints"]), (&json!("unknown"), &json!([])));
    assert_eq!(peer["wgPublicKey"], Value::Null);
    let Ok(FromRelay::DiscoverResponse(read)) = FromRelay::read(&text) else { panic!("{text}") };
    assert_eq!((read.peers.len(), read.unreadable), (1, 0));
    assert_eq!(read.peers[0].last_seen, AppleTime(816_863_452.994));
}

#[test]
fn a_peer_that_cannot_be_read_costs_only_itself() {
    let text = r#"{"discoverResponse":{"_0":{"peers":[7,{"nodeID":""},{"nodeID":"a"}]}}}"#;
    let Ok(FromRelay::DiscoverResponse(read)) = FromRelay::read(text) else { panic!("{text}") };
    assert_eq!((read.peers.len(), read.unreadable), (1, 2));
    assert_eq!(read.peers[0].capabilities.get(), "null");
}

#[test]
fn captured_messages_of_relays_are_read() {
    let read = |text: &str| format!("{:?}", FromRelay::read(text).unwrap());
    let ack = r#"{"registerAck":{"nodeID":"N","registeredAt":816863163.4879999,"ttlSeconds":300}}"#;
    let Ok(FromRelay::RegisterAck(read_ack)) = FromRelay::read(ack) else { panic!("{ack}") };
    assert_eq!(read_ack.encode(), ack);
    let error = r#"{"error":{"code":"peer_not_found","message":"Peer deadbeef is not connected"}}"#;
    let Ok(FromRelay::Error(absent)) = FromRelay::read(error) else { panic!("{error}") };
    assert_eq!(absent.absent_peer(), Some("deadbeef"));
    assert_eq!(RelayError::peer_not_found("deadbeef").encode(), error);
    let left = r#"{"peerLeft":{"nodeID":"G","displayName":"B"}}"#;
    let Ok(FromRelay::PeerLeft(presence)) = FromRelay::read(left) else { panic!("{left}") };
    assert_eq!(presence.left(), left);
    assert!(read(r#"{"peerJoined":{"_0":{"nodeID":"N"}}}"#).contains("PeerJoined"));
    assert!(read(r#"{"registerChallenge":{"nonce":"00ff"}}"#).contains("00ff"));
    let limited = RelayError::new(Code::RateLimited, "slowly").retry_after(1.5).in_session("s");
    let Ok(FromRelay::Error(again)) = FromRelay::read(&limited.encode()) else { panic!() };
    assert_eq!(again, limited);
    assert!(matches!(FromRelay::read(r#"{"dance":{}}"#), Err(Fault::Unsupported(_))));
}

#[test]
fn offers_answers_and_candidates_are_read_as_captured() {
    let text = r#"{"offer":{"fromNodeID":"A","toNodeID":"B","sessionID":"518c","connectionInfo":{"publicIP":"127.0.0.1","publicPort":1,"natType":"unknown","wgPublicKey":"6db4"},"signature":"8235"}}"#;
    let offer: Offer = forward(text).payload().unwrap();
    assert_eq!(offer.encode(ForwardKind::Offer), text);
    let text = r#"{"iceCandidate":{"fromNodeID":"A","toNodeID":"B","sessionID":"518c","candidate":{"ip":"127.0.0.1","port":1,"type":"host","priority":100}}}"#;
    let candidate: Candidate = forward(text).payload().unwrap();
    assert_eq!(candidate.encode(), text);
}

#[test]
fn a_relay_is_named_by_what_was_dialled() {
    assert_eq!(relay_host("Relay.Example.COM:443"), "relay.example.com");
    assert_eq!(relay_host("relay.example.com:8080"), "relay.example.com:8080");
    assert_eq!(relay_host("[::1]:80"), "[::1]");
    assert_eq!(relay_host("::1:80"), "::1:80");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in ".{0,80}") {
        let _ = (ToRelay::read(&text).is_ok(), FromRelay::read(&text).is_ok());
        let nearly = format!("{{\"relayData\":{{{text}");
        let _ = (ToRelay::read(&nearly).is_ok(), FromRelay::read(&nearly).is_ok());
    }

    #[test]
    fn the_parser_accepts_all_that_the_quick_scan_accepts(
        text in r#"\{"relayData":\{("(data|fromNodeID|toNodeID|sessionID|x)":"[ab\\/"]{0,3}",?){3,5}\}\}"#,
    ) {
        if let Some(quick) = scan::relay_data(&text) {
            prop_assert_eq!(parsed(&text), quick);
        }
    }

    #[test]
    fn data_comes_back_as_it_was(
        data in prop::collection::vec(any::<u8>(), 0..200), session in "[a-z\"\\\\]{1,8}",
    ) {
        let text = relay_data("a", "b", &session, &data);
        let forward = forward(&text);
        prop_assert_eq!(&*forward.session, &session);
        prop_assert_eq!(forward.data().unwrap(), data);
    }
}
