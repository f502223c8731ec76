//! A model server for tests. What it does wrong is written in its model's file, a word a line:
//!
//! - `load=MS`: how long it loads; `exit=CODE`: it ends while it loads; `memory`: it says that memory ran out
//! - `late=MS`: it begins to listen so late
//! - `hang`: it never listens; `sick`: it is never ready; `flood`: it writes for ever
//! - `deaf`: it ignores SIGTERM; `child`: it leaves a process behind
//! - `once=FILE`: what follows goes only while FILE is not there, which it makes

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::exit,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::{Gate, MockBackend, Received, Reply};

/// The beginning of every model's file.
const MAGIC: &str = "MODEL";

/// Serves a model until it is killed.
pub(crate) fn serve(path: &Path, port: u16) {
    let text = fs::read_to_string(path).unwrap_or_default();
    if !text.starts_with(MAGIC) {
        tell(&format!("error: invalid magic in {}", path.display()));
        exit(1);
    }
    let words: Vec<&str> = words(&text);
    let number =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
    tell("loading the model");
    begin(&words, path);
    if let Some(code) = number("exit=") {
        tell("it is broken");
        exit(i32::try_from(code).unwrap_or(1));
    }
    let time = |name| Duration::from_millis(number(name).unwrap_or(0));
    let ready = (!words.contains(&"sick")).then_some(Instant::now() + time("load="));
    let (name, late) = (path.display().to_string(), time("late="));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(answer(port, name, late, ready)),
        Err(error) => tell(&format!("error: {error}")),
    }
}

/// The words that go now.
fn words(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let once = words.iter().position(|word| word.starts_with("once="));
    let Some((at, made)) = once.and_then(|at| Some((at, words[at].strip_prefix("once=")?))) else {
        return words;
    };
    let is_first = !Path::new(made).exists() && fs::write(made, "").is_ok();
    if is_first { words } else { words[..at].to_vec() }
}

fn begin(words: &[&str], path: &Path) {
    if words.contains(&"memory") {
        tell("ggml_backend_alloc: failed to allocate 99 GB");
        exit(1);
    }
    if words.contains(&"deaf") {
        let ignored = nix::sys::signal::SigSet::all().thread_block();
        tell(&format!("deaf: {}", ignored.is_ok()));
    }
    if words.contains(&"child") {
        // Its command line names the model, too, so that a test finds it.
        let script = ["sh", "-c", "sleep 1000; true"];
        let started = std::process::Command::new("setsid").args(script).arg(path).spawn();
        tell(&format!("a child: {}", started.is_ok()));
    }
    if words.contains(&"flood") {
        thread::spawn(|| {
            loop {
                let _ = std::io::stdout().write_all(&[b'x'; 8192]);
            }
        });
    }
    while words.contains(&"hang") {
        thread::park();
    }
}

/// Answers after `late`, and as a loaded model does from `ready`.
async fn answer(port: u16, name: String, late: Duration, ready: Option<Instant>) {
    tokio::time::sleep(late).await;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    if let Err(error) = TcpListener::bind(address) {
        tell(&format!("error: cannot listen: {error}"));
        exit(1);
    }
    let backend = MockBackend::start_at(address, &[]).await;
    backend.set_loading(true);
    backend.set_get("/health", json!({"status": "ok"}));
    backend.answers_only(&["/v1/chat/completions"]);
    backend.answer_with(move |request| chat(request, &name));
    if let Some(ready) = ready {
        tokio::time::sleep_until(ready.into()).await;
        backend.set_loading(false);
    }
    std::future::pending::<()>().await;
}

/// A stream that takes as long as the body's `ms` says.
fn chat(request: &Received, name: &str) -> Reply {
    let time = Duration::from_millis(request.json()["ms"].as_u64().unwrap_or(0));
    let first = json!({"pid": std::process::id(), "model": name});
    let gate = Gate::closed();
    gate.open(1);
    let rest = gate.clone();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        rest.open(2);
    });
    Reply::stream([format!("data: {first}\n\n"), "data: [DONE]\n\n".to_owned()], &gate)
}

fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
