//! All of it: the machines, the relay, and the model that some pass on.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use testkit::{Random, lab::Nonce};

use crate::mesh::{
    Settings,
    account::Report,
    backend,
    file::Offered,
    machine::{Machine, Start},
    plan::{self, MACHINES},
    relay::Relay,
    script::Manner,
};

/// The passcode of all machines.
const PASSCODE: &str = "all of us together";

/// The machines that pass the model on.
const SOURCES: [usize; 3] = [0, 2, 6];

/// The size of the model that they pass on, in bytes.
const MODEL_SIZE: u64 = 64 << 20;

pub(crate) struct Mesh {
    pub(crate) machines: Vec<Machine>,
    pub(crate) relay: Relay,
    pub(crate) offered: Offered,
    next: AtomicU64,
}

impl Mesh {
    pub(crate) async fn start(settings: &Settings, random: &mut Random, report: &Report) -> Self {
        let relay = Relay::new(&settings.trial.binary).await;
        let offered = Offered::make(MODEL_SIZE, random.fork()).await;
        let mut machines: Vec<Machine> = Vec::new();
        for number in 0..MACHINES {
            let backend = backend::start(number, random.fork(), report).await;
            let known_to = plan::known_to(number).iter();
            let known_to = known_to.filter_map(|peer| machines[*peer].mesh.as_deref());
            let flags = flags(number, known_to, &relay, offered.directory());
            let (binary, logs) = (settings.trial.binary.as_path(), settings.logs.as_deref());
            machines.push(Machine::new(number, backend, Start { binary, logs, flags }).await);
        }
        Self { machines, relay, offered, next: AtomicU64::new(0) }
    }

    pub(crate) fn nonce(&self, asked: usize) -> Nonce {
        Nonce { at: asked, number: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The next prompt for a machine that gets a sound answer.
    pub(crate) fn sound(&self, asked: usize) -> Nonce {
        loop {
            let nonce = self.nonce(asked);
            if Manner::of(nonce) == Manner::Sound {
                return nonce;
            }
        }
    }

    pub(crate) fn asked(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

fn flags<'a>(
    number: usize,
    known_to: impl Iterator<Item = &'a str>,
    relay: &Relay,
    models: &Path,
) -> Vec<String> {
    let mut flags = vec![("--mesh-passcode", PASSCODE.to_owned())];
    flags.push(("--mesh-relay-serve", "off".to_owned()));
    flags.extend(known_to.map(|peer| ("--mesh-peer", peer.to_owned())));
    if plan::listens(number) {
        flags.push(("--mesh-listen", "127.0.0.1:0".to_owned()));
    }
    if plan::at_relay(number) {
        flags.push(("--mesh-relay", relay.url()));
    }
    if SOURCES.contains(&number) {
        flags.push(("--mesh-models", models.display().to_string()));
    }
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
