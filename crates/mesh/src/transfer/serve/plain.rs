//! The plain form of stock peers: all files, one after another, as chunks of 1 MiB in base64.

use std::{io, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::{StreamExt, stream};
use models::{Offered, OfferedFile, PIECE, Reader};
use protocol::mesh::{
    ClusterMessage, Dialect, WireId,
    cluster::{
        InferenceError, ModelTransferChunk, ModelTransferComplete, ModelTransferRequest, encode,
    },
};
use tokio::task::spawn_blocking;

use super::{ModelServer, Outbound, refuse};
use crate::{link::Link, transfer::shared::Shared};

/// How many chunks are read ahead of the sender.
const AHEAD: usize = 2;

impl ModelServer {
    /// Handles a request for a whole model.
    pub(in crate::transfer) fn plain(
        self: &Arc<Self>,
        link: &Arc<Link>,
        request: ModelTransferRequest,
    ) {
        let ModelTransferRequest { transfer_id, model_id } = request;
        let begun = self.shared.may_have(link, &model_id);
        let begun = begun.and_then(|()| self.begin(link, &transfer_id, &model_id));
        let outbound = match begun {
            Ok(outbound) => outbound,
            Err(why) => return not_sent(&self.shared, link, &transfer_id, &why),
        };
        let (serving, link) = (Arc::clone(self), Arc::clone(link));
        self.shared.machine.tasks.spawn(async move {
            let sent = tokio::select! {
                sent = send(&serving.shared, &link, &outbound, &model_id) => sent,
                () = outbound.stop.cancelled() => return,
                () = link.closed() => return,
            };
            serving.take(&link, &transfer_id);
            match sent {
                Ok(()) => outbound.end(&serving.shared, "done", None),
                Err(why) => {
                    outbound.end(&serving.shared, "failed", Some(&why));
                    not_sent(&serving.shared, &link, &transfer_id, &why);
                }
            }
        });
    }
}

/// Tells a peer why it gets no model. Stock peers know one message for all errors, and ignore it if
/// they do not know its id.
fn not_sent(shared: &Shared, link: &Link, id: &WireId, why: &str) {
    shared.counts.refused.one();
    tracing::info!(peer = %link.peer.short(), why, "a model is not sent to a peer");
    if link.warren {
        return refuse(link, id, why);
    }
    let (request_id, error_message) = (id.clone(), why.to_owned());
    let error = InferenceError { request_id, error_message, code: None, status: None, body: None };
    // If the link is closed, its own task notices.
    let _ = link.tell(&ClusterMessage::InferenceError(error));
}

/// A chunk to be read.
struct Part {
    reader: Arc<Reader>,
    name: Arc<str>,
    piece: u64,
    last: bool,
}

async fn send(
    shared: &Shared,
    link: &Link,
    outbound: &Outbound,
    model: &str,
) -> Result<(), String> {
    let offered = shared.offered(model).await?;
    outbound.set_total(offered.size());
    let (id, dialect) = (outbound.id.clone(), link.dialect);
    let parts = stream::iter(offered_files(offered)).then(open).flat_map(stream::iter);
    let chunks = parts.map(move |part| encoded(part, id.clone(), dialect)).buffered(AHEAD);
    let mut chunks = std::pin::pin!(chunks);
    while let Some(chunk) = chunks.next().await {
        let (bytes, length) = chunk.map_err(|error| error.to_string())?;
        link.send_encoded(bytes).await.map_err(|error| error.to_string())?;
        outbound.sent(shared, length);
    }
    let (transfer_id, model_id) = (outbound.id.clone(), model.to_owned());
    let complete = ModelTransferComplete { transfer_id, model_id };
    let complete = encode(&ClusterMessage::ModelTransferComplete(complete), dialect);
    link.send_encoded(complete).await.map_err(|error| error.to_string())
}

fn offered_files(offered: Offered) -> impl Iterator<Item = OfferedFile> {
    offered.files.into_iter()
}

/// The chunks of a file. An empty file has one chunk, too.
async fn open(file: OfferedFile) -> Vec<io::Result<Part>> {
    let name: Arc<str> = file.name.as_str().into();
    let opened = spawn_blocking(move || file.open()).await;
    let reader = match opened.unwrap_or_else(|_| Err(stopping())) {
        Ok(reader) => Arc::new(reader),
        Err(error) => return vec![Err(error)],
    };
    let count = models::tree::pieces(reader.size()).max(1);
    let part = |piece| {
        let (reader, name) = (Arc::clone(&reader), Arc::clone(&name));
        Ok(Part { reader, name, piece, last: piece + 1 == count })
    };
    (0..count).map(part).collect()
}

/// An encoded chunk, and how many bytes of the file are in it.
async fn encoded(
    part: io::Result<Part>,
    transfer_id: WireId,
    dialect: Dialect,
) -> io::Result<(Vec<u8>, u64)> {
    let Part { reader, name, piece, last } = part?;
    let encode = move || {
        let bytes = reader.piece(piece)?;
        let chunk = ModelTransferChunk {
            transfer_id,
            file_name: name.to_string(),
            offset: piece * PIECE,
            data: STANDARD.encode(&bytes),
            is_last_chunk: last,
        };
        let message = encode(&ClusterMessage::ModelTransferChunk(chunk), dialect);
        Ok((message, bytes.len() as u64))
    };
    spawn_blocking(encode).await.unwrap_or_else(|_| Err(stopping()))
}

fn stopping() -> io::Error {
    io::Error::other("the server is stopping")
}
