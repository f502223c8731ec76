//! Members of a cluster whose disk is an old copy, or whose clock is wrong.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{eventually, workspace::WorkspaceClient};

use crate::common::with_clock;

use super::{
    cluster_faults::Pair,
    cluster_kit::{as_member, copy_all, has_notice, linked, member, peer_address},
    kit::{TOKEN, WorkspaceHost, id_of, skipped},
};

/// The names of the projects that a member lists, in order.
async fn projects(host: &WorkspaceHost) -> Vec<String> {
    let list = host.client().await.ask(json!({"type": "list_projects"}), "project_list").await;
    let projects = list["projects"].as_array().expect("a list");
    let mut names: Vec<_> = projects.iter().map(|project| name_of(project).to_owned()).collect();
    names.sort();
    names
}

fn name_of(object: &Value) -> &str {
    object["name"].as_str().expect("a name")
}

async fn lists(host: &WorkspaceHost, names: &[&str]) {
    let what = format!("the projects {names:?}");
    eventually(&what, testkit::DEADLINE, async || projects(host).await == names).await;
}

/// Makes a project of the host's directory.
async fn makes(host: &WorkspaceHost, name: &str) -> String {
    let create = json!({"type": "create_project", "name": name, "working_dir": host.dir()});
    id_of(&host.client().await.ask(create, "project_saved").await["project"])
}

async fn deletes(client: &mut WorkspaceClient, project: &str) {
    let delete = json!({"type": "delete_project", "project_id": project});
    client.ask(delete, "project_removed").await;
}

#[tokio::test]
async fn an_old_disk_that_is_put_back_brings_nothing_deleted_back_and_loses_nothing_newer() {
    let mut pair = Pair::new().await;
    let doomed = makes(&pair.owner, "doomed").await;
    let kept = makes(&pair.owner, "before").await;
    lists(&pair.entry, &["before", "doomed"]).await;
    let old = TempDir::new().expect("a directory");
    pair.owner.daemon.sigterm();
    assert_eq!(pair.owner.daemon.exit().await, Some(0));
    copy_all(pair.owner.daemon.data_dir(), old.path());
    pair.owner.daemon.start_again().await;
    makes(&pair.owner, "newer").await;
    let rename = json!({"type": "update_project", "project_id": kept, "name": "kept"});
    pair.owner.client().await.ask(rename, "project_saved").await;
    deletes(&mut pair.owner.client().await, &doomed).await;
    lists(&pair.entry, &["kept", "newer"]).await;
    pair.owner.daemon.kill9().await;
    replace(pair.owner.daemon.data_dir(), old.path());
    pair.owner.daemon.start_again().await;
    for host in [&pair.owner, &pair.entry] {
        lists(host, &["kept", "newer"]).await;
    }
    // Its new writes are no repetition of those that it has forgotten.
    makes(&pair.owner, "newest").await;
    for host in [&pair.owner, &pair.entry] {
        lists(host, &["kept", "newer", "newest"]).await;
    }
}

#[tokio::test]
async fn a_member_whose_clock_is_an_hour_ahead_works_with_the_others_and_is_reported() {
    let Some((fast, _clock)) = with_clock("+1h") else {
        return skipped("there is no libfaketime here");
    };
    let right = WorkspaceHost::of(member("right", "secret")).await;
    let fast = fast.set("--workspace-token", TOKEN);
    let fast = as_member(fast, "fast", "secret").set("--peer", &peer_address(&right).await);
    let fast = WorkspaceHost::of(fast).await;
    for host in [&right, &fast] {
        linked(host, 1).await;
    }
    has_notice(&fast, "clock is 3").await;
    let id = makes(&fast, "of the fast one").await;
    lists(&right, &["of the fast one"]).await;
    // The later change wins, although the other clock is ahead.
    let rename = json!({"type": "update_project", "project_id": id, "name": "renamed"});
    right.client().await.ask(rename, "project_saved").await;
    for host in [&right, &fast] {
        lists(host, &["renamed"]).await;
    }
}

/// Puts an old copy of a directory in its place.
fn replace(dir: &Path, old: &Path) {
    std::fs::remove_dir_all(dir).expect("it can be removed");
    copy_all(old, dir);
}
