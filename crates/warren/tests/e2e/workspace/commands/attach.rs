//! A session that is used from a terminal.

use testkit::workspace::Cutter;

use crate::{
    terminal::Terminal,
    workspace::{
        kit::{TOKEN, WorkspaceHost},
        talk::Agents,
    },
};

/// What detaches: Ctrl-].
pub(super) const DETACH: &str = "\u{1d}";

/// Says back what it is told, line by line.
pub(super) const ECHO: &str = "stty -echo; echo hello; while read x; do echo \"<$x>\"; done";

impl WorkspaceHost {
    pub(super) fn terminal(&self, words: &[&str], args: &[&str]) -> Terminal {
        Terminal::start(&[words, &self.access().each_ref().map(String::as_str), args].concat())
    }
}

#[tokio::test]
async fn a_terminal_is_opened_typed_into_detached_from_and_come_back_to() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let mut terminal =
        place.terminal(&["open"], &["--name", "echo", "--dir", &dir, "--", "sh", "-c", ECHO]);
    terminal.shows("hello").await;
    terminal.press("one\r").await;
    terminal.shows("<one>").await;
    terminal.press(DETACH).await;
    terminal.shows("warren session attach").await;
    terminal.ends(0).await;
    let client = &mut place.client().await;
    let id = super::super::kit::id_of(&super::super::kit::listed(client).await[0]);
    place.is(&id, "detached").await;

    let mut terminal = place.terminal(&["session", "attach"], &["echo"]);
    terminal.shows("<one>").await;
    assert!(terminal.screen().contains("hello"), "{}", terminal.screen());
    terminal.press("two\r").await;
    terminal.shows("<two>").await;
    // The end of the input is the end of the command, and of the terminal's session.
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
    place.is(&id, "exited").await;
    let late = place.cli(&["session", "attach"], &["echo"]).await;
    assert!(late.code == Some(1) && late.err.contains("has ended"), "{late:?}");
}

#[tokio::test]
async fn the_session_has_the_size_of_the_window_that_is_typed_in() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let script = "trap 'echo size $(stty size) end' WINCH; stty size; while :; do sleep 0.02; done";
    let mut terminal = place.terminal(&["open"], &["--dir", &dir, "--", "sh", "-c", script]);
    terminal.shows("24 80").await;
    terminal.resize(30, 100);
    terminal.shows("size 30 100 end").await;
    terminal.press(DETACH).await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn a_command_that_ends_at_once_shows_all_its_output_and_its_exit_code() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let expected: Vec<String> = (1..=3000).map(|line| line.to_string()).collect();
    // Four at a time, so that they compete with each other.
    for _ in 0..10 {
        let script = ["--dir", &dir, "--", "sh", "-c", "seq 1 3000; echo END; exit 7"];
        let mut terminals = [(); 4].map(|()| place.terminal(&["open"], &script));
        for terminal in &mut terminals {
            terminal.shows("has ended with exit code 7").await;
            terminal.ends(7).await;
            let lines = terminal.lines();
            let from = lines.iter().position(|line| line == "1").expect("the first line");
            assert_eq!(lines[from..from + 3000], expected);
            assert_eq!(lines[from + 3000], "END");
        }
    }
}

#[tokio::test]
async fn a_command_that_a_signal_ended_has_128_and_its_number() {
    let place = WorkspaceHost::start().await;
    for (script, code) in [("kill -TERM $$", 143), ("exit 0", 0)] {
        let args = ["--dir", &place.dir(), "--", "sh", "-c", script];
        let mut terminal = place.terminal(&["open"], &args);
        terminal.ends(code).await;
    }
}

#[tokio::test]
async fn a_lost_connection_is_found_again_and_nothing_is_shown_or_typed_twice() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let opened = place
        .cli(&["open"], &["--detached", "--name", "echo", "--dir", &dir, "--", "sh", "-c", ECHO])
        .await;
    assert_eq!(opened.code, Some(0), "{opened:?}");
    let way = Cutter::calm(place.daemon.address()).await;
    let url = format!("http://{}", way.address());
    let args = ["session", "attach", "echo", "--server", &url, "--token", TOKEN];
    let mut terminal = Terminal::start(&args);
    terminal.shows("hello").await;
    for round in 0..5 {
        terminal.press(&format!("before {round}\r")).await;
        terminal.shows(&format!("<before {round}>")).await;
        way.cut();
        terminal.press(&format!("after {round}\r")).await;
        terminal.shows(&format!("<after {round}>")).await;
    }
    let screen = terminal.screen();
    assert_eq!(screen.matches("hello").count(), 1, "{screen}");
    for round in 0..5 {
        for word in ["before", "after"] {
            assert_eq!(screen.matches(&format!("<{word} {round}>")).count(), 1, "{screen}");
        }
    }
    terminal.press(DETACH).await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn a_server_that_only_accepts_and_closes_is_tried_until_it_is_back() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let way = Cutter::calm(place.daemon.address()).await;
    let url = format!("http://{}", way.address());
    let open = |script| {
        let words = ["open", "--server", &url, "--token", TOKEN, "--dir", &dir];
        Terminal::start(&[&words[..], &["--", "sh", "-c", script]].concat())
    };
    let last_line = "stty -echo; printf '\\033[24;1Hthe last line\\033[1;1H'; while read x; do echo \"<$x>\"; done";
    let [mut terminal, mut leaving] = [open(last_line), open(last_line)];
    terminal.shows("the last line").await;
    leaving.shows("the last line").await;
    // Nothing is there: the way itself accepts, and closes.
    let nothing = testkit::RefusingPort::take();
    way.lead_to(nothing.address());
    way.cut();
    terminal.shows("connection lost").await;
    leaving.shows("connection lost").await;
    leaving.press(DETACH).await;
    leaving.ends(0).await;
    terminal.press("later\r").await;
    way.lead_to(place.daemon.address());
    terminal.shows("<later>").await;
    terminal.hides("connection lost").await;
    // What the line had covered is there again.
    terminal.shows("the last line").await;
    terminal.press(DETACH).await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn a_large_paste_reaches_a_program_that_says_nothing_and_never_keeps_from_leaving() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let paste = "x".repeat(3_000_000);
    for step in [1000, 64, 4096] {
        let script = "stty raw -echo; echo ready; head -c 3000000 | wc -c";
        let mut terminal = place.terminal(&["open"], &["--dir", &dir, "--", "sh", "-c", script]);
        terminal.shows("ready").await;
        for keys in paste.as_bytes().chunks(step) {
            terminal.press(str::from_utf8(keys).unwrap()).await;
        }
        terminal.shows("3000000").await;
        terminal.ends(0).await;
    }
    let script = "stty raw -echo; echo ready; sleep 1000";
    let mut terminal = place.terminal(&["open"], &["--dir", &dir, "--", "sh", "-c", script]);
    terminal.shows("ready").await;
    terminal.press(&paste).await;
    terminal.press(DETACH).await;
    terminal.shows("were not sent").await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn the_terminal_is_given_back_as_it_was_whatever_was_on_it_and_however_it_ends() {
    let place = WorkspaceHost::start().await;
    let dir = place.dir();
    let script =
        "printf '\\033[?1049h\\033[?25l\\033[?2004h\\033[?1000h\\033[31mfull screen'; read x";
    for signal in ["", "TERM", "HUP"] {
        let mut terminal = place.terminal(&["open"], &["--dir", &dir, "--", "sh", "-c", script]);
        terminal.shows("full screen").await;
        match signal {
            "" => terminal.press(DETACH).await,
            signal => terminal.signal(signal).await,
        }
        terminal.ends(0).await;
    }
}

#[tokio::test]
async fn an_agent_is_talked_to_line_by_line_and_its_questions_are_answered() {
    let agents = Agents::start().await;
    let dir = agents.place.dir();
    let made = agents.place.cli(&["session", "new"], &["--name", "claude", "--dir", &dir]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut terminal = agents.place.terminal(&["session", "attach"], &["claude"]);
    let at = async |terminal: &mut Terminal, line: &str, shown: &str| {
        terminal.press(line).await;
        terminal.press("\r").await;
        terminal.shows(shown).await;
    };
    at(&mut terminal, "say well met", "well met").await;
    at(&mut terminal, "ask Bash", "may it use Bash").await;
    at(&mut terminal, "y", "Bash was allowed").await;
    at(&mut terminal, "ask Write", "may it use Write").await;
    at(&mut terminal, "n", "Write was denied").await;
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn what_an_agent_does_unasked_is_seen_and_is_no_answer() {
    let agents = Agents::start().await;
    let dir = agents.place.dir();
    let made = agents.place.cli(&["session", "new"], &["--name", "claude", "--dir", &dir]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut terminal = agents.place.terminal(&["session", "attach"], &["claude"]);
    let begin = "background the task is done; say begun";
    for (prompt, answer) in [(begin, "begun"), ("say four", "four"), ("say six", "six")] {
        let asked = agents.place.cli(&["session", "send"], &["claude", prompt, "--wait"]).await;
        assert_eq!((asked.code, asked.out.trim()), (Some(0), answer), "{asked:?}");
        terminal.shows("the task is done").await;
    }
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}
