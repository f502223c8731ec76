//! What a prompt is answered with: it follows from the prompt and from who answers, so that every client
//! knows what it may get, and that nobody else's answer is it, nor one that two machines made.

use serde_json::{Value, json};

/// A client's unique prompt: the machine that it asked, and a rising number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce {
    pub(crate) asked: usize,
    pub(crate) number: u64,
}

/// How a backend behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It answers.
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

impl Nonce {
    /// As a prompt.
    pub(crate) fn text(self) -> String {
        format!("n{}-{}", self.asked, self.number)
    }

    /// Reads it again.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (asked, number) = text.strip_prefix('n')?.split_once('-')?;
        Some(Self { asked: asked.parse().ok()?, number: number.parse().ok()? })
    }

    /// How the answering backend behaves.
    pub(crate) const fn manner(self) -> Manner {
        match (self.number % 100, self.number % 200) {
            (11, _) => Manner::Errs,
            (31, _) => Manner::Refuses,
            (51, _) => Manner::Breaks,
            (_, 171) => Manner::Stalls,
            _ => Manner::Sound,
        }
    }

    /// The pieces of text of its answer by a machine. They have characters of several bytes in them.
    pub(crate) fn pieces(self, by: usize) -> Vec<String> {
        let piece = |part| format!("{}.{part}é🦫{by};", self.text());
        (0..=self.number % 24).map(piece).collect()
    }

    /// Its whole text by a machine.
    pub(crate) fn answer(self, by: usize) -> String {
        self.pieces(by).concat()
    }

    /// Its whole answer by a machine, as a stream.
    pub(crate) fn stream(self, by: usize, model: &Value) -> String {
        let delta = |piece: String| json!({"content": piece});
        let deltas = self.pieces(by).into_iter().map(delta).map(|delta| (delta, Value::Null));
        let events = deltas.chain([(json!({}), json!("stop"))]).map(|(delta, reason)| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            let chunk = json!({
                "id": "chatcmpl-s", "object": "chat.completion.chunk", "created": 1, "model": model,
                "choices": [choice],
            });
            format!("data: {chunk}\n\n")
        });
        events.collect::<String>() + "data: [DONE]\n\n"
    }

    /// Its whole answer by a machine, in one.
    pub(crate) fn whole(self, by: usize, model: &Value) -> Value {
        let message = json!({"role": "assistant", "content": self.answer(by)});
        json!({
            "id": "chatcmpl-s", "object": "chat.completion", "created": 1, "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        })
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
    let nonce = Nonce::parse(body["messages"].as_array()?.last()?["content"].as_str()?)?;
    let sent = request(nonce, body["model"].as_str()?, body["stream"] == true);
    let kept = |(name, value): (&String, &Value)| body[name] == *value;
    sent.as_object()?.iter().all(kept).then_some(nonce)
}
