//! Every field of every message and body, made wrong in every way: each is refused, and by its name.

use serde_json::{Value, json};

use super::messages::{decode, join, request};
use crate::room::plane::{ChangeRoom, CreateRoom, PutParticipant};

/// The kinds of value that may stand in a field.
#[derive(Clone, Copy)]
enum Is {
    /// A text of at most this many bytes.
    Text(usize),
    /// A text of any length.
    Prose,
    /// A number from here to there.
    Number(f64, f64),
    /// A whole number from 1 on.
    Count,
    Flag,
    Object,
    Texts,
}

/// A field that must be there, or need not.
type Field = (&'static str, bool, Is);

/// The values that a field must not have.
fn wrong(is: Is) -> Vec<Value> {
    let shapes = [json!(7), json!("text"), json!(true), json!([]), json!({}), json!(["a", 7])];
    let other = |value: &Value| match is {
        Is::Text(_) | Is::Prose => !value.is_string(),
        Is::Number(..) | Is::Count => !value.is_number(),
        Is::Flag => !value.is_boolean(),
        Is::Object => !value.is_object(),
        Is::Texts => value != &json!([]),
    };
    let mut wrong: Vec<_> = shapes.into_iter().filter(other).collect();
    match is {
        Is::Text(most) => {
            let texts = [
                "x".repeat(most + 1),
                "é".repeat(most),
                "a\u{1b}[2J".into(),
                "a\nb".into(),
                "a\0".into(),
            ];
            wrong.extend(texts.map(Value::from));
        }
        Is::Number(least, most) => {
            wrong.extend([json!(least - 0.1), json!(most + 0.1), json!(1e300), json!(-1e300)]);
        }
        Is::Count => wrong.extend([json!(0), json!(-1), json!(1.5), json!(1e300)]),
        Is::Texts => wrong.extend([json!(vec!["x"; 17]), json!([""]), json!(["x".repeat(257)])]),
        Is::Prose | Is::Flag | Is::Object => {}
    }
    wrong
}

/// The body with a field at this path, such as `participant/id`; without it for `None`.
fn with(body: &Value, path: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut place = &mut body;
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        place = &mut place[parent];
    }
    match value {
        Some(value) => place[name] = value,
        None => {
            place.as_object_mut().unwrap().remove(name);
        }
    }
    body
}

/// Every body that is wrong in one field.
fn spoilt(good: &Value, fields: &[Field]) -> Vec<(String, Value)> {
    let mut bodies = Vec::new();
    for &(path, required, is) in fields {
        for value in wrong(is) {
            let shown = format!("{path} = {:.60}", value.to_string());
            bodies.push((shown, with(good, path, Some(value))));
        }
        if required {
            bodies.push((format!("{path} missing"), with(good, path, None)));
            bodies.push((format!("{path} null"), with(good, path, Some(Value::Null))));
        }
    }
    bodies
}

const CONFIG: [(&str, Is); 8] = [
    ("temperature", Is::Number(0.0, 2.0)),
    ("top_p", Is::Number(0.0, 1.0)),
    ("frequency_penalty", Is::Number(-2.0, 2.0)),
    ("presence_penalty", Is::Number(-2.0, 2.0)),
    ("max_tokens", Is::Count),
    ("stop", Is::Texts),
    ("seed", Is::Flag),
    ("instructions", Is::Prose),
];

/// The bodies that are wrong in a field of their parameters.
fn spoilt_config(good: &Value, place: &str, options: bool) -> Vec<(String, Value)> {
    let good = with(good, place, Some(json!({})));
    let mut bodies = Vec::new();
    for (name, is) in CONFIG {
        let values = match name {
            // Any whole number will do, but nothing else.
            "seed" => vec![json!("7"), json!(1.5), json!([]), json!(1e300)],
            "instructions" if options => continue,
            "instructions" => [wrong(is), vec![json!("x".repeat(16 * 1024 + 1))]].concat(),
            _ => wrong(is),
        };
        let path = format!("{place}/{name}");
        bodies.extend(values.into_iter().map(|value| {
            (format!("{path} = {:.60}", value.to_string()), with(&good, &path, Some(value)))
        }));
    }
    bodies
}

#[test]
fn every_field_of_every_message_is_checked() {
    let create = json!({"type": "room:create", "name": "a"});
    let (join, ask) = (join(), request());
    let tui = json!({"type": "tui:register"});
    let host = json!({"type": "host:register", "roomId": "r"});
    let mut bodies = [
        spoilt(
            &create,
            &[
                ("type", true, Is::Text(64)),
                ("name", true, Is::Text(512)),
                ("password", false, Is::Text(256)),
                ("defaults", false, Is::Object),
                ("public", false, Is::Flag),
                ("expiresSecs", false, Is::Count),
            ],
        ),
        spoilt(
            &join,
            &[
                ("code", true, Is::Text(64)),
                ("participant", true, Is::Object),
                ("participant/id", true, Is::Text(128)),
                ("participant/nickname", true, Is::Text(128)),
                ("participant/model", true, Is::Text(256)),
                ("participant/endpoint", true, Is::Text(2048)),
                ("participant/specs", false, Is::Object),
                ("participant/config", false, Is::Object),
                ("password", false, Is::Text(256)),
            ],
        ),
        spoilt(
            &with(&join, "participant/specs", Some(json!({}))),
            &[
                ("participant/specs/gpu", false, Is::Text(256)),
                ("participant/specs/cpu", false, Is::Text(256)),
                ("participant/specs/vram", false, Is::Number(0.0, 1e6)),
                ("participant/specs/ram", false, Is::Number(0.0, 1e6)),
            ],
        ),
        spoilt(
            &ask,
            &[
                ("requestId", true, Is::Text(256)),
                ("targetId", true, Is::Text(512)),
                ("prompt", true, Is::Prose),
                ("options", false, Is::Object),
                ("roomCode", false, Is::Text(64)),
            ],
        ),
        spoilt(&tui, &[("roomCode", false, Is::Text(64))]),
        spoilt(&host, &[("roomId", true, Is::Text(64))]),
        spoilt_config(&create, "defaults", false),
        spoilt_config(&join, "participant/config", false),
        spoilt_config(&ask, "options", true),
    ]
    .concat();
    for kind in ["", "room:created", "llm:token", "ROOM:CREATE", "constructor", "__proto__"] {
        bodies.push((format!("type = {kind}"), json!({"type": kind, "name": "a"})));
    }
    for endpoint in [
        "nowhere",
        "ftp://h",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://u:p@127.0.0.1:1",
    ] {
        bodies.push((
            endpoint.to_owned(),
            with(&join, "participant/endpoint", Some(json!(endpoint))),
        ));
    }
    for model in ["room:any", "room:participant/p", " "] {
        bodies.push((model.to_owned(), with(&join, "participant/model", Some(json!(model)))));
    }
    for (what, body) in &bodies {
        assert!(decode(body).is_err(), "{what}");
    }
}

/// Decodes a body; why it is refused.
type Decode = fn(&[u8]) -> Option<String>;

#[test]
fn every_field_of_every_body_of_the_plane_is_checked() {
    let create = json!({"name": "a"});
    let create_fields: [Field; 5] = [
        ("name", true, Is::Text(512)),
        ("password", false, Is::Text(256)),
        ("defaults", false, Is::Object),
        ("public", false, Is::Flag),
        ("expiresSecs", false, Is::Count),
    ];
    let put = json!({"nickname": "n", "model": "m", "endpoint": "http://h", "specs": {}});
    let put_fields: [Field; 13] = [
        ("nickname", true, Is::Text(128)),
        ("model", true, Is::Text(256)),
        ("endpoint", true, Is::Text(2048)),
        ("password", false, Is::Text(256)),
        ("specs", false, Is::Object),
        ("specs/gpu", false, Is::Text(256)),
        ("specs/cpu", false, Is::Text(256)),
        ("specs/vram", false, Is::Number(0.0, 1e6)),
        ("specs/ram", false, Is::Number(0.0, 1e6)),
        ("config", false, Is::Object),
        ("capabilities", false, Is::Object),
        ("maxConcurrent", false, Is::Number(0.0, 1024.0)),
        ("authHeaders", false, Is::Prose),
    ];
    let mut puts = [spoilt(&put, &put_fields), spoilt_config(&put, "config", false)].concat();
    for capability in [json!("perhaps"), json!(7), json!(null)] {
        let capabilities = json!({"openResponses": capability});
        puts.push((capability.to_string(), with(&put, "capabilities", Some(capabilities))));
    }
    puts.push(("session".to_owned(), with(&put, "sessionToken", Some(json!("x".repeat(257))))));
    let patches: [Field; 3] = [
        ("name", false, Is::Text(512)),
        ("password", false, Is::Text(256)),
        ("defaults", false, Is::Object),
    ];
    let new: Decode = |body| CreateRoom::decode(body).err().map(|error| error.to_string());
    let join: Decode = |body| PutParticipant::decode(body).err().map(|error| error.to_string());
    let change: Decode = |body| ChangeRoom::decode(body).err().map(|error| error.to_string());
    let sweeps = [
        (new, spoilt(&create, &create_fields)),
        (new, spoilt_config(&create, "defaults", false)),
        (join, puts),
        (change, spoilt(&json!({}), &patches)),
        (change, spoilt_config(&json!({}), "defaults", false)),
    ];
    for (decode, bodies) in sweeps {
        for (what, body) in bodies {
            assert!(
                decode(body.to_string().as_bytes()).is_some_and(|why| !why.is_empty()),
                "{what}"
            );
        }
    }
}
