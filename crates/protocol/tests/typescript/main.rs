//! `web/src/api/generated.ts`: the types of the JSON that the web page exchanges with a server, as TypeScript has them.
//!
//! They are read from the sources, with their documentation. The test compares the file with what it should be, and
//! writes it with `UPDATE=1`.
//!
//! - `attributes`: the attributes of a type: those of serde, and its documentation
//! - `sources`: the types by name, as the sources declare them
//! - `messages`: the lists of messages, which a macro declares
//! - `known`: types that the sources do not tell, by name
//! - `written`: a type as TypeScript

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a source that is not understood fails the test"
)]

mod attributes;
mod known;
mod messages;
mod sources;
mod written;

use std::{collections::BTreeMap, env, fs, path::Path};

use base::KeyLimits;
use protocol::{
    admin::{
        mesh::MeshPeer,
        series::Point,
        status::{Stats, WorkerJson},
    },
    room::plane::PutParticipant,
};
use sources::Sources;
use written::{Direction, Written};

/// The file, from this crate.
const FILE: &str = "../../web/src/api/generated.ts";

/// The command that renews it.
const RENEW: &str = "UPDATE=1 cargo test -p protocol --test typescript";

/// Where the types are, from this crate: files, and folders with all their files. Of a file with
/// other things of the same names only the named type.
const SOURCES: [&str; 15] = [
    "src/admin",
    "src/room/config.rs",
    "src/room/event.rs",
    "src/room/message.rs#LlmToken",
    "src/room/plane.rs",
    "src/room/types.rs",
    "src/workspace/client",
    "src/workspace/cluster.rs",
    "src/workspace/modes.rs",
    "src/workspace/project.rs",
    "src/workspace/role.rs",
    "src/workspace/session.rs",
    "src/workspace/team.rs",
    "../base/src",
    "../api/src/models/openai.rs",
];

/// The types that a server sends.
const RECEIVED: [&str; 29] = [
    "AuditList",
    "ConfigJson",
    "CreatedRoom",
    "Envelope",
    "ErrorEnvelope",
    "Health",
    "InvitationList",
    "KeyList",
    "List",
    "LogEvent",
    "LogList",
    "LoginCode",
    "MeshId",
    "MeshModels",
    "MeshPeers",
    "MeshTransfers",
    "ModelChanged",
    "PageSessionList",
    "ParticipantInfo",
    "RequestList",
    "RoomEvent",
    "RoomSummary",
    "RunningList",
    "Series",
    "ServerMessage",
    "SignedIn",
    "Stats",
    "UsageReport",
    "WorkerList",
];

/// The types that the page sends.
const SENT: [&str; 4] = ["ChangeRoom", "ClientMessage", "CreateKey", "CreateRoom"];

#[test]
fn the_types_of_the_page_are_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = page();
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "web/src/api/generated.ts is stale. Renew it with:\n  {RENEW}\n");
}

/// The reader of the sources against serde: the fields that it writes are those of the page's types.
#[test]
fn the_fields_are_those_that_serde_writes() {
    let sources = Sources::read(&SOURCES);
    for (name, written) in [
        ("Point", json(&Point::default())),
        ("Stats", json(&Stats::default())),
        ("WorkerJson", json(&WorkerJson::default())),
        ("MeshPeer", json(&MeshPeer::default())),
        ("KeyLimits", json(&KeyLimits::default())),
        ("PutParticipant", json(&PutParticipant::default())),
    ] {
        let text = Written::of(&sources, name, Direction::Received).text;
        let fields = text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
        let fields: Vec<&str> =
            fields.map(|(field, _)| field).filter(|it| !it.contains(' ')).collect();
        for field in written.as_object().unwrap().keys() {
            let is_known = fields.iter().any(|it| it.trim_end_matches('?') == field);
            assert!(is_known, "{name} has no {field}:\n{text}");
        }
        for field in fields.iter().filter(|field| !field.ends_with('?')) {
            assert!(written.get(field).is_some(), "{name}: {field} may be absent:\n{text}");
        }
    }
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

fn page() -> String {
    let sources = Sources::read(&SOURCES);
    let received = reached(&sources, &RECEIVED);
    let sent = reached(&sources, &SENT);
    let mut all = received.clone();
    all.extend(sent.clone());
    let mut page = format!("// Made from the Rust types. To renew it: {RENEW}\n");
    for name in all.keys() {
        let direction = match (received.contains_key(name), sent.contains_key(name)) {
            (true, false) => Direction::Received,
            (false, true) => Direction::Sent,
            _ => Direction::Both,
        };
        page.push('\n');
        page.push_str(&Written::of(&sources, name, direction).text);
    }
    page
}

/// These types, and all that they are made of.
fn reached(sources: &Sources, roots: &[&str]) -> BTreeMap<String, ()> {
    let mut reached = BTreeMap::new();
    let mut open: Vec<String> = roots.iter().map(|&name| name.to_owned()).collect();
    while let Some(name) = open.pop() {
        if reached.insert(name.clone(), ()).is_none() {
            open.extend(Written::of(sources, &name, Direction::Both).uses);
        }
    }
    reached
}
