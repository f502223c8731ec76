//! Projects of another user: the server does, sees and reports nothing in them that this user could
//! not. These tests need root, and say so when they are skipped.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use process::User;
use serde_json::{Value, json};
use testkit::git::git;
use workspace::testing::soon;

use super::kit::{Caller, Kit};

const CHANGED: &str = "project_files_changed";

/// A project of `nobody`, in a directory that belongs to it.
struct Theirs {
    kit: Kit,
    client: Caller,
    dir: PathBuf,
    id: String,
}

impl Theirs {
    async fn new() -> Option<Self> {
        let nobody = match User::current().unwrap().uid {
            0 => User::lookup("nobody").unwrap(),
            _ => {
                println!("skipped: only root can become another user");
                return None;
            }
        };
        let kit = Kit::with(|settings| settings.run_as = vec!["nobody".to_owned()]).await;
        mode(kit.site.dir.path(), 0o755);
        let dir = kit.site.dir.path().join("theirs");
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(nobody.uid), Some(nobody.gid)).unwrap();
        let mut client = kit.client().await;
        let create = json!({"type": "create_project", "name": "p", "working_dir": dir.to_str(),
            "run_as_user": "nobody"});
        let saved = client.ask(create, "project_saved").await;
        let id = saved["project"]["id"].as_str().unwrap().to_owned();
        Some(Self { kit, client, dir, id })
    }

    /// A directory that only root may look into.
    fn secret(&self, name: &str) -> PathBuf {
        let secret = self.dir.join(name);
        fs::create_dir(&secret).unwrap();
        mode(&secret, 0o700);
        secret
    }

    fn of(&self, kind: &str, mut rest: Value) -> Value {
        rest["type"] = json!(kind);
        rest["project_id"] = json!(self.id);
        rest
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn of_what_a_projects_user_may_not_read_no_change_is_told() {
    let Some(mut theirs) = Theirs::new().await else { return };
    let secret = theirs.secret("secret");
    theirs.client.say(theirs.of("watch_project_files", json!({})));
    // Requests about files are answered in order: after this answer the watch has begun.
    let list = theirs.of("list_project_files", json!({}));
    theirs.client.ask(list, "project_file_list").await;
    fs::create_dir(secret.join("new")).unwrap();
    fs::write(secret.join("new/f"), "x").unwrap();
    let silence = std::time::Duration::from_millis(900);
    let answer = tokio::time::timeout(silence, theirs.client.hear_of(CHANGED)).await;
    assert!(answer.is_err(), "{answer:?}");
    fs::write(theirs.dir.join("f"), "x").unwrap();
    soon(theirs.client.hear_of(CHANGED)).await;
    theirs.kit.shut_down().await;
}

#[tokio::test]
async fn a_project_whose_directory_its_user_may_not_read_is_not_watched() {
    let Some(mut theirs) = Theirs::new().await else { return };
    chown(&theirs.dir, Some(0), Some(0)).unwrap();
    mode(&theirs.dir, 0o700);
    let watch = theirs.of("watch_project_files", json!({}));
    let refused = theirs.client.ask(watch, "project_file_error").await;
    let words = refused["message"].as_str().unwrap();
    assert!(words.contains("cannot be watched"), "{words}");
    theirs.kit.shut_down().await;
}

#[tokio::test]
async fn git_sees_what_its_projects_user_may_see() {
    let Some(mut theirs) = Theirs::new().await else { return };
    git(&theirs.dir, &["init", "-q", "-b", "main"]);
    fs::write(theirs.dir.join("f"), "x").unwrap();
    let status = theirs.of("git_status", json!({}));
    let answer = theirs.client.ask(status.clone(), "git_status_result").await;
    assert_eq!((&answer["is_repo"], &answer["branch"]), (&json!(true), &json!("main")), "{answer}");
    assert_eq!(answer["untracked"], json!(["f"]));
    mode(&theirs.dir.join(".git"), 0o700);
    let answer = theirs.client.ask(status, "git_status_result").await;
    assert_eq!(answer["is_repo"], false, "{answer}");
    theirs.kit.shut_down().await;
}

#[tokio::test]
async fn files_are_made_by_and_closed_to_a_projects_user() {
    let Some(mut theirs) = Theirs::new().await else { return };
    let secret = theirs.secret("secret");
    fs::write(secret.join("f"), "for root").unwrap();
    let read = theirs.of("read_project_file", json!({"path": "secret/f"}));
    let refused = theirs.client.ask(read, "project_file_error").await;
    assert_eq!(refused["message"], "permission denied");
    let write = theirs.of("write_project_file", json!({"path": "own", "content": "mine"}));
    theirs.client.ask(write, "project_file_saved").await;
    let made = fs::metadata(theirs.dir.join("own")).unwrap();
    let nobody = User::lookup("nobody").unwrap();
    assert_eq!((made.uid(), made.gid()), (nobody.uid, nobody.gid));
    let part = |path: &str| {
        json!({"path": path, "request_id": "r", "upload_id": path, "offset": 0,
        "data": "", "done": true})
    };
    let part_of = theirs.of("upload_project_file_part", part("parts"));
    theirs.client.ask(part_of, "project_fs_action_result").await;
    let made = fs::metadata(theirs.dir.join("parts")).unwrap();
    assert_eq!((made.uid(), made.gid()), (nobody.uid, nobody.gid));
    let closed = theirs.of("upload_project_file_part", part("secret/new"));
    let refused = theirs.client.ask(closed, "project_fs_action_error").await;
    assert_eq!(refused["message"], "permission denied");
    theirs.kit.shut_down().await;
}
