//! Files of projects, and directories of the machine: one way in and one way out for each message. What is
//! refused, and each way to leave a project, is tested in `files`.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use testkit::workspace::{WorkspaceClient, decode, encode, samples::NOBODY};

use super::kit::WorkspaceHost;
use crate::common::assert_fields;

/// A project with a few files, and who uses it.
struct Files {
    place: WorkspaceHost,
    client: WorkspaceClient,
    project: String,
}

impl Files {
    async fn new() -> Self {
        let (place, mut client) = WorkspaceHost::with_client().await;
        let project = place.project(&mut client).await;
        fs::create_dir_all(place.path().join("src/deep")).unwrap();
        fs::write(place.path().join("README.md"), "# Hi\n").unwrap();
        fs::write(place.path().join("src/lib.rs"), "fn main() {}\n").unwrap();
        symlink("/etc", place.path().join("link")).unwrap();
        Self { place, client, project }
    }

    fn root(&self) -> &Path {
        self.place.path()
    }

    fn about(&self, kind: &str, rest: &Value) -> Value {
        let mut message = json!({"type": kind, "project_id": self.project});
        for (name, value) in rest.as_object().expect("fields") {
            message[name] = value.clone();
        }
        message
    }

    async fn asks(&mut self, kind: &str, rest: Value, answer: &str) -> Value {
        let message = self.about(kind, &rest);
        self.client.ask(message, answer).await
    }

    /// Asks for an action, which is done.
    async fn acts(&mut self, kind: &str, mut rest: Value, path: &str) {
        rest["request_id"] = json!(format!("for {path}"));
        let result = self.asks(kind, rest, "project_fs_action_result").await;
        assert_fields(&result, &json!({"path": path, "request_id": format!("for {path}")}));
        assert_eq!(result["project_id"], self.project.as_str());
    }

    /// Asks for an action, which is refused in these words.
    async fn may_not(&mut self, kind: &str, mut rest: Value, words: &str) {
        rest["request_id"] = json!("no");
        let error = self.asks(kind, rest.clone(), "project_fs_action_error").await;
        assert_eq!(error["request_id"], "no", "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{kind} {rest}: {error}");
    }

    /// Asks for a file or folder, which is refused in these words.
    async fn cannot(&mut self, kind: &str, rest: Value, words: &str) {
        let error = self.asks(kind, rest.clone(), "project_file_error").await;
        assert_eq!(error["project_id"], self.project.as_str(), "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{kind} {rest}: {error}");
    }
}

const ESCAPES: &str = "path escapes project root";

#[tokio::test]
async fn list_project_files_tells_folders_first_then_files_by_name() {
    let mut files = Files::new().await;
    for root in [Value::Null, json!("")] {
        let list =
            files.asks("list_project_files", json!({"path": root}), "project_file_list").await;
        let entries = list["entries"].as_array().unwrap();
        let told: Vec<(&str, &str)> = entries
            .iter()
            .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
            .collect();
        assert_eq!(told, [("src", "dir"), ("link", "symlink"), ("README.md", "file")]);
        assert_eq!(entries[2]["size"], 5, "{list}");
    }
    let list = files.asks("list_project_files", json!({"path": "src"}), "project_file_list").await;
    assert_eq!(list["path"], "src");
    let lib = json!({"name": "lib.rs", "path": "src/lib.rs", "kind": "file", "size": 13});
    assert_eq!(list["entries"][1], lib);
    files.cannot("list_project_files", json!({"path": "a/../.."}), ESCAPES).await;
    files.project = NOBODY.to_owned();
    files.cannot("list_project_files", json!({"path": "src"}), "no project").await;
}

#[tokio::test]
async fn read_project_file_tells_text_and_its_hash() {
    let mut files = Files::new().await;
    let content =
        files.asks("read_project_file", json!({"path": "README.md"}), "project_file_content").await;
    assert_eq!((&content["content"], &content["path"]), (&json!("# Hi\n"), &json!("README.md")));
    let sha256 = "19812277b04a5a988e4dc361617bcb927d4297c47353da93aa992ac007f1f3cf";
    assert_eq!(content["sha256"], sha256);
    files.cannot("read_project_file", json!({"path": "gone"}), "no such file").await;
    files.cannot("read_project_file", json!({"path": "link/passwd"}), ESCAPES).await;
}

#[tokio::test]
async fn read_project_file_chunk_streams_a_file_of_any_size() {
    let mut files = Files::new().await;
    let length = 20 * 1024 * 1024 + 7;
    let bytes: Vec<u8> =
        (0..length).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(files.root().join("artifact.bin"), &bytes).unwrap();
    let (mut read, mut windows) = (Vec::new(), 0);
    loop {
        // More than a window may have.
        let ask = json!({
            "path": "artifact.bin", "request_id": format!("d{windows}"), "offset": read.len(),
            "len": 100 * 1024 * 1024,
        });
        let chunk = files.asks("read_project_file_chunk", ask, "project_file_chunk").await;
        assert_eq!(chunk["request_id"], format!("d{windows}"));
        assert_eq!((&chunk["offset"], &chunk["total_size"]), (&json!(read.len()), &json!(length)));
        read.extend(decode(chunk["data"].as_str().unwrap()));
        windows += 1;
        if chunk["eof"] == true {
            break;
        }
    }
    assert!(read == bytes && windows == 3, "{} bytes in {windows} windows", read.len());
    let ask = json!({"path": "/etc/passwd", "request_id": "no", "offset": 0, "len": 10});
    let error = files.asks("read_project_file_chunk", ask, "project_file_chunk_error").await;
    assert_eq!(error["request_id"], "no");
    assert!(error["message"].as_str().unwrap().contains(ESCAPES), "{error}");
}

#[tokio::test]
async fn write_project_file_is_refused_when_the_file_is_not_as_it_was_seen() {
    let mut files = Files::new().await;
    let path = files.root().join("src/lib.rs");
    let seen = files
        .asks("read_project_file", json!({"path": "src/lib.rs"}), "project_file_content")
        .await;
    let write = |content: &str, base: &Value| json!({"path": "src/lib.rs", "content": content, "base_sha256": base});
    let saved = files
        .asks("write_project_file", write("one\n", &seen["sha256"]), "project_file_saved")
        .await;
    let conflict = files
        .asks("write_project_file", write("two\n", &seen["sha256"]), "project_file_write_conflict")
        .await;
    assert_fields(&conflict, &json!({"current_sha256": saved["sha256"], "path": "src/lib.rs"}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    files.asks("write_project_file", write("three\n", &Value::Null), "project_file_saved").await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    let write = json!({"path": "../x", "content": "evil", "base_sha256": null});
    files.cannot("write_project_file", write, ESCAPES).await;
}

#[tokio::test]
async fn create_project_file_makes_it_unless_it_is_there() {
    let mut files = Files::new().await;
    files.acts("create_project_file", json!({"path": "src/new.rs"}), "src/new.rs").await;
    assert_eq!(fs::read(files.root().join("src/new.rs")).unwrap(), b"");
    files.may_not("create_project_file", json!({"path": "README.md"}), "already exists").await;
    assert_eq!(fs::read_to_string(files.root().join("README.md")).unwrap(), "# Hi\n");
    files.may_not("create_project_file", json!({"path": "link/x"}), ESCAPES).await;
}

#[tokio::test]
async fn create_project_directory_makes_one_in_what_is_there() {
    let mut files = Files::new().await;
    files.acts("create_project_directory", json!({"path": "src/sub"}), "src/sub").await;
    assert!(files.root().join("src/sub").is_dir());
    files.may_not("create_project_directory", json!({"path": "a/b"}), "does not exist").await;
    files.may_not("create_project_directory", json!({"path": "/tmp/x"}), ESCAPES).await;
}

#[tokio::test]
async fn move_project_entry_renames_and_never_overwrites() {
    let mut files = Files::new().await;
    let of = |from: &str, to: &str| json!({"from": from, "to": to});
    files.acts("move_project_entry", of("src", "sources"), "sources").await;
    assert!(!files.root().join("src").exists() && files.root().join("sources/deep").is_dir());
    files.may_not("move_project_entry", of("sources/lib.rs", "link"), "already exists").await;
    files.may_not("move_project_entry", of("sources", "../y"), ESCAPES).await;
}

#[tokio::test]
async fn copy_project_entry_copies_folders() {
    let mut files = Files::new().await;
    let of = |from: &str, to: &str| json!({"from": from, "to": to});
    files.acts("copy_project_entry", of("src", "copy"), "copy").await;
    assert_eq!(fs::read_to_string(files.root().join("copy/lib.rs")).unwrap(), "fn main() {}\n");
    assert!(files.root().join("src/lib.rs").exists());
    files.may_not("copy_project_entry", of("README.md", "src"), "already exists").await;
    files.may_not("copy_project_entry", of("link/passwd", "y"), ESCAPES).await;
}

#[tokio::test]
async fn delete_project_entry_deletes_folders_and_follows_no_link() {
    let mut files = Files::new().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "x").unwrap();
    symlink(outside.path(), files.root().join("src/out")).unwrap();
    files.acts("delete_project_entry", json!({"path": "src"}), "src").await;
    assert!(!files.root().join("src").exists() && outside.path().join("kept").exists());
    files.may_not("delete_project_entry", json!({"path": ""}), "").await;
    assert!(files.root().join("README.md").exists());
    files.may_not("delete_project_entry", json!({"path": "../x"}), ESCAPES).await;
}

#[tokio::test]
async fn upload_project_file_takes_any_bytes() {
    let mut files = Files::new().await;
    let upload = |path: &str, data: String| json!({"path": path, "data": data});
    let logo = [0, 1, 2, 255];
    files.acts("upload_project_file", upload("src/logo.png", encode(&logo)), "src/logo.png").await;
    assert_eq!(fs::read(files.root().join("src/logo.png")).unwrap(), logo);
    // What a message may carry is known by the whole way of it.
    let largest = vec![7; 25 * 1024 * 1024];
    files.acts("upload_project_file", upload("largest", encode(&largest)), "largest").await;
    let more = encode(&vec![7; 25 * 1024 * 1024 + 1]);
    files.may_not("upload_project_file", upload("more", more), "26214400").await;
    files.may_not("upload_project_file", upload("bad", "no base64".to_owned()), "base64").await;
    files.may_not("upload_project_file", upload("../x", String::new()), ESCAPES).await;
}

#[tokio::test]
async fn upload_project_file_part_takes_a_file_in_parts() {
    const PART: usize = 8 * 1024 * 1024;
    let mut files = Files::new().await;
    let part = |offset: usize, data: &[u8], done: bool| json!({"path": "film", "upload_id": "u", "offset": offset, "data": encode(data), "done": done});
    let kind = "upload_project_file_part";
    files.acts(kind, part(0, &vec![7; PART], false), "film").await;
    files.may_not(kind, part(2 * PART, b"", true), "offset 8388608").await;
    assert!(!files.root().join("film").exists());
    files.acts(kind, part(PART, b"end", true), "film").await;
    assert_eq!(fs::metadata(files.root().join("film")).unwrap().len(), PART as u64 + 3);
}

#[tokio::test]
async fn list_directory_tells_a_directory_of_the_machine() {
    let mut files = Files::new().await;
    let dir = files.place.dir();
    let ask = json!({"type": "list_directory", "path": dir});
    let listing = files.client.ask(ask, "directory_listing").await;
    let parent = files.root().parent().unwrap().display().to_string();
    assert_eq!((&listing["path"], &listing["parent"]), (&json!(dir), &json!(parent)));
    let entries: Vec<&str> = listing["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry.as_str().unwrap())
        .collect();
    assert!(entries.contains(&"src/") && entries.contains(&"README.md"), "{entries:?}");
    let root =
        files.client.ask(json!({"type": "list_directory", "path": "/"}), "directory_listing");
    assert_eq!(root.await["parent"], Value::Null);
    for path in ["/no/such/place", "/etc/passwd", "relative"] {
        files.client.refused(json!({"type": "list_directory", "path": path})).await;
    }
}
