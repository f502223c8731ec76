//! The content of the rooms.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use super::{HubRequest, tunnel::Orders};

/// Events that a watcher may be behind.
const MAX_EVENTS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct HubState {
    pub(super) rooms: HashMap<String, Room>,
    pub(super) heard: Vec<HubRequest>,
    pub(super) failing_heartbeats: usize,
    pub(super) refusing_joins: (usize, u16, &'static str),
    /// Whether it gives participants a session token, as only a Warren does.
    pub(super) is_warren: bool,
    ids: u32,
}

#[derive(Debug)]
pub(super) struct Room {
    code: String,
    name: String,
    password: Option<String>,
    created_at: u64,
    participants: Vec<Participant>,
    pub(super) events: broadcast::Sender<String>,
}

#[derive(Debug)]
struct Participant {
    info: Map<String, Value>,
    /// Not used yet.
    token: Option<String>,
    tunnel: Option<Tunnel>,
}

#[derive(Debug)]
struct Tunnel {
    number: u32,
    orders: Orders,
    busy: bool,
}

pub(super) struct Chosen {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) orders: Orders,
}

impl HubState {
    /// A new id of a request, a room or a token.
    pub(super) fn id(&mut self) -> String {
        self.ids += 1;
        format!("00000000-0000-4000-8000-{:012}", self.ids)
    }

    pub(super) fn add_room(&mut self, code: &str, name: &str, password: Option<&str>) {
        let room = Room {
            code: code.to_owned(),
            name: name.to_owned(),
            password: password.map(str::to_owned),
            created_at: now_ms(),
            participants: Vec::new(),
            events: broadcast::channel(MAX_EVENTS).0,
        };
        self.rooms.insert(code.to_owned(), room);
    }
}

impl Room {
    pub(super) fn summary(&self) -> Value {
        json!({
            "id": "tNsiA6rNm6x9-OyqZnvaw", "code": self.code, "name": self.name,
            "hostId": "684b583f-0000-4000-8000-000000000000", "createdAt": self.created_at,
            "passwordProtected": self.password.is_some(),
            "participantCount": self.participants.len(),
        })
    }

    pub(super) fn lets_in(&self, body: &Value) -> bool {
        self.password.as_deref().is_none_or(|password| body["password"] == password)
    }

    pub(super) fn participants(&self) -> Vec<Value> {
        self.participants.iter().map(|one| Value::Object(one.info.clone())).collect()
    }

    pub(super) fn connected(&self, id: &str) -> Option<bool> {
        Some(self.find(id)?.tunnel.is_some())
    }

    /// Whether it is new, and what there is to know of it.
    pub(super) fn put(&mut self, id: &str, body: &Value, token: String) -> (bool, Value) {
        let now = now_ms();
        let unknown = json!({"openResponses": "unknown", "chatCompletions": "unknown"});
        let or = |value: &Value, other: Value| if value.is_null() { other } else { value.clone() };
        let before = self.participants.iter().position(|one| one.info["id"] == id);
        let connected = before.is_some_and(|at| self.participants[at].tunnel.is_some());
        let info = json!({
            "id": id, "nickname": body["nickname"], "model": body["model"],
            "endpoint": body["endpoint"], "config": public(&body["config"]),
            "specs": or(&body["specs"], json!({})),
            "capabilities": or(&body["capabilities"], unknown),
            "connection": {"kind": "tunnel", "connected": connected, "lastTunnelSeenAt": null},
            "status": "offline", "joinedAt": now, "lastSeen": now, "updatedAt": now,
        });
        let Value::Object(map) = info.clone() else { panic!("an object") };
        match before {
            Some(at) => {
                self.participants[at].info = map;
                self.participants[at].token = Some(token);
            }
            None => {
                let one = Participant { info: map, token: Some(token), tunnel: None };
                self.participants.push(one);
            }
        }
        let name = if before.is_some() { "participant.updated" } else { "participant.joined" };
        self.tell(name, &info);
        (before.is_none(), info)
    }

    pub(super) fn remove(&mut self, id: &str) -> bool {
        let before = self.participants.len();
        self.participants.retain(|one| one.info["id"] != id);
        let removed = self.participants.len() < before;
        if removed {
            self.tell("participant.left", &json!({"participantId": id}));
        }
        removed
    }

    /// It is online from its first heartbeat on.
    pub(super) fn heartbeat(&mut self, id: &str) -> Option<Value> {
        let one = self.find_mut(id)?;
        let now = now_ms();
        one.info.insert("status".to_owned(), json!("online"));
        one.info.insert("lastSeen".to_owned(), json!(now));
        Some(json!({"success": true, "status": "online", "lastSeen": now}))
    }

    /// Whether this token opens the participant's tunnel now; it does so once.
    pub(super) fn redeem(&mut self, id: &str, token: &str) -> bool {
        let Some(one) = self.find_mut(id) else { return false };
        one.token.take_if(|known| known == token).is_some()
    }

    /// Its tunnel is this one from now on; the one it had.
    pub(super) fn opened(&mut self, id: &str, number: u32, orders: Orders) -> Option<Orders> {
        let one = self.find_mut(id)?;
        one.info["connection"]["connected"] = json!(true);
        let before = one.tunnel.replace(Tunnel { number, orders, busy: false });
        Some(before?.orders)
    }

    pub(super) fn closed(&mut self, id: &str, number: u32) {
        let Some(one) = self.find_mut(id) else { return };
        if one.tunnel.take_if(|tunnel| tunnel.number == number).is_some() {
            one.info["connection"]["connected"] = json!(false);
        }
    }

    /// Takes the first participant that is idle and wanted.
    pub(super) fn choose(&mut self, wanted: &str) -> Option<Chosen> {
        let model = wanted.strip_prefix("model:").unwrap_or(wanted);
        let fits = |one: &Participant| {
            matches!(wanted, "*" | "any") || one.info["id"] == wanted || one.info["model"] == model
        };
        let one = self.participants.iter_mut().find(|one| {
            let idle = one.tunnel.as_ref().is_some_and(|tunnel| !tunnel.busy);
            idle && one.info["status"] != "offline" && fits(one)
        })?;
        let tunnel = one.tunnel.as_mut()?;
        tunnel.busy = true;
        let text = |name: &str| one.info[name].as_str().unwrap_or_default().to_owned();
        Some(Chosen { id: text("id"), model: text("model"), orders: tunnel.orders.clone() })
    }

    pub(super) fn idle(&mut self, id: &str) {
        if let Some(tunnel) = self.find_mut(id).and_then(|one| one.tunnel.as_mut()) {
            tunnel.busy = false;
        }
    }

    pub(super) fn tell(&self, name: &str, data: &Value) {
        // There may be no watcher.
        let _unheard = self.events.send(frame(&self.code, name, data));
    }

    fn find(&self, id: &str) -> Option<&Participant> {
        self.participants.iter().find(|one| one.info["id"] == id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut Participant> {
        self.participants.iter_mut().find(|one| one.info["id"] == id)
    }
}

pub(super) fn frame(code: &str, name: &str, data: &Value) -> String {
    let (name_json, now) = (json!(name), now_ms());
    format!(
        "event: {name}\ndata: {{\"type\":{name_json},\"timestamp\":{now},\"roomCode\":\"{code}\",\"data\":{data}}}\n\n"
    )
}

/// A configuration as others see it.
fn public(config: &Value) -> Value {
    let mut public = config.as_object().cloned().unwrap_or_default();
    let has = public.remove("instructions").is_some();
    public.insert("hasInstructions".to_owned(), json!(has));
    Value::Object(public)
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("before the year 500,000,000")
}
