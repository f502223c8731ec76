//! A stock peer of the mesh on a LAN, as far as models are concerned: it says hello in the wrapped form,
//! and passes a file on, or fetches one, in chunks of 1 MiB in base64.

use std::{
    fs::File,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use memchr::memmem;
use serde_json::{Value, json};

use crate::child;

/// The bytes of a file in one chunk.
const CHUNK: usize = 1 << 20;

const MAX_FRAME: usize = 16 << 20;

const FILE: &str = "model.gguf";

/// Serves a file as this model to any peer; prints its port on stdout.
pub(crate) fn give(from: &Path, model: &str) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
    child::announce(listener.local_addr()?)?;
    loop {
        let (socket, _) = listener.accept()?;
        // A peer that leaves is no reason to end.
        let _left = Peer::on(socket).and_then(|mut peer| peer.serve(from, model));
    }
}

/// Fetches a model of one file from a peer into `to`; prints the seconds from the request to the last byte.
pub(crate) fn fetch(peer: SocketAddr, model: &str, to: &Path) -> Result<()> {
    let mut peer = Peer::on(TcpStream::connect(peer).context("connect")?)?;
    peer.say("hello", &hello())?;
    while kind(&peer.hear()?) != "helloAck" {}
    let begun = Instant::now();
    let mut file = File::create(to).with_context(|| format!("create {}", to.display()))?;
    peer.say("modelTransferRequest", &json!({"transferID": TRANSFER, "modelID": model}))?;
    peer.take(&mut file)?;
    drop(file);
    child::say(&begun.elapsed().as_secs_f64().to_string())
}

const DEVICE: &str = "6FA1C2D3-0000-4ABC-8DEF-0000000000B1";

const TRANSFER: &str = "6FA1C2D3-0000-4ABC-8DEF-0000000000B2";

struct Peer(TcpStream);

impl Peer {
    fn on(socket: TcpStream) -> Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self(socket))
    }

    fn say(&mut self, kind: &str, body: &Value) -> Result<()> {
        self.frame(json!({ kind: { "_0": body } }).to_string().as_bytes())
    }

    fn frame(&mut self, bytes: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(4 + bytes.len());
        frame.extend_from_slice(&u32::try_from(bytes.len())?.to_be_bytes());
        frame.extend_from_slice(bytes);
        Ok(self.0.write_all(&frame)?)
    }

    fn hear(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).context("the peer left")?;
        let length = u32::from_be_bytes(length) as usize;
        ensure!(length <= MAX_FRAME, "a frame of {length} bytes");
        let mut frame = vec![0; length];
        self.0.read_exact(&mut frame)?;
        Ok(frame)
    }

    /// Answers one message after another, until the other end leaves.
    fn serve(&mut self, from: &Path, model: &str) -> Result<()> {
        loop {
            let frame = self.hear()?;
            let message: Value = serde_json::from_slice(&frame)?;
            let kind = kind(&frame);
            let body = message.get(kind).map(|body| body.get("_0").unwrap_or(body));
            match kind {
                "hello" => self.say("helloAck", &hello())?,
                "heartbeat" => self.say("heartbeatAck", &heartbeat())?,
                "modelQuery" => {
                    let asked = body.and_then(|body| body["modelID"].as_str()).unwrap_or_default();
                    let mut answer = json!({"modelID": asked, "available": asked == model});
                    if asked == model {
                        answer["totalSizeBytes"] = from.metadata()?.len().into();
                    }
                    self.say("modelQueryResponse", &answer)?;
                }
                "modelTransferRequest" => {
                    let transfer = body.map_or(Value::Null, |body| body["transferID"].clone());
                    self.send(from, model, &transfer)?;
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, from: &Path, model: &str, transfer: &Value) -> Result<()> {
        let mut file = File::open(from)?;
        let size = file.metadata()?.len();
        let (mut offset, mut piece) = (0, vec![0; CHUNK]);
        while offset < size {
            let length = CHUNK.min(usize::try_from(size - offset)?);
            file.read_exact(&mut piece[..length])?;
            let end = offset + length as u64;
            let mut text = String::from(r#"{"modelTransferChunk":{"_0":{"data":""#);
            BASE64_STANDARD.encode_string(&piece[..length], &mut text);
            let last = end == size;
            text += &format!(
                r#"","fileName":"{FILE}","isLastChunk":{last},"offset":{offset},"transferID":{transfer}}}}}}}"#
            );
            self.frame(text.as_bytes())?;
            offset = end;
        }
        self.say("modelTransferComplete", &json!({"transferID": transfer, "modelID": model}))
    }

    /// Writes the chunks that come, until all is there.
    fn take(&mut self, file: &mut File) -> Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK);
        loop {
            let frame = self.hear()?;
            match kind(&frame) {
                "modelTransferChunk" => {
                    bytes.clear();
                    BASE64_STANDARD.decode_vec(data(&frame).context("no data")?, &mut bytes)?;
                    file.write_all(&bytes)?;
                }
                "modelTransferComplete" => return Ok(()),
                "heartbeat" => self.say("heartbeatAck", &heartbeat())?,
                _ => {}
            }
        }
    }
}

/// The first key of a message: its kind.
fn kind(frame: &[u8]) -> &str {
    let inner = frame.strip_prefix(b"{\"").unwrap_or_default();
    let end = memchr::memchr(b'"', inner).unwrap_or_default();
    std::str::from_utf8(&inner[..end]).unwrap_or_default()
}

/// The base64 of a chunk, without reading the rest.
fn data(frame: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"data\":\"";
    let start = memmem::find(frame, KEY)? + KEY.len();
    let end = memchr::memchr(b'"', &frame[start..])?;
    Some(&frame[start..start + end])
}

fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs_f64() - 978_307_200.0
}

fn hello() -> Value {
    json!({
        "deviceInfo": {
            "id": DEVICE, "name": "Stock", "isCurrentDevice": true, "lastSeenAt": now(),
            "registeredAt": now(), "loadedModels": [], "hardware": {
                "chipFamily": "m2Max", "chipName": "Apple M2 Max", "totalRAMGB": 64,
                "gpuCoreCount": 38, "memoryBandwidthGBs": 400, "tier": 1, "gpuBackend": "metal",
                "platform": "macOS",
            },
        },
        "loadedModels": [], "protocolVersion": 1,
    })
}

fn heartbeat() -> Value {
    json!({
        "deviceID": DEVICE, "isGenerating": false, "loadedModels": [], "queueDepth": 0,
        "thermalLevel": "nominal", "throttleLevel": 100, "timestamp": now(),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_stock_peer_fetches_another_s_file_bit_by_bit() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let bytes: Vec<u8> = (0..CHUNK + 7).map(|at| (at % 251) as u8).collect();
        std::fs::write(&from, &bytes).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut peer = Peer::on(listener.accept().unwrap().0).unwrap();
            let _left = peer.serve(&from, "org/m");
        });
        fetch(addr, "org/m", &to).unwrap();
        assert!(std::fs::read(&to).unwrap() == bytes);
    }

    #[test]
    fn a_message_is_told_by_its_first_key() {
        assert_eq!(kind(br#"{"heartbeat":{"_0":{}}}"#), "heartbeat");
        assert_eq!(kind(b"nothing"), "");
        assert_eq!(data(br#"{"data":"YQ==","offset":0}"#), Some(&b"YQ=="[..]));
    }
}
