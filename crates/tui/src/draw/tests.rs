//! Every screen as it is drawn, compared with files under `tests/snapshots`. With
//! `UPDATE_SNAPSHOTS=1` in the environment the files are written again.

mod pages;

use std::{fs, path::PathBuf};

use client::{
    ClientError,
    admin::status::{Health, HealthDetails, QueueJson, Stats},
};
use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use protocol::workspace::{ClusterStatus, SessionInfo, SessionMode, SessionStatus};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Size, style::Color};
use serde_json::{Value, json};

use super::draw;
use crate::app::{
    App, Settings,
    event::{Event, Piece, PollAnswers, RoomNews},
    fixture::{cluster, done, participant, refused, request, room, session, unreachable},
    workspace::WorkspaceReport,
};

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_795_170_970 + secs).unwrap()
}

fn drawn(app: &App) -> Buffer {
    let Size { width, height } = app.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let row = |y| {
        let mut row = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(crate::text::width(symbol)).unwrap().max(1);
        }
        format!("{}\n", row.trim_end())
    };
    (0..buffer.area.height).map(row).collect()
}

/// An interface that has begun to ask its server.
fn started(width: u16, height: u16, colour: bool) -> App {
    let servers = vec!["http://127.0.0.1:9178".to_owned()];
    let settings = Settings { servers, colour, ..Settings::default() };
    let mut app = App::new(settings, Size { width, height }, at(0));
    app.start();
    app
}

/// Compares what is drawn with the file of this name.
#[track_caller]
fn compare(name: &str, drawn: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, drawn).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected != drawn {
        let lines = expected.lines().chain(std::iter::repeat("")).zip(drawn.lines());
        let differ = lines.filter(|(expected, drawn)| expected != drawn);
        let differ: String = differ.map(|(e, d)| format!("-{e}\n+{d}\n")).collect();
        panic!("{name} is drawn otherwise (UPDATE_SNAPSHOTS=1 keeps it):\n{differ}\n{drawn}");
    }
}

/// Draws what `show` makes of an interface, in both sizes.
#[track_caller]
fn snapshots(name: &str, show: impl Fn(&mut App)) {
    for (width, height) in SIZES {
        let mut app = started(width, height, false);
        show(&mut app);
        compare(&format!("{name}_{width}x{height}"), &text(&drawn(&app)));
    }
}

fn press(app: &mut App, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '⏎' => KeyCode::Enter,
            '⎋' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '→' => KeyCode::Right,
            c => KeyCode::Char(c),
        };
        app.handle(at(20), Event::Key(KeyEvent::from(code)));
    }
}

fn worker(name: &str, scope: &str, busy: u32, more: &Value) -> Value {
    let mut worker = json!({
        "worker_id": "w-1", "id": "w-1", "worker_name": name, "scope": scope,
        "models": ["llama3.2:3b", "qwen3:8b"], "endpoints": [], "max_concurrent": 2,
        "reported_load": busy, "in_flight_count": busy, "in_flight": busy, "is_draining": false,
        "resting_secs": null,
    });
    let (all, more) = (worker.as_object_mut().unwrap(), more.as_object().unwrap().clone());
    all.extend(more);
    worker
}

fn health() -> Health {
    let workers = json!([
        worker("gpu-box", "server", 2, &json!({})),
        worker("laptop", "server", 0, &json!({"resting_secs": 4.6})),
        worker("日本の機械", "room:room-id-1", 1, &json!({"is_draining": true})),
    ]);
    let details = HealthDetails {
        uptime_secs: 3_725,
        workers_connected: 3,
        workers: serde_json::from_value(workers).unwrap(),
        queue_depth: 4,
        in_flight: 3,
        models: vec!["llama3.2:3b".to_owned(), "qwen3:8b".to_owned()],
        ..HealthDetails::default()
    };
    let (status, version) = ("ok".to_owned(), "0.1.0".to_owned());
    Health { status, ok: true, version, peers: 0, details: Some(details) }
}

fn stats() -> Stats {
    let (scope, model) = ("server".to_owned(), "llama3.2:3b".to_owned());
    let queue = QueueJson { scope, model, depth: 4, oldest_secs: 1.26 };
    Stats { queues: vec![queue], ..Stats::default() }
}

fn poll(app: &mut App, secs: i64, polled: PollAnswers) {
    app.handle(at(secs), Event::Polled { epoch: 1, polled: Box::new(polled) });
}

/// A server that did something for 20 s.
fn busy(app: &mut App) {
    let mut n = 0;
    for second in 0..=20_u64 {
        let mut requests = Vec::new();
        for _ in 0..second % 5 {
            n += 1;
            let mut ended = request(n);
            if n % 7 == 0 {
                (ended.outcome, ended.status) = ("queue_timeout".to_owned(), Some(503));
                (ended.provider, ended.completion_tokens) = (None, None);
            }
            requests.insert(0, ended);
        }
        let locked = json!({
            "id": "room-id-2", "code": "2B3C4D", "spokenCode": "calm-otter-17", "name": "Work",
            "hostId": "h", "createdAt": 1, "passwordProtected": true, "participantCount": 3,
        });
        let rooms = vec![room(), serde_json::from_value(locked).unwrap()];
        let mut health = health();
        health.details.as_mut().unwrap().in_flight = 1 + second % 3;
        let (stats, requests, rooms) = (Some(Ok(stats())), Some(Ok(requests)), Some(Ok(rooms)));
        poll(
            app,
            i64::try_from(second).unwrap(),
            PollAnswers { health: Ok(health), stats, requests, rooms, names: <_>::default() },
        );
    }
}

fn news(app: &mut App, news: RoomNews) {
    app.handle(at(20), Event::Room { watch: 1, news: Box::new(news) });
}

fn happen(app: &mut App, secs: u64, event: &Value) {
    let mut event = event.clone();
    event["timestamp"] = json!((1_795_170_970 + secs) * 1_000);
    event["roomCode"] = json!("K7QWTZ");
    news(app, RoomNews::Happened(serde_json::from_value(event).unwrap()));
}

/// The first room of a busy server, with something going on.
fn lively(app: &mut App) {
    busy(app);
    news(app, RoomNews::Opened(room()));
    let mut others = vec![participant("ada"), participant("bob"), participant("eve")];
    others[1].status = protocol::room::Status::Busy;
    others[1].metrics = Some(done("bob").metrics);
    others[1].specs = serde_json::from_value(json!({"cpu": "Apple M3", "ram": 36})).unwrap();
    others[2].status = protocol::room::Status::Offline;
    others[2].specs = serde_json::from_value(json!({})).unwrap();
    news(app, RoomNews::People(others));
    let asked = json!({
        "requestId": "r-1", "participantId": "bob", "model": "*", "protocol": "chatCompletions",
    });
    happen(app, 1, &json!({"type": "participant.joined", "data": participant("ada")}));
    happen(app, 2, &json!({"type": "llm.request", "data": asked}));
    for (seq, token) in [
        "Rabbits dig warrens: ",
        "many rooms, ",
        "joined by tunnels, ",
        "in which a whole colony lives together. 兎は穴を掘る。",
    ]
    .iter()
    .enumerate()
    {
        let token = json!({"requestId": "q", "participantId": "bob", "token": token, "seq": seq});
        happen(app, 3, &json!({"type": "llm.token", "data": token}));
    }
    happen(app, 4, &json!({"type": "llm.complete", "data": done("bob")}));
    let failed = json!({
        "requestId": "r-2", "participantId": "eve", "nickname": "Eve", "endpoint": "http://e",
        "model": "m", "protocol": "chatCompletions", "stage": "stream",
        "error": "the participant was lost",
    });
    happen(app, 5, &json!({"type": "llm.error", "data": failed}));
    happen(app, 5, &json!({"type": "participant.offline", "data": {"participantId": "eve"}}));
}

/// A question in the room, as far as `pieces` of its answer.
fn asked(app: &mut App, pieces: &[Piece]) {
    lively(app);
    press(app, "4What is a warren?⏎");
    for (secs, piece) in (21..).zip(pieces) {
        app.handle(at(secs), Event::Answer { question: 1, piece: piece.clone() });
    }
}

#[test]
fn the_overview_of_a_busy_server() {
    snapshots("overview", busy);
}

#[test]
fn the_overview_before_anything_was_heard() {
    snapshots("overview_empty", |_| {});
}

#[test]
fn the_overview_of_a_server_that_is_lost() {
    snapshots("overview_lost", |app| {
        busy(app);
        let lost = || PollAnswers {
            health: Err(unreachable()),
            stats: None,
            requests: None,
            rooms: None,
            names: <_>::default(),
        };
        poll(app, 21, lost());
        poll(app, 24, lost());
    });
}

#[test]
fn the_overview_without_a_token() {
    snapshots("overview_private", |app| {
        let health = Health { details: None, ..health() };
        let private = || Some(Err(refused(401)));
        let polled = PollAnswers {
            health: Ok(health),
            stats: private().map(|e| e.map(|()| stats())),
            requests: private().map(|e| e.map(|()| vec![])),
            rooms: Some(Ok(vec![])),
            names: <_>::default(),
        };
        poll(app, 1, polled);
    });
}

#[test]
fn a_room_in_which_something_goes_on() {
    snapshots("room", |app| {
        lively(app);
        press(app, "2→");
    });
}

#[test]
fn a_room_that_needs_its_password() {
    snapshots("room_locked", |app| {
        busy(app);
        press(app, "2");
        news(app, RoomNews::Refused(refused(401)));
        press(app, "psecret");
    });
}

#[test]
fn no_rooms_at_all() {
    snapshots("room_none", |app| press(app, "2"));
}

#[test]
fn the_request_log_with_a_filter() {
    snapshots("requests", |app| {
        busy(app);
        press(app, "3↓↓/llama");
    });
}

#[test]
fn one_request_whole() {
    snapshots("requests_whole", |app| {
        busy(app);
        press(app, "3↓⏎");
    });
}

#[test]
fn the_request_log_without_the_rights_of_an_administrator() {
    snapshots("requests_private", |app| {
        let requests = Some(Err(refused(403)));
        poll(
            app,
            1,
            PollAnswers {
                health: Ok(health()),
                stats: None,
                requests,
                rooms: None,
                names: <_>::default(),
            },
        );
        press(app, "3");
    });
}

#[test]
fn a_question_that_is_written() {
    snapshots("ask", |app| {
        lively(app);
        press(app, "4What is a");
    });
}

#[test]
fn an_answer_as_it_comes_and_when_it_is_whole() {
    let text = Piece::Text("A warren is a network of burrows. ".repeat(9));
    let whole = Piece::Done { tokens: Some(72), metrics: None };
    snapshots("ask_streaming", |app| asked(app, std::slice::from_ref(&text)));
    snapshots("ask_done", |app| asked(app, &[text.clone(), whole.clone()]));
}

#[test]
fn an_answer_that_did_not_come() {
    snapshots("ask_failed", |app| asked(app, &[Piece::Failed("queue full".to_owned())]));
}

#[test]
fn ask_targets() {
    snapshots("ask_whom", |app| {
        lively(app);
        press(app, "4⎋m");
        press(app, "room");
        app.handle(at(20), Event::Key(KeyEvent::from(KeyCode::Down)));
    });
}

/// A server's answer about a workspace of three machines.
fn workspace(app: &mut App, cluster: ClusterStatus, sessions: Vec<SessionInfo>) {
    let came = Box::new(Ok(WorkspaceReport { cluster, sessions }));
    app.handle(at(20), Event::Workspace { watch: app.workspace.watch, came });
}

fn of_three(app: &mut App) {
    press(app, "5");
    let mut others = vec![session(1), session(2), session(3), session(4)];
    let agent = json!({"type": "agent", "provider": "codex"});
    others[1] = SessionInfo {
        name: None,
        mode: SessionMode::Sdk,
        status: SessionStatus::Idle,
        kind: serde_json::from_value(agent).unwrap(),
        provider: "codex".to_owned(),
        model: Some("warren:qwen3".to_owned()),
        node_id: Some("node-two".to_owned()),
        ..session(2)
    };
    others[2].reachable = false;
    others[2].node_id = Some("node-three".to_owned());
    others[3].status = SessionStatus::Exited;
    others[3].exit_code = Some(3);
    workspace(app, cluster(), others);
}

#[test]
fn a_workspace_of_several_machines() {
    snapshots("workspace", of_three);
}

#[test]
fn a_long_notice_is_shown_whole_and_many_leave_room_for_the_sessions() {
    let mut app = started(80, 24, false);
    press(&mut app, "5");
    let long = "the machine two cannot be reached at 192.168.1.3:9179 because its certificate is not the one \
         that was noted when it joined; take it out and invite it again";
    let cluster = |notices| ClusterStatus { notices, ..cluster() };
    workspace(&mut app, cluster(vec![long.to_owned()]), vec![session(1)]);
    let shown = text(&drawn(&app)).replace(['│', '\n'], " ");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(long), "{shown}");
    workspace(&mut app, cluster(vec![long.repeat(20); 5]), vec![session(1)]);
    assert!(text(&drawn(&app)).contains("build-1"));
}

#[test]
fn one_session_whole() {
    snapshots("workspace_whole", |app| {
        of_three(app);
        press(app, "↓⏎");
    });
}

#[test]
fn a_workspace_of_one_machine_without_sessions() {
    snapshots("workspace_alone", |app| {
        press(app, "5");
        let (name, address) = (None, None);
        let (peers, notices) = (Vec::new(), Vec::new());
        let alone = ClusterStatus { name, address, peers, notices, ..cluster() };
        workspace(app, alone, Vec::new());
    });
}

#[test]
fn a_workspace_that_may_not_be_seen() {
    snapshots("workspace_private", |app| {
        press(app, "5");
        let (url, words) = ("http://127.0.0.1:9178".to_owned(), "no token was given".to_owned());
        let came = Box::new(Err(ClientError::NotAdmitted { url, words }));
        app.handle(at(20), Event::Workspace { watch: 1, came });
    });
}

#[test]
fn a_conversation_stays_and_its_markdown_is_rendered() {
    snapshots("ask_conversation", |app| {
        let answer = Piece::Text("# Warrens\n\n- many **rooms**\n- tunnels\n".to_owned());
        asked(app, &[answer, Piece::Done { tokens: Some(9), metrics: None }]);
        press(app, "⏎And who lives there?⏎");
        let piece = Piece::Text("Rabbits.".to_owned());
        app.handle(at(30), Event::Answer { question: 2, piece });
        app.handle(
            at(31),
            Event::Answer { question: 2, piece: Piece::Done { tokens: Some(2), metrics: None } },
        );
    });
}

#[test]
fn the_keys() {
    snapshots("help", |app| press(app, "?"));
}

#[test]
fn a_terminal_that_is_too_small_gets_a_message() {
    let mut app = started(60, 20, false);
    busy(&mut app);
    compare("too_small", &text(&drawn(&app)));
}

#[test]
fn every_screen_can_be_drawn_in_every_size() {
    for width in [0, 1, 20, 79, 80, 81, 109, 110, 300] {
        for height in [0, 1, 5, 23, 24, 25, 100] {
            let mut app = started(width, height, false);
            lively(&mut app);
            of_three(&mut app);
            for keys in ["1", "2→→", "3⏎", "⎋4⎋m", "⎋5⏎", "⎋6⏎", "⎋7", "8c", "⎋8r", "⎋?"]
            {
                press(&mut app, keys);
                drawn(&app);
            }
        }
    }
}

#[test]
fn colours_show_states() {
    let mut app = started(80, 24, true);
    lively(&mut app);
    press(&mut app, "2");
    let buffer = drawn(&app);
    let shown = text(&buffer);
    let colour_of = |word: &str| {
        let (y, line) = shown.lines().enumerate().find(|(_, line)| line.contains(word)).unwrap();
        let x = crate::text::width(&line[..line.find(word).unwrap()]);
        buffer[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())].fg
    };
    let colours = ["online", "busy", "offline"].map(colour_of);
    assert_eq!(colours, [28, 166, 243].map(Color::Indexed));
    assert!(buffer.content.iter().all(|cell| cell.bg == Color::Reset));
}

#[test]
fn without_colours_nothing_is_coloured() {
    let mut app = started(80, 24, false);
    lively(&mut app);
    of_three(&mut app);
    for keys in ["1", "2", "3", "4⎋", "5⏎", "?"] {
        press(&mut app, keys);
        let buffer = drawn(&app);
        assert!(
            buffer.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset))
        );
    }
}

#[test]
fn nothing_that_steers_a_terminal_is_drawn() {
    let mut app = started(120, 40, false);
    lively(&mut app);
    let mut health = health();
    let worker = &mut health.details.as_mut().unwrap().workers[0];
    worker.worker_name = "\u{1b}[2J\u{202e}".to_owned();
    worker.models = vec!["m\u{9b}\u{2066}\u{200f}".to_owned()];
    poll(
        &mut app,
        21,
        PollAnswers {
            health: Ok(health),
            stats: None,
            requests: None,
            rooms: None,
            names: <_>::default(),
        },
    );
    let token = json!({"requestId": "q", "participantId": "bob", "token": "\u{1b}[31m", "seq": 9});
    happen(&mut app, 8, &json!({"type": "llm.token", "data": token}));
    let event = json!({"type": "room.closed", "data": {"reason": "\u{1b}]0;x\u{7}"}});
    happen(&mut app, 9, &event);
    let evil = "\u{1b}]0;x\u{7}".to_owned();
    let mut cluster = cluster();
    (cluster.name, cluster.notices) = (Some(evil.clone()), vec![evil.clone()]);
    let (name, tags) = (Some(evil.clone()), vec![evil.clone()]);
    press(&mut app, "5");
    workspace(&mut app, cluster, vec![SessionInfo { name, tags, working_dir: evil, ..session(1) }]);
    for keys in ["1", "2", "3", "4⎋", "5", "5⏎", "?"] {
        press(&mut app, keys);
        let shown = text(&drawn(&app));
        assert!(!shown.lines().any(base::plain::is_unsafe), "{keys}: {shown}");
    }
}

#[test]
fn the_book_shows_what_is_drawn() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read_to_string(root.join("../../docs/src/tui.md")).unwrap();
    for name in ["overview", "room", "ask_conversation", "workspace", "mesh", "usage", "keys"] {
        let name = format!("{name}_80x24");
        let drawn = fs::read_to_string(root.join(format!("tests/snapshots/{name}.txt"))).unwrap();
        assert!(book.contains(&drawn), "docs/src/tui.md shows another {name}");
    }
}
