//! Many workers in one process. Each takes jobs as a stock worker does, and answers none until it is told to.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::{Duration, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest, http::HeaderValue},
};

use super::model;

/// How long the server may take to let a worker in.
const ANSWERS: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TcpStream>;

/// The workers, and for each the numbers of its models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Workers {
    pub(crate) addr: SocketAddr,
    pub(crate) secret: String,
    pub(crate) workers: u64,
    /// How many models each worker offers, of `models` in all. A worker's first is `step` further than that of the one before.
    pub(crate) each: usize,
    pub(crate) models: usize,
    pub(crate) step: usize,
    pub(crate) slots: u32,
}

/// Workers that are let in.
pub(crate) struct Joined {
    answers: watch::Sender<bool>,
    _serving: JoinSet<Result<()>>,
}

pub(crate) async fn join(plan: &Workers) -> Result<Joined> {
    let (answers, held) = watch::channel(false);
    let mut serving = JoinSet::new();
    for number in 0..plan.workers {
        let socket =
            timeout(ANSWERS, join_one(plan, number)).await.context("no answer in time")??;
        serving.spawn(serve(socket, held.clone()));
    }
    Ok(Joined { answers, _serving: serving })
}

impl Joined {
    /// Answers what is held back, and everything from now on.
    pub(crate) fn answer(&self) {
        self.answers.send_replace(true);
    }
}

async fn join_one(plan: &Workers, number: u64) -> Result<Socket> {
    let stream = TcpStream::connect(plan.addr).await.context("connect")?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{}/v1/worker/connect", plan.addr);
    let mut request = url.into_client_request()?;
    request.headers_mut().insert("x-worker-secret", HeaderValue::from_str(&plan.secret)?);
    let (mut socket, _) = client_async(request, stream).await?;
    let first = number as usize * plan.step;
    let models = (0..plan.each).map(|other| model((first + other) % plan.models));
    let register = json!({
        "type": "register", "worker_name": format!("box-{number:03}"),
        "models": models.collect::<Vec<_>>(), "max_concurrent": plan.slots,
    });
    say(&mut socket, &register).await?;
    Ok(socket)
}

#[derive(Deserialize)]
struct Said {
    #[serde(rename = "type")]
    kind: String,
    request_id: Option<String>,
}

async fn serve(mut socket: Socket, mut answers: watch::Receiver<bool>) -> Result<()> {
    let mut held = Vec::new();
    loop {
        tokio::select! {
            message = socket.next() => {
                let Some(message) = message else { return Ok(()) };
                let message = message?;
                let Ok(said) = serde_json::from_slice::<Said>(&message.into_data()) else { continue };
                match said.kind.as_str() {
                    "ping" => say(&mut socket, &json!({"type": "pong", "current_load": held.len()})).await?,
                    "request" => held.extend(said.request_id),
                    _ => {}
                }
            }
            told = answers.changed() => told?,
        }
        if *answers.borrow_and_update() {
            for id in held.drain(..) {
                say(&mut socket, &answer(&id)).await?;
            }
        }
    }
}

fn answer(id: &str) -> Value {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "yes"}}]});
    json!({
        "type": "response_complete", "request_id": id, "status_code": 200,
        "headers": {"content-type": "application/json"}, "body": body.to_string(),
    })
}

async fn say(socket: &mut Socket, message: &Value) -> Result<()> {
    Ok(socket.send(Message::text(message.to_string())).await?)
}
