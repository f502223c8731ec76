//! A server with a workspace, its clients, and one who looks at a session.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    Daemon, Serve,
    workspace::{Follow, Knock, ServerMessage, WorkspaceClient},
};

use crate::common::serve;

pub(super) use crate::common::skipped;

/// The token that clients show.
pub(super) const TOKEN: &str = "the-token-of-this-workspace";

/// A server with a workspace, to be started.
pub(super) fn serving() -> Serve {
    serve().set("--workspace-token", TOKEN)
}

/// A server with a workspace, and a directory to work in.
pub(super) struct WorkspaceHost {
    pub(super) daemon: Daemon,
    dir: TempDir,
}

impl WorkspaceHost {
    pub(super) async fn start() -> Self {
        Self::of(serving()).await
    }

    pub(super) async fn of(serve: Serve) -> Self {
        Self { daemon: serve.start().await, dir: TempDir::new().expect("a directory") }
    }

    /// A host, and an administrator at it.
    pub(super) async fn with_client() -> (Self, WorkspaceClient) {
        let host = Self::start().await;
        let client = host.client().await;
        (host, client)
    }

    /// An administrator.
    pub(super) async fn client(&self) -> WorkspaceClient {
        WorkspaceClient::connect(self.daemon.address(), TOKEN).await
    }

    /// One who falls behind soon.
    pub(super) async fn slow_client(&self) -> WorkspaceClient {
        let knock = Knock::at(self.daemon.address()).receive_buffer(4096);
        knock.open().await.expect("the server takes clients").admitted(TOKEN).await
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory to work in, as messages have it.
    pub(super) fn dir(&self) -> String {
        self.path().display().to_string()
    }

    /// Runs a script in a new terminal; the session's id.
    pub(super) async fn runs(&self, client: &mut WorkspaceClient, script: &str) -> String {
        let open = json!({
            "type": "open_terminal", "working_dir": self.dir(), "command": "sh",
            "args": ["-c", script],
        });
        id_of(&client.ask(open, "terminal_opened").await["session"])
    }

    /// A project of that directory; its id.
    pub(super) async fn project(&self, client: &mut WorkspaceClient) -> String {
        let create = json!({"type": "create_project", "name": "p", "working_dir": self.dir()});
        id_of(&client.ask(create, "project_saved").await["project"])
    }

    /// The session as it is listed, if it is.
    pub(super) async fn listed(&self, id: &str) -> Option<Value> {
        let mut client = self.client().await;
        listed(&mut client).await.into_iter().find(|session| session["id"] == id)
    }

    /// Waits until the session is listed with this status.
    pub(super) async fn is(&self, id: &str, status: &str) {
        let is = async || self.listed(id).await.is_some_and(|session| session["status"] == status);
        testkit::eventually(&format!("a session that is {status}"), testkit::DEADLINE, is).await;
    }
}

/// All sessions, those that are hidden among them.
pub(super) async fn listed(client: &mut WorkspaceClient) -> Vec<Value> {
    let list = json!({"type": "list_sessions", "include_hidden": true});
    let list = client.ask(list, "session_list").await;
    list["sessions"].as_array().expect("a list").clone()
}

/// The `id` of something.
#[track_caller]
pub(super) fn id_of(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("no id: {object}")).to_owned()
}

/// A message about one session.
pub(super) fn about(kind: &str, session: &str) -> Value {
    json!({"type": kind, "session_id": session})
}

/// One who looks at a session, and finds whatever is lost or comes twice.
pub(super) struct Viewer {
    pub(super) client: WorkspaceClient,
    pub(super) follow: Follow,
    /// The other messages.
    pub(super) asides: Vec<Value>,
    session: String,
    searched: usize,
}

impl Viewer {
    /// Attaches, and has the screen.
    pub(super) async fn of(mut client: WorkspaceClient, session: &str) -> Self {
        let mut follow = Follow::new(session);
        client.say(follow.attach()).await;
        client.hear_where("attached", |attached| attached["session_id"] == session).await;
        let session = session.to_owned();
        let mut viewer = Self { client, follow, asides: Vec::new(), session, searched: 0 };
        while viewer.follow.snapshots() == 0 {
            viewer.step().await;
        }
        viewer
    }

    /// The session.
    pub(super) fn id(&self) -> String {
        self.session.clone()
    }

    /// Takes what is heard next.
    pub(super) async fn step(&mut self) {
        let heard = self.client.next().await.expect("the connection stays");
        self.take(heard);
    }

    pub(super) fn take(&mut self, heard: ServerMessage) {
        let before = self.follow.snapshots();
        if let Err(wrong) = self.follow.take(&heard) {
            panic!("{wrong}");
        }
        if self.follow.snapshots() > before {
            self.searched = 0;
        }
        if let ServerMessage::Message(message) = heard {
            self.asides.push(message);
        }
    }

    /// Waits until this text was written, after all that was waited for before.
    #[track_caller]
    pub(super) fn shows(&mut self, text: &str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let shown = async {
                loop {
                    if let Some(at) = self.follow.text()[self.searched..].find(text) {
                        self.searched += at + text.len();
                        return;
                    }
                    let heard = self.client.next_ever().await;
                    self.take(heard.unwrap_or_else(|| panic!("it ended before {text:?} came")));
                }
            };
            if tokio::time::timeout(testkit::DEADLINE, shown).await.is_err() {
                let text_so_far = self.follow.text();
                let from = text_so_far.floor_char_boundary(text_so_far.len().saturating_sub(2_000));
                panic!("at {caller}: {text:?} did not come: {:?}", &text_so_far[from..]);
            }
        }
    }

    /// Waits for a message of this `type` about the session, that may have come already.
    #[track_caller]
    pub(super) fn told(&mut self, kind: &str) -> impl Future<Output = Value> {
        self.told_where(kind, |_| true)
    }

    /// The same that is as wished.
    #[track_caller]
    pub(super) fn told_where(
        &mut self,
        kind: &str,
        wished: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let told = async {
                loop {
                    let is_it = |aside: &Value| aside["type"] == kind && wished(aside);
                    if let Some(at) = self.asides.iter().position(is_it) {
                        return self.asides.remove(at);
                    }
                    let heard = self.client.next_ever().await;
                    self.take(heard.unwrap_or_else(|| panic!("it ended before {kind} came")));
                }
            };
            match tokio::time::timeout(testkit::DEADLINE, told).await {
                Ok(told) => told,
                Err(_) => panic!("at {caller}: no {kind} as wished came, but {:?}", self.asides),
            }
        }
    }

    pub(super) async fn types(&mut self, keys: &str) {
        let session = &self.session;
        let input = json!({"type": "terminal_input", "session_id": session, "data": keys});
        self.client.say(input).await;
    }

    /// The same, until it was applied.
    pub(super) async fn type_until_applied(&mut self, keys: &str) {
        let session = &self.session;
        let input = json!({
            "type": "terminal_input", "session_id": session, "data": keys, "input_id": keys,
        });
        self.client.say(input).await;
        self.told_where("input_ack", |ack| ack["input_id"] == keys).await;
    }

    /// Gives the session a whole prompt.
    pub(super) async fn prompts(&mut self, input: &str) {
        let session = &self.session;
        let prompt = json!({"type": "send_input", "session_id": session, "input": input});
        self.client.say(prompt).await;
    }

    /// Says something about the session.
    pub(super) async fn says(&mut self, kind: &str) {
        let message = about(kind, &self.session);
        self.client.say(message).await;
    }

    /// Says how large its terminal is.
    pub(super) async fn resizes(&mut self, cols: u16, rows: u16) {
        let session = &self.session;
        let resize = json!({
            "type": "resize", "session_id": session, "cols": cols, "rows": rows, "visible": true,
        });
        self.client.say(resize).await;
    }
}
