//! How fast a model passes between two nodes over loopback, sealed and verified, beside a plain copy of the
//! same file over TCP. `cargo run --release -p mesh --example transfer_speed [MiB]`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it is run by hand")]

use std::{path::Path, sync::Arc, time::Instant};

use discovery::Reach;
use mesh::{
    Mesh, Settings,
    node::Parts,
    share::{Share, Sharing},
};
use models::{Library, Sources};
use protocol::admin::mesh::MeshPull;
use scheduler::{Config, Scheduler};
use seal::Identity;
use store::VolatileStore;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_util::sync::CancellationToken;

const MIB: u64 = 1 << 20;

#[tokio::main]
async fn main() {
    let size = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(1_024) * MIB;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("offered/org/m/model.gguf");
    make(&file, size);
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (_, b) = start(2, dir.path(), Vec::new(), Some(listener), &stop);
    let (a, _a) = start(1, dir.path(), vec![address], None, &stop);
    for round in 0..3 {
        report("plain copy", size, copy(&file, &dir.path().join("copy")).await);
        let label = if round == 0 { "pull, with hashing" } else { "pull" };
        let (arrived, whole) = pull(&a).await;
        report(label, size, arrived);
        report("  and synced to disk", size, whole);
        std::fs::remove_dir_all(dir.path().join("1/models/org")).unwrap();
    }
    stop.cancel();
    b.await.unwrap();
}

fn make(file: &Path, size: u64) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut state = 1_u64;
    let mut piece = vec![0; MIB as usize];
    let mut out = std::fs::File::create(file).unwrap();
    for _ in 0..size / MIB {
        for word in piece.as_chunks_mut::<8>().0 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *word = state.to_le_bytes();
        }
        std::io::Write::write_all(&mut out, &piece).unwrap();
    }
}

fn start(
    seed: u8,
    dir: &Path,
    peers: Vec<String>,
    listener: Option<TcpListener>,
    stop: &CancellationToken,
) -> (Mesh, tokio::task::JoinHandle<()>) {
    let policy = Box::new(dispatch::route::LeastLoaded);
    let scheduler = Scheduler::new(Config::default(), policy, Vec::new());
    tokio::spawn(scheduler.clone().run());
    let sources = Sources { folders: vec![dir.join("offered")], ..Sources::default() };
    let none = Sources::default();
    let parts = Parts {
        identity: Identity::from_seed([seed; 32]),
        psk: None,
        scheduler,
        usage: Arc::new(VolatileStore::default()),
        library: Arc::new(Library::new(if seed == 2 { sources } else { none })),
        marks: protocol::via::Marks::new(std::hash::RandomState::new()),
    };
    let share = Share { with: Sharing::Anyone, models_offered: true, ..Share::default() };
    let settings = Settings {
        name: format!("node {seed}"),
        version: "0",
        listen: None,
        passcode: None,
        plain_passcode: false,
        require_sealed: true,
        peers,
        relays: Vec::new(),
        advertise: false,
        reach: Reach::Machine,
        share,
        trusted: Vec::new(),
        model_dirs: Vec::new(),
        offer_found: false,
        data_dir: dir.join(seed.to_string()),
    };
    let mesh = Mesh::new(settings, parts);
    let running = tokio::spawn(mesh.clone().run(stop.clone(), listener));
    (mesh, running)
}

/// Seconds until everything has arrived, and until it is in its place.
async fn pull(mesh: &Mesh) -> (f64, f64) {
    let asked = MeshPull { model: "org/m".to_owned(), from: None };
    let (mut began, mut pulling) = (Instant::now(), mesh.pull(&asked).unwrap());
    let (mut last, mut arrived) = (None, None);
    while let Some(step) = pulling.next().await {
        if step.state == "searching" {
            began = Instant::now();
        }
        if matches!(step.state.as_str(), "finishing" | "done") {
            arrived.get_or_insert_with(|| began.elapsed().as_secs_f64());
        }
        last = Some(step);
    }
    assert_eq!(last.as_ref().unwrap().state, "done", "{last:?}");
    (arrived.unwrap(), began.elapsed().as_secs_f64())
}

async fn copy(from: &Path, to: &Path) -> f64 {
    let began = Instant::now();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (from, to) = (from.to_owned(), to.to_owned());
    let sending = tokio::spawn(async move {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut file = tokio::fs::File::open(from).await.unwrap();
        file.set_max_buf_size(MIB as usize);
        let mut reader = tokio::io::BufReader::with_capacity(MIB as usize, file);
        tokio::io::copy_buf(&mut reader, &mut socket).await.unwrap();
        socket.shutdown().await.unwrap();
    });
    let (socket, _) = listener.accept().await.unwrap();
    let mut reader = tokio::io::BufReader::with_capacity(MIB as usize, socket);
    let mut file = tokio::fs::File::create(to).await.unwrap();
    file.set_max_buf_size(MIB as usize);
    tokio::io::copy_buf(&mut reader, &mut file).await.unwrap();
    file.flush().await.unwrap();
    sending.await.unwrap();
    began.elapsed().as_secs_f64()
}

fn report(what: &str, size: u64, secs: f64) {
    println!("{what:20} {:8.0} MiB/s", (size / MIB) as f64 / secs);
}
