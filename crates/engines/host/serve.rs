//! A model server for tests. What it does wrong is written in its model's file, a word a line:
//!
//! - `load=MS`: how long it loads; `exit=CODE`: it ends while it loads; `memory`: it says that memory ran out
//! - `late=MS`: it begins to listen so late
//! - `hang`: it never listens; `sick`: it is never ready; `flood`: it writes for ever
//! - `deaf`: it ignores SIGTERM; `child`: it leaves a process behind
//! - `once=FILE`: what follows goes only while FILE is not there, which it makes

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::exit,
    thread,
    time::{Duration, Instant},
};

/// The beginning of every model's file.
const MAGIC: &str = "MODEL";

struct Model {
    ready: Option<Instant>,
    name: String,
}

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
    let ready = Instant::now() + Duration::from_millis(number("load=").unwrap_or(0));
    let ready = (!words.contains(&"sick")).then_some(ready);
    let model = Model { ready, name: path.display().to_string() };
    wait(Duration::from_millis(number("late=").unwrap_or(0)));
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => accept(&listener, &model),
        Err(error) => {
            tell(&format!("error: cannot listen: {error}"));
            exit(1);
        }
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

fn accept(listener: &TcpListener, model: &Model) {
    thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            scope.spawn(move || while answer(&stream, model).is_some() {});
        }
    });
}

/// Answers one request; `None` at the end of the connection.
fn answer(mut stream: &TcpStream, model: &Model) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let is_ready = model.ready.is_some_and(|at| at <= Instant::now());
    match first.split(' ').nth(1)? {
        _ if !is_ready => whole(stream, "503 Service Unavailable", r#"{"error":"Loading model"}"#),
        "/health" => whole(stream, "200 OK", r#"{"status":"ok"}"#),
        "/v1/chat/completions" => chat(stream, &body, model),
        _ => whole(stream, "404 Not Found", r#"{"error":{"message":"no such path"}}"#),
    }
    .ok()?;
    stream.flush().ok()
}

/// A stream that takes as long as the body's `ms` says.
fn chat(mut stream: &TcpStream, body: &[u8], model: &Model) -> std::io::Result<()> {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if body["messages"].is_null() {
        return whole(
            stream,
            "400 Bad Request",
            r#"{"error":{"message":"`messages` is missing"}}"#,
        );
    }
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let first = format!("data: {{\"pid\":{},\"model\":{:?}}}\n\n", std::process::id(), model.name);
    chunk(stream, &first)?;
    wait(Duration::from_millis(body["ms"].as_u64().unwrap_or(0)));
    chunk(stream, "data: [DONE]\n\n")?;
    stream.write_all(b"0\r\n\r\n")
}

fn wait(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|it| !it.is_zero()) {
        thread::park_timeout(left);
    }
}

fn chunk(mut stream: &TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn whole(mut stream: &TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())
}

fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
