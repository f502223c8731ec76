//! Requests that a client sent before it left are done.

use std::time::Duration;

use access::Moment;
use base::KeyScope;
use serde_json::{Value, json};
use tokio::io::duplex;
use wire::{Link, link::Role};
use workspace::testing::soon;

use super::kit::{Caller, FAR, Kit, TOKEN};

impl Kit {
    async fn terminal(&self, client: &mut Caller) -> Value {
        let open = json!({"type": "open_terminal", "working_dir": self.dir(), "command": "cat"});
        client.ask(open, "terminal_opened").await["session"]["id"].clone()
    }

    /// Waits until this file has this text.
    async fn has(&self, name: &str, text: &str) {
        let file = self.site.dir.path().join(name);
        let is_written = async {
            while std::fs::read_to_string(&file).ok().as_deref() != Some(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(is_written).await;
    }
}

fn write(project: &str, number: usize) -> Value {
    json!({"type": "write_project_file", "project_id": project, "path": format!("f{number}"),
        "content": number.to_string()})
}

#[tokio::test]
async fn a_session_is_killed_by_who_says_so_and_closes_at_once() {
    let kit = Kit::new().await;
    let mut other = kit.client().await;
    for round in 0..40 {
        let id = kit.terminal(&mut other).await;
        let client = kit.client().await;
        if round % 2 == 1 {
            client.say(json!({"type": "attach", "session_id": id}));
            client.say(json!({"type": "detach"}));
        }
        client.say(json!({"type": "kill_session", "session_id": id}));
        client.link.close(1000, "").await;
        soon(client.serving).await.unwrap();
        assert_eq!(kit.workspace.counts().sessions, 0, "round {round}");
    }
    kit.shut_down().await;
}

#[tokio::test]
async fn unread_requests_of_a_vanished_client_keep_their_rate_limit() {
    let kit = Kit::with(|settings| settings.message_rate = 20).await;
    let mut client = kit.client().await;
    let project = kit.project(&mut client).await;
    // Far more than the server takes at once, over a pipe with room for all of it.
    let (far, near) = duplex(1 << 20);
    let serving = kit.serve(near, FAR);
    let (mut link, outbox) = Link::new(Box::pin(far), Role::Client);
    outbox.push(json!({"type": "auth", "token": TOKEN}).to_string()).unwrap();
    assert!(soon(link.next()).await.unwrap().is_some());
    (0..60).for_each(|number| outbox.push(write(&project, number).to_string()).unwrap());
    let sent = async {
        while outbox.queued() > 0 {
            let _some = tokio::time::timeout(Duration::from_millis(1), link.write_only()).await;
        }
    };
    soon(sent).await;
    drop(link);
    soon(serving).await.unwrap();
    kit.has("f59", "59").await;
}

#[tokio::test]
async fn waiting_requests_are_dropped_once_the_key_is_revoked() {
    let kit = Kit::new().await;
    let mut administrator = kit.client().await;
    let project = kit.project(&mut administrator).await;
    let (key, text) = kit.key(KeyScope::WorkspaceWrite);
    let client = kit.client_with(&text).await;
    // No request gets its turn.
    let files = &kit.socket.0.services.files.turns;
    let turns = u32::try_from(files.available_permits()).unwrap();
    let all = files.acquire_many(turns).await.unwrap();
    (0..2).for_each(|number| client.say(write(&project, number)));
    client.link.close(1000, "").await;
    kit.workspace.keys.revoke(&key, Moment::now()).unwrap();
    tokio::task::yield_now().await;
    drop(all);
    soon(client.serving).await.unwrap();
    kit.has("f0", "0").await;
    assert!(!kit.site.dir.path().join("f1").exists(), "it was begun after the key was revoked");
}
