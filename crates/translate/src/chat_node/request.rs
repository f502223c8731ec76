//! From a body to an order.

use protocol::{
    json::{self, BadRequest},
    node::{Message, Role, Task},
    usage::estimate_tokens,
};
use serde_json::{Value, value::RawValue};

use crate::chat_body::ChatBody;

/// The token limit of an answer when the client sets none.
pub const DEFAULT_TOKENS: u32 = 1024;

/// The most stop sequences of a request, and the longest of them in bytes.
const MAX_STOPS: usize = 16;
const MAX_STOP: usize = 1024;

/// A request for a node, and the form of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) max_new_tokens: u32,
    pub(super) temperature: f64,
    pub(super) stops: Vec<String>,
    pub(super) streaming: bool,
    pub(super) include_usage: bool,
}

impl Order {
    /// The order as a task. `created_at`: when, in seconds since 1970.
    pub fn task(self, id: i32, created_at: u64) -> Task {
        let Self { system, messages, max_new_tokens, temperature, .. } = self;
        let state = Task::PENDING;
        Task { state, id, system, messages, max_new_tokens, temperature, created_at }
    }

    /// Whether the client asked for a stream.
    pub fn streaming(&self) -> bool {
        self.streaming
    }

    pub(super) fn prompt_tokens(&self) -> u64 {
        let messages = self.messages.iter().map(|message| estimate_tokens(&message.content));
        estimate_tokens(&self.system) + messages.sum::<u64>()
    }
}

/// Reads the body of a chat completion.
///
/// # Errors
/// [`BadRequest`] for an invalid body, or one that no task can carry.
pub fn request(body: &[u8]) -> Result<Order, BadRequest> {
    read(body).or_else(|bad| match json::mended(body) {
        Some(mended) => read(mended.as_bytes()),
        None => Err(bad),
    })
}

fn read(body: &[u8]) -> Result<Order, BadRequest> {
    let chat: ChatBody<'_> = serde_json::from_slice(body).map_err(|error| BadRequest {
        param: None,
        message: format!("the body is no JSON object: {error}"),
    })?;
    refuse(&chat)?;
    let (system, messages) = conversation(chat.messages.map(value))?;
    let options = chat.stream_options.map(value);
    Ok(Order {
        system,
        messages,
        max_new_tokens: max_tokens(&chat)?,
        temperature: temperature(&chat)?,
        stops: stops(chat.stop.map(value))?,
        streaming: chat.stream.map(value).as_ref().is_some_and(is_true),
        include_usage: options
            .as_ref()
            .and_then(|options| options.get("include_usage"))
            .is_some_and(is_true),
    })
}

/// The value of a field; `null`, which no field accepts, if it is nested too deeply to be read.
fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Whether a parameter with this value can be dropped without loss.
type IsHarmless = fn(&Value) -> bool;

/// Refuses parameters that would be lost without the client noticing.
fn refuse(chat: &ChatBody<'_>) -> Result<(), BadRequest> {
    let without_tools = chat.tool_choice.is_some_and(|choice| value(choice) == "none");
    let text_alone = |kinds: &Value| {
        kinds.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "text"))
    };
    let parameters: [(_, _, IsHarmless); 9] = [
        ("tools", chat.raw_tools().filter(|_| !without_tools), is_empty),
        ("functions", chat.functions, is_empty),
        ("response_format", chat.response_format, |format| {
            format.get("type").is_some_and(|kind| kind == "text")
        }),
        ("n", chat.n, |n| n.as_f64() == Some(1.0)),
        ("logprobs", chat.logprobs, |logprobs| *logprobs == Value::Bool(false)),
        ("top_logprobs", chat.top_logprobs, |count| count.as_f64() == Some(0.0)),
        ("audio", chat.audio, |_| false),
        ("modalities", chat.modalities, text_alone),
        ("web_search_options", chat.web_search_options, |_| false),
    ];
    for (name, raw, is_harmless) in parameters {
        if raw.is_some_and(|raw| !is_harmless(&value(raw))) {
            return Err(cannot(name, &format!("`{name}`")));
        }
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_true(value: &Value) -> bool {
    *value == Value::Bool(true)
}

fn cannot(param: impl Into<String>, what: &str) -> BadRequest {
    BadRequest::new(
        param,
        format!("{what} cannot be carried to a model node, which takes text only"),
    )
}

/// The system message, and the others.
fn conversation(messages: Option<Value>) -> Result<(String, Vec<Message>), BadRequest> {
    let Some(Value::Array(messages)) = messages.filter(|messages| !is_empty(messages)) else {
        return Err(BadRequest::new("messages", "`messages` must be a list that is not empty"));
    };
    let (mut system, mut said) = (Vec::new(), Vec::new());
    for (at, message) in messages.into_iter().enumerate() {
        match read_message(message, &format!("messages[{at}]"))? {
            Message { role: Role::System, content } => system.push(content),
            message => said.push(message),
        }
    }
    Ok((system.join("\n\n"), said))
}

fn read_message(message: Value, path: &str) -> Result<Message, BadRequest> {
    let Value::Object(mut message) = message else {
        return Err(BadRequest::new(path, format!("`{path}` must be an object")));
    };
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => return Err(cannot(path, "a tool's result")),
        _ => {
            let words = "must be system, developer, user, assistant or tool";
            return Err(BadRequest::new(format!("{path}.role"), format!("`{path}.role` {words}")));
        }
    };
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null() && !is_empty(calls));
    if calls.or_else(|| message.get("function_call").filter(|call| !call.is_null())).is_some() {
        return Err(cannot(path, "a tool call"));
    }
    let content = text(message.remove("content"), &format!("{path}.content"), role)?;
    Ok(Message { role, content })
}

fn text(content: Option<Value>, path: &str, role: Role) -> Result<String, BadRequest> {
    match content {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            parts.map(|(at, part)| part_text(part, &format!("{path}[{at}]"))).collect()
        }
        None | Some(Value::Null) if role == Role::Assistant => Ok(String::new()),
        _ => Err(BadRequest::new(path, format!("`{path}` must be text, or a list of parts"))),
    }
}

fn part_text<'a>(part: &'a Value, path: &str) -> Result<&'a str, BadRequest> {
    let kind = part.get("type").and_then(Value::as_str);
    let text = match kind {
        Some("text") => part.get("text"),
        Some("refusal") => part.get("refusal"),
        Some("image_url" | "image") => return Err(cannot(path, "a picture")),
        Some("input_audio") => return Err(cannot(path, "sound")),
        Some("file") => return Err(cannot(path, "a file")),
        _ => None,
    };
    let words =
        || BadRequest::new(path, format!("`{path}` must be a part with a type and its text"));
    text.and_then(Value::as_str).ok_or_else(words)
}

fn max_tokens(chat: &ChatBody<'_>) -> Result<u32, BadRequest> {
    let Some((raw, name)) = chat.max_tokens() else { return Ok(DEFAULT_TOKENS) };
    let words = || BadRequest::new(name, format!("`{name}` must be a whole number over 0"));
    let number = value(raw).as_u64().filter(|&number| number > 0).ok_or_else(words)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX).min(i32::MAX as u32))
}

fn temperature(chat: &ChatBody<'_>) -> Result<f64, BadRequest> {
    let Some(given) = chat.temperature else { return Ok(0.0) };
    let words = || BadRequest::new("temperature", "`temperature` must be a number");
    let given = value(given).as_f64().ok_or_else(words)?;
    Ok(if given < 0.01 { 0.0 } else { given.min(0.99) })
}

fn stops(stop: Option<Value>) -> Result<Vec<String>, BadRequest> {
    let stops = match stop {
        None => Some(Vec::new()),
        Some(Value::String(one)) => Some(vec![one]),
        Some(stops) => serde_json::from_value::<Vec<String>>(stops).ok(),
    };
    let fits = |stops: &Vec<String>| {
        stops.len() <= MAX_STOPS && stops.iter().all(|stop| stop.len() <= MAX_STOP)
    };
    let words = "`stop` must be a text or a list of at most 16, each of at most 1024 bytes";
    let mut stops = stops.filter(fits).ok_or_else(|| BadRequest::new("stop", words))?;
    stops.retain(|stop| !stop.is_empty());
    Ok(stops)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn order(with: &Value) -> Result<Order, BadRequest> {
        let mut chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        chat.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        request(chat.to_string().as_bytes())
    }

    fn param(with: &Value) -> String {
        order(with).unwrap_err().param.unwrap()
    }

    #[test]
    fn a_conversation_becomes_a_task() {
        let task = order(&json!({
            "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": null},
                {"role": "developer", "content": "be short"},
                {"role": "user", "content": "c", "name": "Ann"},
            ],
            "max_tokens": 7, "max_completion_tokens": 9, "temperature": 0.5, "seed": 4, "user": "u",
        }));
        let said = |role, content: &str| Message { role, content: content.to_owned() };
        let expected = Task {
            state: 0,
            id: 5,
            system: "be kind\n\nbe short".to_owned(),
            messages: vec![
                said(Role::User, "ab"),
                said(Role::Assistant, ""),
                said(Role::User, "c"),
            ],
            max_new_tokens: 9,
            temperature: 0.5,
            created_at: 11,
        };
        assert_eq!(task.unwrap().task(5, 11), expected);
    }

    #[test]
    fn absent_fields_have_defaults() {
        let order = order(&json!({"max_tokens": null, "stream": null})).unwrap();
        assert_eq!((order.max_new_tokens, order.temperature), (DEFAULT_TOKENS, 0.0));
        assert!(!order.streaming && !order.include_usage && order.stops.is_empty());
        assert_eq!(order.system, "");
    }

    #[test]
    fn a_temperature_is_brought_into_the_range_of_nodes() {
        for (given, carried) in [(0.0, 0.0), (0.009, 0.0), (-1.0, 0.0), (0.01, 0.01), (2.0, 0.99)] {
            let order = order(&json!({"temperature": given})).unwrap();
            assert_eq!(order.temperature, carried, "{given}");
        }
    }

    #[test]
    fn streams_and_stops_are_understood() {
        let order = order(&json!({
            "stream": true, "stream_options": {"include_usage": true}, "stop": ["a", "", "b"],
        }))
        .unwrap();
        assert!(order.streaming && order.include_usage);
        assert_eq!(order.stops, ["a", "b"]);
    }

    #[test]
    fn unsupported_fields_are_named() {
        let tool = json!([{"type": "function", "function": {"name": "f"}}]);
        let cases = [
            (json!({"tools": tool}), "tools"),
            (json!({"functions": [{}]}), "functions"),
            (json!({"response_format": {"type": "json_object"}}), "response_format"),
            (json!({"n": 2}), "n"),
            (json!({"logprobs": true}), "logprobs"),
            (json!({"audio": {}}), "audio"),
            (json!({"modalities": ["text", "audio"]}), "modalities"),
            (json!({"stop": [1]}), "stop"),
            (json!({"stop": vec!["x"; MAX_STOPS + 1]}), "stop"),
            (json!({"stop": "x".repeat(MAX_STOP + 1)}), "stop"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"temperature": "hot"}), "temperature"),
            (json!({"messages": []}), "messages"),
            (json!({"messages": "hi"}), "messages"),
            (json!({"messages": ["hi"]}), "messages[0]"),
            (json!({"messages": [{"role": "robot", "content": ""}]}), "messages[0].role"),
            (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
            (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages[0]"),
            (json!({"messages": [{"role": "assistant", "tool_calls": [{}]}]}), "messages[0]"),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
                "messages[0].content[0]",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
                "messages[0].content[0]",
            ),
        ];
        for (with, name) in cases {
            assert_eq!(param(&with), name, "{with}");
        }
        assert!(request(b"[]").is_err() && request(b"{").is_err() && request(b"{}").is_err());
    }

    #[test]
    fn what_strict_readers_refuse_is_read() {
        let body = br#"{"model":"m","messages":[{"role":"user","content":"a\ud83c"}],"stop":"x","stop":"y"}"#;
        let order = request(body).unwrap();
        assert_eq!(
            (order.messages[0].content.as_str(), order.stops),
            ("a\u{fffd}", vec!["y".to_owned()])
        );
    }

    #[test]
    fn harmless_fields_pass() {
        let harmless = json!({
            "tools": [], "n": 1, "logprobs": false, "response_format": {"type": "text"},
            "modalities": ["text"], "top_p": 0.5, "audio": null,
        });
        assert!(order(&harmless).is_ok());
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        assert!(order(&json!({"tools": tools, "tool_choice": "none"})).is_ok());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,8}".prop_map(Value::from),
            Just(json!("user")),
            Just(json!("text")),
        ];
        let names = prop_oneof![
            Just("messages"),
            Just("role"),
            Just("content"),
            Just("type"),
            Just("text"),
            Just("stop"),
            Just("max_tokens"),
            Just("tools"),
            Just("temperature"),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let object = proptest::collection::vec((names.clone(), inner.clone()), 0..5);
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(Value::from),
                object.prop_map(|fields| {
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_body_is_too_strange(body in any_json()) {
            if let Ok(order) = request(body.to_string().as_bytes()) {
                let task = order.task(1, 0);
                prop_assert!((0.0..1.0).contains(&task.temperature) && task.max_new_tokens > 0);
            }
        }
    }
}
