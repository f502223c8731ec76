//! A bare WebSocket echo: what the links and relays of the mesh are compared with. One thread, and
//! nothing between reading a message and writing it back.

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;

use crate::child;

/// Serves on a free port, which it prints to stdout, until stdin ends.
pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    child::announce(listener.local_addr()?)?;
    tokio::select! {
        () = serve(listener) => Ok(()),
        () = child::abandoned() => Ok(()),
    }
}

pub(crate) async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(echo(stream));
    }
}

/// An error is a client that left.
async fn echo(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut socket = accept_async(stream).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}
