//! One machine of the mesh: its process, which comes and goes, its backend, and its data, which stay.

use std::{
    fs::OpenOptions,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{ChildProcess, Client, MockBackend, lab::http};
use tokio::time::{Instant, sleep, timeout};

use crate::mesh::plan::{self, Model};

/// How often it is looked whether something has come true.
const LOOK: Duration = Duration::from_millis(20);

/// How long a machine may take to serve its own models after it has begun to listen.
const READY: Duration = Duration::from_secs(30);

/// The state of a machine, with counts of its ends and freezes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MachineState {
    pub(crate) address: SocketAddr,
    /// Whether it runs and serves its own models.
    pub(crate) up: bool,
    pub(crate) killed: u64,
    pub(crate) stopped: u64,
    /// How often it was frozen or thawed: odd while it is frozen.
    pub(crate) frozen: u64,
}

pub(crate) struct Start<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) logs: Option<&'a Path>,
    /// Flags beside those of every machine.
    pub(crate) flags: Vec<String>,
}

pub(crate) struct Machine {
    pub(crate) number: usize,
    pub(crate) backend: MockBackend,
    pub(crate) id: String,
    binary: PathBuf,
    logs: Option<PathBuf>,
    flags: Vec<String>,
    /// Where peers connect to.
    pub(crate) mesh: Option<String>,
    data: TempDir,
    state: Mutex<MachineState>,
    process: tokio::sync::Mutex<Option<ChildProcess>>,
}

impl Machine {
    pub(crate) async fn new(number: usize, backend: MockBackend, how: Start<'_>) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let state = MachineState { address, up: false, killed: 0, stopped: 0, frozen: 0 };
        let mut machine = Self {
            number,
            backend,
            id: String::new(),
            binary: how.binary.to_owned(),
            logs: how.logs.map(Path::to_owned),
            flags: how.flags,
            mesh: None,
            data: TempDir::new().expect("a directory"),
            state: Mutex::new(state),
            process: tokio::sync::Mutex::default(),
        };
        machine.start().await;
        let told = machine.get("/admin/mesh/id").await.expect("it tells who it is");
        machine.id = told["id"].as_str().expect("an id").to_owned();
        machine.mesh = told["listen"].as_str().map(str::to_owned);
        machine
    }

    /// Starts it with its own address, key and data.
    pub(crate) async fn start(&self) {
        let process = ChildProcess::start(&self.name(), &self.binary, &self.arguments());
        let address = process.listening("http").await;
        *self.process.lock().await = Some(process);
        self.change(|state| state.address = address);
        timeout(READY, self.serves_its_own()).await.expect("it serves its own models");
        self.change(|state| state.up = true);
    }

    fn name(&self) -> String {
        format!("machine-{}", self.number)
    }

    fn arguments(&self) -> Vec<String> {
        let (listen, data) = (self.state().address.to_string(), self.data_dir());
        let (data, name) = (data.display().to_string(), self.name());
        let backend = self.backend.url();
        let own = ["up", "--listen", &listen, "--data-dir", &data, "--backend", &backend];
        let mesh =
            ["--name", &name, "--mesh-name", &name, "--mesh-share", "peers", "--log", "info"];
        let mut all: Vec<_> = own.into_iter().chain(mesh).map(str::to_owned).collect();
        all.extend(plan::flags());
        all.extend(self.flags.iter().cloned());
        if let Some(at) = &self.mesh {
            // The port that was free at its first start is its own from then on.
            let listen = all.iter().position(|flag| flag == "--mesh-listen");
            let value = listen.and_then(|at| all.get_mut(at + 1));
            value.expect("who listens was told to").clone_from(at);
        }
        all
    }

    async fn serves_its_own(&self) {
        let own = Model::Only(self.number).name();
        let listed = async || {
            let listed = self.get("/v1/models").await.unwrap_or_default();
            let listed = listed["data"].as_array().cloned().unwrap_or_default();
            listed.iter().any(|model| model["id"] == *own)
        };
        while !listed().await {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn state(&self) -> MachineState {
        *self.state.lock().expect("no panic")
    }

    fn change(&self, change: impl FnOnce(&mut MachineState)) {
        change(&mut self.state.lock().expect("no panic"));
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data.path().join("data")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.state().address)
    }

    pub(crate) fn admin(&self) -> Client {
        let token = std::fs::read_to_string(self.data_dir().join("admin.token"));
        self.client().with_token(token.unwrap_or_default().trim())
    }

    /// Its answer as JSON; `None` without a 200.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let answer = http::json(self.state().address, &self.admin().request("GET", path)).await;
        answer.ok().filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        let answer = http::send(self.state().address, &self.admin().request("GET", path)).await;
        match answer {
            Ok(answer) => answer.text().await.0,
            Err(_) => String::new(),
        }
    }

    pub(crate) async fn kill(&self) {
        self.change(|state| (state.up, state.killed) = (false, state.killed + 1));
        let mut process = self.process.lock().await.take().expect("it runs");
        process.kill9().await;
        self.keep_log(&process);
    }

    /// Tells it to stop. Fails when it does not stop in order.
    pub(crate) async fn stop(&self) -> Result<(), String> {
        self.change(|state| (state.up, state.stopped) = (false, state.stopped + 1));
        let mut process = self.process.lock().await.take().expect("it runs");
        process.sigterm();
        let until = Instant::now() + plan::DRAIN + plan::BUSY;
        while process.check_running() {
            if Instant::now() > until {
                self.keep_log(&process);
                return Err(format!("{} does not stop", self.name()));
            }
            sleep(LOOK).await;
        }
        let code = process.exit().await;
        self.keep_log(&process);
        match code {
            Some(0) => Ok(()),
            code => Err(format!("{} stopped with {code:?}:\n{}", self.name(), process.log())),
        }
    }

    pub(crate) async fn freeze(&self, time: Duration) {
        let process = self.process.lock().await;
        let process = process.as_ref().expect("it runs");
        self.change(|state| state.frozen += 1);
        process.sigstop();
        sleep(time).await;
        process.sigcont();
        self.change(|state| state.frozen += 1);
    }

    pub(crate) async fn resident_mib(&self) -> u64 {
        let process = self.process.lock().await;
        process.as_ref().map_or(0, |process| process.resident_bytes() >> 20)
    }

    pub(crate) async fn has_crashed(&self) -> bool {
        let mut process = self.process.lock().await;
        process.as_mut().is_some_and(|process| !process.check_running())
    }

    /// Keeps what it has printed so far.
    pub(crate) async fn keep_current_log(&self) {
        if let Some(process) = self.process.lock().await.as_ref() {
            self.keep_log(process);
        }
    }

    fn keep_log(&self, process: &ChildProcess) {
        let Some(logs) = &self.logs else { return };
        let path = logs.join(format!("{}.log", self.name()));
        let file = OpenOptions::new().create(true).append(true).open(path);
        let written = file.and_then(|mut file| writeln!(file, "{}---", process.log()));
        written.expect("logs can be written");
    }
}
