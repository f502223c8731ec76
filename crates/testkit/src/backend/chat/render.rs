//! An answer in the shapes of Chat Completions: whole, or streamed in small pieces.

use serde_json::{Value, json};

use super::{Call, ChatAnswer, messages, words_of};
use crate::backend::{Gate, Reply};

/// How many characters a streamed piece has. Odd, so that pieces and words do not coincide.
const PIECE: usize = 5;

pub(super) fn whole(request: &Value, said: &ChatAnswer) -> Reply {
    let mut message = json!({"role": "assistant", "content": said.text});
    if let Some(thought) = &said.thought {
        message["reasoning_content"] = json!(thought);
    }
    if !said.calls.is_empty() {
        message["content"] = Value::Null;
        message["tool_calls"] = said.calls.iter().map(whole_call).collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": said.finish});
    let mut body = envelope(request, "chat.completion");
    body["choices"] = json!([choice]);
    body["usage"] = usage(request, said);
    Reply::json(200, &body)
}

fn whole_call(call: &Call) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

/// Server-sent events: parallel calls are interleaved, and the usage comes last, when it is asked
/// for.
pub(super) fn streamed(request: &Value, said: &ChatAnswer) -> Reply {
    let mut events = pieces_of(request, said);
    events.push(event(&chunk(request, &json!({}), &json!(said.finish))));
    if request["stream_options"]["include_usage"] == true {
        let mut last = envelope(request, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(request, said);
        events.push(event(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    Reply::stream(events, &Gate::opened())
}

/// The same without its end: nothing more comes until the client leaves.
pub(super) fn begun(request: &Value, said: &ChatAnswer) -> Reply {
    Reply::stream(pieces_of(request, said), &Gate::opened()).stalled()
}

fn pieces_of(request: &Value, said: &ChatAnswer) -> Vec<String> {
    deltas(said).iter().map(|delta| event(&chunk(request, delta, &Value::Null))).collect()
}

fn deltas(said: &ChatAnswer) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": null})];
    let thoughts = pieces(said.thought.as_deref().unwrap_or_default());
    deltas.extend(thoughts.iter().map(|piece| json!({"reasoning_content": piece})));
    deltas.extend(pieces(&said.text).iter().map(|piece| json!({"content": piece})));
    deltas.extend(said.calls.iter().enumerate().map(begun_call));
    deltas.extend(interleaved(&said.calls));
    deltas
}

fn begun_call((index, call): (usize, &Call)) -> Value {
    let function = json!({"name": call.name, "arguments": ""});
    let begun = json!({"index": index, "id": call.id, "type": "function", "function": function});
    json!({"tool_calls": [begun]})
}

/// A piece of each call's arguments in turn.
fn interleaved(calls: &[Call]) -> Vec<Value> {
    let pieces: Vec<_> = calls.iter().map(|call| pieces(&call.arguments)).collect();
    let rounds = pieces.iter().map(Vec::len).max().unwrap_or_default();
    let turn = |round: usize| {
        let pieces = pieces.iter().enumerate();
        pieces.filter_map(move |(index, pieces)| Some((index, pieces.get(round)?)))
    };
    let delta = |(index, piece): (usize, &String)| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
    (0..rounds).flat_map(turn).map(delta).collect()
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

fn chunk(request: &Value, delta: &Value, finish: &Value) -> Value {
    let mut chunk = envelope(request, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    chunk
}

fn envelope(request: &Value, object: &str) -> Value {
    json!({"id": "chatcmpl-1", "object": object, "created": 1, "model": request["model"]})
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A word is a token, and so is a call.
fn usage(request: &Value, said: &ChatAnswer) -> Value {
    let count = |text: &str| text.split_whitespace().count();
    let prompt: usize = messages(request).iter().map(|message| count(&words_of(message))).sum();
    let thought = said.thought.as_deref().map_or(0, count);
    let completion = count(&said.text) + thought + said.calls.len();
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> Call {
        Call { id: format!("id-{name}"), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn pieces_make_the_text_again() {
        assert_eq!(pieces("grüße, du"), ["grüße", ", du"]);
    }

    #[test]
    fn parallel_calls_are_interleaved() {
        let calls = [call("a", "{\"x\":10}"), call("b", "{}")];
        let order: Vec<_> = interleaved(&calls)
            .iter()
            .map(|delta| delta["tool_calls"][0]["index"].clone())
            .collect();
        assert_eq!(order, [0, 1, 0]);
    }

    #[test]
    fn usage_counts_words() {
        let request = json!({"messages": [{"role": "user", "content": "one two"}]});
        let said = ChatAnswer { text: "a b c".to_owned(), ..ChatAnswer::default() };
        let usage = usage(&request, &said);
        assert_eq!((&usage["prompt_tokens"], &usage["total_tokens"]), (&json!(2), &json!(5)));
    }
}
