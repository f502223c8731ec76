//! A server that is killed, and finds everything as it was.

use std::{fs, path::Path};

use serde_json::json;
use testkit::workspace::Mark;

use super::kit::{Viewer, WorkspaceHost, about, id_of, listed};

/// Whether a file beneath this directory has this text.
fn is_on_disk(directory: &Path, text: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_on_disk(&path, text);
        }
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_no_process_and_lists_all_that_there_was() {
    let mut place = WorkspaceHost::start().await;
    let mut client = place.client().await;
    let mark = Mark::new();
    let word = mark.word();
    let script = format!(
        "echo words to remember; (setsid sleep {word} >/dev/null 2>&1 &); sleep {word} & sleep {word}; :"
    );
    let id = place.runs(&mut client, &script).await;
    client.say(json!({"type": "rename_session", "session_id": id, "name": "the one"})).await;
    client.hear_where("session_status_changed", |told| told["session"]["name"] == "the one").await;
    let project = place.project(&mut client).await;
    let killed = place.runs(&mut client, "read x").await;
    client.ask(about("kill_session", &killed), "session_killed").await;
    let before = place.listed(&id).await.unwrap();
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("words to remember").await;
    // The shell, two that it started, and one that hides.
    mark.has_processes(4).await;
    // What is known of a session names its command, too: only its output counts.
    let data = place.daemon.data_dir().join("workspace/history");
    let kept = async || is_on_disk(&data, "words to remember");
    testkit::eventually("the output being on the disk", testkit::DEADLINE, kept).await;

    place.daemon.kill_and_restart().await;
    mark.is_gone().await;
    let mut client = place.client().await;
    let all = listed(&mut client).await;
    assert_eq!(all.iter().map(id_of).collect::<Vec<_>>(), std::slice::from_ref(&id));
    let after = &all[0];
    for same in ["name", "mode", "kind", "working_dir", "created_at", "tags"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    assert_eq!((&after["status"], &after["attached_clients"]), (&json!("exited"), &json!(0)));
    let history = client.ask(about("get_history", &id), "history").await;
    assert!(history["data"].as_str().unwrap().contains("words to remember"), "{history}");
    let again = Viewer::of(place.client().await, &id).await;
    assert!(again.follow.text().contains("words to remember"), "{:?}", again.follow.text());
    let list = client.ask(json!({"type": "list_projects"}), "project_list").await;
    assert_eq!(
        list["projects"].as_array().unwrap().iter().map(id_of).collect::<Vec<_>>(),
        [project]
    );
    client.ask(about("kill_session", &id), "session_killed").await;
    place.daemon.kill_and_restart().await;
    assert!(listed(&mut place.client().await).await.is_empty());
}

#[tokio::test]
async fn a_server_that_stops_ends_all_that_runs_in_it() {
    let mut place = WorkspaceHost::start().await;
    let mut client = place.client().await;
    let mark = Mark::new();
    let word = mark.word();
    let script = format!(
        "(setsid sleep {word} >/dev/null 2>&1 &); trap '' TERM HUP; sleep {word}; sleep {word}"
    );
    place.runs(&mut client, &script).await;
    mark.has_processes(3).await;
    place.daemon.sigterm();
    assert_eq!(place.daemon.exit().await, Some(0), "{}", place.daemon.log());
    mark.is_gone().await;
    client.ends().await;
}

/// The temporary files of unfinished writes in a directory.
fn unfinished(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".warren-")).count()
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_of_writes_removes_what_it_left_at_its_next_start() {
    let mut place = WorkspaceHost::start().await;
    let project = place.project(&mut place.client().await).await;
    let own = place.path().join(".warren-of-a-user");
    fs::write(&own, "not ours").unwrap();
    for round in 0..10 {
        let mut writers = Vec::new();
        for _ in 0..4 {
            writers.push(place.client().await);
        }
        // They write until a file is seen that is not finished, however quick the disk is.
        let writing = async {
            loop {
                for (number, writer) in writers.iter_mut().enumerate() {
                    let write = json!({"type": "write_project_file", "project_id": project,
                        "path": format!("f{number}"), "content": "x".repeat(1_000_000)});
                    writer.say(write).await;
                }
            }
        };
        let path = place.path().to_owned();
        let seen = async || unfinished(&path) > 1;
        tokio::select! {
            () = writing => {}
            () = testkit::eventually("a file that is being written", testkit::DEADLINE, seen) => {}
        }
        place.daemon.kill_and_restart().await;
        drop(writers);
        let list = json!({"type": "list_project_files", "project_id": project});
        let listed = place.client().await.ask(list, "project_file_list").await;
        let entries = listed["entries"].as_array().unwrap();
        assert!(entries.len() <= 5, "round {round}: {entries:?}");
        let removed = async || unfinished(&path) == 1;
        testkit::eventually("nothing unfinished", testkit::DEADLINE, removed).await;
    }
    assert_eq!(fs::read_to_string(own).unwrap(), "not ours");
}
