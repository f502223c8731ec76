//! The answer to a prompt: it follows from the prompt and from who answers, so that every client
//! knows what it may get, and that nobody else's answer is it, nor one that two machines made.

use serde_json::{Value, json};
use testkit::lab::{Nonce, chat_stream, chat_whole};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Sound,
    /// It says that it is out of order, with a 500.
    Errs,
    /// It says that the request is wrong, with a 400.
    Refuses,
    /// Its connection breaks in the middle of its answer.
    Breaks,
    /// It says nothing more, in the middle of its answer.
    Stalls,
}

impl Manner {
    /// How the backend behaves that answers this prompt.
    pub(crate) const fn of(nonce: Nonce) -> Self {
        match (nonce.number % 100, nonce.number % 200) {
            (11, _) => Self::Errs,
            (31, _) => Self::Refuses,
            (51, _) => Self::Breaks,
            (_, 171) => Self::Stalls,
            _ => Self::Sound,
        }
    }
}

/// The pieces of text of a machine's answer. They have characters of several bytes in them.
pub(crate) fn pieces(nonce: Nonce, by: usize) -> impl Iterator<Item = String> {
    nonce.pieces(format!("é🦫{by}"))
}

/// A machine's whole answer, as a stream or in one.
pub(crate) fn answer(nonce: Nonce, by: usize, model: &Value, stream: bool) -> String {
    let fields = json!({"id": "chatcmpl-s", "created": 1, "model": model});
    match stream {
        true => chat_stream(pieces(nonce, by), &fields),
        false => chat_whole(&pieces(nonce, by).collect::<String>(), &fields).to_string(),
    }
}

/// The request of a prompt. Its parameters are some that only servers of models know.
pub(crate) fn request(nonce: Nonce, model: &str, stream: bool) -> Value {
    json!({
        "model": model,
        "stream": stream,
        "messages": [{"role": "user", "content": nonce.text()}],
        "temperature": 0.25,
        "top_k": nonce.number,
        "x_soak": {"kept": [null, true, "ü"]},
    })
}

/// The nonce of a request, if it is as it was sent.
pub(crate) fn asked(body: &Value) -> Option<Nonce> {
    let nonce = Nonce::in_chat(body)?;
    let sent = request(nonce, body["model"].as_str()?, body["stream"] == true);
    let kept = |(name, value): (&String, &Value)| body[name] == *value;
    sent.as_object()?.iter().all(kept).then_some(nonce)
}
