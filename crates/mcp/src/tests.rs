//! The tools, as an agent's MCP client calls them, against a server that says what the test wants.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base::Secret;
use client::workspace::Address;
use futures_util::{SinkExt as _, StreamExt as _};
use protocol::workspace::{
    ClientMessage, InboxMessage, ServerMessage, SessionId, TeamId, WaitId,
    client::{
        AuthResult, HandoffResult, TeamInbox, TeamMessageSent, TeamWaitResult, WorkerAssigned,
        WorkerResult,
    },
    decode_request,
};
use rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Barrier, mpsc},
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

use crate::{member::Member, serve_on};

const PATIENCE: Duration = Duration::from_secs(20);
const TEAM: TeamId = TeamId::from_random(1);
const ITSELF: SessionId = SessionId::from_random(2);
const ANN: SessionId = SessionId::from_random(3);
const WAIT: WaitId = WaitId::from_random(4);

/// The server's behaviour at the next request.
enum Reply {
    Says(ServerMessage),
    /// It drops the connection instead.
    Drops,
    /// It sends this once all connections have asked.
    SaysWhenAll(ServerMessage, Arc<Barrier>),
}

/// The agent's end, and the requests that the server got.
struct Rig {
    agent: RunningService<RoleClient, ()>,
    requests: mpsc::Receiver<ClientMessage>,
    serving: JoinHandle<Result<(), crate::McpError>>,
}

impl Rig {
    async fn new(replies: Vec<Reply>) -> Self {
        Self::with_token(replies, "wt_right").await
    }

    async fn with_token(replies: Vec<Reply>, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let (tell, requests) = mpsc::channel(64);
        tokio::spawn(answer_all(listener, replies.into(), tell));
        let address = Address::new(&server, Some(&Secret::from(token))).unwrap();
        let (agents, ours) = tokio::io::duplex(64 * 1024);
        let member = Member::new(address, TEAM, ITSELF);
        let serving = tokio::spawn(serve_on(member, tokio::io::split(ours)));
        let agent = soon(().serve(tokio::io::split(agents))).await.unwrap();
        Self { agent, requests, serving }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        soon(self.agent.call_tool(call)).await.unwrap()
    }

    async fn request(&mut self) -> ClientMessage {
        soon(self.requests.recv()).await.unwrap()
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it took too long")
}

/// Answers one request on each connection.
async fn answer_all(
    listener: TcpListener,
    mut replies: VecDeque<Reply>,
    tell: mpsc::Sender<ClientMessage>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        let Some(ClientMessage::Auth(auth)) = heard(&mut socket).await else { panic!() };
        let success = auth.token.expose() == "wt_right";
        let message = "wrong token".to_owned();
        say(&mut socket, &ServerMessage::AuthResult(AuthResult { success, message })).await;
        let Some(request) = heard(&mut socket).await else { continue };
        tell.send(request).await.unwrap();
        let reply = replies.pop_front().expect("nothing more was expected");
        tokio::spawn(answer(socket, reply));
    }
}

async fn answer(mut socket: WebSocketStream<TcpStream>, reply: Reply) {
    match reply {
        Reply::Says(reply) => say(&mut socket, &reply).await,
        Reply::Drops => {}
        Reply::SaysWhenAll(reply, all) => {
            all.wait().await;
            say(&mut socket, &reply).await;
        }
    }
}

async fn heard(socket: &mut WebSocketStream<TcpStream>) -> Option<ClientMessage> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(decode_request(text.as_str()).unwrap()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

async fn say(socket: &mut WebSocketStream<TcpStream>, message: &ServerMessage) {
    socket.send(Message::text(message.encode())).await.unwrap();
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

fn handed(completed: bool) -> ServerMessage {
    ServerMessage::HandoffResult(HandoffResult {
        team_id: TEAM,
        worker_session_id: ANN,
        success: completed,
        result: completed.then(|| "all is well".to_owned()),
        completed,
        wait_id: (!completed).then_some(WAIT),
    })
}

fn waited(is_done: bool) -> ServerMessage {
    let result = WorkerResult {
        team_id: TEAM,
        worker_session_id: ANN,
        success: false,
        result: "it broke".to_owned(),
    };
    ServerMessage::TeamWaitResult(TeamWaitResult {
        team_id: TEAM,
        completed_workers: if is_done { vec![ANN] } else { Vec::new() },
        pending_workers: if is_done { Vec::new() } else { vec![ANN] },
        timed_out: !is_done,
        wait_id: (!is_done).then_some(WAIT),
        results: if is_done { vec![result] } else { Vec::new() },
    })
}

#[tokio::test]
async fn a_model_is_told_of_six_tools_and_what_to_give_them() {
    let rig = Rig::new(Vec::new()).await;
    let tools = soon(rig.agent.list_all_tools()).await.unwrap();
    let mut names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["assign", "handoff", "inbox", "report", "send", "wait"]);
    for tool in &tools {
        let about = tool.description.as_deref().unwrap();
        assert!(about.len() > 60 && !about.contains("  "), "{about}");
        let properties = tool.input_schema["properties"].as_object().unwrap();
        assert!(properties.values().all(|one| one["description"].is_string()), "{properties:?}");
    }
    let handoff = tools.iter().find(|tool| tool.name == "handoff").unwrap();
    assert_eq!(handoff.input_schema["required"], json!(["prompt"]));
    let info = rig.agent.peer_info().unwrap();
    assert!(info.instructions.as_deref().unwrap().contains("[team message N from"));
}

#[tokio::test]
async fn a_handoff_says_the_result_or_how_to_wait_for_it() {
    let replies = vec![Reply::Says(handed(true)), Reply::Says(handed(false))];
    let mut rig = Rig::new(replies).await;
    let asks = json!({"prompt": "audit", "worker_name": "ann", "timeout_seconds": 7});
    let done = rig.call("handoff", asks).await;
    assert_eq!(text(&done), format!("Worker {ANN} is done:\n\nall is well"));
    assert_eq!(done.structured_content.as_ref().unwrap()["completed"], true);
    let ClientMessage::Handoff(request) = rig.request().await else { panic!() };
    assert_eq!(
        (request.team_id, &*request.prompt, request.timeout_ms),
        (TEAM, "audit", Some(7000))
    );
    assert_eq!(request.worker_name.as_deref(), Some("ann"));
    let late = rig.call("handoff", json!({"prompt": "audit"})).await;
    assert!(text(&late).contains(&format!("call wait with wait_id \"{WAIT}\"")), "{late:?}");
    let ClientMessage::Handoff(request) = rig.request().await else { panic!() };
    assert_eq!(request.timeout_ms, Some(45_000));
}

#[tokio::test]
async fn a_wait_goes_on_by_its_id_until_the_results_are_there() {
    let mut rig = Rig::new(vec![Reply::Says(waited(false)), Reply::Says(waited(true))]).await;
    let late = rig.call("wait", json!({"workers": [ANN.to_string()]})).await;
    assert!(text(&late).contains(&format!("Still working: {ANN}.")), "{late:?}");
    assert!(text(&late).contains(&WAIT.to_string()));
    let ClientMessage::TeamWait(request) = rig.request().await else { panic!() };
    assert_eq!((request.for_session_ids, request.wait_id), (Some(vec![ANN]), None));
    let done = rig.call("wait", json!({"wait_id": WAIT.to_string()})).await;
    assert_eq!(text(&done), format!("Worker {ANN} has failed:\n\nit broke"));
    let ClientMessage::TeamWait(request) = rig.request().await else { panic!() };
    assert_eq!((request.for_session_ids, request.wait_id), (None, Some(WAIT)));
}

#[tokio::test]
async fn members_speak_as_themselves() {
    let sent = ServerMessage::TeamMessageSent(TeamMessageSent { team_id: TEAM, seq: 12 });
    let (team_id, worker_session_id, result) = (TEAM, ITSELF, "done".to_owned());
    let counts = WorkerResult { team_id, worker_session_id, success: true, result };
    let message = InboxMessage {
        seq: 3,
        from_session_id: ANN,
        payload: "hello".to_owned(),
        delivered_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let (messages, next_seq) = (vec![message], 4);
    let inbox = TeamInbox { team_id: TEAM, session_id: ITSELF, messages, next_seq };
    let assigned = WorkerAssigned { team_id: TEAM, worker_session_id: ANN };
    let replies = vec![
        Reply::Says(sent),
        Reply::Says(ServerMessage::WorkerResultReceived(counts)),
        Reply::Says(ServerMessage::TeamInbox(inbox)),
        Reply::Says(ServerMessage::WorkerAssigned(assigned)),
    ];
    let mut rig = Rig::new(replies).await;
    let sent = rig.call("send", json!({"message": "hi", "to": ANN.to_string()})).await;
    assert!(text(&sent).starts_with("Sent as message 12."), "{sent:?}");
    let ClientMessage::RelayTeamMessage(request) = rig.request().await else { panic!() };
    assert_eq!((request.from_session_id, request.to_session_id), (ITSELF, Some(ANN)));
    rig.call("report", json!({"result": "done"})).await;
    let ClientMessage::ReportResult(request) = rig.request().await else { panic!() };
    assert_eq!((request.worker_session_id, request.success), (ITSELF, true));
    let inbox = rig.call("inbox", json!({"since_seq": 3})).await;
    assert!(text(&inbox).contains(&format!("[message 3 from {ANN}, ")), "{inbox:?}");
    assert!(text(&inbox).ends_with("Next time ask with since_seq 4."), "{inbox:?}");
    let ClientMessage::GetTeamInbox(request) = rig.request().await else { panic!() };
    assert_eq!((request.session_id, request.since_seq), (ITSELF, Some(3)));
    let assigned = rig.call("assign", json!({"prompt": "go"})).await;
    assert!(text(&assigned).contains(&ANN.to_string()), "{assigned:?}");
}

#[tokio::test]
async fn a_repeatable_request_survives_a_lost_connection() {
    let mut rig = Rig::new(vec![Reply::Drops, Reply::Says(waited(true))]).await;
    let done = rig.call("wait", json!({})).await;
    assert_eq!(done.is_error, Some(false), "{done:?}");
    assert!(matches!(rig.request().await, ClientMessage::TeamWait(_)));
    assert!(matches!(rig.request().await, ClientMessage::TeamWait(_)));
}

#[tokio::test]
async fn an_unrepeatable_request_is_not_sent_again() {
    let mut rig = Rig::new(vec![Reply::Drops]).await;
    let lost = rig.call("send", json!({"message": "hi"})).await;
    assert_eq!(lost.is_error, Some(true), "{lost:?}");
    assert!(text(&lost).contains("could not reach the server"), "{lost:?}");
    assert!(matches!(rig.request().await, ClientMessage::RelayTeamMessage(_)));
    assert!(rig.requests.try_recv().is_err());
}

#[tokio::test]
async fn errors_are_told_in_words_that_the_model_can_act_on() {
    let refusal = ServerMessage::error("the inbox of the team is full");
    let mut rig = Rig::new(vec![Reply::Says(refusal)]).await;
    let refused = rig.call("send", json!({"message": "hi"})).await;
    assert_eq!((refused.is_error, text(&refused)), (Some(true), "the inbox of the team is full"));
    rig.request().await;
    let wrong = rig.call("wait", json!({"workers": ["ann"]})).await;
    assert!(wrong.is_error == Some(true) && text(&wrong).contains("\"ann\" is no id"), "{wrong:?}");
    let rig = Rig::with_token(Vec::new(), "wt_wrong").await;
    let strange = rig.call("inbox", json!({})).await;
    assert!(text(&strange).contains("end your turn"), "{strange:?}");
    assert!(!text(&strange).contains("wt_wrong"));
}

#[tokio::test]
async fn serving_ends_when_the_agent_closes_its_end() {
    let rig = Rig::new(Vec::new()).await;
    rig.agent.cancel().await.unwrap();
    soon(rig.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn several_tools_are_served_at_once() {
    let all = Arc::new(Barrier::new(4));
    let replies = (0..4).map(|_| Reply::SaysWhenAll(waited(true), Arc::clone(&all))).collect();
    let rig = Rig::new(replies).await;
    let calls = (0..4).map(|_| rig.call("wait", json!({})));
    let all = futures_util::future::join_all(calls).await;
    assert!(all.iter().all(|one| one.is_error == Some(false)));
}

#[tokio::test]
async fn a_server_that_is_lost_each_time_is_given_up() {
    let replies = (0..5).map(|_| Reply::Drops).collect();
    let rig = Rig::new(replies).await;
    let lost = rig.call("inbox", json!({})).await;
    assert!(text(&lost).contains("could not reach the server"), "{lost:?}");
}
