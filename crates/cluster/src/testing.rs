//! Members for tests, here and in crates above this one.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base::Secret;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use seal::Identity;
use store::{VolatileStore, WorkspaceStore};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use crate::{Cluster, Parts, Settings};

/// Nothing takes longer in tests.
pub const SOON: Duration = Duration::from_secs(20);

/// A member that listens on the loopback interface.
pub struct Machine {
    /// The member.
    pub cluster: Cluster,
    /// Its peer port.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cluster.shut_down();
        self.serving.abort();
    }
}

impl Machine {
    /// A member with this number, which dials these peers.
    pub async fn new(number: u8, token: &str, peers: &[SocketAddr]) -> Self {
        Self::with_key(number, [number; 32], token, peers).await
    }

    /// The same with another key.
    pub async fn with_key(number: u8, key: [u8; 32], token: &str, peers: &[SocketAddr]) -> Self {
        let settings = Settings {
            token: Some(Secret::from(token.to_owned())),
            peers: peers.iter().map(ToString::to_string).collect(),
            ..Self::settings(number)
        };
        Self::start(number, key, settings).await
    }

    /// The settings of a machine in no cluster.
    pub fn settings(number: u8) -> Settings {
        Settings {
            name: format!("machine {number}"),
            heartbeat: Duration::from_millis(300),
            patience: Duration::from_secs(8),
            ..Settings::default()
        }
    }

    /// A machine that is in no cluster yet.
    pub async fn alone(number: u8) -> Self {
        Self::start(number, [number; 32], Self::settings(number)).await
    }

    /// A machine that listens on a port of its own.
    pub async fn start(number: u8, key: [u8; 32], settings: Settings) -> Self {
        Self::with_store(number, key, settings, Arc::new(VolatileStore::default())).await
    }

    /// The same with what is stored already.
    pub async fn with_store(
        number: u8,
        key: [u8; 32],
        settings: Settings,
        store: Arc<dyn WorkspaceStore>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let settings = Settings { addresses: vec![address.to_string()], ..settings };
        let parts =
            Parts { node_id: format!("node-{number}"), identity: Identity::from_seed(key), store };
        let cluster = Cluster::start(settings, parts).await.unwrap();
        let serving = tokio::spawn(serve(listener, cluster.clone()));
        Self { cluster, address, serving }
    }

    /// Cuts all links. They are dialled again.
    pub fn cut(&self) {
        self.cluster.cut();
    }
}

async fn serve(listener: TcpListener, cluster: Cluster) {
    loop {
        let (socket, from) = listener.accept().await.unwrap();
        let cluster = cluster.clone();
        let answer = service_fn(move |mut request| {
            let answer = cluster.accept(&mut request, from.ip().into());
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(connection.with_upgrades());
    }
}

/// Waits until it holds, or panics.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}"));
}
