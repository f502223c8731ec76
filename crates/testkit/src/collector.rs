//! A collector of OpenTelemetry in the hands of a test: it takes spans over HTTP, and reads them by a reader of protobuf of its
//! own.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::{
    http1::{Framing, Head, Reader},
    sockets::{Task, accept, any_port, listen},
    wait::{DEADLINE, eventually},
};

/// A span that came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TakenSpan {
    /// In hex, like the other ids.
    pub trace: String,
    pub id: String,
    /// Empty: none.
    pub parent: String,
    pub name: String,
    pub kind: u64,
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    pub error: Option<String>,
    /// Its sender's description of itself.
    pub resource: BTreeMap<String, String>,
}

impl TakenSpan {
    /// An attribute, as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

#[derive(Debug, Default)]
struct State {
    spans: Vec<TakenSpan>,
    heads: Vec<Head>,
    bodies: Vec<Vec<u8>>,
    refusals: VecDeque<u16>,
}

/// The collector.
pub struct Collector {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _task: Task,
}

impl Collector {
    pub async fn start() -> Self {
        let (listener, address) = listen(any_port()).await;
        let state = Arc::<Mutex<State>>::default();
        let own = Arc::clone(&state);
        let task = accept(listener, move |stream| serve(stream, Arc::clone(&own)));
        Self { address, state, _task: task }
    }

    /// The endpoint, without the path for traces.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers the next requests so, and takes nothing of them.
    pub fn refuse(&self, statuses: &[u16]) {
        self.state.lock().unwrap().refusals.extend(statuses);
    }

    /// All spans so far, in the order in which they came.
    pub fn spans(&self) -> Vec<TakenSpan> {
        self.state.lock().unwrap().spans.clone()
    }

    /// All spans, once there are `count`.
    pub async fn has_spans(&self, count: usize) -> Vec<TakenSpan> {
        let arrived = async || self.spans().len() >= count;
        eventually(&format!("{count} spans"), DEADLINE, arrived).await;
        self.spans()
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.state.lock().unwrap().heads.len()
    }

    /// A header of the last request.
    pub fn header(&self, name: &str) -> Option<String> {
        let state = self.state.lock().unwrap();
        state.heads.last().and_then(|head| head.header(name).map(str::to_owned))
    }

    /// Whether some bytes were in any message.
    pub fn was_told(&self, bytes: &[u8]) -> bool {
        let state = self.state.lock().unwrap();
        state.bodies.iter().any(|body| body.windows(bytes.len()).any(|window| window == bytes))
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(BufReader::new(read));
    while let Ok(Some(head)) = reader.head().await {
        let Ok(body) = reader.rest(Framing::of_request(&head)).await else { return };
        let answer = answered(&state, &head, &body);
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answered(state: &Mutex<State>, head: &Head, body: &[u8]) -> String {
    let mut state = state.lock().unwrap();
    state.heads.push(head.clone());
    let refusal = state.refusals.pop_front();
    let status = match refusal {
        Some(status) => status,
        None if head.words()[..2] != ["POST", "/v1/traces"] => 404,
        None if head.header("content-type") != Some("application/x-protobuf") => 415,
        None => {
            state.spans.extend(request(body));
            state.bodies.push(body.to_vec());
            200
        }
    };
    format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\n\r\n")
}

/// A field of a message: its number and its value.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

/// The fields of a message.
fn fields(mut message: &[u8]) -> Vec<Field<'_>> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        match key & 7 {
            0 => all.push(Field::Number(key >> 3, varint(&mut message))),
            1 => {
                let (number, rest) = message.split_at(8);
                all.push(Field::Number(key >> 3, u64::from_le_bytes(number.try_into().unwrap())));
                message = rest;
            }
            2 => {
                let length = usize::try_from(varint(&mut message)).unwrap();
                let (bytes, rest) = message.split_at(length);
                all.push(Field::Bytes(key >> 3, bytes));
                message = rest;
            }
            other => panic!("a field of kind {other}"),
        }
    }
    all
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = message.split_first().expect("a number that is whole");
        *message = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return number;
        }
    }
    panic!("a number without end")
}

fn request(message: &[u8]) -> Vec<TakenSpan> {
    let resources = messages(message, 1);
    resources.flat_map(|resource| of_resource(&resource)).collect()
}

fn of_resource(message: &[u8]) -> Vec<TakenSpan> {
    let resource = messages(message, 1).flat_map(|resource| attributes(&resource, 1)).collect();
    let scopes = messages(message, 2);
    let spans = scopes.flat_map(|scope| messages(&scope, 2).collect::<Vec<_>>());
    let resource: &BTreeMap<String, String> = &resource;
    spans.map(|of_span| TakenSpan { resource: resource.clone(), ..span(&of_span) }).collect()
}

/// The messages in a field.
fn messages(message: &[u8], number: u64) -> impl Iterator<Item = Vec<u8>> {
    let all = fields(message).into_iter().filter_map(|field| match field {
        Field::Bytes(of, bytes) if of == number => Some(bytes.to_vec()),
        _ => None,
    });
    all.collect::<Vec<_>>().into_iter()
}

fn span(message: &[u8]) -> TakenSpan {
    let mut span = TakenSpan { attributes: attributes(message, 9), ..TakenSpan::default() };
    for field in fields(message) {
        match field {
            Field::Bytes(1, bytes) => span.trace = hex::encode(bytes),
            Field::Bytes(2, bytes) => span.id = hex::encode(bytes),
            Field::Bytes(4, bytes) => span.parent = hex::encode(bytes),
            Field::Bytes(5, bytes) => span.name = text(bytes),
            Field::Number(6, kind) => span.kind = kind,
            Field::Number(7, start) => span.start = start,
            Field::Number(8, end) => span.end = end,
            Field::Bytes(15, bytes) => span.error = messages(bytes, 2).next().map(|it| text(&it)),
            _ => {}
        }
    }
    span
}

fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let pair = |attribute: Vec<u8>| {
        let name = messages(&attribute, 1).next().map(|name| text(&name)).unwrap_or_default();
        let value = messages(&attribute, 2).next().unwrap_or_default();
        let value = fields(&value).into_iter().next().map(|field| match field {
            Field::Number(2, flag) => (flag == 1).to_string(),
            Field::Number(_, number) => (number as i64).to_string(),
            Field::Bytes(_, bytes) => text(bytes),
        });
        (name, value.unwrap_or_default())
    };
    messages(message, number).map(pair).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
