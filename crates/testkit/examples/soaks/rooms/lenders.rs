//! `warren room join` as processes that are killed, or asked to end, and started again.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    ChildProcess, Gate, MockBackend, Random, Reply,
    lab::{Crew, Nonce},
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::rooms::{
    account::Report,
    answers::{self, is_complete},
    room::Room,
};

/// The longest that one serves, in milliseconds.
const SERVES: u64 = 8_000;

/// How long a lender may take to join, on a busy machine.
const JOINS: Duration = Duration::from_secs(60);

/// How often the room is asked whether it is.
const LOOK: Duration = Duration::from_millis(100);

/// The share of lenders that are asked to end; the others are killed.
const ENDS: f64 = 0.3;

pub(crate) struct Lenders {
    crew: Crew,
    backend: Arc<MockBackend>,
}

struct Lender {
    binary: PathBuf,
    room: Arc<Room>,
    backend: Arc<MockBackend>,
    report: Report,
    id: String,
    random: Random,
    stop: CancellationToken,
    /// The directory of its identity.
    state: TempDir,
}

impl Lenders {
    /// Starts `count` of them, spread over the rooms, with one backend.
    pub(crate) async fn start(
        binary: &std::path::Path,
        rooms: &[Arc<Room>],
        count: usize,
        random: &mut Random,
        report: &Report,
    ) -> Self {
        let backend = MockBackend::start(&["m"]).await;
        script(&backend, random.next());
        let (mut crew, backend) = (Crew::of("a lender"), Arc::new(backend));
        for number in 0..count {
            let room = Arc::clone(&rooms[number % rooms.len()]);
            let id = format!("r{}-w{number}", room.number);
            let lender = Lender {
                binary: binary.to_owned(),
                room,
                backend: Arc::clone(&backend),
                report: report.clone(),
                id,
                random: random.fork(),
                stop: crew.stop_token(),
                state: TempDir::new().expect("a directory"),
            };
            crew.spawn(lender.run());
        }
        Self { crew, backend }
    }

    /// Ends them all, one way or the other; then their backend must have nothing left to do.
    pub(crate) async fn stop(self, report: &Report) {
        self.crew.stop(report).await;
        self.backend.reaches("no request at the backend", |counts| counts.in_flight() == 0).await;
    }
}

/// Lets the backend answer each request with what it asks for.
fn script(backend: &MockBackend, seed: u64) {
    let random = std::sync::Mutex::new(Random::new(seed));
    let gate = Gate::closed();
    backend.answer_with(move |received| {
        let each = Duration::from_millis(random.lock().expect("no panic").below(25));
        let body = received.json();
        let Some(nonce) = Nonce::in_chat(&body).filter(|_| is_complete(&body)) else {
            return Reply::json(418, &json!({"not as it should be": body}));
        };
        if body["stream"] == true {
            return Reply::stream(answers::stream(nonce).split_inclusive("\n\n"), &gate)
                .thinking(each);
        }
        Reply::json(200, &answers::whole(nonce)).after(&gate).thinking(each * 8)
    });
}

impl Lender {
    async fn run(mut self) {
        while !self.stop.is_cancelled() {
            let mut process = self.spawn();
            if !self.comes(&mut process).await {
                return;
            }
            let serves = Duration::from_millis(self.random.below(SERVES));
            self.stop.run_until_cancelled(sleep(serves)).await;
            if !process.check_running() {
                return self.report.wrong(format!("{} ended:\n{}", self.id, process.log()));
            }
            match self.random.chance(ENDS) {
                true => self.end(process).await,
                false => self.kill(process).await,
            }
        }
    }

    /// Starts it with a state directory of its own, set by `env`, which execs it.
    fn spawn(&self) -> ChildProcess {
        let state = format!("XDG_STATE_HOME={}", self.state.path().display());
        let (binary, backend) = (self.binary.display().to_string(), self.backend.url());
        let server = format!("http://{}", self.room.address);
        let mut args = vec![state.as_str(), &binary, "room", "join", &self.room.code];
        args.extend(["--server", &server, "--backend", &backend, "--id", &self.id]);
        args.extend(["--no-specs", "--max-concurrent", "4"]);
        if let Some(password) = self.room.password() {
            args.extend(["--password", password]);
        }
        ChildProcess::start(&self.id, std::path::Path::new("env"), &args)
    }

    /// Waits until the room lists it and it has stored its session. Returns whether it joined.
    async fn comes(&self, process: &mut ChildProcess) -> bool {
        let until = Instant::now() + JOINS;
        while !(self.is_listed().await && self.is_kept()) {
            if !process.check_running() || Instant::now() > until {
                self.report.wrong(format!("{} did not come:\n{}", self.id, process.log()));
                return false;
            }
            sleep(LOOK).await;
        }
        self.room.is_in(&self.id, true);
        self.report.tally(|tally| tally.lives.joined += 1);
        true
    }

    async fn is_listed(&self) -> bool {
        self.room.listed().await.get(&self.id).is_some_and(|status| status != "offline")
    }

    /// Whether it has kept its session's token. One that ends before, which takes a moment longer
    /// than being listed, can neither leave nor come back as the same one: its id is held for it.
    fn is_kept(&self) -> bool {
        let kept = std::fs::read(self.state.path().join("warren/rooms.json")).unwrap_or_default();
        let kept: Value = serde_json::from_slice(&kept).unwrap_or_default();
        let mut all = kept["participants"].as_array().into_iter().flatten();
        all.any(|who| who["session_token"].is_string())
    }

    async fn end(&self, mut process: ChildProcess) {
        process.sigterm();
        let code = process.exit().await;
        if code != Some(0) {
            let log = process.log();
            self.report.wrong(format!("{} was asked to end: {code:?}\n{log}", self.id));
        }
        self.room.is_out(&self.id);
        self.report.tally(|tally| tally.lives.left += 1);
    }

    async fn kill(&self, mut process: ChildProcess) {
        process.kill9().await;
        self.room.is_in(&self.id, false);
        self.report.tally(|tally| tally.lives.killed += 1);
        // Until the room has noticed its end, the next process would be taken for it.
        let until = Instant::now() + JOINS;
        while self.is_listed().await {
            if Instant::now() > until {
                return self.report.wrong(format!("{} was killed and is still there", self.id));
            }
            sleep(LOOK).await;
        }
    }
}
