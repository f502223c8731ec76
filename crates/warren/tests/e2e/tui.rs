//! The terminal interface in a real terminal: a pseudo-terminal, and tmux where it is installed.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{
    ChildProcess, Daemon, Form, RefusingPort, Room,
    chat::{FINISH, delta},
    eventually,
    workspace::WorkspaceClient,
};

use crate::{
    common::{binary, join, serve},
    room_people::Person,
    rooms_kit::open_room,
    terminal::Terminal,
};

/// The interface on a server, with its administrator's token.
fn tui(daemon: &Daemon, args: &[&str]) -> Terminal {
    let (url, directory) = (daemon.url(), daemon.data_dir().display().to_string());
    let all = ["tui", "--server", &url, "--data-dir", &directory];
    Terminal::start(&[&all[..], args].concat())
}

#[tokio::test]
async fn a_model_is_asked_and_the_request_is_in_the_log() {
    let daemon = serve().start().await;
    let mut worker = join(&daemon, Form::Binary, "gpu-box", 1).await;
    let mut tui = tui(&daemon, &[]);
    tui.shows("gpu-box").await;
    tui.shows("ready").await;
    tui.press("4").await;
    tui.shows("the server · m").await;
    tui.press("What is a warren?\r").await;
    let job = worker.expect_job().await;
    let body: Value = serde_json::from_slice(&job.body).unwrap();
    assert_eq!(body["messages"][0]["content"], "What is a warren?");
    worker.begin(&job, 200, &[("content-type", "text/event-stream")]).await;
    worker.chunk(&job, &delta("Many bur")).await;
    tui.shows("Many bur").await;
    worker.chunk(&job, &delta("rows.")).await;
    worker.chunk(&job, FINISH).await;
    worker.finish(&job).await;
    tui.shows("Many burrows.").await;
    tui.shows("4 tokens in").await;
    tui.press("3").await;
    tui.shows("answered").await;
    tui.press("q").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn events_of_a_room_are_shown_as_they_happen() {
    let daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let mut tui = tui(&daemon, &["--room", &room.spoken]);
    tui.shows(&format!("{} / {}", room.spoken, room.code)).await;
    tui.shows("Nobody is here").await;
    let mut ada = room.friend(&daemon, "ada").await;
    tui.shows("joined with m").await;
    tui.shows("online").await;
    // Asked aloud, the whole room sees the answer: on this screen, too.
    tui.press("a\u{1b}").await;
    tui.shows("Enter write").await;
    tui.press("a").await;
    tui.shows("aloud").await;
    tui.press("ihello\r").await;
    let ask = ada.expect_request().await;
    ada.start(&ask, 200, "text/event-stream").await;
    ada.chunk(&ask, delta("Hi th")).await;
    tui.shows("Hi th").await;
    tui.click("2 Rooms").await;
    tui.shows("Ann: Hi th").await;
    ada.chunk(&ask, delta("ere.")).await;
    ada.chunk(&ask, FINISH).await;
    ada.end(&ask).await;
    tui.shows("Ann: Hi there.").await;
    tui.shows("4 tokens in").await;
    ada.leave().await;
    tui.shows("Ann left").await;
    tui.press("q").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn a_room_is_found_on_the_server_on_which_it_was_made_here() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "Friends"]).await;
    for room in [code.clone(), format!("{}/rooms/{code}", daemon.url())] {
        let mut tui = person.terminal(&["tui", "--room", &room]);
        tui.shows("Nobody is here").await;
        tui.shows(&code).await;
        tui.press("q").await;
        tui.ends(0).await;
    }
}

#[tokio::test]
async fn a_room_with_a_password_asks_for_it() {
    let daemon = serve().start().await;
    let locked = json!({"name": "friends", "password": "open sesame"});
    let room = Room::make(&daemon.client(), &locked).await;
    let mut tui = tui(&daemon, &[]);
    tui.press("2").await;
    tui.shows("needs its password").await;
    tui.press("pwrong\r").await;
    tui.shows("was not this room's password").await;
    tui.press("popen sesame\r").await;
    tui.shows(&format!("{} / {}", room.spoken, room.code)).await;
    tui.shows("Nobody is here").await;
    tui.signal("TERM").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn a_server_that_was_lost_is_back_with_its_rooms() {
    let mut daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let mut tui = tui(&daemon, &["--room", &room.code]);
    tui.shows(&room.spoken).await;
    tui.shows("Nobody is here").await;
    let _bob = room.put(&daemon, "bob").field("nickname", json!("bob")).join().await;
    tui.shows("bob joined with m").await;
    daemon.kill_and_restart().await;
    // The room is watched again, from where the connection broke off.
    let _ada = room.put(&daemon, "ada").field("nickname", json!("ada")).join().await;
    tui.shows("ada joined with m").await;
    tui.shows("trying again").await;
    tui.hides("Lost for").await;
    tui.press("\u{3}").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn a_workspace_is_shown_as_it_changes() {
    let member = |name| {
        let serve = serve().set("--cluster-token", "secret").set("--node-name", name);
        serve.set("--peer-listen", "127.0.0.1:0")
    };
    let one = member("one").start().await;
    let mut client = client(&one).await;
    let mut tui = tui(&one, &[]);
    tui.press("5").await;
    tui.shows("this server").await;
    tui.shows("No sessions").await;
    let open = |name: &str, node: &str| {
        json!({
            "type": "open_terminal", "working_dir": "/", "command": "cat", "name": name,
            "node_id": node,
        })
    };
    client.ask(open("here", "one"), "terminal_opened").await;
    tui.shows("Sessions: 1").await;
    tui.shows("cat").await;
    // Another member, and a session of it.
    let config = client.ask(json!({"type": "get_cluster_config"}), "cluster_config").await;
    let peer = format!("127.0.0.1:{}", config["peer_port"]);
    let two = member("two").set("--peer", &peer).start().await;
    tui.shows("reachable").await;
    tui.shows("Machine ").await;
    client.ask(open("there", "two"), "terminal_opened").await;
    tui.shows("Sessions: 2").await;
    tui.shows("there").await;
    drop(two);
    tui.shows("not reachable").await;
    tui.press("\u{1b}[B\r").await;
    tui.shows("warren session attach").await;
    tui.press("q").await;
    tui.ends(0).await;
}

/// A client of the server's workspace, with the administrator's token.
async fn client(daemon: &Daemon) -> WorkspaceClient {
    let token = std::fs::read_to_string(daemon.data_dir().join("admin.token"));
    WorkspaceClient::connect(daemon.address(), token.expect("a token").trim()).await
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_on_every_screen() {
    let nobody = RefusingPort::take();
    let mut tui = Terminal::start(&["tui", "--server", &nobody.url(), "--token", "t"]);
    for screen in ["1", "2", "3", "5", "6"] {
        tui.press(screen).await;
        tui.shows("trying again").await;
    }
    tui.press("q").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn the_window_may_have_any_size() {
    let daemon = serve().start().await;
    let mut tui = tui(&daemon, &[]);
    tui.shows("Queues").await;
    tui.resize(10, 40);
    tui.shows("Warren needs a terminal of 80×24.").await;
    tui.resize(40, 120);
    tui.shows("Queues").await;
    let wide = tui.screen().lines().map(|line| line.chars().count()).max();
    assert_eq!(wide, Some(120), "{}", tui.screen());
    tui.press("?").await;
    tui.shows("Everywhere").await;
    tui.signal("INT").await;
    tui.ends(0).await;
}

/// A key and a new size often come together: a window is dragged while somebody types.
#[tokio::test]
async fn a_key_that_comes_with_a_new_size_is_not_lost() {
    let daemon = serve().start().await;
    let mut tui = tui(&daemon, &[]);
    tui.shows("Queues").await;
    for width in 100..150 {
        tui.resize(40, width);
        tui.press("?").await;
        tui.shows("Everywhere").await;
        tui.resize(30, width);
        tui.press("\u{1b}").await;
        tui.hides("Everywhere").await;
    }
    tui.press("q").await;
    tui.ends(0).await;
}

#[tokio::test]
async fn without_a_terminal_it_says_so() {
    let mut tui = ChildProcess::start("tui", binary(), &["tui"]);
    tui.line_with("needs a terminal").await;
    assert_eq!(tui.exit().await, Some(2));
}

/// tmux with a server of its own, which ends with it.
struct Tmux(String);

impl Tmux {
    fn is_installed() -> bool {
        let asked = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    fn start(command: &[&str]) -> Self {
        let tmux = Self(format!("warren-{}", std::process::id()));
        let window = ["-f", "/dev/null", "new-session", "-d", "-s", "w", "-x", "100", "-y", "30"];
        tmux.run(&[&window[..], command].concat());
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let done = Command::new("tmux").args(["-L", &self.0]).args(args).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    async fn shows(&self, text: &str) {
        let shown = async || self.run(&["capture-pane", "-p", "-t", "w"]).contains(text);
        eventually(text, testkit::DEADLINE, shown).await;
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[tokio::test]
async fn tmux_shows_it_too() {
    if !Tmux::is_installed() {
        // The tests above have driven the same in a terminal of their own.
        return;
    }
    let daemon = serve().start().await;
    let _worker = join(&daemon, Form::Binary, "gpu-box", 1).await;
    let (url, directory) = (daemon.url(), daemon.data_dir().display().to_string());
    let binary = binary().display().to_string();
    let tmux = Tmux::start(&[&binary, "tui", "--server", &url, "--data-dir", &directory]);
    tmux.shows("gpu-box").await;
    tmux.run(&["send-keys", "-t", "w", "3"]);
    tmux.shows("No request.").await;
    tmux.run(&["send-keys", "-t", "w", "BTab"]);
    tmux.shows("Rooms").await;
    tmux.run(&["send-keys", "-t", "w", "5"]);
    tmux.shows("This machine is in no cluster").await;
    tmux.run(&["resize-window", "-t", "w", "-x", "120", "-y", "40"]);
    tmux.run(&["send-keys", "-t", "w", "?"]);
    tmux.shows("Everywhere").await;
    tmux.run(&["send-keys", "-t", "w", "q"]);
    let ended = async || !tmux.run(&["list-sessions"]).contains('w');
    eventually("the end of the session", testkit::DEADLINE, ended).await;
}
