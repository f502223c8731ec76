//! Messages over 1 MiB that are begun and never finished.

use std::{sync::Arc, time::Duration};

use base::KeyScope;
use futures_util::{FutureExt as _, future::select_all};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::{Instant, timeout},
};
use workspace::testing::soon;

use super::kit::{Caller, FAR, Kit};

const MIB: usize = 1024 * 1024;

/// A client's frame as it goes over the wire, with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_be_bytes();
    [&[first, 0xff][..], &length, &[0; 4], payload].concat()
}

/// A connection with this key that has begun a message, sent 2 MiB of it, and does not go on.
struct Holder {
    far: DuplexStream,
    serving: JoinHandle<()>,
}

impl Holder {
    async fn new(kit: &Kit, token: &str) -> Self {
        let (mut far, near) = duplex(4 * MIB);
        let serving = kit.serve(near, FAR);
        let auth = json!({"type": "auth", "token": token}).to_string();
        far.write_all(&frame(0x81, auth.as_bytes())).await.unwrap();
        soon(far.read_exact(&mut [0; 4])).await.unwrap();
        far.write_all(&frame(0x01, &vec![b'x'; 2 * MIB])).await.unwrap();
        Self { far, serving }
    }

    /// Waits until the server has closed the connection.
    async fn ends(mut self) {
        soon(self.far.read_to_end(&mut Vec::new())).await.unwrap();
        drop(self.far);
        soon(self.serving).await.unwrap();
    }
}

/// Sends a message of 3 MiB, waits for its answer, and returns how long that took.
async fn answered(client: &mut Caller) -> Duration {
    let began = Instant::now();
    let long = "x".repeat(3 * MIB);
    client.say(json!({"type": "resize", "session_id": long, "cols": 80, "rows": 24}));
    client.hear_of("error").await;
    began.elapsed()
}

#[tokio::test]
async fn a_key_that_begins_messages_and_ends_none_holds_up_itself_alone() {
    let kit = Kit::new().await;
    let reader = kit.key(KeyScope::WorkspaceRead).1;
    let mut holders = Vec::new();
    for _ in 0..8 {
        holders.push(Holder::new(&kit, &reader).await);
    }
    let writer = kit.key(KeyScope::WorkspaceWrite).1;
    for mut client in [kit.client_with(&writer).await, kit.client().await] {
        let took = answered(&mut client).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    // If others with the same key wait, a connection that stalls is closed within seconds.
    let mut client = kit.client_with(&reader).await;
    answered(&mut client).await;
    select_all(holders.into_iter().map(|holder| holder.ends().boxed())).await;
}

#[tokio::test]
async fn when_many_keys_hold_all_sites_administrators_have_their_own_and_the_others_get_one_soon() {
    let kit = Kit::new().await;
    let mut holders = Vec::new();
    for _ in 0..7 {
        holders.push(Holder::new(&kit, &kit.key(KeyScope::WorkspaceRead).1).await);
    }
    let mut administrator = kit.client().await;
    let took = answered(&mut administrator).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let mut client = kit.client_with(&kit.key(KeyScope::WorkspaceWrite).1).await;
    answered(&mut client).await;
    drop(holders);
}

#[tokio::test]
async fn only_an_upload_keeps_its_site_after_it_was_read() {
    let kit = Kit::new().await;
    let reader = kit.key(KeyScope::WorkspaceRead).1;
    let mut administrator = kit.client().await;
    let id = kit.project(&mut administrator).await;
    // Requests to look at files wait for a turn that never comes.
    let files = Arc::clone(&kit.socket.0.services.files.turns);
    let turns = u32::try_from(files.available_permits()).unwrap();
    let all = files.acquire_many(turns).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let client = kit.client_with(&reader).await;
        for _ in 0..3 {
            client.say(json!({"type": "list_project_files", "project_id": id,
                "padding": "x".repeat(2 * MIB)}));
        }
        clients.push(client);
    }
    for client in &mut clients {
        let has_sent = timeout(Duration::from_secs(20), client.all_until_now()).await;
        assert!(has_sent.is_ok(), "its messages are read although none is answered");
    }
    drop(all);
    for client in &mut clients {
        client.hear_of("project_file_list").await;
    }
}
