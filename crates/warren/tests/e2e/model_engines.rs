//! Models that a machine serves itself: `warren up --gguf FILE` and `warren worker` with a folder, with a
//! program that acts like llama.cpp's server.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    ChildProcess, Client, DEADLINE, Response, eventually,
    gguf::GgufFile,
    processes::{self, FAKE_ENGINE, Process, example},
};

use crate::common::{CHAT, binary};

/// A directory with a program called `llama-server`, model files, and a home.
struct Place(TempDir);

impl Place {
    /// With models of these names.
    fn with(models: &[&str]) -> Self {
        let place = Self(TempDir::new().expect("a directory"));
        for directory in ["bin", "home", "models"] {
            fs::create_dir(place.path(directory)).expect("a directory");
        }
        let link = place.path("bin/llama-server");
        symlink(example(FAKE_ENGINE, "testkit"), link).expect("a link");
        models.iter().for_each(|name| place.put(name));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn model(&self, name: &str) -> String {
        self.text(&format!("models/{name}.gguf"))
    }

    /// Puts a model there that was written long ago.
    fn put(&self, name: &str) {
        let path = self.path(&format!("models/{name}.gguf"));
        fs::write(&path, GgufFile::model().bytes(0)).expect("it can be written");
        is_old(&path);
    }

    /// Starts `warren` with what is there, and these settings of `[[worker.engines]]`.
    fn start(&self, args: &[&str], settings: &str) -> ChildProcess {
        let journal = self.text("journal");
        let text = format!(
            "[[worker.engines]]\nenv = {{ FAKE_ENGINE_JOURNAL = '{journal}' }}\n{settings}\n"
        );
        fs::write(self.path("warren.toml"), text).expect("it can be written");
        let (config, data) = (self.text("warren.toml"), self.text("data"));
        let all = [&args[..1], &["--config", &config, "--data-dir", &data], &args[1..]].concat();
        self.run(args[0], &all)
    }

    fn run(&self, name: &str, args: &[&str]) -> ChildProcess {
        let path = format!("{}:/usr/bin:/bin", self.text("bin"));
        let variables = [("PATH", path.as_str()), ("OLLAMA_HOST", "127.0.0.1:1")];
        ChildProcess::start_with(&self.path("home"), &variables, name, binary(), args)
    }

    /// The notes of the engines: `started NAME PID` and `ended NAME PID`.
    fn journal(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.path("journal")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
        lines.collect()
    }

    fn starts(&self, model: &str) -> usize {
        let all = self.journal();
        all.iter().filter(|(what, name)| what == "started" && name == model).count()
    }

    /// The engines that run now, and all that they started.
    fn engines(&self) -> Vec<Process> {
        processes::with(&self.text("models"), "--port")
    }

    async fn has_engines(&self, number: usize) {
        let as_many = async || self.engines().len() == number;
        eventually("the number of engines", DEADLINE, as_many).await;
    }
}

/// A file that was not written just now.
fn is_old(path: &Path) {
    let file = fs::File::options().append(true).open(path).expect("it is there");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("its time is set");
}

/// `warren up` with these models and settings, once it offers the first of them.
async fn up(place: &Place, models: &[&str], settings: &str) -> (ChildProcess, Client) {
    let mut args = vec!["up".to_owned(), "--listen".to_owned(), "127.0.0.1:0".to_owned()];
    args.extend(models.iter().flat_map(|name| ["--gguf".to_owned(), place.model(name)]));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let process = place.start(&args, settings);
    let client = Client::new(process.listening("http").await);
    if let Some(model) = models.first() {
        offers(&client, model).await;
    }
    (process, client)
}

async fn list(client: &Client) -> Vec<String> {
    let list = client.get("/v1/models").await.json();
    let all = list["data"].as_array().into_iter().flatten();
    all.filter_map(|model| model["id"].as_str().map(str::to_owned)).collect()
}

async fn offers(client: &Client, model: &str) {
    let offered = async || list(client).await.iter().any(|one| one == model);
    eventually("the model being offered", DEADLINE, offered).await;
}

fn question(model: &str, words: u64, stream: bool) -> Value {
    json!({
        "model": model, "stream": stream, "max_tokens": words,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

async fn ask(client: &Client, model: &str) -> Response {
    client.post_json(CHAT, &question(model, 2, false)).await
}

async fn answers(client: &Client, model: &str) {
    let answer = ask(client, model).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let said = &answer.json()["choices"][0]["message"]["content"];
    assert_eq!(said, &format!("{model}.0 {model}.1 "), "the right model answers");
}

#[tokio::test]
async fn one_command_and_a_model_file_are_a_model_server() {
    let place = Place::with(&["rabbit"]);
    let (mut process, client) = up(&place, &["rabbit"], "").await;
    process.line_with("llama-server serves, each loads on its first request").await;
    let line = process.line_with("  rabbit, ").await;
    assert!(line.contains("KiB") && line.contains("in memory"), "{line}");
    assert!(place.engines().is_empty(), "nobody has asked yet");
    answers(&client, "rabbit").await;
    let message = client.post_json("/v1/messages", &question("rabbit", 2, false)).await;
    assert_eq!(message.json()["content"][0]["text"], "rabbit.0 rabbit.1 ", "{}", message.text());
    assert_eq!(place.starts("rabbit"), 1);
    process.sigterm();
    assert_eq!(process.exit().await, Some(0));
    place.has_engines(0).await;
    assert_eq!(place.journal().last().unwrap().0, "ended", "it was asked to end");
}

#[tokio::test]
async fn a_missing_program_is_said_with_how_to_get_it() {
    let place = Place::with(&["a"]);
    fs::remove_file(place.path("bin/llama-server")).unwrap();
    let model = place.model("a");
    let mut process = place.start(&["up", "--listen", "127.0.0.1:0", "--gguf", &model], "");
    assert_eq!(process.exit().await, Some(2), "{}", process.log());
    let log = process.log();
    assert!(log.contains("llama-server was not found"), "{log}");
    assert!(log.contains("github.com/ggml-org/llama.cpp/releases"), "{log}");
    assert!(log.contains("--engine"), "{log}");
}

#[tokio::test]
async fn a_folder_is_followed_as_its_files_come_and_go() {
    let place = Place::with(&["a"]);
    let folder = place.text("models");
    let process = place.start(&["up", "--listen", "127.0.0.1:0", "--models", &folder], "");
    let client = Client::new(process.listening("http").await);
    offers(&client, "a").await;
    answers(&client, "a").await;
    place.put("b");
    offers(&client, "b").await;
    answers(&client, "b").await;
    let away = place.path("away");
    fs::rename(place.path("models"), &away).unwrap();
    eventually("no model", DEADLINE, async || !list(&client).await.contains(&"a".to_owned())).await;
    place.has_engines(0).await;
    fs::rename(&away, place.path("models")).unwrap();
    offers(&client, "a").await;
    answers(&client, "a").await;
}

/// Whatever is killed, no engine stays, nor what an engine has started.
#[tokio::test]
async fn nothing_is_left_when_the_server_that_runs_engines_is_killed() {
    let place = Place::with(&["a+forks", "b+ignores-term"]);
    let (mut process, client) = up(&place, &["a+forks", "b+ignores-term"], "").await;
    answers(&client, "a+forks").await;
    answers(&client, "b+ignores-term").await;
    place.has_engines(2).await;
    let forked = || processes::with("sleep 3600", "").into_iter().filter(|it| is_of(it, &place));
    assert_eq!(forked().count(), 1, "the engine has started a process");
    process.kill9().await;
    place.has_engines(0).await;
    eventually("the end of what it started", DEADLINE, async || forked().count() == 0).await;
}

/// Whether a process has the environment of these tests' engines.
fn is_of(process: &Process, place: &Place) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    String::from_utf8_lossy(&environment).contains(&place.text("journal"))
}

#[tokio::test]
async fn a_worker_lends_a_folder_and_leaves_no_engine_behind() {
    let place = Place::with(&["a", "b+ignores-term"]);
    let daemon = crate::common::serve().start().await;
    let (folder, url) = (place.text("models"), daemon.url());
    let secret = testkit::daemon::WORKER_SECRET;
    let args = ["worker", "--server", &url, "--secret", secret, "--models", &folder];
    let mut worker = place.start(&args, "");
    let client = daemon.client();
    for model in ["a", "b+ignores-term"] {
        offers(&client, model).await;
        answers(&client, model).await;
    }
    worker.kill9().await;
    place.has_engines(0).await;
    let mut worker = place.start(&args, "");
    offers(&client, "a").await;
    answers(&client, "a").await;
    worker.sigterm();
    assert_eq!(worker.exit().await, Some(0), "{}", worker.log());
    place.has_engines(0).await;
}

#[tokio::test]
async fn settings_that_contradict_each_other_are_said_with_their_key() {
    let place = Place::with(&["a"]);
    let model = place.model("a");
    for (settings, words) in [
        ("flags = ['--port', '1']", "--port"),
        ("memory = '5'", "24GiB"),
        ("command = ['serve', '{model}']", "needs {port}"),
        ("contxt = 1", "contxt"),
    ] {
        let mut process =
            place.start(&["up", "--listen", "127.0.0.1:0", "--gguf", &model], settings);
        assert_ne!(process.exit().await, Some(0), "{settings}");
        let log = process.log();
        assert!(log.contains(words) && log.contains("engines"), "{settings}: {log}");
    }
}
