//! `warren project`, `warren files` and `warren git`.

use std::fs;

use serde_json::json;
use testkit::{git::git, workspace::Cutter};

use crate::{
    cli::warren,
    common::assert_fields,
    workspace::kit::{TOKEN, WorkspaceHost},
};

/// A server with the project `site`.
async fn with_project() -> WorkspaceHost {
    let place = WorkspaceHost::start().await;
    let made = place
        .cli(&["project", "create"], &["site", "--dir", &place.dir(), "--env", "A=b", "--json"])
        .await
        .json();
    assert_eq!((&made["name"], &made["env"]), (&json!("site"), &json!({"A": "b"})), "{made}");
    place
}

#[tokio::test]
async fn a_project_is_made_listed_shown_changed_and_forgotten() {
    let place = with_project().await;
    let list = place.cli(&["project", "list"], &["--json"]).await.json();
    assert_eq!(list["projects"][0]["working_dir"], place.dir(), "{list}");
    let table = place.cli(&["project", "list"], &[]).await;
    assert!(table.out.contains("site"), "{table:?}");
    let args = ["site", "--name", "web", "--env", "C=d", "--unset", "A", "--json"];
    let changed = place.cli(&["project", "update"], &args).await.json();
    assert_fields(&changed, &json!({"name": "web", "env": {"C": "d"}}));
    let shown = place.cli(&["project", "show"], &["web", "--json"]).await.json();
    assert_eq!(shown, changed);
    let removed = place.cli(&["project", "rm"], &["web"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let list = place.cli(&["project", "list"], &["--json"]).await.json();
    assert_eq!(list, json!({"projects": []}));
    assert!(place.path().is_dir());
}

#[tokio::test]
async fn files_are_listed_read_written_and_moved() {
    let place = with_project().await;
    let here = tempfile::tempdir().unwrap();
    let at = |name: &str| here.path().join(name).display().to_string();
    let bytes: Vec<u8> =
        (0..20_000_003_u32).map(|number| (number.wrapping_mul(97) >> 5) as u8).collect();
    fs::write(place.path().join("large.bin"), &bytes).unwrap();
    fs::write(place.path().join("README.md"), "# Hi\n").unwrap();

    let list = place.cli(&["files", "ls"], &["site", "--json"]).await.json();
    assert_eq!(list["entries"].as_array().unwrap().len(), 2, "{list}");
    let cat = place.cli(&["files", "cat"], &["site:README.md"]).await;
    assert_eq!((cat.code, &*cat.out), (Some(0), "# Hi\n"), "{cat:?}");
    let got = place.cli(&["files", "get"], &["site:large.bin", &at("got.bin")]).await;
    assert_eq!(got.code, Some(0), "{got:?}");
    assert!(fs::read(at("got.bin")).unwrap() == bytes);
    let again = place.cli(&["files", "get"], &["site:large.bin", &at("got.bin")]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(
        again.err.trim(),
        format!("error: {} is there already: --force writes over it", at("got.bin"))
    );
    let forced = place.cli(&["files", "get"], &["site:README.md", &at("got.md")]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    let over = place.cli(&["files", "get"], &["site:large.bin", &at("got.md"), "--force"]).await;
    assert_eq!(over.code, Some(0), "{over:?}");
    assert!(fs::read(at("got.md")).unwrap() == bytes);

    let made = place.cli(&["files", "mkdir"], &["site:assets"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let put = place.cli(&["files", "put"], &[&at("got.bin"), "site:assets/up.bin", "--json"]).await;
    assert_eq!(put.json()["size"], bytes.len(), "{put:?}");
    assert!(fs::read(place.path().join("assets/up.bin")).unwrap() == bytes);
    let large: Vec<u8> =
        (0..25 * 1024 * 1024 + 1).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
    fs::write(at("large"), &large).unwrap();
    let put = place.cli(&["files", "put"], &[&at("large"), "site:large", "--json"]).await;
    assert_eq!(put.json()["size"], large.len(), "{put:?}");
    assert!(fs::read(place.path().join("large")).unwrap() == large);
    let refused = place.cli(&["files", "put"], &[&at("large"), "site:large"]).await;
    assert!(refused.code == Some(1) && refused.err.contains("already exists"), "{refused:?}");

    let moved = place.cli(&["files", "mv"], &["site:README.md", "site:assets/READ ME"]).await;
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let copied = place.cli(&["files", "cp"], &["site:assets", "copy"]).await;
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert_eq!(fs::read_to_string(place.path().join("copy/READ ME")).unwrap(), "# Hi\n");
    let cautious = place.cli(&["files", "rm"], &["site:copy"]).await;
    assert!(cautious.code == Some(2) && place.path().join("copy").exists(), "{cautious:?}");
    assert!(
        cautious.err.starts_with("error: copy is a directory: say --recursive"),
        "{cautious:?}"
    );
    let removed = place.cli(&["files", "rm"], &["site:copy", "-r"]).await;
    assert!(removed.code == Some(0) && !place.path().join("copy").exists(), "{removed:?}");
    let missing = place.cli(&["files", "cat"], &["site:gone"]).await;
    assert_eq!(missing.code, Some(4), "{missing:?}");
    let out = place.cli(&["files", "cat"], &["site:../../etc/passwd"]).await;
    assert!(out.code == Some(1) && out.out.is_empty() && out.err.contains("escapes"), "{out:?}");
}

/// How much of an upload there is, under its hidden name.
fn has_come(place: &WorkspaceHost) -> u64 {
    let entries = fs::read_dir(place.path()).unwrap().flatten();
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".warren-");
    entries.filter(hidden).filter_map(|entry| entry.metadata().ok()).map(|is| is.len()).sum()
}

#[tokio::test]
async fn a_large_file_goes_on_after_a_lost_connection() {
    let place = with_project().await;
    let here = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..(96 << 20) + 1_u32).map(|at| (at / 4096) as u8).collect();
    let from = here.path().join("large");
    fs::write(&from, &large).unwrap();
    let way = Cutter::calm(place.daemon.address()).await;
    let (server, from) = (format!("http://{}", way.address()), from.display().to_string());
    let args = ["files", "put", "--server", &server, "--token", TOKEN, &from, "site:large"];
    let (put, ()) = tokio::join!(warren(&args), async {
        testkit::eventually("it comes", testkit::DEADLINE, async || has_come(&place) > 0).await;
        way.cut();
    });
    assert_eq!((put.code, way.cuts()), (Some(0), 1), "{put:?}");
    assert!(fs::read(place.path().join("large")).unwrap() == large);
    assert_eq!(has_come(&place), 0);
}

#[tokio::test]
async fn a_directory_of_any_size_is_listed() {
    let place = with_project().await;
    let frames = place.path().join("frames");
    fs::create_dir(&frames).unwrap();
    (0..20_010).for_each(|n| drop(fs::File::create(frames.join(format!("{n:06}.jpg"))).unwrap()));
    let list = place.cli(&["files", "ls"], &["site:frames", "--json"]).await.json();
    let names = list["entries"].as_array().unwrap().iter().map(|entry| entry["name"].clone());
    assert!(names.eq((0..20_010).map(|n| json!(format!("{n:06}.jpg")))));
    let table = place.cli(&["files", "ls"], &["site:frames"]).await;
    assert_eq!(table.out.lines().count(), 20_011, "with one head");
    let rm = place.cli(&["files", "rm"], &["site:frames/020009.jpg"]).await;
    assert_eq!(rm.code, Some(0), "one of the second part: {rm:?}");
    // A client that knows of no parts gets the first one, and a notice.
    let mut client = place.client().await;
    let project = client.ask(json!({"type": "list_projects"}), "project_list").await;
    let list = json!({"type": "list_project_files", "path": "frames",
        "project_id": project["projects"][0]["id"]});
    client.say(list).await;
    assert_eq!(client.hear("client_notice").await["notice"]["code"], "directory_cut");
    let list = client.hear("project_file_list").await;
    assert_eq!(list["entries"].as_array().unwrap().len(), 20_000);
}

#[tokio::test]
async fn git_tells_status_and_diff() {
    let place = with_project().await;
    let none = place.cli(&["git", "status"], &["site"]).await;
    assert_eq!(none.code, Some(0), "{none:?}");
    let git = |args: &[&str]| git(place.path(), args);
    fs::write(place.path().join("a.txt"), "old\n").unwrap();
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "one"]);
    fs::write(place.path().join("a.txt"), "new\n").unwrap();
    let status = place.cli(&["git", "status"], &["site", "--json"]).await.json();
    assert_eq!(
        (&status["branch"], &status["unstaged"][0]["path"]),
        (&json!("main"), &json!("a.txt"))
    );
    let readable = place.cli(&["git", "status"], &["site"]).await;
    assert!(readable.out.contains("main") && readable.out.contains("a.txt"), "{readable:?}");
    let diff = place.cli(&["git", "diff"], &["site:a.txt"]).await;
    assert!(diff.out.contains("\n-old\n+new\n"), "{diff:?}");
    let all = place.cli(&["git", "diff"], &["site"]).await;
    assert!(all.out.contains("+new"), "{all:?}");
    let staged = place.cli(&["git", "diff"], &["site:a.txt", "--staged"]).await;
    assert_eq!((staged.code, &*staged.out), (Some(0), ""), "{staged:?}");
}
