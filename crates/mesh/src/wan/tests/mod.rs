//! Relays and nodes together: over pipes in paused time, and over TCP.

mod dialled;
mod kit;
mod nodes;
mod sorts;
mod stock;
mod warrens;

use std::{convert::Infallible, net::SocketAddr};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mesh_relay::MeshRelay;
use tokio::{net::TcpListener, task::JoinHandle};

use self::kit::relay;

/// A relay on a port of its own, which can be killed.
struct RunningRelay {
    relay: MeshRelay,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl RunningRelay {
    async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let relay = relay();
        let serving = tokio::spawn(serve(listener, relay.clone()));
        Self { relay, address, serving }
    }

    async fn anywhere() -> Self {
        Self::at(([127, 0, 0, 1], 0).into()).await
    }

    /// Ends it, and gives the port free.
    async fn killed(self) -> SocketAddr {
        self.serving.abort();
        let _ = self.serving.await;
        self.relay.shut_down();
        self.address
    }
}

async fn serve(listener: TcpListener, relay: MeshRelay) {
    while let Ok((stream, _)) = listener.accept().await {
        let relay = relay.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let response = relay.connect(&mut request);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection.with_upgrades());
    }
}
