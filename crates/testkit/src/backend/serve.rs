//! The sockets of a backend.

use std::{io, sync::atomic::Ordering};

use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{Counts, Received, Reply, Shared, Step, is_probe};
use crate::http1::{Framing, Reader};

enum Outcome {
    /// As scripted; the connection may be used again.
    Done,
    /// As scripted, with the connection.
    Closed,
    Aborted,
}

pub(super) async fn connection(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    while let Some(received) = receive(&mut reader).await? {
        if shared.loads.load(Ordering::SeqCst) {
            perform(&mut writer, Reply::loading()).await?;
            continue;
        }
        let told = (shared.telling.lock().unwrap())(&received);
        if let Some(reply) = told {
            perform(&mut writer, reply).await?;
            continue;
        }
        if received.method == "GET" {
            perform(&mut writer, listing(shared, &received)).await?;
            continue;
        }
        if is_probe(&received) {
            perform(&mut writer, probed(shared, &received)).await?;
            continue;
        }
        match answer(&mut reader, &mut writer, shared, received).await {
            Outcome::Done => {}
            Outcome::Closed | Outcome::Aborted => break,
        }
    }
    Ok(())
}

async fn receive(reader: &mut Reader<OwnedReadHalf>) -> io::Result<Option<Received>> {
    let Some(head) = reader.head().await? else { return Ok(None) };
    let body = reader.rest(Framing::of_request(&head)).await?;
    let [method, target, _] = head.words().map(str::to_owned);
    Ok(Some(Received { method, target, head, body }))
}

fn listing(shared: &Shared, received: &Received) -> Reply {
    if let Some(body) = shared.gets.lock().unwrap().get(&received.target) {
        return Reply::json(200, body);
    }
    if received.target != "/v1/models" {
        return Reply::json(404, &json!({"error": {"message": "not here"}}));
    }
    let models = shared.models.lock().unwrap();
    let item = |id: &String| json!({"id": id, "object": "model", "owned_by": "mock"});
    let data: Vec<_> = models.iter().map(item).collect();
    Reply::json(200, &json!({"object": "list", "data": data}))
}

fn probed(shared: &Shared, received: &Received) -> Reply {
    if shared.is_missing(received) {
        return Reply::file_not_found();
    }
    Reply::json(400, &json!({"error": {"message": "'model' is required", "code": 400}}))
}

/// Counts a request as aborted unless it is told otherwise, so that a backend that is dropped in
/// the middle of one still adds up.
struct Counted<'a> {
    shared: &'a Shared,
    outcome: fn(&mut Counts),
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.shared.counts.send_modify(self.outcome);
    }
}

async fn answer(
    reader: &mut Reader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
    shared: &Shared,
    received: Received,
) -> Outcome {
    let reply = shared.reply_to(&received);
    shared.counts.send_modify(|counts| counts.started += 1);
    let mut counted = Counted { shared, outcome: |counts| counts.aborted += 1 };
    shared.keep(received);
    let outcome = tokio::select! {
        performed = perform(writer, reply) => performed.unwrap_or(Outcome::Aborted),
        () = reader.closed() => Outcome::Aborted,
    };
    if !matches!(outcome, Outcome::Aborted) {
        counted.outcome = |counts| counts.answered += 1;
    }
    outcome
}

async fn perform(writer: &mut OwnedWriteHalf, reply: Reply) -> io::Result<Outcome> {
    for step in reply.steps {
        match step {
            Step::Write(bytes) => writer.write_all(&bytes).await?,
            Step::Wait(gate) => gate.pass().await,
            Step::Think(time) => tokio::time::sleep(time).await,
            Step::Hang => std::future::pending().await,
            Step::Close => {
                writer.shutdown().await?;
                return Ok(Outcome::Closed);
            }
            Step::Reset => {
                writer.as_ref().set_zero_linger()?;
                return Ok(Outcome::Closed);
            }
        }
    }
    Ok(Outcome::Done)
}
