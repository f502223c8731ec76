//! Opening, typing, sizes, ends.

use bytes::Bytes;
use protocol::workspace::{ServerMessage, SessionKind, SessionMode, SessionStatus};

use super::seen::{Watcher, type_in, until_status};
use crate::{
    engine::TypingTime,
    identity::ClientId,
    refusal::Refusal,
    sessions::NewSession,
    testing::{Site, soon},
};

#[tokio::test]
async fn a_shell_is_opened_typed_into_and_seen() {
    let (site, workspace) = Site::started().await;
    let sessions = &workspace.sessions;
    let info = sessions.create(site.command("sh", &[])).await.unwrap();
    assert_eq!((info.mode, info.status), (SessionMode::Pty, SessionStatus::Running));
    assert!(matches!(&info.kind, SessionKind::Shell { command, .. } if command == "sh"));
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    type_in(&workspace, info.id, 1, "echo $((6 * 7))-is-it\n");
    seen.until("42-is-it").await;
    assert_eq!(sessions.info(info.id).unwrap().status, SessionStatus::Running);
    drop(seen);
    assert_eq!(sessions.info(info.id).unwrap().status, SessionStatus::Detached);
    workspace.shut_down().await;
}

#[tokio::test]
async fn output_before_the_first_viewer_is_painted_for_it() {
    let (site, workspace) = Site::started().await;
    let script = "printf 'one\\033[31mred\\n'; read line; echo got $line; cat";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut first = Watcher::attach(&workspace, info.id, 1);
    first.until("red").await;
    let mut second = Watcher::attach(&workspace, info.id, 2);
    second.step().await;
    assert_eq!(second.snapshots, 1);
    second.until("red").await;
    type_in(&workspace, info.id, 1, "words\n");
    first.until("got words").await;
    second.until("got words").await;
    assert_eq!(first.screen.snapshot(), second.screen.snapshot());
    assert_eq!(workspace.sessions.info(info.id).unwrap().attached_clients, 2);
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_program_that_asks_its_terminal_reads_the_answer() {
    let (site, workspace) = Site::started().await;
    let script =
        "stty raw -echo; printf 'ab\\033[6n'; head -c 6 | tr '\\033' '^'; printf done; cat";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    Watcher::attach(&workspace, info.id, 1).until("ab^[1;3Rdone").await;
    workspace.shut_down().await;
}

/// Answers wait in the terminal, and a few more in its queue.
#[tokio::test]
async fn for_a_program_that_asks_and_reads_nothing_few_answers_wait() {
    let (site, workspace) = Site::started().await;
    let script = "stty raw -echo min 0 time 5; yes \"$(printf '\\033[6n')\" | head -n 200000; \
                  printf '\\033[2J\\033[Hgot'; cat | wc -c; printf done; cat";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("done").await;
    let shown = seen.screen.text();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let bytes: usize = digits(&shown).parse().unwrap();
    assert!((1..40_000).contains(&bytes), "{bytes} bytes of answers");
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_end_is_seen_and_told_with_its_last_words() {
    let (site, workspace) = Site::started().await;
    let info = workspace.sessions.create(site.shell("echo last words; exit 3")).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("last words").await;
    until_status(&workspace, info.id, SessionStatus::Exited).await;
    let facts = workspace.sessions.facts(info.id).unwrap();
    assert_eq!(facts.ended.as_deref(), Some("exited with 3"));
    let typed = workspace.sessions.type_in(info.id, ClientId(1), Bytes::from_static(b"x"), None);
    assert!(matches!(typed, Err(Refusal::Ended(how)) if how == "exited with 3"));
    Watcher::attach(&workspace, info.id, 2).until("last words").await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_session_that_is_killed_leaves_neither_processes_nor_files() {
    let (site, workspace) = Site::started().await;
    // The script starts both sleeps before it prints "ready". It ends with `wait`, so that the shell
    // does not replace itself by its last command: there are three processes.
    let script = "setsid sleep 1000 & trap '' HUP; sleep 1000 & echo ready; wait";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("ready").await;
    workspace.sessions.0.shared.writer.flush().await;
    let history = workspace.sessions.0.shared.history_dir(info.id);
    assert!(history.exists());
    let pids = {
        let session = workspace.sessions.get(info.id).unwrap();
        session.live().unwrap().processes().await
    };
    assert!(pids.len() >= 3, "{pids:?}");
    let mut events = workspace.events.subscribe();
    soon(workspace.sessions.kill(info.id)).await.unwrap();
    let is_alive = |pid: &u32| process::Adopted::open(*pid).is_ok_and(|process| process.is_alive());
    assert_eq!(pids.iter().filter(|pid| is_alive(pid)).count(), 0);
    while seen.step().await {}
    let killed = |message: &ServerMessage| matches!(message, ServerMessage::SessionKilled(_));
    while !killed(&soon(events.recv()).await.unwrap().message) {}
    assert!(!history.exists() && workspace.sessions.list(true).is_empty());
    let second = workspace.sessions.kill(info.id).await;
    assert!(matches!(second, Err(Refusal::UnknownSession(id)) if id == info.id));
    workspace.shut_down().await;
}

#[tokio::test]
async fn the_terminal_gets_the_size_of_who_uses_it_and_the_others_are_told() {
    let (site, workspace) = Site::started().await;
    let sessions = &workspace.sessions;
    let script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.1; done";
    let size = Some((100, 30));
    let info = sessions.create(NewSession { size, ..site.shell(script) }).await.unwrap();
    let mut one = Watcher::attach(&workspace, info.id, 1);
    let mut other = Watcher::attach(&workspace, info.id, 2);
    one.until("30 100").await;
    other.until("30 100").await;
    sessions.resize(info.id, ClientId(1), 90, 20, true).unwrap();
    one.until("20 90").await;
    other.until("20 90").await;
    let sized = |message: &ServerMessage, cols| matches!(message, ServerMessage::TerminalSize(size) if size.cols == cols);
    other.until_told(|message| sized(message, 90)).await;
    assert!(!one.messages.iter().any(|message| sized(message, 90)));
    sessions.resize(info.id, ClientId(2), 70, 10, false).unwrap();
    assert!(sessions.resize(info.id, ClientId(2), 10, 2, true).is_err());
    sessions.resize(info.id, ClientId(2), 60, 10, true).unwrap();
    one.until("10 60").await;
    sessions.take_control(info.id, ClientId(1)).unwrap();
    other.until("20 90").await;
    sessions.client_gone(ClientId(1));
    other.until("10 60").await;
    assert!(sessions.take_control(info.id, ClientId(1)).is_err());
    workspace.shut_down().await;
}

#[tokio::test]
async fn input_with_an_id_is_applied_once_and_again_if_it_was_refused() {
    let (site, workspace) = Site::started().await;
    let info = workspace.sessions.create(site.shell("stty -echo; echo on; cat")).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("on").await;
    let send = |client, text: &'static str, id| {
        let keys = Bytes::from_static(text.as_bytes());
        workspace.sessions.type_in(info.id, ClientId(client), keys, Some(id)).unwrap().is_some()
    };
    assert!(send(1, "once\n", "id-1"));
    assert!(!send(2, "once\n", "id-1"));
    assert!(send(1, "end\n", "id-2"));
    seen.until("end").await;
    assert_eq!(seen.text.matches("once").count(), 1);
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_program_that_reads_nothing_has_what_is_typed_refused_at_the_bound() {
    let (site, workspace) = Site::started().await;
    let script = "stty raw -echo; echo raw; until [ -e go ]; do sleep 0.02; done; \
                  head -c 4194304 >/dev/null; echo read all";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("raw").await;
    let keys = Bytes::from(vec![b'x'; 1024 * 1024]);
    let type_in = || workspace.sessions.type_in(info.id, ClientId(1), keys.clone(), None);
    assert_eq!((0..100).take_while(|_| type_in().is_ok()).count(), 4);
    assert!(type_in().unwrap_err().to_string().contains("reads nothing"));
    std::fs::write(site.dir.path().join("go"), "").unwrap();
    seen.until("read all").await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn keys_behind_much_that_waits_are_acknowledged_when_they_are_typed() {
    let (site, workspace) = Site::started().await;
    let script = "stty raw -echo; echo raw; until [ -e go ]; do sleep 0.02; done; cat >/dev/null";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    Watcher::attach(&workspace, info.id, 1).until("raw").await;
    let type_in = |bytes: usize| {
        let keys = Bytes::from(vec![b'x'; bytes]);
        workspace.sessions.type_in(info.id, ClientId(1), keys, None).unwrap().unwrap()
    };
    let is_now = |typed| matches!(typed, TypingTime::Now);
    // Few and short keys are acknowledged at once, many or long ones later.
    assert!(is_now(type_in(64 * 1024)));
    let few = (0..1000).take_while(|_| is_now(type_in(1))).count();
    assert!((200..300).contains(&few), "{few}");
    let TypingTime::Later(mut is_typed) = type_in(1024 * 1024) else { panic!() };
    assert!(is_typed.try_recv().is_err());
    std::fs::write(site.dir.path().join("go"), "").unwrap();
    soon(is_typed).await.unwrap();
    assert!(is_now(type_in(1)));
    let TypingTime::Later(lost) = type_in(2 * 1024 * 1024) else { panic!() };
    workspace.sessions.kill(info.id).await.unwrap();
    let _typed_or_not = soon(lost).await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_prompt_is_pasted_where_the_program_says_that_it_wants_to_know() {
    let (site, workspace) = Site::started().await;
    let script = "stty -echo; printf 'on\\033[?2004h'; cat -v";
    let info = workspace.sessions.create(site.shell(script)).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("on").await;
    workspace.sessions.prompt(info.id, Some(ClientId(1)), "a\nb".to_owned(), None).unwrap();
    seen.until("^[[201~").await;
    assert!(seen.screen.text().contains("^[[200~a"), "{}", seen.screen.text());
    workspace.sessions.interrupt(info.id).unwrap();
    until_status(&workspace, info.id, SessionStatus::Exited).await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_command_that_cannot_start_is_refused_by_name_and_leaves_nothing() {
    let (site, workspace) = Site::started().await;
    let refused =
        async |new: NewSession| workspace.sessions.create(new).await.unwrap_err().to_string();
    let missing = refused(site.command("no-such-program", &[])).await;
    assert!(missing.contains("no-such-program"), "{missing}");
    let elsewhere =
        |dir: &str| NewSession { working_dir: dir.to_owned(), ..site.command("sh", &[]) };
    assert!(refused(elsewhere("src")).await.contains("no full path"));
    assert!(refused(elsewhere("")).await.contains("working_dir is missing"));
    assert!(refused(elsewhere("/no/such/dir")).await.contains("/no/such/dir"));
    assert!(refused(elsewhere("/etc/passwd")).await.contains("no directory"));
    assert!(refused(site.command("", &[])).await.contains("command is empty"));
    let user = Some("nobody".to_owned());
    let run_as = NewSession { run_as_user: user, ..site.command("sh", &[]) };
    assert!(refused(run_as).await.contains("run_as_users"));
    let size = Some((1, 1));
    assert!(refused(NewSession { size, ..site.command("sh", &[]) }).await.contains("too small"));
    assert!(workspace.sessions.list(true).is_empty());
    workspace.shut_down().await;
}

#[tokio::test]
async fn home_is_where_the_tilde_leads_and_the_environment_is_clean() {
    let (site, workspace) = Site::started().await;
    let script = "echo in $PWD with $TERM and ${WARREN_ADMIN_TOKEN-nothing}; cat";
    let new = NewSession { working_dir: "~".to_owned(), ..site.shell(script) };
    let info = workspace.sessions.create(new).await.unwrap();
    let home = crate::users::home(None).unwrap().to_str().unwrap().to_owned();
    assert_eq!(info.working_dir, home);
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until(&format!("in {home} with xterm-256color and nothing")).await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn at_the_bound_the_oldest_that_has_ended_makes_room_and_else_there_is_none() {
    let mut site = Site::new();
    site.settings.max_sessions = 2;
    let workspace = site.start().await;
    let sessions = &workspace.sessions;
    let ended = sessions.create(site.shell("exit 0")).await.unwrap();
    until_status(&workspace, ended.id, SessionStatus::Exited).await;
    sessions.create(site.shell("cat")).await.unwrap();
    sessions.create(site.shell("cat")).await.unwrap();
    assert!(matches!(sessions.info(ended.id), Err(Refusal::UnknownSession(_))));
    let refused = sessions.create(site.shell("cat")).await;
    assert!(matches!(refused, Err(Refusal::TooMany { what: "sessions", most: 2 })));
    assert_eq!(workspace.counts().live, 2);
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_development_server_is_hidden_and_its_port_is_found_again_when_that_is_another() {
    let (site, workspace) = Site::started().await;
    // The server listens on another port after each line of input.
    let script = "import socket\nwhile True:\n s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n \
                  print('http://localhost:%d/' % s.getsockname()[1], flush=True); input()\n \
                  t=s.getsockname()[1]; s.close()";
    let tags = vec!["dev-server".to_owned()];
    let new = NewSession { tags, ..site.command("python3", &["-c", script]) };
    let info = workspace.sessions.create(new).await.unwrap();
    assert!(info.hidden && workspace.sessions.list(false).is_empty());
    let mut events = workspace.events.subscribe();
    let found = || workspace.sessions.info(info.id).unwrap().dev_server_port;
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    let mut before = None;
    for _ in 0..2 {
        while found().is_none() || found() == before {
            soon(events.recv()).await.unwrap();
        }
        before = found();
        seen.until(&format!("http://localhost:{}/", found().unwrap())).await;
        type_in(&workspace, info.id, 1, "\n");
    }
    workspace.sessions.interrupt(info.id).unwrap();
    until_status(&workspace, info.id, SessionStatus::Exited).await;
    assert_eq!(found(), None, "nothing listens any more");
    workspace.shut_down().await;
}
