//! A server, a worker with many models, and their files.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use testkit::{
    ChildProcess, DEADLINE, Daemon, Serve,
    daemon::WORKER_SECRET,
    eventually,
    gguf::GgufFile,
    processes::{self, Process},
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use crate::engines::{GONE_WITHIN, ROOM, Settings, load::Report};

/// Memory that each model is said to take, in MiB.
const EACH_MIB: usize = 512;

/// How old the models are.
const AGE: Duration = Duration::from_secs(3600);

/// How often it is looked whether processes have ended.
const LOOK: Duration = Duration::from_millis(50);

/// Jobs at once: more than a model answers at a time, so that some wait.
const JOBS: usize = 32;

/// All that runs.
pub(crate) struct House {
    place: TempDir,
    binary: PathBuf,
    models: Vec<String>,
    address: SocketAddr,
    kill_every: Duration,
    daemon: Mutex<Daemon>,
    worker: Mutex<ChildProcess>,
}

impl House {
    /// Starts a server and a worker, and waits until the worker has come.
    pub(crate) async fn start(settings: &Settings) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let models = write_models(place.path(), settings);
        // The program is known by its name, and told its flags.
        symlink(&settings.engine, place.path().join("llama-server")).expect("a link");
        write_config(place.path());
        let daemon =
            Serve::new(&settings.trial.binary).set("--max-queue-len", "1000").start().await;
        let worker = start_worker(&settings.trial.binary, place.path(), &daemon.url());
        offers(&daemon, &models).await;
        Self {
            binary: settings.trial.binary.clone(),
            models,
            address: daemon.address(),
            kill_every: Duration::from_secs(settings.kill_every.max(1)),
            daemon: Mutex::new(daemon),
            worker: Mutex::new(worker),
            place,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The time between two kills.
    pub(crate) fn kill_every(&self) -> Duration {
        self.kill_every
    }

    pub(crate) fn models(&self) -> Vec<String> {
        self.models.clone()
    }

    /// The engines that run now.
    pub(crate) fn engines(&self) -> Vec<Process> {
        let models = self.place.path().join("models").display().to_string();
        processes::with(&models, "--port")
    }

    /// Kills the worker and starts it again, once all its engines have ended.
    pub(crate) async fn kill_worker(&self, report: &Report) {
        let mut worker = self.worker.lock().await;
        let before = self.engines();
        worker.kill9().await;
        self.are_gone(&before, "after the worker was killed", report).await;
        *worker =
            start_worker(&self.binary, self.place.path(), &format!("http://{}", self.address));
    }

    /// Kills the server and starts it again.
    pub(crate) async fn kill_server(&self) {
        self.daemon.lock().await.kill_and_restart().await;
    }

    /// Stops the worker in order.
    pub(crate) async fn stop(&self, report: &Report) {
        let mut worker = self.worker.lock().await;
        worker.sigterm();
        if worker.exit().await != Some(0) {
            report.wrong(format!("the worker did not end in order: {}", worker.log()));
        }
    }

    async fn are_gone(&self, before: &[Process], when: &str, report: &Report) {
        let until = Instant::now() + GONE_WITHIN;
        while let Some(left) = self.engines().iter().find(|engine| before.contains(engine)) {
            if Instant::now() > until {
                return report.wrong(format!("{when}: {left} lives"));
            }
            sleep(LOOK).await;
        }
    }
}

/// Waits until all models are offered.
async fn offers(daemon: &Daemon, models: &[String]) {
    let all = async || {
        let list = daemon.client().get("/v1/models").await.json();
        list["data"].as_array().map_or(0, Vec::len) == models.len()
    };
    eventually("every model being offered", DEADLINE, all).await;
}

fn write_models(place: &Path, settings: &Settings) -> Vec<String> {
    let folder = place.join("models");
    fs::create_dir(&folder).expect("a directory");
    let write = |name: &String| {
        let file = folder.join(format!("{name}.gguf"));
        match &settings.model {
            Some(model) => drop(fs::copy(model, &file).expect("the model can be copied")),
            None => fs::write(&file, GgufFile::model().bytes(0)).expect("it can be written"),
        }
        // A file that was written just now is not offered yet.
        let file = fs::File::options().append(true).open(file).expect("it is there");
        file.set_modified(SystemTime::now() - AGE).expect("its time can be set");
    };
    let names: Vec<String> = (0..settings.models).map(|number| format!("model-{number}")).collect();
    names.iter().for_each(write);
    names
}

fn write_config(place: &Path) {
    let shown = place.display();
    let memory = EACH_MIB * ROOM;
    let text = format!(
        "[[worker.engines]]\ncommand = '{shown}/llama-server'\nmodels = '{shown}/models'\n\
         memory = '{memory}MiB'\nmax_concurrent = {JOBS}\ncontext = 4096\nflags = ['--threads', '1']\n\
         [worker.engines.model.'*']\nmemory = '{EACH_MIB}MiB'\n"
    );
    fs::write(place.join("warren.toml"), text).expect("it can be written");
}

fn start_worker(binary: &Path, place: &Path, server: &str) -> ChildProcess {
    let path = |name: &str| place.join(name).display().to_string();
    let (config, data) = (path("warren.toml"), path("data"));
    let args = ["worker", "--config", &config, "--data-dir", &data, "--name", "engines"];
    let all = [&args[..], &["--server", server, "--secret", WORKER_SECRET]].concat();
    ChildProcess::start_at(place, "worker", binary, &all)
}
