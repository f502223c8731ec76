//! The rooms: how they are reached, and the participants that should be in them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use testkit::{
    Client, Daemon, Random, Request,
    lab::{Nonce, http},
};

/// The temperature that every request of a room gets, unless it says another.
pub(crate) const TEMPERATURE: f64 = 0.25;

const PASSWORD: &str = "open-sesame";

/// Ids that were seen lately, of participants or of requests.
const LATELY: usize = 64;

pub(crate) struct Room {
    pub(crate) number: usize,
    pub(crate) code: String,
    pub(crate) address: SocketAddr,
    client: Client,
    password: Option<&'static str>,
    host_token: String,
    next: AtomicU64,
    expected: Mutex<BTreeMap<String, bool>>,
    lately: Mutex<Vec<String>>,
}

impl Room {
    pub(crate) async fn make(daemon: &Daemon, number: usize) -> Self {
        let password = (number == 1).then_some(PASSWORD);
        let defaults = json!({"temperature": TEMPERATURE, "instructions": "Be brief."});
        let name = format!("Room {number}");
        let body = json!({"name": name, "password": password, "defaults": defaults});
        let made = daemon.client().post_json("/v1/rooms", &body).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let made = made.json();
        let code = made["data"]["room"]["code"].as_str().expect("a code").to_owned();
        let host_token = made["data"]["hostToken"].as_str().expect("a token").to_owned();
        let client = match password {
            Some(password) => daemon.client().with_token(password),
            None => daemon.client(),
        };
        let address = daemon.address();
        let (next, expected, lately) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        Self { number, code, address, client, password, host_token, next, expected, lately }
    }

    /// A request below `/rooms/CODE`.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Request {
        self.client.post(&format!("/rooms/{}{path}", self.code), body)
    }

    /// A request below `/v1/rooms/CODE`.
    pub(crate) fn plane(&self, method: &str, path: &str) -> Request {
        self.client.request(method, &format!("/v1/rooms/{}{path}", self.code))
    }

    /// A request of any path, with the room's password.
    pub(crate) fn get(&self, path: &str) -> Request {
        self.client.request("GET", path)
    }

    /// A request, as its host's.
    pub(crate) fn as_host(&self, request: Request) -> Request {
        request.header("x-warren-host-token", &self.host_token)
    }

    pub(crate) fn password(&self) -> Option<&'static str> {
        self.password
    }

    pub(crate) fn nonce(&self) -> Nonce {
        Nonce { at: self.number, number: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The number of the next prompt: what began before has a lower one.
    pub(crate) fn now(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn id(&self, slot: usize, life: u64) -> String {
        format!("r{}-p{slot}-{life}", self.number)
    }

    pub(crate) fn owns(&self, id: &str) -> bool {
        id.strip_prefix('r')
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(room, _)| room.parse() == Ok(self.number))
    }

    pub(crate) fn is_in(&self, id: &str, connected: bool) {
        self.expected.lock().expect("no panic").insert(id.to_owned(), connected);
        if connected {
            self.remember(id);
        }
    }

    pub(crate) fn is_out(&self, id: &str) {
        self.expected.lock().expect("no panic").remove(id);
    }

    pub(crate) fn expected(&self) -> BTreeMap<String, bool> {
        self.expected.lock().expect("no panic").clone()
    }

    /// A participant that is in the room, or was lately.
    pub(crate) fn somebody(&self, random: &mut Random) -> Option<String> {
        let lately = self.lately.lock().expect("no panic");
        let some = random.below(lately.len().max(1) as u64) as usize;
        lately.get(some).cloned()
    }

    fn remember(&self, id: &str) {
        let mut lately = self.lately.lock().expect("no panic");
        lately.retain(|known| known != id);
        lately.push(id.to_owned());
        if lately.len() > LATELY {
            lately.remove(0);
        }
    }

    pub(crate) async fn listed(&self) -> BTreeMap<String, String> {
        let answer = http::json(self.address, &self.plane("GET", "/participants")).await;
        let (_, body) = answer.unwrap_or_default();
        let of = |participant: &Value| {
            let text = |field: &str| participant[field].as_str().unwrap_or_default().to_owned();
            (text("id"), text("status"))
        };
        body["data"].as_array().map(|all| all.iter().map(of).collect()).unwrap_or_default()
    }
}
