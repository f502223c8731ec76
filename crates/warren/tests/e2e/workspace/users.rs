//! Sessions, files and git of another user, and refusals. The tests need root.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    process::Command,
};

use serde_json::{Value, json};
use testkit::workspace::{Mark, WorkspaceClient};

use super::kit::{Viewer, WorkspaceHost, about, id_of, listed, serving, skipped};

/// The user in the list of the settings.
const USER: &str = "nobody";

/// A number that `id` prints.
fn id(args: &[&str]) -> u32 {
    let done = Command::new("id").args(args).output().expect("id runs");
    String::from_utf8_lossy(&done.stdout).trim().parse().expect("a number")
}

/// A server of root's that lets sessions run as nobody, in a directory of nobody's; `None`, with
/// words, where these tests are not root's.
async fn place(more: &str) -> Option<(WorkspaceHost, tempfile::TempDir)> {
    if id(&["-u"]) != 0 {
        skipped("only a server of root runs sessions as another user");
        return None;
    }
    let dir = tempfile::TempDir::new().expect("a directory");
    let config = dir.path().join("warren.toml");
    fs::write(&config, format!("[workspace]\nrun_as_users = [{USER:?}]\n{more}\n")).unwrap();
    let place = WorkspaceHost::of(serving().set("--config", config.to_str().unwrap())).await;
    chown(place.path(), Some(id(&["-u", USER])), Some(id(&["-g", USER]))).unwrap();
    Some((place, dir))
}

/// A project of nobody's; its id.
async fn project(place: &WorkspaceHost, client: &mut WorkspaceClient) -> String {
    let create = json!({
        "type": "create_project", "name": "p", "working_dir": place.dir(), "run_as_user": USER,
        "env": {"OF_PROJECT": "set"},
    });
    let saved = client.ask(create, "project_saved").await["project"].clone();
    assert_eq!(saved["run_as_user"], USER);
    id_of(&saved)
}

/// A terminal of a project's that runs a script; its id.
async fn runs(client: &mut WorkspaceClient, project: &str, script: &str) -> String {
    let open = json!({
        "type": "open_terminal", "project_id": project, "command": "sh", "args": ["-c", script],
    });
    id_of(&client.ask(open, "terminal_opened").await["session"])
}

async fn reads(client: &mut WorkspaceClient, project: &str, path: &str, answer: &str) -> Value {
    let read = json!({"type": "read_project_file", "project_id": project, "path": path});
    client.ask(read, answer).await
}

#[tokio::test]
async fn a_session_of_another_user_is_wholly_that_users_and_has_no_way_back() {
    let Some((place, _dir)) = place("").await else { return };
    let (uid, gid) = (id(&["-u", USER]), id(&["-g", USER]));
    let mut client = place.client().await;
    let project = project(&place, &mut client).await;
    // What the kernel says it is; its environment; what is root's; every way back to root. The program
    // waits until it is watched: a repainted screen has different line endings.
    let script = "read x; grep -hE '^(Uid|Gid|CapInh|CapPrm|CapEff|CapAmb)' /proc/self/status | tr '\\t' ' '; \
        echo \"env $HOME $USER $LOGNAME $OF_PROJECT\"; \
        cat /etc/shadow >/dev/null 2>&1 && echo 'reads it'; ls /root >/dev/null 2>&1 && echo 'lists it'; \
        perl -e '$< = 0; $> = 0; $( = 0; $) = \"0 0\"; print \"after $< $> \", $(+0, \" \", $)+0, \"\\n\"'; \
        read x";
    let session = runs(&mut client, &project, script).await;
    let mut viewer = Viewer::of(client, &session).await;
    viewer.types("\n").await;
    viewer.shows(&format!("after {uid} {uid} {gid} {gid}")).await;
    let text = viewer.follow.text().replace("\r\n", "\n");
    assert!(text.contains(&format!("Uid: {uid} {uid} {uid} {uid}\n")), "{text}");
    assert!(text.contains(&format!("Gid: {gid} {gid} {gid} {gid}\n")), "{text}");
    assert_eq!(text.matches(": 0000000000000000\n").count(), 4, "{text}");
    let env = format!("env {} {USER} {USER} set\n", home());
    assert!(text.contains(&env), "{text}");
    assert!(!text.contains("reads it") && !text.contains("lists it"), "{text}");
}

fn home() -> String {
    let users = fs::read_to_string("/etc/passwd").expect("users");
    let line = users.lines().find(|line| line.starts_with(&format!("{USER}:"))).expect("nobody");
    line.split(':').nth(5).expect("a home").to_owned()
}

#[tokio::test]
async fn files_and_git_of_a_project_are_used_as_its_user() {
    let Some((place, _dir)) = place("").await else { return };
    let uid = id(&["-u", USER]);
    let mut client = place.client().await;
    let project = project(&place, &mut client).await;
    let create = json!({
        "type": "create_project_file", "project_id": project, "path": "made", "request_id": "1",
    });
    client.ask(create, "project_fs_action_result").await;
    assert_eq!(fs::metadata(place.path().join("made")).unwrap().uid(), uid);
    // What lies there but is root's alone is not read for it, and not written.
    let secret = place.path().join("secret");
    fs::write(&secret, "of root").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = reads(&mut client, &project, "secret", "project_file_error").await;
    let words = refused["message"].as_str().unwrap().to_lowercase();
    assert!(words.contains("permission denied"), "{refused}");
    fs::remove_file(&secret).unwrap();

    let session =
        runs(&mut client, &project, "git init -q -b main . && echo made it; read x").await;
    let mut viewer = Viewer::of(place.client().await, &session).await;
    viewer.shows("made it").await;
    assert_eq!(fs::metadata(place.path().join(".git")).unwrap().uid(), uid);
    let ask = json!({"type": "git_status", "project_id": project});
    let status = client.ask(ask, "git_status_result").await;
    assert_eq!((&status["is_repo"], &status["branch"]), (&json!(true), &json!("main")), "{status}");
    assert_eq!(status["untracked"], json!(["made"]), "{status}");
}

#[tokio::test]
async fn nothing_runs_as_a_user_who_is_not_listed() {
    let Some((place, _dir)) = place("").await else { return };
    let mut client = place.client().await;
    for other in ["daemon", "no-such-user"] {
        let open = json!({
            "type": "open_terminal", "working_dir": place.dir(), "command": "id",
            "run_as_user": other,
        });
        let words = client.refused(open).await;
        assert!(words.contains("run_as_users") && words.contains(other), "{words}");
        let create = json!({
            "type": "create_project", "name": "p", "working_dir": place.dir(), "run_as_user": other,
        });
        let words = client.refused(create).await;
        assert!(words.contains("run_as_users"), "{words}");
    }
    assert!(listed(&mut client).await.is_empty());
}

/// Starts sleepers until it is refused one, 5,000 at most, and waits. A shell would give up itself.
const BOMB: &str = "exec perl -e 'for (1..5000) { my $pid = fork; last unless defined $pid; \
    exec qw(sleep MARK) unless $pid } print qq(that many\\n); <STDIN>'";

/// A bomb is held by its bound, harms nobody else, and is gone whole with its session.
async fn is_held(place: &WorkspaceHost, session: &str, mark: &Mark, most: usize) {
    let reached = async || mark.processes().len() + 10 >= most;
    testkit::eventually("the bound", testkit::DEADLINE, reached).await;
    // Others get on with it, in sessions of their own.
    let mut client = place.client().await;
    let other = place.runs(&mut client, "true & true & wait; echo well; read x").await;
    Viewer::of(place.client().await, &other).await.shows("well").await;
    assert_eq!(place.daemon.health().await["ok"], true);
    for _ in 0..5 {
        let count = mark.processes().len();
        assert!(count <= most + 10, "{count} of {most}");
        client.ask(json!({"type": "list_sessions"}), "session_list").await;
    }
    client.ask(about("kill_session", session), "session_killed").await;
    mark.is_gone().await;
}

#[tokio::test]
async fn a_fork_bomb_of_another_user_is_bounded_and_ends_with_its_session() {
    let Some((place, _dir)) = place("max_processes = 200").await else { return };
    let mut client = place.client().await;
    let project = project(&place, &mut client).await;
    let mark = Mark::new();
    let session = runs(&mut client, &project, &BOMB.replace("MARK", mark.word())).await;
    is_held(&place, &session, &mark, 200).await;
}

#[tokio::test]
async fn a_fork_bomb_of_the_servers_own_user_is_bounded_where_the_system_can() {
    let Some((place, _dir)) = place("max_processes = 200").await else { return };
    let mut client = place.client().await;
    let probe = place.runs(&mut client, "cat /proc/self/cgroup; echo that is all; read x").await;
    let mut viewer = Viewer::of(place.client().await, &probe).await;
    viewer.shows("that is all").await;
    let text = viewer.follow.text();
    let is_limited = text
        .lines()
        .any(|line| line.contains("warren-") && (line.contains("pids") || has_unified_pids(line)));
    if !is_limited {
        return skipped("no control group here can bound the processes of root");
    }
    let mark = Mark::new();
    let session = place.runs(&mut client, &BOMB.replace("MARK", mark.word())).await;
    is_held(&place, &session, &mark, 200).await;
}

/// Whether this is a line of a version 2 group that can bound.
fn has_unified_pids(line: &str) -> bool {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    line.starts_with("0::") && controllers.contains("pids")
}
