//! Asks a question, and tells the answer as it comes.

use std::time::Duration;

use client::{Answering, ClientError, Warren};
use protocol::room::{ServerMessage, message::LlmRequest};
use serde_json::{Value, json};
use tokio::{sync::mpsc::Sender, time::timeout};

use crate::app::event::{Event, Piece, Question, Target};

/// The longest silence in an answer: longer than a server's own.
const SILENCE: Duration = Duration::from_secs(600);

/// The path that questions to the server are posted to.
const CHAT: &str = "/v1/chat/completions";

/// Asks, until the answer ended or nobody listens.
pub(super) async fn run(warren: Warren, question: Question, events: Sender<Event>) {
    let number = question.number;
    let tell = async |piece| {
        // The receiver may be gone; then this task is about to end, too.
        let _ = events.send(Event::Answer { question: number, piece }).await;
    };
    let mut reading = if question.aloud { Reading::Aloud } else { Reading::chat() };
    let mut answer = match ask(&warren, &question).await {
        Ok(answer) => answer,
        Err(error) => return tell(Piece::Failed(error.to_string())).await,
    };
    loop {
        let last = match timeout(SILENCE, answer.next()).await {
            Ok(Ok(Some(data))) => {
                let Some(piece) = reading.take(&data) else { continue };
                let is_last = !matches!(piece, Piece::Text(_));
                tell(piece).await;
                if !is_last {
                    continue;
                }
                return;
            }
            Ok(Ok(None)) => reading.end(),
            Ok(Err(error)) => Piece::Failed(error.to_string()),
            Err(_) => Piece::Failed("nothing came for too long".to_owned()),
        };
        return tell(last).await;
    }
}

async fn ask(warren: &Warren, question: &Question) -> Result<Answering, ClientError> {
    match &question.to {
        Target::Server { model } => warren.post(CHAT, chat(model, &question.prompt)).await,
        Target::Room { code, selector } => {
            let room = warren.room(code, question.password.as_ref())?;
            if question.aloud {
                room.ask(&aloud(selector, &question.prompt)).await
            } else {
                room.ask_privately(selector, &question.prompt).await
            }
        }
    }
}

fn chat(model: &str, prompt: &str) -> Vec<u8> {
    let messages = json!([{"role": "user", "content": prompt}]);
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

/// What an answer is read as.
enum Reading {
    /// A room's messages.
    Aloud,
    /// A stream of Chat Completions: the tokens that it told, and whether it said that it is whole.
    Chat { tokens: Option<u64>, is_whole: bool },
}

impl Reading {
    const fn chat() -> Self {
        Self::Chat { tokens: None, is_whole: false }
    }

    /// What one event brings.
    fn take(&mut self, data: &[u8]) -> Option<Piece> {
        match self {
            Self::Aloud => message(data),
            Self::Chat { tokens, .. } if data == b"[DONE]" => {
                Some(Piece::Done { tokens: *tokens, metrics: None })
            }
            Self::Chat { tokens, is_whole } => {
                let chunk: Value = serde_json::from_slice(data).ok()?;
                *tokens = chunk["usage"]["completion_tokens"].as_u64().or(*tokens);
                *is_whole |= chunk["choices"][0]["finish_reason"].is_string();
                piece(&chunk)
            }
        }
    }

    /// What the end of the stream means.
    fn end(&self) -> Piece {
        match self {
            Self::Chat { tokens, is_whole: true } => Piece::Done { tokens: *tokens, metrics: None },
            _ => Piece::Failed("the answer broke off".to_owned()),
        }
    }
}

fn piece(chunk: &Value) -> Option<Piece> {
    let error = &chunk["error"];
    if let Some(words) = error["message"].as_str().or(error.as_str()) {
        return Some(Piece::Failed(words.to_owned()));
    }
    let text = chunk["choices"][0]["delta"]["content"].as_str()?;
    (!text.is_empty()).then(|| Piece::Text(text.to_owned()))
}

fn message(data: &[u8]) -> Option<Piece> {
    match serde_json::from_slice(data).ok()? {
        ServerMessage::LlmToken(token) => Some(Piece::Text(token.token)),
        ServerMessage::LlmComplete(complete) => {
            let metrics = complete.metrics;
            Some(Piece::Done { tokens: Some(metrics.tokens), metrics: Some(metrics) })
        }
        ServerMessage::LlmError(failed) => Some(Piece::Failed(failed.error)),
        ServerMessage::RoomError(failed) => Some(Piece::Failed(failed.error)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut reading: Reading, events: &[&str]) -> (Vec<Piece>, Piece) {
        let pieces = events.iter().filter_map(|data| reading.take(data.as_bytes()));
        (pieces.collect(), reading.end())
    }

    #[test]
    fn a_stream_of_chat_is_text_and_then_its_end() {
        let events = [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":7}}"#,
            "[DONE]",
        ];
        let done = Piece::Done { tokens: Some(7), metrics: None };
        let (pieces, end) = read(Reading::chat(), &events);
        assert_eq!(pieces, [Piece::Text("Hi".to_owned()), done.clone()]);
        assert_eq!(end, done);
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_answer() {
        let broken = Piece::Failed("the answer broke off".to_owned());
        assert_eq!(read(Reading::chat(), &["no json", "{}"]), (vec![], broken.clone()));
        assert_eq!(read(Reading::Aloud, &[]).1, broken);
        let (pieces, _) = read(Reading::chat(), &[r#"{"error":{"message":"lost"}}"#]);
        assert_eq!(pieces, [Piece::Failed("lost".to_owned())]);
    }

    #[test]
    fn a_rooms_messages_are_text_and_then_metrics() {
        let events = [
            r#"{"type":"llm:token","requestId":"a","participantId":"p","token":"Hi","seq":0}"#,
            r#"{"type":"llm:complete","requestId":"a","participantId":"p","metrics":{"tokens":2,
                "latencyFirstTokenMs":3,"durationMs":4,"tokensPerSecond":5}}"#,
        ];
        let (pieces, _) = read(Reading::Aloud, &events);
        assert_eq!(pieces[0], Piece::Text("Hi".to_owned()));
        assert!(matches!(&pieces[1], Piece::Done { tokens: Some(2), metrics: Some(_) }));
    }
}
