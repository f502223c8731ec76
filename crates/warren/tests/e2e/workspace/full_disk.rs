//! A disk without room, beneath the server's own data and beneath a project: what clients are told, that
//! nothing acknowledged is lost, and that all goes on once there is room again.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use testkit::workspace::WorkspaceClient;

use super::kit::{Viewer, WorkspaceHost, about, id_of, listed, serving, skipped};
use crate::common::assert_fields;

/// A small file system in memory, unmounted when dropped.
struct Small(PathBuf);

impl Small {
    /// Over this directory; `None`, with words, where the tests may mount nothing.
    fn over(dir: &Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(dir);
        let is_mounted = mount.output().is_ok_and(|done| done.status.success());
        if !is_mounted {
            skipped("no file system can be mounted here");
        }
        is_mounted.then(|| Self(dir.to_owned()))
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    /// Makes room again.
    fn relieve(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Asks for projects until one is refused; the ids of the others.
async fn projects_until_refused(client: &mut WorkspaceClient, dir: &str) -> (Vec<String>, String) {
    let mut saved = Vec::new();
    // The rows must outgrow the room that a database has in its own files.
    for number in 0..2000 {
        let name = format!("{number} {}", "x".repeat(100));
        client.say(json!({"type": "create_project", "name": name, "working_dir": dir})).await;
        let answer = loop {
            let heard = client.next().await.expect("the connection stays");
            let message = heard.as_message("project_saved").or_else(|| heard.as_message("error"));
            if let Some(message) = message {
                break message.clone();
            }
        };
        match answer["type"].as_str() {
            Some("project_saved") => saved.push(id_of(&answer["project"])),
            _ => return (saved, answer["message"].as_str().unwrap().to_owned()),
        }
    }
    panic!("a full disk took all of it");
}

/// Whether the history on the disk has this text.
fn is_kept(place: &WorkspaceHost, text: &str) -> bool {
    let sessions = fs::read_dir(place.daemon.data_dir().join("workspace/history"));
    let segments =
        sessions.into_iter().flatten().flatten().filter_map(|dir| fs::read_dir(dir.path()).ok());
    segments.flatten().flatten().any(|segment| {
        let bytes = fs::read(segment.path()).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

async fn ids_of_projects(client: &mut WorkspaceClient) -> Vec<String> {
    let list = client.ask(json!({"type": "list_projects"}), "project_list").await;
    list["projects"].as_array().unwrap().iter().map(id_of).collect()
}

#[tokio::test]
async fn without_room_for_its_data_the_server_refuses_what_it_cannot_keep_and_goes_on() {
    let serve = serving();
    let Some(disk) = Small::over(serve.data_dir(), "8m") else { return };
    let mut place = WorkspaceHost::of(serve).await;
    let mut client = place.client().await;
    let id = place.runs(&mut client, "while read line; do echo \"heard $line\"; done").await;
    let mut viewer = Viewer::of(place.client().await, &id).await;
    viewer.prompts("before").await;
    viewer.shows("heard before").await;

    disk.fill();
    // What runs goes on, and viewers see it, though it cannot be kept now.
    viewer.prompts("meanwhile").await;
    viewer.shows("heard meanwhile").await;
    let (saved, words) = projects_until_refused(&mut client, &place.dir()).await;
    assert!(words.contains("the disk is full"), "{words}");
    assert_eq!(ids_of_projects(&mut client).await.len(), saved.len(), "the refused one is none");
    let open = json!({"type": "open_terminal", "working_dir": place.dir(), "command": "cat"});
    let words = client.refused(open).await;
    assert!(words.contains("the disk is full"), "{words}");
    assert_eq!(listed(&mut client).await.len(), 1, "the refused one is none");
    assert!(!is_kept(&place, "heard meanwhile"));

    disk.relieve();
    let create = json!({"type": "create_project", "name": "after", "working_dir": place.dir()});
    let after = id_of(&client.ask(create, "project_saved").await["project"]);
    viewer.prompts("after").await;
    viewer.shows("heard after").await;
    let kept = async || is_kept(&place, "heard after");
    testkit::eventually("the output being kept again", testkit::DEADLINE, kept).await;

    place.daemon.kill_and_restart().await;
    let mut client = place.client().await;
    let mut expected = [saved, vec![after]].concat();
    expected.sort();
    let mut found = ids_of_projects(&mut client).await;
    found.sort();
    assert_eq!(found, expected, "what was acknowledged is there, and nothing else");
    let history = client.ask(about("get_history", &id), "history").await;
    for word in ["heard before", "heard meanwhile", "heard after"] {
        assert!(history["data"].as_str().unwrap().contains(word), "{word}: {history}");
    }
}

#[tokio::test]
async fn a_server_that_is_killed_on_a_full_disk_starts_on_it_with_all_that_it_had_acknowledged() {
    let serve = serving();
    let Some(disk) = Small::over(serve.data_dir(), "8m") else { return };
    let mut place = WorkspaceHost::of(serve).await;
    let mut client = place.client().await;
    disk.fill();
    let (mut saved, _) = projects_until_refused(&mut client, &place.dir()).await;
    saved.sort();
    place.daemon.kill_and_restart().await;
    let mut client = place.client().await;
    let mut found = ids_of_projects(&mut client).await;
    found.sort();
    assert_eq!(found, saved);
    disk.relieve();
    place.project(&mut client).await;
}

#[tokio::test]
async fn without_room_in_a_project_files_stay_as_they_are_and_its_clients_are_told() {
    let place = WorkspaceHost::start().await;
    let Some(disk) = Small::over(place.path(), "1m") else { return };
    let mut client = place.client().await;
    let id = place.project(&mut client).await;
    let of = |kind: &str, mut rest: Value| {
        rest["type"] = json!(kind);
        rest["project_id"] = json!(id);
        rest
    };
    let old = client
        .ask(of("write_project_file", json!({"path": "f", "content": "old"})), "project_file_saved")
        .await;
    fs::write(place.path().join("other"), "x".repeat(8192)).unwrap();
    disk.fill();

    let large = "x".repeat(300_000);
    for base in [Value::Null, old["sha256"].clone()] {
        let write =
            of("write_project_file", json!({"path": "f", "content": large, "base_sha256": base}));
        let refused = client.ask(write, "project_file_error").await;
        assert_eq!(refused["message"], "no space is left on the disk");
    }
    let upload =
        of("upload_project_file", json!({"path": "new", "data": "eHh4", "request_id": "r1"}));
    let refused = client.ask(upload, "project_fs_action_error").await;
    assert_fields(
        &refused,
        &json!({"request_id": "r1", "message": "no space is left on the disk"}),
    );
    let copy = of("copy_project_entry", json!({"from": "other", "to": "copy", "request_id": "r2"}));
    client.ask(copy, "project_fs_action_error").await;
    let read =
        client.ask(of("read_project_file", json!({"path": "f"})), "project_file_content").await;
    assert_eq!(read["content"], "old");
    let list = client.ask(of("list_project_files", json!({})), "project_file_list").await;
    let names: Vec<_> =
        list["entries"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ballast", "f", "other"], "nothing unfinished lies about");

    let delete = of("delete_project_entry", json!({"path": "ballast", "request_id": "r3"}));
    client.ask(delete, "project_fs_action_result").await;
    let write = of(
        "write_project_file",
        json!({"path": "f", "content": large, "base_sha256": old["sha256"]}),
    );
    client.ask(write, "project_file_saved").await;
}
