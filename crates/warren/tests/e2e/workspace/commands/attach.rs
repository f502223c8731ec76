//! A session that is used from a terminal.

use testkit::workspace::Cutter;

use crate::{
    terminal::Terminal,
    workspace::{
        kit::{TOKEN, WorkspaceHost},
        talk::Agents,
    },
};

/// The key that detaches: Ctrl-].
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
async fn the_key_that_detaches_is_said_once_to_each_user() {
    let place = WorkspaceHost::start().await;
    let (dir, home) = (place.dir(), tempfile::tempdir().unwrap());
    let state = home.path().display().to_string();
    let words = ["open", "--dir", &dir, "--detach-key", "ctrl-b", "--", "sh", "-c", ECHO];
    let (access, args) = (place.access(), &words[1..]);
    let args = [&words[..1], &access.each_ref().map(String::as_str), args].concat();
    for is_first in [true, false] {
        let mut terminal = Terminal::start_with(&args, &[("XDG_STATE_HOME", &state)]);
        terminal.shows("hello").await;
        assert_eq!(
            terminal.screen().contains("Ctrl-B detaches"),
            is_first,
            "{}",
            terminal.screen()
        );
        terminal.press("one\r").await;
        terminal.shows("<one>").await;
        terminal.hides("detaches").await;
        terminal.press("\u{2}").await;
        terminal.ends(0).await;
    }
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
async fn a_command_has_its_own_exit_code_and_128_and_the_number_of_a_signal() {
    let place = WorkspaceHost::start().await;
    let scripts = [
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("exec nothing-of-this-name", 127),
        ("exit 0", 0),
    ];
    for (script, code) in scripts {
        let args = ["--dir", &place.dir(), "--", "sh", "-c", script];
        let mut terminal = place.terminal(&["open"], &args);
        terminal.ends(code).await;
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_is_told_before_the_terminal_changes() {
    let place = WorkspaceHost::start().await;
    let args = ["--dir", &place.dir(), "--", "nothing-of-this-name"];
    let mut terminal = place.terminal(&["open"], &args);
    terminal.shows("nothing-of-this-name").await;
    terminal.ends(1).await;
    assert!(terminal.screen().starts_with("error: "), "{}", terminal.screen());
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
    terminal.shows("a line is a prompt").await;
    at(&mut terminal, "say well met", "well met").await;
    at(&mut terminal, "ask Bash", "may it use Bash").await;
    at(&mut terminal, "y", "Bash was allowed").await;
    at(&mut terminal, "ask Write", "may it use Write").await;
    at(&mut terminal, "n", "Write was denied").await;
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn attaching_to_an_agent_shows_what_happened_and_then_goes_on_live() {
    let agents = Agents::start().await;
    let dir = agents.place.dir();
    let made = ["--name", "claude", "--dir", &dir, "--prompt", "say well met; use Bash", "--wait"];
    assert_eq!(agents.place.cli(&["session", "new"], &made).await.code, Some(0));
    let failed = agents.place.cli(&["session", "send"], &["claude", "crash", "--wait"]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let asked = agents.place.cli(&["session", "send"], &["claude", "ask Write; say last"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");

    let mut terminal = agents.place.terminal(&["session", "attach"], &["claude"]);
    terminal.shows("? may it use Write on ls (y/n)").await;
    let screen = terminal.screen();
    let lines: Vec<&str> = screen.lines().collect();
    let first = ["> say well met; use Bash", "well met", "  → Bash ls … ok", "", "> crash"];
    assert_eq!(lines[..5], first, "{screen}");
    assert!(lines[5].starts_with("  ! the turn failed: "), "{screen}");
    assert_eq!(screen.matches("> ask Write; say last").count(), 1, "{screen}");
    terminal.press("y\r").await;
    terminal.shows("Write was allowed").await;
    terminal.shows("tokens read").await;

    // What another client asks is seen, too; what is typed here stands here already.
    let asked =
        agents.place.cli(&["session", "send"], &["claude", "say from afar", "--wait"]).await;
    assert_eq!(asked.out.trim(), "from afar", "{asked:?}");
    terminal.shows("> say from afar").await;
    terminal.press("say from here\r").await;
    terminal.shows("\nfrom here").await;
    assert!(!terminal.screen().contains("> say from here"), "{}", terminal.screen());
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn the_turns_before_the_last_twenty_are_one_line() {
    let agents = Agents::start().await;
    let dir = agents.place.dir();
    let made = agents.place.cli(&["session", "new"], &["--name", "claude", "--dir", &dir]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    for number in 1..=22 {
        let prompt = format!("say turn {number}");
        let said = agents.place.cli(&["session", "send"], &["claude", &prompt, "--wait"]).await;
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let mut terminal = agents.place.terminal(&["session", "attach"], &["claude"]);
    terminal.shows("a line is a prompt").await;
    let lines = terminal.lines();
    assert_eq!(lines[0], "… 2 earlier turns: warren session history claude");
    assert_eq!(lines[1..4], ["", "> say turn 3", "turn 3"]);
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}

#[tokio::test]
async fn the_last_words_are_in_a_line_of_their_own_wherever_the_cursor_is() {
    let agents = Agents::start().await;
    let place = &agents.place;
    let dir = place.dir();
    // In the midst of the last line, within margins, on the alternate page.
    let scripts = [
        "printf '\\033[24;1Hxxxxxxxx\\033[24;5H'; read x",
        "printf '\\033[?1049h\\033[5;20r\\033[?6h\\033[?69h\\033[10;40s\\033[3;7Hxxxxxxxx'; read x",
    ];
    for script in scripts {
        let mut terminal = place.terminal(&["open"], &["--dir", &dir, "--", "sh", "-c", script]);
        terminal.shows("xxxxxxxx").await;
        terminal.press(DETACH).await;
        terminal.ends(0).await;
        own_line(&terminal, "[detached from ").await;
    }
    // In the midst of an agent's text.
    let mut client = place.client().await;
    agents.agent(&mut client, "claude").await;
    let mut terminal = place.terminal(&["session", "attach"], &["claude"]);
    terminal.shows("a line is a prompt").await;
    terminal.press("say half; wait\r").await;
    terminal.shows("\nhalf").await;
    terminal.signal("TERM").await;
    terminal.ends(0).await;
    own_line(&terminal, "[detached from ").await;
}

/// A line that is shown begins so.
async fn own_line(terminal: &Terminal, beginning: &str) {
    terminal.shows(beginning).await;
    let screen = terminal.screen();
    assert!(screen.lines().any(|line| line.starts_with(beginning)), "{screen}");
}

#[tokio::test]
async fn what_an_agent_does_unasked_is_seen_and_is_no_answer() {
    let agents = Agents::start().await;
    let dir = agents.place.dir();
    let made = agents.place.cli(&["session", "new"], &["--name", "claude", "--dir", &dir]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut terminal = agents.place.terminal(&["session", "attach"], &["claude"]);
    terminal.shows("a line is a prompt").await;
    let begin = "background the task is done; say begun";
    for (prompt, answer) in [(begin, "begun"), ("say four", "four"), ("say six", "six")] {
        let asked = agents.place.cli(&["session", "send"], &["claude", prompt, "--wait"]).await;
        assert_eq!((asked.code, asked.out.trim()), (Some(0), answer), "{asked:?}");
        terminal.shows("the task is done").await;
    }
    terminal.press("\u{4}").await;
    terminal.ends(0).await;
}
