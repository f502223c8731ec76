//! The items of a response's `output`, and the names of their events.

use protocol::json;
use serde::Serialize;

use super::tools::{Kind, NamedTool, Names};
use crate::chat::Part;

/// An item that is being written.
#[derive(Debug)]
pub(super) struct Item {
    /// Unique in the response, such as `msg_…`.
    pub(super) id: String,
    /// Its place in `output`.
    pub(super) index: usize,
    /// The content so far: its text, or a call's arguments.
    pub(super) text: String,
    shape: Shape,
}

/// The type of an item, with the data from its beginning.
#[derive(Debug)]
enum Shape {
    Reasoning,
    Text,
    Refusal,
    Call { call_id: String, called: NamedTool },
}

/// The status of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

/// The names of an item's own events, and of their fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events {
    pub(super) delta: &'static str,
    pub(super) done: &'static str,
    /// The field of the `done` event that holds the whole text.
    pub(super) field: &'static str,
    /// The fields of every delta beside its text, as JSON with a leading comma.
    pub(super) more: &'static str,
}

impl Item {
    /// An item for a part of an answer. `answer` is the id from which the item's ids are made.
    pub(super) fn of(part: &Part, index: usize, answer: &str, names: &Names) -> Self {
        let shape = match part {
            Part::Reasoning => Shape::Reasoning,
            Part::Text => Shape::Text,
            Part::Refusal => Shape::Refusal,
            Part::Call { id, name, number } => {
                let own = || format!("call_{answer}{number}");
                let call_id = if id.is_empty() { own() } else { id.clone() };
                Shape::Call { call_id, called: names.called(name) }
            }
        };
        let id = format!("{}_{answer}{index}", shape.prefix());
        Self { id, index, text: String::new(), shape }
    }

    /// The item as JSON; while it is in progress, without its text.
    pub(super) fn json(&self, status: Status) -> String {
        let id = self.id.as_str();
        let begun = status != Status::InProgress;
        let content: Vec<Piece<'_>> = self.piece().filter(|_| begun).into_iter().collect();
        json::write(&match &self.shape {
            Shape::Reasoning => Object::Reasoning { id, summary: [], content, status },
            Shape::Text | Shape::Refusal => {
                Object::Message { id, status, role: "assistant", content }
            }
            Shape::Call { call_id, called } => self.call(call_id, called, status),
        })
    }

    /// The one piece of content, as JSON with or without its text; `None` for a call.
    pub(super) fn part_json(&self, with_text: bool) -> Option<String> {
        let text = if with_text { self.text.as_str() } else { "" };
        self.piece_of(text).map(|piece| json::write(&piece))
    }

    /// The names of its events.
    pub(super) fn events(&self) -> Events {
        match &self.shape {
            Shape::Reasoning => REASONING,
            Shape::Text => TEXT,
            Shape::Refusal => REFUSAL,
            Shape::Call { called, .. } if called.kind == Kind::Custom => CUSTOM,
            Shape::Call { .. } => FUNCTION,
        }
    }

    /// The text that must be added once the item is complete. Arguments must be an object, so empty
    /// ones become `{}`.
    pub(super) fn missing(&self) -> &'static str {
        let is_call = matches!(self.shape, Shape::Call { .. });
        if is_call && !self.is_custom() && self.text.trim_ascii().is_empty() { "{}" } else { "" }
    }

    /// Whether it is text of the answer itself.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.shape, Shape::Text)
    }

    /// Whether it calls a custom tool, whose text can only be sent as a whole.
    pub(super) fn is_custom(&self) -> bool {
        matches!(&self.shape, Shape::Call { called, .. } if called.kind == Kind::Custom)
    }

    /// Turns the arguments of a custom tool's call into its input. If a model did not follow the
    /// schema, its text is used unchanged.
    pub(super) fn decode_input(&mut self) {
        #[derive(serde::Deserialize)]
        struct Arguments {
            input: String,
        }
        if let Ok(Arguments { input }) = serde_json::from_str(&self.text) {
            self.text = input;
        }
    }

    fn call<'a>(&'a self, call_id: &'a str, called: &'a NamedTool, status: Status) -> Object<'a> {
        let (id, name, namespace) = (&self.id, &called.name, called.namespace.as_deref());
        let text = if status == Status::InProgress { "" } else { self.text.as_str() };
        match called.kind {
            Kind::Function => {
                Object::FunctionCall { id, call_id, name, namespace, arguments: text, status }
            }
            Kind::Custom => {
                Object::CustomToolCall { id, call_id, name, namespace, input: text, status }
            }
        }
    }

    fn piece(&self) -> Option<Piece<'_>> {
        self.piece_of(&self.text)
    }

    fn piece_of<'a>(&self, text: &'a str) -> Option<Piece<'a>> {
        match self.shape {
            Shape::Reasoning => Some(Piece::ReasoningText { text }),
            Shape::Text => Some(Piece::OutputText { text, annotations: [], logprobs: [] }),
            Shape::Refusal => Some(Piece::Refusal { refusal: text }),
            Shape::Call { .. } => None,
        }
    }
}

impl Shape {
    fn prefix(&self) -> &'static str {
        match self {
            Self::Reasoning => "rs",
            Self::Text | Self::Refusal => "msg",
            Self::Call { called, .. } if called.kind == Kind::Custom => "ctc",
            Self::Call { .. } => "fc",
        }
    }
}

const REASONING: Events = Events {
    delta: "response.reasoning_text.delta",
    done: "response.reasoning_text.done",
    field: "text",
    more: r#","content_index":0"#,
};

const TEXT: Events = Events {
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    field: "text",
    more: r#","content_index":0,"logprobs":[]"#,
};

const REFUSAL: Events = Events {
    delta: "response.refusal.delta",
    done: "response.refusal.done",
    field: "refusal",
    more: r#","content_index":0"#,
};

const FUNCTION: Events = Events {
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    field: "arguments",
    more: "",
};

const CUSTOM: Events = Events {
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
    field: "input",
    more: "",
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Object<'a> {
    Reasoning {
        id: &'a str,
        summary: [(); 0],
        content: Vec<Piece<'a>>,
        status: Status,
    },
    Message {
        id: &'a str,
        status: Status,
        role: &'static str,
        content: Vec<Piece<'a>>,
    },
    FunctionCall {
        id: &'a str,
        call_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        arguments: &'a str,
        status: Status,
    },
    CustomToolCall {
        id: &'a str,
        call_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        input: &'a str,
        status: Status,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    ReasoningText { text: &'a str },
    OutputText { text: &'a str, annotations: [(); 0], logprobs: [(); 0] },
    Refusal { refusal: &'a str },
}
