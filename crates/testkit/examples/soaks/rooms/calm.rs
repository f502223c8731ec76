//! When all have gone: rooms that went through it serve as new ones do. However slow the machine is,
//! nothing is refused, broken or lost now.

use std::sync::Arc;

use serde_json::json;
use testkit::{FakeParticipant, Put, TunnelAsk, lab::Nonce};

use crate::rooms::{
    account::{Report, RequestEnd},
    answers, load, messages,
    room::Room,
};

/// A slot that no participant had before.
const SLOT: usize = 1_000;

/// How often each room is asked in each way.
const ROUNDS: usize = 4;

/// One participant comes into each room and answers everything; then it leaves.
pub(crate) async fn serve(rooms: &[Arc<Room>], report: &Report) {
    for room in rooms {
        let number = room.number;
        match tokio::spawn(serve_one(Arc::clone(room))).await {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => report.wrong(format!("room {number}, after all have gone: {wrong}")),
            Err(error) => report.wrong(format!("room {number}, after all have gone: {error}")),
        }
    }
}

async fn serve_one(room: Arc<Room>) -> Result<(), String> {
    let put = Put::new(room.address, &room.code).id(&room.id(SLOT, 0));
    let mut participant = put.field("password", json!(room.password())).join().await;
    tokio::select! {
        asked = ask_all(&room) => asked?,
        () = answer_all(&mut participant) => {}
    }
    match participant.leave().await.status {
        200 => Ok(()),
        status => Err(format!("its participant could not leave: {status}")),
    }
}

async fn ask_all(room: &Room) -> Result<(), String> {
    for _ in 0..ROUNDS {
        for streamed in [true, false] {
            is_answered(&load::chat(room, room.nonce(), "*", streamed).await)?;
            is_answered(&messages::llm_request(room, room.nonce(), "*", streamed).await)?;
        }
    }
    Ok(())
}

fn is_answered(fate: &RequestEnd) -> Result<(), String> {
    if *fate == RequestEnd::Answered { Ok(()) } else { Err(format!("{fate:?}")) }
}

/// Answers all that comes, for ever.
async fn answer_all(participant: &mut FakeParticipant) {
    loop {
        let ask = participant.expect_request().await;
        answer(participant, &ask).await;
    }
}

async fn answer(participant: &mut FakeParticipant, ask: &TunnelAsk) {
    let body = &ask.json["body"];
    let nonce = Nonce::in_chat(body).expect("a prompt of ours");
    if body["stream"] == true {
        participant.start(ask, 200, "text/event-stream").await;
        participant.chunk(ask, answers::stream(nonce)).await;
        participant.end(ask).await;
    } else {
        participant.answer(ask, 200, &answers::whole(nonce)).await;
    }
}
