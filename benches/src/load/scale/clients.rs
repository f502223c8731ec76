//! Many requests at once, each with one of many keys: over few connections of HTTP/2, since each of HTTP/1 would
//! need a file here and one at the server.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::model;
use crate::{http1, load::Failures};

/// Requests of one connection.
const STREAMS: usize = 100;

/// How long an answer that has begun may take.
const ENDS: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Clients {
    pub(crate) addr: SocketAddr,
    pub(crate) requests: usize,
    pub(crate) models: usize,
    /// A file with the keys, one a line.
    pub(crate) keys: PathBuf,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) answered: u64,
    /// From the first answer to the last.
    pub(crate) seconds: f64,
    pub(crate) failures: Failures,
}

/// Sends all requests, and waits for all answers.
pub(crate) async fn run(plan: &Clients) -> Result<Answered> {
    let keys = std::fs::read_to_string(&plan.keys).context("read the keys")?;
    let keys: Vec<&str> = keys.lines().collect();
    ensure!(!keys.is_empty(), "no keys");
    let mut asking = JoinSet::new();
    let mut connection = connect(plan.addr).await?;
    for number in 0..plan.requests {
        if number % STREAMS == STREAMS - 1 {
            connection = connect(plan.addr).await?;
        }
        let request = request(plan, number, keys[number % keys.len()])?;
        asking.spawn(ask(connection.clone(), request));
    }
    let (mut answered, mut first) = (Answered::default(), None);
    while let Some(asked) = asking.join_next().await {
        let begun = *first.get_or_insert_with(Instant::now);
        answered.seconds = begun.elapsed().as_secs_f64();
        match asked? {
            Ok(()) => answered.answered += 1,
            Err(why) => answered.failures.add(&format!("{why:#}")),
        }
    }
    Ok(answered)
}

async fn connect(addr: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(addr).await.context("connect")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    // Its errors reach the requests in flight.
    tokio::spawn(connection);
    Ok(sender)
}

fn request(plan: &Clients, number: usize, key: &str) -> Result<Request<Full<Bytes>>> {
    let model = model(number % plan.models);
    let message = json!({"role": "user", "content": format!("Question {number}?")});
    let body = json!({"model": model, "messages": [message]}).to_string();
    let request = Request::post(format!("http://{}/v1/chat/completions", plan.addr))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {key}"));
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

async fn ask(
    mut connection: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<()> {
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    timeout(ENDS, http1::read(response.into_body())).await??;
    ensure!(status == 200, "status {status}");
    Ok(())
}
