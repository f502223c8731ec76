//! From a node's text to chunks, or to one completion.

use protocol::{
    failure::{BadAnswer, MAX_KEPT},
    json::{push_escaped, write},
    node::ResultReader,
    usage::{Tally, Usage},
};

use super::{Order, stop::StopScan};
use crate::{Context, answer::Body};

/// Turns a node's text into the client's answer.
///
/// A client with a stream gets its bytes as the text comes; a client without one gets all at the
/// end.
#[derive(Debug, Clone)]
pub struct NodeAnswer {
    /// The beginning of every chunk, up to its choices.
    prefix: String,
    context: Context,
    streaming: bool,
    include_usage: bool,
    reader: ResultReader,
    stop: StopScan,
    prompt_tokens: u64,
    tally: Tally,
    /// The text, for a client without a stream.
    text: String,
    begun: bool,
}

/// The step that follows a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait for more text, or for the end.
    More,
    /// A stop sequence has come: stop the node, and end the answer.
    Stopped,
}

/// An answer to `order`.
pub fn answer(context: &Context, order: &Order) -> NodeAnswer {
    NodeAnswer {
        prefix: prefix(context),
        context: context.clone(),
        streaming: order.streaming,
        include_usage: order.include_usage,
        reader: ResultReader::default(),
        stop: StopScan::new(order.stops.clone()),
        prompt_tokens: order.prompt_tokens(),
        tally: Tally::default(),
        text: String::new(),
        begun: false,
    }
}

impl NodeAnswer {
    /// The kind of body that the client gets.
    pub fn body(&self) -> Body {
        if self.streaming { Body::Events } else { Body::Json }
    }

    /// Reads the next piece of the node's text, cut anywhere.
    ///
    /// # Errors
    /// [`BadAnswer`] when it is not UTF-8, or the text is over [`MAX_KEPT`] and must be kept.
    pub fn feed(&mut self, piece: &[u8], out: &mut String) -> Result<Next, BadAnswer> {
        let text = self.reader.feed(piece).map_err(|bad| BadAnswer(bad.to_string()))?;
        let mut certain = String::new();
        let stopped = self.stop.feed(&text, &mut certain);
        self.text(&certain, out)?;
        Ok(if stopped { Next::Stopped } else { Next::More })
    }

    /// Ends the answer when the node has finished or was stopped. Appends the rest.
    ///
    /// # Errors
    /// As [`NodeAnswer::feed`], and when a character was begun and not finished.
    pub fn end(&mut self, next: Next, out: &mut String) -> Result<(), BadAnswer> {
        if next == Next::More {
            let reader = std::mem::take(&mut self.reader);
            reader.end().map_err(|bad| BadAnswer(bad.to_string()))?;
            let mut rest = String::new();
            self.stop.end(&mut rest);
            self.text(&rest, out)?;
        }
        match self.streaming {
            true => self.last_chunks(out),
            false => self.completion(out),
        }
        Ok(())
    }

    /// The estimated tokens so far.
    pub fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: Some(self.prompt_tokens),
            completion_tokens: Some(self.tally.tokens()),
            ..Usage::default()
        }
    }

    fn text(&mut self, text: &str, out: &mut String) -> Result<(), BadAnswer> {
        if text.is_empty() {
            return Ok(());
        }
        self.tally.add(text);
        if self.streaming {
            self.begin(out);
            self.chunk(out, |out| {
                out.push_str("\"delta\":{\"content\":\"");
                push_escaped(out, text);
                out.push_str("\"},\"finish_reason\":null");
            });
            return Ok(());
        }
        self.text.push_str(text);
        let fits = self.text.len() <= MAX_KEPT;
        if fits { Ok(()) } else { Err(BadAnswer(format!("the text is over {MAX_KEPT} bytes"))) }
    }

    /// Writes the first chunk, which has the role.
    fn begin(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.begun, true) {
            let delta =
                "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null";
            self.chunk(out, |out| out.push_str(delta));
        }
    }

    fn chunk(&self, out: &mut String, choice: impl FnOnce(&mut String)) {
        out.push_str(&self.prefix);
        out.push_str("\"choices\":[{\"index\":0,");
        choice(out);
        out.push_str("}]}\n\n");
    }

    fn last_chunks(&mut self, out: &mut String) {
        self.begin(out);
        self.chunk(out, |out| out.push_str("\"delta\":{},\"finish_reason\":\"stop\""));
        if self.include_usage {
            out.push_str(&self.prefix);
            out.push_str("\"choices\":[],");
            self.push_usage(out);
            out.push_str("}\n\n");
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn completion(&mut self, out: &mut String) {
        let text = std::mem::take(&mut self.text);
        out.push_str(&head(&self.context, "chat.completion"));
        out.push_str(
            "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"",
        );
        push_escaped(out, &text);
        out.push_str("\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],");
        self.push_usage(out);
        out.push('}');
    }

    fn push_usage(&self, out: &mut String) {
        let (prompt, completion) = (self.prompt_tokens, self.tally.tokens());
        let total = prompt + completion;
        out.push_str(&format!(
            "\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\
             \"total_tokens\":{total}}}"
        ));
    }
}

fn prefix(context: &Context) -> String {
    format!("data: {}", head(context, "chat.completion.chunk"))
}

/// The beginning of an object, up to the comma before its choices.
fn head(context: &Context, object: &str) -> String {
    let Context { id, created, model, .. } = context;
    let model = write(model);
    format!(
        "{{\"id\":\"chatcmpl-{id}\",\"object\":\"{object}\",\"created\":{created},\"model\":{model},"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{super::request, *};

    fn start(with: &Value) -> NodeAnswer {
        let mut chat = json!({"messages": [{"role": "user", "content": "Hello, world"}]});
        chat.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        let order = request(chat.to_string().as_bytes()).unwrap();
        let (id, model) = ("ab".to_owned(), "my \"m\"".to_owned());
        answer(&Context { id, created: 5, model, streaming: order.streaming }, &order)
    }

    /// The whole answer to these pieces.
    fn whole(mut answer: NodeAnswer, pieces: &[&[u8]]) -> Result<String, BadAnswer> {
        let mut out = String::new();
        for piece in pieces {
            if answer.feed(piece, &mut out)? == Next::Stopped {
                answer.end(Next::Stopped, &mut out)?;
                return Ok(out);
            }
        }
        answer.end(Next::More, &mut out)?;
        Ok(out)
    }

    fn events(stream: &str) -> Vec<Value> {
        let data =
            stream.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
        let (done, chunks): (Vec<_>, Vec<_>) = data.partition(|data| *data == "[DONE]");
        assert_eq!(done.len(), 1);
        assert!(stream.ends_with("data: [DONE]\n\n"));
        chunks.into_iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect()
    }

    fn content(events: &[Value]) -> String {
        let delta = |event: &Value| {
            event["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
        };
        events.iter().map(delta).collect()
    }

    #[test]
    fn a_stream_has_role_text_reason_usage_and_end() {
        let answer = start(&json!({"stream": true, "stream_options": {"include_usage": true}}));
        let events = events(&whole(answer, &[b"a\"", b"\xc3", b"\xa9"]).unwrap());
        let chunk = |choices: Value| {
            json!({"id": "chatcmpl-ab", "object": "chat.completion.chunk", "created": 5,
                "model": "my \"m\"", "choices": choices})
        };
        let delta = |delta: Value, reason: Value| {
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": reason}]))
        };
        let mut usage = chunk(json!([]));
        usage["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4});
        let expected = [
            delta(json!({"role": "assistant", "content": ""}), Value::Null),
            delta(json!({"content": "a\""}), Value::Null),
            delta(json!({"content": "é"}), Value::Null),
            delta(json!({}), json!("stop")),
            usage,
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_request_without_a_stream_gets_one_object_at_the_end() {
        let mut answer = start(&json!({}));
        let mut out = String::new();
        assert_eq!(answer.feed(b"Hi\n", &mut out), Ok(Next::More));
        assert_eq!((answer.body(), &*out), (Body::Json, ""));
        answer.end(Next::More, &mut out).unwrap();
        let expected = json!({
            "id": "chatcmpl-ab", "object": "chat.completion", "created": 5, "model": "my \"m\"",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null,
                "message": {"role": "assistant", "content": "Hi\n", "refusal": null}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
        });
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
    }

    #[test]
    fn a_node_that_says_nothing_has_answered_nothing() {
        let events = events(&whole(start(&json!({"stream": true})), &[]).unwrap());
        assert_eq!((events.len(), content(&events)), (2, String::new()), "role and reason");
    }

    #[test]
    fn an_answer_ends_before_a_stop() {
        let answer = start(&json!({"stream": true, "stop": "\nUser:"}));
        let events = events(&whole(answer, &[b"well\nUs", b"er: no", b"more"]).unwrap());
        assert_eq!(content(&events), "well");
    }

    #[test]
    fn invalid_utf8_is_no_answer() {
        let answer = |stream| start(&json!({"stream": stream}));
        assert!(whole(answer(true), &[b"a\xff"]).is_err());
        assert!(whole(answer(false), &[b"a\xe2\x82"]).is_err(), "not finished");
    }

    #[test]
    fn the_held_text_is_bounded() {
        let (mut answer, mut out) = (start(&json!({})), String::new());
        let piece = vec![b'x'; MAX_KEPT / 4];
        let fed: Result<Vec<Next>, _> = (0..5).map(|_| answer.feed(&piece, &mut out)).collect();
        assert!(fed.is_err());
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_answer(text: String, size in 1..9usize, streaming: bool) {
            let answer = start(&json!({"stream": streaming}));
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let out = whole(answer, &pieces).unwrap();
            let said = if streaming {
                content(&events(&out))
            } else {
                let whole: Value = serde_json::from_str(&out).unwrap();
                whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
            };
            prop_assert_eq!(said, text);
        }
    }
}
