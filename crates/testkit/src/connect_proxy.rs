//! An HTTP proxy that opens tunnels (`CONNECT`), whatever host is asked for, to one address.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
};

use crate::sockets::{Task, accept, any_port, listen};

/// How many questions are kept.
const MAX_KEPT: usize = 1024;

/// The longest head of a question, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// A proxy on a port of its own. Dropping it closes every tunnel.
pub struct ConnectProxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _server: Task,
}

impl ConnectProxy {
    /// A proxy whose tunnels all lead to `target`.
    pub async fn to(target: SocketAddr) -> Self {
        Self::start(Some(target)).await
    }

    /// A proxy that refuses every tunnel with 403.
    pub async fn refusing() -> Self {
        Self::start(None).await
    }

    async fn start(target: Option<SocketAddr>) -> Self {
        let (listener, address) = listen(any_port()).await;
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let own = Arc::clone(&asked);
        let server = accept(listener, move |stream| {
            let asked = Arc::clone(&own);
            async move {
                // A tunnel that breaks is a matter of the test.
                let _broken = tunnel(stream, target, &asked).await;
            }
        });
        Self { address, asked, _server: server }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads of the questions so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn tunnel(
    mut stream: TcpStream,
    target: Option<SocketAddr>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD {
        head.push(stream.read_u8().await?);
    }
    {
        let mut asked = asked.lock().unwrap();
        if asked.len() < MAX_KEPT {
            asked.push(String::from_utf8_lossy(&head).into_owned());
        }
    }
    let Some(target) = target.filter(|_| head.starts_with(b"CONNECT ")) else {
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
    };
    let mut far = TcpStream::connect(target).await?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut stream, &mut far).await.map(drop)
}
