//! Asks a question, and passes the answer on as it comes.

use std::time::{Duration, Instant};

use client::{AnswerEvents, AnswerReader, ClientError, Warren};
use protocol::room::message::LlmRequest;
use serde_json::{Value, json};
use tokio::{sync::mpsc::Sender, time::timeout};

#[cfg(test)]
use crate::app::event::Turn;
use crate::app::event::{Event, Piece, Question, Target};

/// The longest silence in an answer: longer than a server's own.
const SILENCE: Duration = Duration::from_secs(600);

/// The path that questions to the server are posted to.
const CHAT: &str = "/v1/chat/completions";

/// Asks, and sends the pieces of the answer until it has ended.
pub(super) async fn run(warren: Warren, question: Question, events: Sender<Event>) {
    let number = question.number;
    let tell = async |piece| {
        // The receiver may be gone; then this task is about to end, too.
        let _ = events.send(Event::Answer { question: number, piece }).await;
    };
    let began = Instant::now();
    let mut answer = match ask(&warren, &question).await {
        Ok(answer) => answer,
        Err(error) => return tell(Piece::Failed(error.to_string())).await,
    };
    let mut reader = AnswerReader::default();
    loop {
        let pieces = match timeout(SILENCE, answer.next()).await {
            Ok(Ok(Some(data))) => reader.take(&data, began.elapsed()),
            Ok(Ok(None)) => reader.end(began.elapsed()).into_iter().collect(),
            Ok(Err(error)) => vec![client::Piece::Failed(error.to_string())],
            Err(_) => vec![client::Piece::Failed("nothing came for too long".to_owned())],
        };
        for piece in pieces.into_iter().filter_map(|piece| shown(piece, question.aloud)) {
            let is_last = !matches!(piece, Piece::Text(_));
            tell(piece).await;
            if is_last {
                return;
            }
        }
    }
}

/// A piece of an answer as the interface takes it. The interface measures an answer itself, except one that
/// the whole room sees: that one comes with metrics.
fn shown(piece: client::Piece, aloud: bool) -> Option<Piece> {
    match piece {
        client::Piece::Text { text, .. } => Some(Piece::Text(text)),
        client::Piece::Thought(_) => None,
        client::Piece::Done { metrics, .. } => {
            Some(Piece::Done { tokens: Some(metrics.tokens), metrics: aloud.then_some(metrics) })
        }
        client::Piece::Failed(words) => Some(Piece::Failed(words)),
    }
}

async fn ask(warren: &Warren, question: &Question) -> Result<AnswerEvents, ClientError> {
    match &question.to {
        Target::Server { model } => warren.post(CHAT, chat(model, question)).await,
        Target::Room { code, selector } => {
            let room = warren.room(code, question.password.as_ref())?;
            if question.aloud {
                room.ask(&aloud(selector, &question.prompt)).await
            } else {
                room.post(CHAT, chat(selector, question)).await
            }
        }
    }
}

/// A request of Chat Completions with the whole conversation.
fn chat(model: &str, question: &Question) -> Vec<u8> {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let before = question.before.iter();
    let before =
        before.flat_map(|turn| [said("user", &turn.prompt), said("assistant", &turn.answer)]);
    let messages: Value = before.chain([said("user", &question.prompt)]).collect();
    let options = json!({"include_usage": true});
    let body = json!({
        "model": model, "stream": true, "stream_options": options, "messages": messages,
    });
    body.to_string().into_bytes()
}

fn aloud(selector: &str, prompt: &str) -> LlmRequest {
    LlmRequest {
        request_id: format!("tui-{:016x}", rand::random::<u64>()),
        target_id: selector.to_owned(),
        prompt: prompt.to_owned(),
        options: None,
        room_code: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_sent_with_what_was_said_before() {
        let before = vec![Turn { prompt: "one".to_owned(), answer: "1".to_owned() }];
        let question = Question {
            number: 1,
            to: Target::Server { model: "m".to_owned() },
            password: None,
            aloud: false,
            before,
            prompt: "two".to_owned(),
        };
        let body: Value = serde_json::from_slice(&chat("m", &question)).unwrap();
        let said = |role: &str, content: &str| json!({"role": role, "content": content});
        let expected = json!([said("user", "one"), said("assistant", "1"), said("user", "two")]);
        assert_eq!((&body["messages"], &body["stream"]), (&expected, &json!(true)));
    }
}
