//! A node that asks, and one that answers.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use protocol::mesh::{ClusterMessage, cluster::decode};
use scheduler::Head;
use serde_json::Value;

use super::{Bench, DELTA, LAST, USAGE, says, shared};
use crate::{
    inbound::Inbound,
    node::Node,
    share::Doing,
    testing::{FarEnd, Kind, Server, id, link, mesh, ok, peer, rest, settings},
};

/// Two nodes: one that asks, one that answers, and what carries messages between them.
struct Pair {
    asks: Server,
    answers: Bench,
    _node: Arc<Node>,
}

impl Pair {
    fn new(kind: Kind) -> Self {
        let (asks, answers) = (Server::new(), Bench::new(shared()));
        let node = mesh(1, settings(), &asks).0;
        let (there, far) = link(&id(2), kind);
        let (back, near) = link(&id(1), kind);
        let (inbound, tasks) = (answers.inbound.clone_for_test(), answers.tasks.clone());
        tokio::spawn(carry(far, move |message| match message {
            ClusterMessage::InferenceRequest(request) => {
                let doing = || Doing { own_load: 0.0, throttle: 100 };
                inbound.take(&tasks, &back, true, request, doing);
            }
            ClusterMessage::InferenceCancel(cancel) => inbound.cancel(&back, &cancel.request_id),
            other => panic!("{other:?}"),
        }));
        let (own, answered) = (Arc::clone(&node), Arc::clone(&there));
        tokio::spawn(carry(near, move |message| own.providers.answered(&answered, message)));
        node.providers.refresh(&peer(&node.peers, &there, 8));
        Self { asks, answers, _node: node }
    }
}

async fn carry(mut from: FarEnd, to: impl Fn(ClusterMessage)) {
    while let Some(payload) = from.0.next().await {
        let (head, body) = payload.parts();
        to(decode(&[head, body].concat()).unwrap().message);
    }
}

impl Inbound {
    fn clone_for_test(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), running: Arc::clone(&self.running) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_crosses_from_one_node_to_the_other_and_back() {
    for (kind, streaming) in
        [(Kind::WarrenNear, true), (Kind::StockFar, true), (Kind::WarrenFar, false)]
    {
        let mut pair = Pair::new(kind);
        let mut lent = pair.answers.server.lend(&["m"], 1);
        let mut answer = pair.asks.ask(streaming);
        let mut assignment = lent.assigned().await;
        let sent: Value = serde_json::from_slice(&assignment.request.body).unwrap();
        assert_eq!(sent["top_k"], 4);
        assignment.answer.head(ok()).unwrap();
        says(&mut assignment, DELTA);
        says(&mut assignment, LAST);
        says(&mut assignment, USAGE);
        assignment.answer.end();
        assert_eq!(answer.head().await.unwrap().status, 200);
        let (text, well) = rest(&mut answer).await;
        assert!(well && text.contains('é') && text.contains("prompt_tokens"), "{kind:?}: {text}");
        assert_eq!(text.ends_with("data: [DONE]\n\n"), streaming);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_here_stops_the_backend_there() {
    let mut pair = Pair::new(Kind::WarrenNear);
    let mut lent = pair.answers.server.lend(&["m"], 1);
    let answer = pair.asks.ask(true);
    let assignment = lent.assigned().await;
    drop(answer);
    assert_eq!(lent.canceled().await, assignment.job);
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_comes_back_as_the_backends_own_refusal() {
    let mut pair = Pair::new(Kind::WarrenNear);
    let mut lent = pair.answers.server.lend(&["m"], 1);
    let mut answer = pair.asks.ask(true);
    let mut assignment = lent.assigned().await;
    let head = Head { status: StatusCode::BAD_REQUEST, headers: ok().headers };
    assignment.answer.head(head).unwrap();
    assignment.answer.chunk(Bytes::from_static(br#"{"error":{"message":"no"}}"#)).unwrap();
    assignment.answer.end();
    assert_eq!(answer.head().await.unwrap().status, 400);
    assert_eq!(rest(&mut answer).await, (r#"{"error":{"message":"no"}}"#.to_owned(), true));
}
