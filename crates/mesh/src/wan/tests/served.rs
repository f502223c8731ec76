//! A relay on a port of its own, which can be killed.

use std::{convert::Infallible, net::SocketAddr};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mesh_relay::MeshRelay;
use tokio::{net::TcpListener, task::JoinHandle};

use super::kit::relay;

/// A relay on a port of its own.
pub(super) struct RunningRelay {
    pub(super) relay: MeshRelay,
    pub(super) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl RunningRelay {
    pub(super) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let relay = relay();
        let serving = tokio::spawn(serve(listener, relay.clone()));
        Self { relay, address, serving }
    }

    pub(super) async fn anywhere() -> Self {
        Self::at(([127, 0, 0, 1], 0).into()).await
    }

    /// Ends it, and gives the port free.
    pub(super) async fn killed(self) -> SocketAddr {
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
