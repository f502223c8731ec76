//! A hub of models in the hands of a test: the API of repositories, and a server of another address that has
//! their files and fails as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::Notify,
};

use crate::{
    http1::{Head, Reader},
    sockets::{Task, accept, any_port, listen},
};

/// The commit of all repositories.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How the next answer with a file goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubFault {
    /// The connection ends after this number of bytes.
    Cut(usize),
    /// Nothing comes after this number of bytes, and the connection stays.
    Stall(usize),
    /// The byte at this place is another.
    Damage(usize),
    /// A refusal, with header lines.
    Status(u16, &'static str),
    /// The whole file, whatever range was asked for.
    Whole,
    /// A range that begins a byte late.
    WrongRange,
    /// A file that is a byte longer.
    Longer,
    /// It sends to this address instead.
    Elsewhere(String),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct ModelHubRequest {
    /// Whether it came to the server of files.
    pub is_files: bool,
    /// Path and query.
    pub path: String,
    pub head: Head,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes by repository and path.
    repos: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// By the end of a path.
    faults: Vec<(String, VecDeque<HubFault>)>,
    /// The refusals of the API, by repository: status and header lines.
    refusals: BTreeMap<String, (u16, String)>,
    /// The sum that is listed for a path, where it is not the true one.
    lies: BTreeMap<String, String>,
    /// The only token that is let in, where there is one.
    token: Option<String>,
    requests: Vec<ModelHubRequest>,
    page: usize,
    files: Option<SocketAddr>,
}

type Shared = Arc<(Mutex<State>, Notify)>;

/// The two servers.
pub struct FakeModelHub {
    /// The address of the API.
    pub url: String,
    state: Shared,
    _tasks: [Task; 2],
}

impl FakeModelHub {
    pub async fn start() -> Self {
        let (hub, address) = listen(any_port()).await;
        let (files, of_files) = listen(any_port()).await;
        let state = State { page: 1_000, files: Some(of_files), ..State::default() };
        let state: Shared = Arc::new((Mutex::new(state), Notify::new()));
        let serving = |is_files: bool| {
            let state = Arc::clone(&state);
            move |stream| serve(stream, Arc::clone(&state), is_files)
        };
        let tasks = [accept(hub, serving(false)), accept(files, serving(true))];
        Self { url: format!("http://{address}"), state, _tasks: tasks }
    }

    /// Puts a file into a repository.
    pub fn put(&self, repo: &str, path: &str, bytes: &[u8]) {
        let mut state = self.lock();
        state.repos.entry(repo.to_owned()).or_default().insert(path.to_owned(), bytes.to_vec());
    }

    /// Sets the fates of the next requests for a file, one after another.
    pub fn fail(&self, path: &str, faults: &[HubFault]) {
        self.lock().faults.push((path.to_owned(), faults.iter().cloned().collect()));
    }

    /// All questions of a repository are answered so; `headers` are whole lines.
    pub fn refuse(&self, repo: &str, status: u16, headers: &str) {
        self.lock().refusals.insert(repo.to_owned(), (status, headers.to_owned()));
    }

    /// Tells this sum of a file.
    pub fn lie(&self, path: &str, sum: &str) {
        self.lock().lies.insert(path.to_owned(), sum.to_owned());
    }

    /// Lets in this token only.
    pub fn require(&self, token: &str) {
        self.lock().token = Some(token.to_owned());
    }

    /// How many files are listed at once.
    pub fn set_page(&self, files: usize) {
        self.lock().page = files;
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ModelHubRequest> {
        self.lock().requests.clone()
    }

    /// Those for files at the server of files.
    pub fn downloads(&self) -> Vec<ModelHubRequest> {
        self.requests().into_iter().filter(|request| request.is_files).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }
}

async fn serve(stream: TcpStream, state: Shared, is_files: bool) {
    stream.set_nodelay(true).unwrap();
    let (read, mut write) = stream.into_split();
    let mut reader = Reader::new(BufReader::new(read));
    while let Ok(Some(head)) = reader.head().await {
        let path = head.words()[1].to_owned();
        let request = ModelHubRequest { is_files, path: path.clone(), head: head.clone() };
        state.0.lock().unwrap().requests.push(request);
        state.1.notify_waiters();
        let answer = if is_files { of_files(&state, &head) } else { of_hub(&state, &head) };
        let answer = answer.unwrap_or_else(|| status(404, ""));
        if write.write_all(&answer.bytes).await.is_err() || answer.end == End::Close {
            return;
        }
        if answer.end == End::Hang {
            return reader.closed().await;
        }
    }
}

/// The bytes that are written, and what becomes of the connection.
struct Written {
    bytes: Vec<u8>,
    end: End,
}

#[derive(PartialEq, Eq)]
enum End {
    Stay,
    Close,
    Hang,
}

/// The API, and the addresses of files.
fn of_hub(state: &Shared, head: &Head) -> Option<Written> {
    let mut state = state.0.lock().unwrap();
    let [_, target, _] = head.words();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (repo, rest) = match &segments[..] {
        ["api", "models", org, name, rest @ ..] | [org, name, rest @ ..] => {
            (format!("{org}/{name}"), rest)
        }
        _ => return None,
    };
    if let Some((code, headers)) = state.refusals.get(&repo) {
        return Some(status(*code, headers));
    }
    let bearer = state.token.as_ref().map(|token| format!("Bearer {token}"));
    if bearer.is_some() && head.header("authorization") != bearer.as_deref() {
        return Some(status(401, "x-error-code: GatedRepo\r\n"));
    }
    match rest {
        ["revision", revision] if ["main", COMMIT].contains(revision) => {
            state.repos.get(&repo)?;
            Some(json_answer("", &json!({"sha": COMMIT, "id": repo})))
        }
        ["revision", _] => Some(status(404, "x-error-code: RevisionNotFound\r\n")),
        ["tree", COMMIT] => Some(tree(&state, &repo, path, query)?),
        ["resolve", COMMIT, file @ ..] => resolve(&mut state, &repo, &file.join("/")),
        _ => None,
    }
}

fn tree(state: &State, repo: &str, path: &str, query: &str) -> Option<Written> {
    let files = state.repos.get(repo)?;
    let begin = query.split('&').find_map(|pair| pair.strip_prefix("cursor="));
    let begin: usize = begin.map_or(0, |begin| begin.parse().unwrap());
    let page: Vec<Value> = files
        .iter()
        .skip(begin)
        .take(state.page)
        .map(|(path, bytes)| entry(state, path, bytes))
        .collect();
    let next = begin + state.page;
    let link = match next < files.len() {
        true => format!("link: <{path}?recursive=1&cursor={next}>; rel=\"next\"\r\n"),
        false => String::new(),
    };
    Some(json_answer(&link, &Value::Array(page)))
}

fn entry(state: &State, path: &str, bytes: &[u8]) -> Value {
    let sum = state.lies.get(path).cloned().unwrap_or_else(|| sha256(bytes));
    json!({
        "type": "file", "oid": "00".repeat(20), "size": bytes.len(), "path": path,
        "lfs": {"oid": sum, "size": bytes.len(), "pointerSize": 135},
    })
}

fn resolve(state: &mut State, repo: &str, path: &str) -> Option<Written> {
    let bytes = state.repos.get(repo)?.get(path)?;
    let sum = state.lies.get(path).cloned().unwrap_or_else(|| sha256(bytes));
    let next = match state.faults.iter_mut().find(|(of, _)| path.ends_with(of.as_str())) {
        Some((_, faults)) if matches!(faults.front(), Some(HubFault::Elsewhere(_))) => {
            faults.pop_front()
        }
        _ => None,
    };
    let location = match next {
        Some(HubFault::Elsewhere(address)) => address,
        _ => format!("http://{}/{repo}/{path}?signed=1", state.files?),
    };
    let headers =
        format!("location: {location}\r\nx-linked-etag: \"{sum}\"\r\nx-repo-commit: {COMMIT}\r\n");
    Some(status(302, &headers))
}

/// The files themselves.
fn of_files(state: &Shared, head: &Head) -> Option<Written> {
    let mut state = state.0.lock().unwrap();
    let path =
        head.words()[1].split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
    let (repo, name) = path.match_indices('/').nth(1).map(|(at, _)| path.split_at(at))?;
    let mut bytes = state.repos.get(repo)?.get(&name[1..])?.clone();
    let known = state
        .faults
        .iter_mut()
        .find(|(of, faults)| path.ends_with(of.as_str()) && !faults.is_empty());
    let fault = known.and_then(|(_, faults)| faults.pop_front());
    if let Some(HubFault::Status(code, headers)) = fault {
        return Some(status(code, headers));
    }
    match fault {
        Some(HubFault::Damage(at)) => bytes[at] ^= 1,
        Some(HubFault::Longer) => bytes.push(0),
        _ => {}
    }
    let range = head.header("range").filter(|_| fault != Some(HubFault::Whole));
    let mut answer = ranged(&bytes, range, fault == Some(HubFault::WrongRange));
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let end_of = |sent: usize| (end + sent).min(answer.len());
    let (length, end) = match fault {
        Some(HubFault::Cut(sent)) => (end_of(sent), End::Close),
        Some(HubFault::Stall(sent)) => (end_of(sent), End::Hang),
        _ => (answer.len(), End::Stay),
    };
    answer.truncate(length);
    Some(Written { bytes: answer, end })
}

fn ranged(bytes: &[u8], asked: Option<&str>, is_wrong: bool) -> Vec<u8> {
    let (status, range, body) = match asked.and_then(|asked| asked.strip_prefix("bytes=")) {
        None => ("200 OK", String::new(), bytes),
        Some(asked) => {
            let (begin, end) = asked.split_once('-').unwrap();
            let begin: usize = begin.parse::<usize>().unwrap() + usize::from(is_wrong);
            let end = end.parse().map_or(bytes.len(), |end: usize| (end + 1).min(bytes.len()));
            let range = format!("content-range: bytes {begin}-{}/{}\r\n", end - 1, bytes.len());
            ("206 Partial Content", range, &bytes[begin..end])
        }
    };
    let etag = sha256(bytes);
    let head = format!(
        "HTTP/1.1 {status}\r\n{range}etag: \"{etag}\"\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn status(code: u16, headers: &str) -> Written {
    let bytes = format!("HTTP/1.1 {code} Told\r\n{headers}content-length: 0\r\n\r\n").into_bytes();
    Written { bytes, end: End::Stay }
}

fn json_answer(headers: &str, value: &Value) -> Written {
    let body = value.to_string();
    let bytes = format!(
        "HTTP/1.1 200 OK\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    Written { bytes: bytes.into_bytes(), end: End::Stay }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
