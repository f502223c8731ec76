//! A workspace, and clients of it.

use std::sync::Arc;

use access::{LocalRules, Moment, NewKey};
use base::{ClientAddress, KeyId, KeyScope, Live, Secret};
use protocol::workspace::frame;
use serde_json::{Value, json};
use tokio::{
    io::{DuplexStream, duplex},
    task::JoinHandle,
};
use wire::{Frame, Link, Outbox, link::Role};
use workspace::{
    Settings, TurnFollower, Workspace,
    testing::{Site, soon},
};
use workspace_teams::Teams;

use crate::{ClientSocket, accept::serve, strangers::Strangers};

/// The token of administrators in these tests.
pub(super) const TOKEN: &str = "let me in";
pub(super) const FAR: &str = "10.0.0.1";

/// A workspace whose administrators present [`TOKEN`], with its teams and its socket.
pub(super) struct Kit {
    pub(super) site: Site,
    pub(super) workspace: Workspace,
    pub(super) socket: ClientSocket,
    teams: Arc<Teams>,
}

impl Kit {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut site = Site::new();
        site.settings.token = Some(TOKEN.into());
        change(&mut site.settings);
        let teams = Arc::<Teams>::default();
        let follower: Arc<dyn TurnFollower> = Arc::<Teams>::clone(&teams);
        let workspace = site.start_with(Arc::downgrade(&follower)).await;
        teams.restore(&workspace).await.unwrap();
        let requests = teams.requests(&workspace);
        let socket = ClientSocket::new(&workspace, requests, Live::<LocalRules>::default());
        Self { site, workspace, socket, teams }
    }

    /// Closes the connections and ends the sessions.
    pub(super) async fn shut_down(&self) {
        self.socket.close().await;
        self.teams.flush().await;
        self.workspace.shut_down().await;
    }

    /// A connection from this address that has not authenticated.
    pub(super) fn stranger(&self, from: &str) -> Caller {
        self.page(from, None)
    }

    /// The same, which a web page with this session has opened.
    pub(super) fn page(&self, from: &str, session: Option<Secret>) -> Caller {
        let (far, near) = duplex(64 * 1024);
        let (link, outbox) = Link::new(Box::pin(far), Role::Client);
        Caller { link, outbox, serving: self.serve_page(near, from, session) }
    }

    /// Serves the client at the other end of a pipe.
    pub(super) fn serve(&self, near: DuplexStream, from: &str) -> JoinHandle<()> {
        self.serve_page(near, from, None)
    }

    fn serve_page(
        &self,
        near: DuplexStream,
        from: &str,
        session: Option<Secret>,
    ) -> JoinHandle<()> {
        let (admission, from) =
            (Arc::clone(&self.socket.0), ClientAddress::new(from.parse().unwrap()));
        let stranger = Strangers::new(1).admit(from).unwrap();
        tokio::spawn(
            async move { serve(&admission, Box::pin(near), from, stranger, session).await },
        )
    }

    pub(super) async fn client_with(&self, token: &str) -> Caller {
        let mut client = self.stranger(FAR);
        client.say(json!({"type": "auth", "token": token}));
        let result = client.hear().await;
        assert_eq!(result["success"], true, "{result}");
        client
    }

    /// An authenticated administrator.
    pub(super) async fn client(&self) -> Caller {
        self.client_with(TOKEN).await
    }

    /// A key of this scope, and its text.
    pub(super) fn key(&self, scope: KeyScope) -> (KeyId, String) {
        let new = NewKey { name: "n".to_owned(), scopes: vec![scope], ..NewKey::default() };
        let (record, text) = self.workspace.keys.create(new, Moment::now()).unwrap();
        (record.id, text.expose().to_owned())
    }

    pub(super) fn dir(&self) -> String {
        self.site.dir.path().to_str().unwrap().to_owned()
    }

    /// A project in the directory of the site.
    pub(super) async fn project(&self, client: &mut Caller) -> String {
        client.say(json!({"type": "create_project", "name": "p", "working_dir": self.dir()}));
        let saved = client.hear_of("project_saved").await;
        saved["project"]["id"].as_str().unwrap().to_owned()
    }
}

/// A client's end of a connection.
pub(super) struct Caller {
    pub(super) link: Link,
    pub(super) outbox: Outbox,
    pub(super) serving: JoinHandle<()>,
}

impl Caller {
    #[allow(clippy::needless_pass_by_value, reason = "callers write it out")]
    pub(super) fn say(&self, message: Value) {
        self.outbox.push(message.to_string()).unwrap();
    }

    /// The next message; output as JSON, too; `null` when the connection is over.
    pub(super) async fn hear(&mut self) -> Value {
        match soon(self.link.next()).await {
            Ok(Some(Frame::Text(text))) => serde_json::from_str(&text).unwrap(),
            Ok(Some(Frame::Binary(bytes))) => {
                let output = frame::decode(bytes).unwrap().into_message();
                json!({"type": "output", "session_id": output.session_id, "seq": output.seq,
                    "data": output.data})
            }
            Ok(None) | Err(_) => Value::Null,
        }
    }

    /// The next message of this type; others are skipped.
    pub(super) async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let heard = self.hear().await;
            assert!(!heard.is_null(), "the connection is over, and no {kind} came");
            if heard["type"] == kind {
                return heard;
            }
        }
    }

    /// Sends a message and returns the next message of this type.
    pub(super) async fn ask(&mut self, message: Value, kind: &str) -> Value {
        self.say(message);
        self.hear_of(kind).await
    }

    /// All messages before the answer to a keepalive.
    pub(super) async fn all_until_now(&mut self) -> Vec<Value> {
        self.say(json!({"type": "keepalive"}));
        let mut all = Vec::new();
        loop {
            let heard = self.hear().await;
            assert!(!heard.is_null(), "the connection is over: {all:?}");
            if heard["type"] == "keepalive_ack" {
                return all;
            }
            all.push(heard);
        }
    }

    /// Waits until the connection has ended.
    pub(super) async fn until_over(mut self) {
        while !self.hear().await.is_null() {}
        drop(self.link);
        soon(self.serving).await.unwrap();
    }
}
