//! Files that come in parts.

use std::{fs, time::Duration};

use cluster::testing::until;
use protocol::workspace::{base64, limits::UPLOAD_PART_MAX};
use serde_json::{Value, json};

use super::{
    kit::{Caller, Kit},
    members::Pair,
};

const DONE: &str = "project_fs_action_result";
const REFUSED: &str = "project_fs_action_error";

fn part(project: &str, id: &str, offset: usize, bytes: &[u8], done: bool) -> Value {
    json!({"type": "upload_project_file_part", "project_id": project, "path": format!("{id}.bin"),
        "request_id": "r", "upload_id": id, "offset": offset, "data": base64::encode(bytes),
        "done": done})
}

/// The words of a refusal.
async fn refused(client: &mut Caller, part: Value) -> String {
    client.ask(part, REFUSED).await["message"].as_str().unwrap().to_owned()
}

/// The names in a site's directory that begin as unfinished files do.
fn unfinished(kit: &Kit) -> usize {
    let entries = fs::read_dir(kit.site.dir.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".warren-")).count()
}

#[tokio::test]
async fn an_upload_goes_on_over_another_connection() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let project = kit.project(&mut client).await;
    let answer = client.ask(part(&project, "u", 0, b"one ", false), DONE).await;
    assert_eq!((&answer["request_id"], &answer["path"]), (&json!("r"), &json!("u.bin")));
    drop(client);
    let mut client = kit.client().await;
    let words = refused(&mut client, part(&project, "u", 8, b"three", true)).await;
    assert!(words.contains("offset 4"), "{words}");
    client.ask(part(&project, "u", 0, b"one ", false), DONE).await;
    assert_eq!(unfinished(&kit), 1);
    let files = json!({"type": "list_project_files", "project_id": project});
    let listed = client.ask(files, "project_file_list").await;
    assert!(!listed["entries"].to_string().contains(".warren-"), "{listed}");
    client.ask(part(&project, "u", 4, b"two", true), DONE).await;
    assert_eq!(fs::read(kit.site.dir.path().join("u.bin")).unwrap(), b"one two");
    assert_eq!(unfinished(&kit), 0);
    client.ask(part(&project, "u", 4, b"two", true), DONE).await;
    let words = refused(&mut client, part(&project, "u", 4, b"xy", true)).await;
    assert!(words.contains("offset 0"), "another part than the last one: {words}");
    let words = refused(&mut client, part(&project, "u", 0, b"new", true)).await;
    assert!(words.contains("already exists"), "{words}");
}

#[tokio::test]
async fn what_an_upload_may_not_do_is_refused() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let project = kit.project(&mut client).await;
    let most = vec![7; UPLOAD_PART_MAX + 1];
    let words = refused(&mut client, part(&project, "u", 0, &most, false)).await;
    assert!(words.contains("8388608"), "{words}");
    client.ask(part(&project, "u", 0, &most[1..], false), DONE).await;
    let mut other = part(&project, "u", UPLOAD_PART_MAX, b"", true);
    other["path"] = json!("other");
    let words = refused(&mut client, other).await;
    assert!(words.contains("u.bin"), "{words}");
    let mut outside = part(&project, "v", 0, b"", true);
    outside["path"] = json!("../v");
    let words = refused(&mut client, outside).await;
    assert!(words.contains("escapes"), "{words}");
    let words = refused(&mut client, part(&project, "w", 1, b"", true)).await;
    assert!(words.contains("offset 0"), "{words}");
    client.ask(part(&project, "u", UPLOAD_PART_MAX, b"", true), DONE).await;
    let length = fs::metadata(kit.site.dir.path().join("u.bin")).unwrap().len();
    assert_eq!(length, UPLOAD_PART_MAX as u64);
}

#[tokio::test]
async fn a_project_has_eight_unfinished_uploads_and_all_have_sixty_four() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    for _ in 0..8 {
        let project = kit.project(&mut client).await;
        for number in 0..8 {
            let id = format!("{project}-{number}");
            client.ask(part(&project, &id, 0, b"half", false), DONE).await;
        }
        let words = refused(&mut client, part(&project, "more", 0, b"half", false)).await;
        assert!(words.contains("8 unfinished uploads in this project"), "{words}");
    }
    let project = kit.project(&mut client).await;
    let words = refused(&mut client, part(&project, "more", 0, b"half", false)).await;
    assert!(words.contains("64 unfinished uploads"), "{words}");
    assert_eq!(unfinished(&kit), 64);
}

#[tokio::test]
async fn an_upload_without_a_part_for_an_hour_is_removed() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let project = kit.project(&mut client).await;
    client.ask(part(&project, "u", 0, b"half", false), DONE).await;
    assert_eq!(unfinished(&kit), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60 * 60)).await;
    tokio::time::resume();
    until("it is removed", || unfinished(&kit) == 0).await;
    let mut client = kit.client().await;
    let words = refused(&mut client, part(&project, "u", 4, b"half", true)).await;
    assert!(words.contains("offset 0"), "{words}");
}

#[tokio::test]
async fn an_upload_to_another_member_goes_there() {
    let pair = Pair::of(Kit::new().await, Kit::new().await).await;
    let mut there = pair.owner.client().await;
    let project = pair.owner.project(&mut there).await;
    let mut client = pair.entry.client().await;
    let mut listed = Value::Null;
    while !listed.to_string().contains(&project) {
        listed = client.ask(json!({"type": "list_projects"}), "project_list").await;
    }
    client.ask(part(&project, "u", 0, b"one ", false), DONE).await;
    let words = refused(&mut client, part(&project, "u", 5, b"", true)).await;
    assert!(words.contains("offset 4"), "{words}");
    client.ask(part(&project, "u", 4, b"two", true), DONE).await;
    assert_eq!(fs::read(pair.owner.site.dir.path().join("u.bin")).unwrap(), b"one two");
    pair.shut_down().await;
}
