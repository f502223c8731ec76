//! `warren status`: the state of a server, and its last requests.

use base::LoadState;
use clap::Args;
use client::admin::{
    requests::RequestJson,
    status::{
        FellowJson, FleetHealth, Health, HealthDetails, ModelFacts, QueueJson, Stats, WorkerJson,
    },
};
use daemon::ConfigFile;
use jiff::Timestamp;
use serde_json::json;

use super::{
    names::Names,
    say, say_json,
    table::{Precedence, first_of, plain, table, terminal_width},
    target::RunningServer,
    words::{age, bytes, count, span},
    worker_runtime,
};

/// Show a server's workers, queues and last requests
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren status\n  \
    warren status --last 50 --json")]
pub(crate) struct Status {
    /// How many of the last requests to show, at most 500
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Status {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(self.report(file))
    }

    async fn report(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        let (health, stats, requests) =
            tokio::try_join!(warren.health(), warren.stats(), warren.requests(0, self.last))?;
        if self.json {
            let all = json!({"health": health, "stats": stats, "requests": requests});
            return Ok(say_json(&all)?);
        }
        let table = Tables { names: Names::of(&warren).await, now: Timestamp::now() };
        Ok(say(&table.readable(&health, &stats, &requests))?)
    }
}

/// The facts that the tables need beside the server's answers.
struct Tables {
    names: Names,
    now: Timestamp,
}

impl Tables {
    fn readable(&self, health: &Health, stats: &Stats, requests: &[RequestJson]) -> String {
        let details = health.details.clone().unwrap_or_default();
        let all = [
            Some(summary(health, &details)),
            details.fleet.as_ref().and_then(servers),
            self.workers(&details.workers),
            self.in_memory(&details.workers),
            queues(&stats.queues),
            self.last(requests, terminal_width()),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        all.join("\n\n")
    }

    /// The workers. Their scope is shown if one of them is in a room, and their server if one is connected to another.
    fn workers(&self, workers: &[WorkerJson]) -> Option<String> {
        let in_rooms = workers.iter().any(|worker| worker.scope != SERVER);
        let elsewhere = workers.iter().any(|worker| worker.server.is_some());
        let row = |worker: &WorkerJson| {
            let scope = in_rooms.then(|| plain(&worker.scope));
            let numbers = [worker.in_flight, worker.reported_load, worker.max_concurrent];
            let server = worker.server.as_deref().map_or("-".to_owned(), plain);
            let server = elsewhere.then_some(server);
            let texts =
                [self.names.shown(&worker.worker_name)].into_iter().chain(server).chain(scope);
            let texts = texts.chain([first_of(&worker.models), state(worker)]);
            texts.chain(numbers.map(|number| number.to_string())).collect()
        };
        let header = ["worker", "server", "scope", "models", "state", "in flight", "load", "slots"];
        let is_shown = |name: &&str| match *name {
            "scope" => in_rooms,
            "server" => elsewhere,
            _ => true,
        };
        let header: Vec<&str> = header.into_iter().filter(is_shown).collect();
        filled(&header, workers.iter().map(row), 3)
    }

    /// The models that are loaded or being loaded, as far as workers report them.
    fn in_memory(&self, workers: &[WorkerJson]) -> Option<String> {
        let header = ["in memory", "worker", "state", "used", "size", "memory"];
        let models = workers.iter().flat_map(|worker| {
            worker.model_facts.iter().map(move |(model, facts)| (worker, model, facts))
        });
        let loaded = models.filter(|(.., facts)| {
            matches!(facts.load, Some(LoadState::Loaded | LoadState::Loading))
        });
        filled(&header, loaded.map(|(worker, model, facts)| self.loaded(worker, model, facts)), 3)
    }

    fn loaded(&self, worker: &WorkerJson, model: &str, facts: &ModelFacts) -> Vec<String> {
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let now_ms = u64::try_from(self.now.as_millisecond()).unwrap_or(0);
        let used = facts.last_used_ms.map(|used| age(now_ms.saturating_sub(used) / 1_000));
        vec![
            plain(model),
            self.names.shown(&worker.worker_name),
            shown(facts.load.map(|load| load.to_string())),
            shown(used),
            shown(facts.file_bytes.map(bytes)),
            shown(facts.memory_bytes.map(bytes)),
        ]
    }

    fn last(&self, requests: &[RequestJson], room: usize) -> Option<String> {
        let rows: Vec<_> = requests.iter().map(|request| self.request(request)).collect();
        (!rows.is_empty()).then(|| precedence(requests).within(room, &LAST, &rows, 4))
    }

    fn request(&self, request: &RequestJson) -> Vec<String> {
        let tokens = |count: Option<u64>| match count {
            Some(count) if request.estimated => format!("~{count}"),
            Some(count) => count.to_string(),
            None => "-".to_owned(),
        };
        let ago = self.now.duration_since(request.at).as_secs().try_into().unwrap_or(0);
        vec![
            format!("{} ago", span(ago)),
            self.names.shown(&request.key),
            served(request),
            self.providers(request),
            outcome(request),
            tokens(request.prompt_tokens),
            tokens(request.completion_tokens),
            request.first_byte_ms.map_or("-".to_owned(), milliseconds),
            milliseconds(request.total_ms),
        ]
    }

    /// The provider of a request's answer. If the answer went on at other providers, all of them in turn.
    fn providers(&self, request: &RequestJson) -> String {
        let names: Vec<_> =
            request.providers().into_iter().map(|name| self.names.shown(name)).collect();
        names.join(" → ")
    }
}

fn summary(health: &Health, details: &HealthDetails) -> String {
    let (status, version) = (plain(&health.status), plain(&health.version));
    let up = span(details.uptime_secs);
    let workers = count(details.workers_connected, "worker");
    let in_flight = count(details.in_flight, "request");
    let waiting = details.queue_depth;
    let mut summary = format!(
        "Warren {version}: {status}, up {up}\n{workers}, {in_flight} in flight, {waiting} waiting"
    );
    if let Some(workspace) = details.workspace.filter(|workspace| workspace.sessions > 0) {
        let (sessions, clients) = (workspace.sessions, workspace.clients);
        let (sessions, clients) = (count(sessions, "session"), count(clients, "client"));
        let live = workspace.live_sessions;
        summary.push_str(&format!("\n{sessions}, {live} of them live, {clients}"));
        summary.push_str(&match workspace.keep_sessions_secs {
            0 => "; they end with the server".to_owned(),
            span => format!("; they outlive the server by {span} s"),
        });
    }
    match &details.degraded {
        Some(why) => format!("{summary}\n{}", plain(why)),
        None => summary,
    }
}

/// The servers that act as one with this one, if there are any.
fn servers(fleet: &FleetHealth) -> Option<String> {
    let row = |server: &FellowJson| {
        let url = server.url.as_deref().map_or("-".to_owned(), plain);
        let texts = [&server.name, &server.version, &server.state].map(|text| plain(text));
        texts.into_iter().chain([url, server.workers.to_string()]).collect()
    };
    let table = filled(
        &["server", "version", "state", "address", "workers"],
        fleet.servers.iter().map(row),
        1,
    )?;
    let (name, group) = (plain(&fleet.name), plain(&fleet.group));
    let (lent, borrowed) =
        (count(fleet.slots_lent.into(), "slot"), count(fleet.slots_borrowed.into(), "slot"));
    Some(format!("{name}, in the group {group}: {lent} lent, {borrowed} borrowed\n{table}"))
}

/// The columns of the last requests.
const LAST: [&str; 9] =
    ["ended", "key", "model", "provider", "outcome", "prompt", "answer", "first", "total"];

/// If an answer came from several providers, only their column shows that. It is not shortened then: the
/// columns of the first byte and of the tokens are left out before it.
fn precedence(requests: &[RequestJson]) -> Precedence {
    let went_on = requests.iter().any(|request| request.providers().len() > 1);
    if went_on { Precedence { whole: Some(3), spare: &[7, 5, 6] } } else { Precedence::default() }
}

/// The scope that belongs to no room.
const SERVER: &str = "server";

/// A time in the unit that leaves few digits.
fn milliseconds(time: u64) -> String {
    match time {
        0..1_000 => format!("{time}ms"),
        _ => format!("{:.1}s", time as f64 / 1_000.0),
    }
}

fn state(worker: &WorkerJson) -> String {
    match worker.resting_secs {
        _ if worker.is_draining => "draining".to_owned(),
        Some(rest) => format!("rests {rest:.0}s"),
        None => "ready".to_owned(),
    }
}

fn queues(queues: &[QueueJson]) -> Option<String> {
    let row = |queue: &QueueJson| {
        let oldest = format!("{:.1}s", queue.oldest_secs);
        vec![plain(&queue.scope), plain(&queue.model), queue.depth.to_string(), oldest]
    };
    let header = ["scope", "model", "waiting", "oldest"];
    filled(&header, queues.iter().map(row), 2)
}

/// The requested model, and the one that served it if that differs.
fn served(request: &RequestJson) -> String {
    match &request.served_model {
        Some(served) => plain(&format!("{} ({served})", request.model)),
        None => plain(&request.model),
    }
}

fn outcome(request: &RequestJson) -> String {
    match request.status {
        Some(status) if status != 200 => plain(&format!("{} {status}", request.outcome)),
        _ => plain(&request.outcome),
    }
}

/// A table, if there is anything to show in it.
fn filled(
    header: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    right: usize,
) -> Option<String> {
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(header, &rows, right))
}

#[cfg(test)]
mod tests {
    use client::admin::status::WorkspaceHealth;

    use super::*;

    fn tables() -> Tables {
        Tables { names: Names::default(), now: "2026-11-20T16:01:10Z".parse().unwrap() }
    }

    fn worker() -> WorkerJson {
        let models = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let (worker_id, worker_name) = ("w-1".to_owned(), "gpu\u{1b}".to_owned());
        let worker = WorkerJson { worker_id, worker_name, models, ..WorkerJson::default() };
        WorkerJson {
            scope: "server".to_owned(),
            in_flight: 1,
            reported_load: 3,
            max_concurrent: 4,
            ..worker
        }
    }

    fn answered() -> RequestJson {
        let json = json!({
            "n": 1, "id": "r-1", "at": "2026-11-20T16:00:00.123Z", "key": "local", "model": "fast",
            "served_model": "m", "endpoint": "/v1/messages", "provider": "gpu",
            "outcome": "backend_refused", "status": 400, "prompt_tokens": 3,
            "completion_tokens": null, "estimated": true, "queue_ms": 1, "first_byte_ms": 2,
            "total_ms": 40, "streaming": true, "requeues": 0,
            "resumes": [{"from": "old", "to": "gpu", "characters": 7}],
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_report_shows_workers_queues_and_last_requests() {
        let details = HealthDetails {
            uptime_secs: 3_700,
            workers_connected: 1,
            workers: vec![worker()],
            queue_depth: 2,
            in_flight: 1,
            ..HealthDetails::default()
        };
        let (status, version) = ("ok".to_owned(), "0.1.0".to_owned());
        let health = Health { status, version, details: Some(details), ..Health::default() };
        let queue =
            QueueJson { scope: "server".into(), model: "m".into(), depth: 2, oldest_secs: 1.26 };
        let stats = Stats { queues: vec![queue], ..Stats::default() };
        let told = tables().readable(&health, &stats, &[answered()]);
        let expected = "\
Warren 0.1.0: ok, up 1h 1m
1 worker, 1 request in flight, 2 waiting

WORKER  MODELS            STATE  IN FLIGHT  LOAD  SLOTS
gpu\u{fffd}    a,b,c and 1 more  ready          1     3      4

SCOPE   MODEL  WAITING  OLDEST
server  m            2    1.3s

ENDED      KEY    MODEL     PROVIDER   OUTCOME              PROMPT  ANSWER  FIRST  TOTAL
1m 9s ago  local  fast (m)  old → gpu  backend_refused 400      ~3       -    2ms   40ms";
        assert_eq!(told, expected, "{told}");
    }

    #[test]
    fn an_answer_that_went_on_elsewhere_names_its_workers_in_full_at_80_columns() {
        let json = json!({
            "n": 2, "id": "r-2", "at": "2026-11-20T16:00:00.123Z", "key": "local",
            "model": "qwen3:8b-instruct", "served_model": null, "endpoint": "/v1/messages",
            "provider": "linbox", "outcome": "answered", "status": 200, "prompt_tokens": 1234,
            "completion_tokens": 567, "estimated": false, "queue_ms": 1, "first_byte_ms": 210,
            "total_ms": 40_000, "streaming": true, "requeues": 0,
            "resumes": [{"from": "winbox", "to": "linbox", "characters": 7}],
        });
        let request: RequestJson = serde_json::from_value(json).unwrap();
        let expected = "\
ENDED      KEY    MODEL         PROVIDER         OUTCOME   PROMPT  ANSWER  TOTAL
1m 9s ago  local  qwen3:…truct  winbox → linbox  answered    1234     567  40.0s
(no room for first: a wider terminal shows them, and --json)";
        let table = tables().last(&[request], 80).unwrap();
        assert_eq!(table, expected, "{table}");
    }

    #[test]
    fn the_scope_is_shown_where_there_are_rooms_and_times_are_short() {
        let in_room = WorkerJson { scope: "swift-eagle-42".to_owned(), ..worker() };
        let told = tables().workers(&[worker(), in_room]).unwrap();
        assert!(told.contains("SCOPE") && told.contains("swift-eagle-42"), "{told}");
        assert_eq!([0, 999, 1_000, 61_250].map(milliseconds), ["0ms", "999ms", "1.0s", "61.2s"]);
    }

    #[test]
    fn models_in_memory_are_listed_and_others_not() {
        let mut worker = worker();
        assert_eq!(tables().in_memory(&[worker.clone()]), None);
        let states =
            [("a", LoadState::Loaded), ("b", LoadState::Unloaded), ("c", LoadState::Loading)];
        for (model, load) in states {
            let facts = ModelFacts {
                load: Some(load),
                file_bytes: Some(5 << 30),
                last_used_ms: (load == LoadState::Loaded).then_some(1_795_190_270_000),
                ..ModelFacts::default()
            };
            worker.model_facts.insert(model.to_owned(), facts);
        }
        let told = tables().in_memory(&[worker]).unwrap();
        let rows: Vec<Vec<&str>> =
            told.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["a", "gpu\u{fffd}", "loaded", "3m", "5.0", "GiB", "-"], "{told}");
        assert_eq!(rows[1], ["c", "gpu\u{fffd}", "loading", "-", "5.0", "GiB", "-"], "{told}");
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn servers_that_act_as_one_are_listed_and_workers_have_theirs() {
        let other = FellowJson {
            name: "b:9178".to_owned(),
            version: "0.1.0".to_owned(),
            state: "active".to_owned(),
            workers: 1,
            ..FellowJson::default()
        };
        let fleet = FleetHealth {
            name: "a:9178".to_owned(),
            group: "warren".to_owned(),
            servers: vec![other],
            slots_borrowed: 1,
            ..FleetHealth::default()
        };
        let expected = "\
a:9178, in the group warren: 0 slots lent, 1 slot borrowed
SERVER  VERSION  STATE   ADDRESS  WORKERS
b:9178  0.1.0    active  -              1";
        assert_eq!(servers(&fleet).as_deref(), Some(expected));
        assert_eq!(servers(&FleetHealth::default()), None);
        let theirs = WorkerJson { server: Some("b:9178".to_owned()), ..worker() };
        let told = tables().workers(&[worker(), theirs]).unwrap();
        assert!(told.contains("SERVER") && told.contains("b:9178"), "{told}");
    }

    #[test]
    fn an_idle_server_takes_two_lines() {
        let details = HealthDetails {
            degraded: Some("the disk is full".to_owned()),
            ..HealthDetails::default()
        };
        let health =
            Health { details: Some(details), status: "degraded".to_owned(), ..Health::default() };
        let told = tables().readable(&health, &Stats::default(), &[]);
        assert_eq!(
            told,
            "Warren -: degraded, up 0s\n0 workers, 0 requests in flight, 0 waiting\nthe disk is full"
        );
    }

    #[test]
    fn sessions_are_counted_if_there_are_any() {
        let workspace =
            WorkspaceHealth { clients: 1, sessions: 3, live_sessions: 2, keep_sessions_secs: 60 };
        let details = HealthDetails { workspace: Some(workspace), ..HealthDetails::default() };
        let told = summary(&Health::default(), &details);
        let kept = "3 sessions, 2 of them live, 1 client; they outlive the server by 60 s";
        assert!(told.ends_with(kept), "{told}");
        let details = HealthDetails { workspace: Some(<_>::default()), ..HealthDetails::default() };
        assert!(!summary(&Health::default(), &details).contains("session"));
    }

    #[test]
    fn the_state_shows_why_a_worker_gets_no_work() {
        assert_eq!(state(&WorkerJson { resting_secs: Some(4.6), ..worker() }), "rests 5s");
        assert_eq!(state(&WorkerJson { is_draining: true, ..worker() }), "draining");
        assert_eq!(["59s", "1m 0s", "1d 1h"], [59, 60, 90_000].map(span));
    }
}
