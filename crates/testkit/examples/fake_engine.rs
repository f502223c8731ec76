//! Acts like llama.cpp's server for one model file, with faults.
//!
//! It takes that server's flags as far as Warren gives them, and ignores others. While it loads its model
//! it answers 503 to everything. Words in the file's name, each after a `+`, or in `FAKE_ENGINE` say what
//! goes wrong:
//!
//! | Word | It |
//! | --- | --- |
//! | `loads-N` | takes N milliseconds to load |
//! | `exits` | ends at once, with status 3 |
//! | `exits-loading` | ends when it has loaded, with words on standard error |
//! | `runs-out` | ends as a program does that gets no memory |
//! | `hangs` | never listens |
//! | `never-ready` | loads for ever |
//! | `prints` | prints as fast as it can, for ever |
//! | `thinks-N` | takes N milliseconds for each word of an answer |
//! | `dies-after-N` | ends without a word at the request after N of them |
//! | `breaks-after-N` | ends in the middle of the answer after N of them |
//! | `ignores-term` | goes on when it is asked to end |
//! | `forks` | starts a process in a session of its own that stays |
//! | `takes-N` | takes N MiB of memory |
//!
//! With `FAKE_ENGINE_JOURNAL=FILE` it appends `started NAME PID` and `ended NAME PID` there.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::zombie_processes,
    reason = "a program of tests: it says what it does, and may leave processes behind"
)]

use std::{
    env, fs,
    io::{Read, Write},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio, exit},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{Gate, MockBackend, Received, Reply};
use tokio::signal::unix::{SignalKind, signal};

/// The flags of llama.cpp's server that are looked at. Others are passed over wherever they stand.
#[derive(Default)]
struct Arguments {
    model: PathBuf,
    host: Option<String>,
    port: Option<String>,
    context: Option<String>,
    slots: Option<String>,
    projector: Option<PathBuf>,
    alias: Option<String>,
}

impl Arguments {
    fn read() -> Self {
        let mut arguments = Self::default();
        let mut words = env::args().skip(1);
        while let Some(word) = words.next() {
            let place = match word.as_str() {
                "--model" | "-m" => {
                    arguments.model = words.next().map(PathBuf::from).unwrap_or_default();
                    continue;
                }
                "--mmproj" => {
                    arguments.projector = words.next().map(PathBuf::from);
                    continue;
                }
                "--host" => &mut arguments.host,
                "--port" => &mut arguments.port,
                "--ctx-size" | "-c" => &mut arguments.context,
                "--parallel" | "-np" => &mut arguments.slots,
                "--alias" | "-a" => &mut arguments.alias,
                _ => continue,
            };
            *place = words.next();
        }
        arguments
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if env::args().any(|argument| argument == "--version") {
        println!("version: 1 (fake)");
        return;
    }
    let arguments = Arguments::read();
    let faults = Faults::of(&arguments.model);
    let name = name(&arguments.model);
    journal("started", &name);
    if faults.has("exits") {
        eprintln!("error: invalid argument: this engine exits at once");
        exit(3);
    }
    check(&arguments.model);
    arguments.projector.as_deref().map(check);
    faults.begin();
    let ends = tokio::spawn(end(faults.clone(), name.clone()));
    if faults.has("hangs") {
        eprintln!("this engine never listens");
    } else {
        // It answers as long as this process lives.
        std::mem::forget(serve(&arguments, &faults, &name).await);
    }
    ends.await.expect("it does not panic");
}

/// Waits until it is asked to end, and ends.
async fn end(faults: Faults, name: String) {
    let mut asked = signal(SignalKind::terminate()).expect("signals can be taken");
    loop {
        asked.recv().await;
        if !faults.has("ignores-term") {
            journal("ended", &name);
            exit(0);
        }
        eprintln!("asked to end, and going on");
    }
}

/// Listens, loads, and answers from then on.
async fn serve(arguments: &Arguments, faults: &Faults, name: &str) -> MockBackend {
    let host = arguments.host.as_deref().unwrap_or("127.0.0.1");
    let address = format!("{host}:{}", arguments.port.as_deref().unwrap_or("8080"));
    let address: SocketAddr = address.parse().expect("an address");
    if std::net::TcpListener::bind(address).is_err() {
        eprintln!("start: couldn't bind HTTP server socket, hostname: {address}");
        exit(1);
    }
    let shown = arguments.alias.clone().unwrap_or_else(|| name.to_owned());
    let backend = MockBackend::start_at(address, &[&shown]).await;
    backend.set_loading(true);
    backend.set_get("/health", json!({"status": "ok"}));
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<u64>().ok());
    let settings = json!({"n_ctx": number(&arguments.context).unwrap_or(4096)});
    let slots = number(&arguments.slots).unwrap_or(1);
    backend
        .set_get("/props", json!({"default_generation_settings": settings, "total_slots": slots}));
    let (script, model) = (faults.clone(), shown.clone());
    let asked = Arc::new(AtomicU64::new(0));
    backend.answer_with(move |received| answer(&script, &model, received, &asked));
    load(faults).await;
    eprintln!("main: server is listening on http://{} - model {shown} loaded", backend.address());
    backend.set_loading(false);
    backend
}

async fn load(faults: &Faults) {
    tokio::time::sleep(Duration::from_millis(faults.number("loads").unwrap_or(0))).await;
    if faults.has("exits-loading") {
        eprintln!("llama_model_load: error loading model: unknown model architecture: 'fake'");
        exit(1);
    }
    if faults.has("runs-out") {
        eprintln!(
            "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer: out of memory"
        );
        exit(1);
    }
    if faults.has("never-ready") {
        std::future::pending::<()>().await;
    }
}

/// The faults of this engine, by the words of its file's name and its environment.
#[derive(Clone)]
struct Faults(Arc<Vec<String>>);

impl Faults {
    fn of(model: &Path) -> Self {
        let stem = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let words = stem.split('+').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let told = env::var_os("FAKE_ENGINE").unwrap_or_default();
        let told = told.to_string_lossy();
        let told = told.split(['+', ' ', ',']).map(str::to_owned);
        Self(Arc::new(words.into_iter().chain(told).collect()))
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }

    /// The number of a word such as `loads-500`.
    fn number(&self, word: &str) -> Option<u64> {
        let number =
            |known: &String| known.strip_prefix(word)?.strip_prefix('-')?.parse::<u64>().ok();
        self.0.iter().find_map(number)
    }

    /// Begins the work that goes on from the start.
    fn begin(&self) {
        if self.has("prints") {
            std::thread::spawn(print_for_ever);
        }
        if self.has("forks") {
            let mut child = Command::new("setsid");
            child.args(["sleep", "3600"]).stdin(Stdio::null()).process_group(0);
            child.spawn().expect("setsid starts");
        }
        if let Some(mebibytes) = self.number("takes") {
            // Written to, so that it really is taken, and never given back.
            Box::leak(vec![1u8; (mebibytes as usize) << 20].into_boxed_slice());
        }
    }
}

fn print_for_ever() {
    let line = format!("{}\n", "this engine prints for ever ".repeat(30));
    let mut out = std::io::stdout();
    while out.write_all(line.as_bytes()).is_ok() {}
}

/// Ends unless the file is a GGUF file, in llama.cpp's words.
fn check(file: &Path) {
    let mut magic = [0; 4];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != *b"GGUF" {
        eprintln!("gguf_init_from_file_impl: failed to read magic");
        eprintln!("llama_model_load: error loading model: failed to load {}", file.display());
        exit(1);
    }
}

fn name(model: &Path) -> String {
    model.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn journal(what: &str, name: &str) {
    let Some(path) = env::var_os("FAKE_ENGINE_JOURNAL") else { return };
    let file = fs::File::options().append(true).create(true).open(path);
    let line = format!("{what} {name} {}\n", std::process::id());
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the journal is written");
}

fn answer(faults: &Faults, model: &str, received: &Received, asked: &AtomicU64) -> Reply {
    let number = asked.fetch_add(1, Ordering::SeqCst);
    let is_after = |word| faults.number(word).is_some_and(|most| number >= most);
    if is_after("dies-after") {
        eprintln!("GGML_ASSERT(n < 1) failed");
        exit(134);
    }
    let reply = words(model, received, Duration::from_millis(faults.number("thinks").unwrap_or(0)));
    if is_after("breaks-after") {
        tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            eprintln!("GGML_ASSERT(n < 2) failed");
            exit(134);
        });
        return reply.stalled();
    }
    reply
}

/// The answer of each path: some words, or numbers for embeddings.
fn words(model: &str, received: &Received, each: Duration) -> Reply {
    let request = received.json();
    let path = received.target.split('?').next().unwrap_or_default();
    let most = request["max_tokens"].as_u64().unwrap_or(4).clamp(1, 4096);
    let words: Vec<String> = (0..most).map(|number| format!("{model}.{number} ")).collect();
    match path {
        "/v1/embeddings" => {
            let data = json!([{"object": "embedding", "index": 0, "embedding": [0.1, 0.2, 0.3]}]);
            let usage = json!({"prompt_tokens": 3, "total_tokens": 3});
            Reply::json(
                200,
                &json!({"object": "list", "model": model, "data": data, "usage": usage}),
            )
        }
        "/v1/chat/completions" | "/v1/completions" => {
            let pieces = words.iter().map(|word| piece(path, model, Some(word)));
            let last = piece(path, model, None);
            match request["stream"] == true {
                true => streamed(pieces.chain([last])).thinking(each),
                false => whole(path, model, &words, each),
            }
        }
        _ => Reply::file_not_found(),
    }
}

/// A chunk of a stream, or its last one.
fn piece(path: &str, model: &str, word: Option<&String>) -> Value {
    let finish = if word.is_some() { Value::Null } else { "stop".into() };
    let (object, choice) = match path {
        "/v1/completions" => (
            "text_completion",
            json!({"index": 0, "text": word.map_or("", String::as_str), "finish_reason": finish}),
        ),
        _ => {
            let delta = word.map_or(json!({}), |word| json!({"content": word}));
            ("chat.completion.chunk", json!({"index": 0, "delta": delta, "finish_reason": finish}))
        }
    };
    json!({"id": "c", "object": object, "created": 0, "model": model, "choices": [choice]})
}

fn streamed(pieces: impl Iterator<Item = Value>) -> Reply {
    let events = pieces.map(|piece| format!("data: {piece}\n\n"));
    let events: Vec<String> = events.chain(["data: [DONE]\n\n".to_owned()]).collect();
    // Its first wait passes at once: the gate is open.
    Reply::stream(events, &Gate::opened())
}

fn whole(path: &str, model: &str, words: &[String], each: Duration) -> Reply {
    let text = words.concat();
    let (object, choice) = match path {
        "/v1/completions" => {
            ("text_completion", json!({"index": 0, "text": text, "finish_reason": "stop"}))
        }
        _ => {
            let message = json!({"role": "assistant", "content": text});
            ("chat.completion", json!({"index": 0, "message": message, "finish_reason": "stop"}))
        }
    };
    let tokens = words.len();
    let usage = json!({
        "prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": tokens + 3,
    });
    let body = json!({
        "id": "c", "object": object, "created": 0, "model": model, "choices": [choice],
        "usage": usage,
    });
    let time = each * u32::try_from(tokens).unwrap_or(u32::MAX);
    Reply::json(200, &body).after(&Gate::opened()).thinking(time)
}
