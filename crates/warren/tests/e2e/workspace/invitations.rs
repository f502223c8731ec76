//! Machines that join a cluster by invitations, and leave it.

use serde_json::{Value, json};

use super::{
    cluster_kit::{linked, others},
    kit::{Viewer, WorkspaceHost, about, id_of, listed, serving},
};

async fn invitation(host: &WorkspaceHost) -> Value {
    let invite = json!({"type": "cluster_invite"});
    host.client().await.ask(invite, "cluster_invitation").await
}

async fn acknowledged(host: &WorkspaceHost, message: Value) -> Value {
    let ack = host.client().await.ask(message, "cluster_action_ack").await;
    assert_eq!(ack["ok"], true, "{ack}");
    ack
}

async fn join(host: &WorkspaceHost, guest: &WorkspaceHost) {
    let code = invitation(host).await["code"].clone();
    acknowledged(guest, json!({"type": "cluster_join", "code": code})).await;
}

/// Waits until a session is listed, or is not.
async fn lists(host: &WorkspaceHost, id: &str, is_listed: bool) {
    let is = async || host.listed(id).await.is_some() == is_listed;
    testkit::eventually("the list of sessions", testkit::DEADLINE, is).await;
}

#[tokio::test]
async fn cluster_join_makes_machines_use_each_others_sessions() {
    let (one, two, three) =
        (WorkspaceHost::start().await, WorkspaceHost::start().await, WorkspaceHost::start().await);
    let id = one.runs(&mut one.client().await, "read line; echo got-$line; read line").await;
    let code = invitation(&one).await["code"].clone();
    acknowledged(&two, json!({"type": "cluster_join", "code": code})).await;
    join(&two, &three).await;
    linked(&one, 2).await;
    linked(&three, 2).await;
    lists(&three, &id, true).await;
    let mut viewer = Viewer::of(three.client().await, &id).await;
    viewer.types("it\r").await;
    viewer.shows("got-it").await;
}

#[tokio::test]
async fn cluster_invite_is_for_one_machine_and_the_others_hear_why() {
    let (one, two, three) =
        (WorkspaceHost::start().await, WorkspaceHost::start().await, WorkspaceHost::start().await);
    let invite = json!({"type": "cluster_invite"});
    let invited = one.client().await.ask(invite, "cluster_invitation").await;
    let join = json!({"type": "cluster_join", "code": invited["code"]});
    acknowledged(&two, join.clone()).await;
    let error = three.client().await.ask(join, "error").await;
    assert!(error["message"].as_str().unwrap().contains("already used"), "{error}");
    // Its attempt left nothing behind.
    let own = invitation(&three).await;
    assert!(!own["code"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn cluster_invites_lists_the_open_ones() {
    let one = WorkspaceHost::start().await;
    assert_eq!(open_invites(&one).await, json!([]));
    let invited = invitation(&one).await;
    let list = json!({"type": "cluster_invites"});
    let list = one.client().await.ask(list, "cluster_invite_list").await;
    assert_eq!(list["invites"][0]["invite_id"], invited["invite_id"]);
}

#[tokio::test]
async fn cluster_revoke_invite_withdraws_one() {
    let one = WorkspaceHost::start().await;
    let id = invitation(&one).await["invite_id"].clone();
    let revoke = json!({"type": "cluster_revoke_invite", "invite_id": id});
    acknowledged(&one, revoke.clone()).await;
    assert_eq!(open_invites(&one).await, json!([]));
    one.client().await.ask(revoke, "error").await;
}

async fn open_invites(host: &WorkspaceHost) -> Value {
    let list = json!({"type": "cluster_invites"});
    host.client().await.ask(list, "cluster_invite_list").await["invites"].clone()
}

#[tokio::test]
async fn cluster_leave_ends_a_membership_that_outlived_a_restart() {
    let one = WorkspaceHost::start().await;
    // After a restart the port above the first one could be another test's.
    let mut two = WorkspaceHost::of(serving().set("--peer-listen", "127.0.0.1:0")).await;
    join(&one, &two).await;
    linked(&two, 1).await;
    two.daemon.stop_and_restart().await;
    linked(&two, 1).await;
    let theirs = one.runs(&mut one.client().await, "read line").await;
    let mut client = two.client().await;
    let own = two.runs(&mut client, "read line; echo still-$line; read line").await;
    lists(&two, &theirs, true).await;
    lists(&one, &own, true).await;
    acknowledged(&two, json!({"type": "cluster_leave"})).await;
    let ids: Vec<String> = listed(&mut client).await.iter().map(id_of).collect();
    assert_eq!(ids, std::slice::from_ref(&own), "its own sessions stay, and nobody else's");
    linked(&one, 0).await;
    lists(&one, &own, false).await;
    let mut viewer = Viewer::of(two.client().await, &own).await;
    viewer.types("here\r").await;
    viewer.shows("still-here").await;
    // It may come back.
    join(&one, &two).await;
    linked(&one, 1).await;
    lists(&one, &own, true).await;
    client.say(about("kill_session", &own)).await;
}

#[tokio::test]
async fn cluster_forget_keeps_a_machine_out_until_it_is_invited_again() {
    let (one, two) = (WorkspaceHost::start().await, WorkspaceHost::start().await);
    join(&one, &two).await;
    linked(&one, 1).await;
    let node = id_of_peer(&one).await;
    acknowledged(&one, json!({"type": "cluster_forget", "node_id": node})).await;
    linked(&one, 0).await;
    acknowledged(&two, json!({"type": "cluster_leave"})).await;
    join(&one, &two).await;
    linked(&one, 1).await;
}

async fn id_of_peer(host: &WorkspaceHost) -> String {
    others(host).await[0]["node_id"].as_str().expect("an id").to_owned()
}
