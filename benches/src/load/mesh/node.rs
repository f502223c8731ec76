//! A WebSocket of a node at a relay.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

/// How long the other end may take for a connection or an answer.
pub(super) const ANSWERS: Duration = Duration::from_secs(30);

/// Bytes read at once: thousands of these are open in one process.
const BUFFER: usize = 8 << 10;

pub(super) type Socket = WebSocketStream<TcpStream>;

pub(super) async fn connect(addr: SocketAddr, node: &str) -> Result<Socket> {
    let open = async {
        let stream = TcpStream::connect(addr).await.context("connect")?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{addr}/ws?node={node}");
        let config = WebSocketConfig::default().read_buffer_size(BUFFER).max_frame_size(None);
        let config = config.max_message_size(None);
        anyhow::Ok(client_async_with_config(url, stream, Some(config)).await?.0)
    };
    timeout(ANSWERS, open).await.context("no WebSocket in time")?
}

pub(super) async fn register(addr: SocketAddr, number: u32) -> Result<Socket> {
    let id = id(number);
    let mut socket = connect(addr, &id).await?;
    say(&mut socket, &registration(&id)).await?;
    hear(&mut socket, "registerAck").await?;
    Ok(socket)
}

/// The id of the node of this number. The node signs nothing, so its id need not be a key.
pub(super) fn id(number: u32) -> String {
    format!("{number:064x}")
}

pub(super) fn registration(id: &str) -> Value {
    json!({"register": {
        "nodeID": id, "publicKey": id, "displayName": "bench", "signature": "",
        "capabilities": {
            "effectiveContext": 8192, "hardware": {
                "chipFamily": "intelCPU", "chipName": "Intel(R) Xeon(R) Processor",
                "gpuBackend": "cpu", "gpuCoreCount": 0, "memoryBandwidthGBs": 50.0,
                "platform": "linux", "tier": 2, "totalRAMGB": 23.5,
            },
            "isAvailable": true, "loadedModels": ["qwen/qwen3-8b"],
            "maxConcurrentRequests": 2, "maxModelSizeGB": 17.6, "onACPower": true,
        },
    }})
}

pub(super) async fn say(socket: &mut Socket, message: &Value) -> Result<()> {
    Ok(socket.send(Message::text(message.to_string())).await?)
}

/// Waits for a message of this kind; others are passed over, but for errors.
pub(super) async fn hear(socket: &mut Socket, kind: &str) -> Result<()> {
    let begin = format!("{{\"{kind}\"");
    let hearing = async {
        while let Some(message) = socket.next().await {
            let message = message?;
            let Ok(text) = message.to_text() else { continue };
            ensure!(!text.starts_with("{\"error\""), "the relay says {text}");
            if text.starts_with(&begin) {
                return Ok(());
            }
        }
        bail!("the relay closed")
    };
    timeout(ANSWERS, hearing).await.with_context(|| format!("no {kind} in time"))?
}
