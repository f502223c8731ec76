//! The order that the events of a response must have, as clients rely on it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The events of a stream, which is checked to be in order from its first event to its last.
pub(super) fn read(stream: &str) -> Vec<Value> {
    let events: Vec<Value> = stream.split_terminator("\n\n").map(event).collect();
    check(&events);
    events
}

fn event(text: &str) -> Value {
    let (name, data) = text.split_once('\n').unwrap();
    let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(name.strip_prefix("event: ").unwrap(), value["type"]);
    value
}

/// Fails unless the events begin, go on and end as the API's do.
fn check(events: &[Value]) {
    let numbers: Vec<u64> =
        events.iter().map(|it| it["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..events.len() as u64), "{numbers:?}");
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[1]["type"], "response.in_progress");
    assert_eq!(events[0]["response"]["status"], "in_progress");
    let (last, middle) = events[2..].split_last().unwrap();
    let mut state = GrammarState::default();
    middle.iter().for_each(|event| state.take(event));
    state.end(last, &events[0]["response"]);
}

/// The items that are open, and those that were.
#[derive(Default)]
struct GrammarState {
    open: Option<Open>,
    done: Vec<Value>,
}

struct Open {
    id: Value,
    kind: String,
    /// Whether its content part is open.
    part: bool,
    /// Whether its text is complete.
    is_complete: bool,
    text: String,
}

impl GrammarState {
    fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        assert_eq!(event["output_index"], self.done.len(), "{event}");
        match kind {
            "response.output_item.added" => self.add(&event["item"]),
            "response.output_item.done" => self.finish_item(&event["item"]),
            _ => self.open.as_mut().expect("an open item").take(kind, event),
        }
    }

    fn add(&mut self, item: &Value) {
        assert!(self.open.is_none(), "two items are open");
        assert_eq!(item["status"], "in_progress");
        assert!(self.done.iter().all(|done| done["id"] != item["id"]), "ids repeat");
        let kind = item["type"].as_str().unwrap().to_owned();
        for empty in [&item["content"], &item["summary"]] {
            assert!(empty.is_null() || *empty == json!([]));
        }
        self.open = Some(Open {
            id: item["id"].clone(),
            kind,
            part: false,
            is_complete: false,
            text: String::new(),
        });
    }

    fn finish_item(&mut self, item: &Value) {
        let open = self.open.take().unwrap();
        assert!(open.is_complete && !open.part, "{item}");
        assert_eq!(item["id"], open.id);
        assert_eq!(text_of(item), open.text);
        self.done.push(item.clone());
    }

    /// The last event holds what the others had.
    fn end(self, last: &Value, begun: &Value) {
        let response = &last["response"];
        let kind = last["type"].as_str().unwrap();
        assert_eq!(kind, format!("response.{}", response["status"].as_str().unwrap()));
        assert!(["completed", "incomplete", "failed"].iter().any(|end| kind.ends_with(end)));
        assert!(self.open.is_none() || kind == "response.failed");
        assert_eq!(response["output"], json!(self.done));
        for (field, value) in begun.as_object().unwrap() {
            let changes = ["status", "output", "usage", "error", "incomplete_details"]
                .contains(&field.as_str());
            assert!(changes || response[field] == *value, "{field}");
        }
        assert_eq!(response["error"].is_null(), kind != "response.failed");
        assert_eq!(response["incomplete_details"].is_null(), kind != "response.incomplete");
    }
}

impl Open {
    fn take(&mut self, kind: &str, event: &Value) {
        assert_eq!(event["item_id"], self.id);
        assert!(event["content_index"] == 0 || self.kind.ends_with("_call"), "{event}");
        match kind {
            "response.content_part.added" => {
                assert!(!self.part && self.text.is_empty());
                assert_eq!(text_of_part(&event["part"]), "");
                self.part = true;
            }
            "response.content_part.done" => {
                assert!(self.part && self.is_complete);
                assert_eq!(text_of_part(&event["part"]), self.text);
                self.part = false;
            }
            kind if kind == self.name("delta") => {
                assert!(!self.is_complete);
                assert_ne!(event["delta"], "");
                self.text.push_str(event["delta"].as_str().unwrap());
            }
            kind if kind == self.name("done") => {
                assert!(!std::mem::replace(&mut self.is_complete, true));
                let texts = ["text", "arguments", "input", "refusal"].map(|field| &event[field]);
                assert_eq!(texts.iter().find_map(|it| it.as_str()).unwrap(), self.text);
            }
            kind => panic!("{kind} in a {}", self.kind),
        }
    }

    fn name(&self, end: &str) -> String {
        let names = BTreeMap::from([
            ("reasoning", "reasoning_text"),
            ("message", "output_text"),
            ("function_call", "function_call_arguments"),
            ("custom_tool_call", "custom_tool_call_input"),
        ]);
        format!("response.{}.{end}", names[self.kind.as_str()])
    }
}

fn text_of(item: &Value) -> String {
    let call = ["arguments", "input"].iter().find_map(|field| item[field].as_str());
    call.map_or_else(|| text_of_part(&item["content"][0]), str::to_owned)
}

fn text_of_part(part: &Value) -> String {
    ["text", "refusal"].iter().find_map(|field| part[field].as_str()).unwrap().to_owned()
}
