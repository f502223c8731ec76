//! The items of a request's `input` as messages.
//!
//! | Item | Becomes |
//! | --- | --- |
//! | `message` (or no type) | a message of its role; `developer` is `system`, and what leads the list is one system message together with `instructions`; a later one goes with what the user says before it, marked as `<system-reminder>` |
//! | `reasoning` | `reasoning_content` of the assistant message that follows: its text, else its summary; what is encrypted is lost |
//! | `function_call`, `custom_tool_call` | a tool call of the assistant message around it; calls that stand together are one message |
//! | `function_call_output`, `custom_tool_call_output` | a `tool` message directly after its call, see `order`; its images follow in a message of the user, since Chat Completions has only text there |
//! | the same without a `call_id` | what the user says, after the tool's name: no call asked for it |
//! | `web_search_call` and other traces of hosted tools | nothing: the assistant's text gives their results |
//! | `local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call` and their outputs, which the client makes itself | a call of a function of that tool's name, and its result |
//! | `additional_tools` | tools, as if they stood in `tools` |
//! | anything else, `item_reference` among it | refused by name |

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde_json::value::RawValue;

use super::{
    request_item::Item,
    tools::{Tools, chat_name},
};
use crate::{
    chat_request::{Content, Message, Part, Role, ToolCall, join},
    instruct::instruct,
    order::in_order,
};

/// The traces of hosted tools in a conversation. The assistant's text gives their results.
const TRACES: [&str; 10] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "tool_search_output",
];

/// The messages of a whole request, at least one. Tools among the items are added to `tools`.
pub(super) fn messages<'a>(
    instructions: Option<Cow<'a, str>>,
    input: Option<&'a RawValue>,
    tools: &mut Tools<'a>,
) -> Result<Vec<Message<'a>>, BadRequest> {
    let mut read = Conversation::default();
    if let Some(instructions) = instructions.filter(|text| !text.is_empty()) {
        read.system(Content::Text(instructions));
    }
    match input.map(|raw| TextOrList::read(raw, "input")).transpose()? {
        Some(TextOrList::Text(text)) => read.user(Content::Text(text)),
        Some(TextOrList::List(items)) => read.items(&items, tools)?,
        None => {}
    }
    read.flush();
    if read.messages.is_empty() {
        return Err(BadRequest::new("input", "`input` must hold at least one message"));
    }
    Ok(in_order(read.messages))
}

/// The tools of OpenAI that the client runs itself: the type of the call, and the tool. The type of
/// an output is that of its call and `_output`.
const CLIENTS_OWN: [(&str, &str); 4] = [
    ("local_shell_call", "local_shell"),
    ("shell_call", "shell"),
    ("apply_patch_call", "apply_patch"),
    ("computer_call", "computer"),
];

fn clients_own(call: &str) -> Option<&'static str> {
    CLIENTS_OWN.iter().find(|(kind, _)| *kind == call).map(|(_, tool)| *tool)
}

/// The messages so far, and the parts of an incomplete one.
#[derive(Default)]
struct Conversation<'a> {
    messages: Vec<Message<'a>>,
    /// The assistant's message into which items are being gathered.
    assistant: Option<Message<'a>>,
    /// Images of tool results, until the last of those results is written.
    images: Vec<Part<'a>>,
    /// The item that is being read.
    at: Option<usize>,
}

impl<'a> Conversation<'a> {
    fn items(&mut self, items: &[&'a RawValue], tools: &mut Tools<'a>) -> Result<(), BadRequest> {
        items.iter().enumerate().try_for_each(|(at, raw)| {
            self.at = Some(at);
            let path = format!("input[{at}]");
            self.item(&fields::value(raw, &path)?, &path, tools)
        })
    }

    fn item(
        &mut self,
        item: &Item<'a>,
        path: &str,
        tools: &mut Tools<'a>,
    ) -> Result<(), BadRequest> {
        match item.kind.as_ref().map_or("message", |Text(kind)| kind) {
            "message" => self.message(item, path)?,
            "reasoning" => self.reasoning(item, path)?,
            "function_call" => self.call(item, &item.name(path)?, item.arguments(path)?, path)?,
            "custom_tool_call" => self.call(item, &item.name(path)?, item.input(path)?, path)?,
            "function_call_output" | "custom_tool_call_output" => self.result(item, path)?,
            "additional_tools" => {
                tools.add(item.tools.as_deref().unwrap_or_default(), format!("{path}.tools"))?;
            }
            kind if TRACES.contains(&kind) => {}
            kind => match (clients_own(kind), kind.strip_suffix("_output").and_then(clients_own)) {
                (Some(tool), _) => self.call(item, tool, item.action(), path)?,
                (_, Some(_)) => self.result(item, path)?,
                _ => return Err(unknown(kind, path)),
            },
        }
        Ok(())
    }

    fn message(&mut self, item: &Item<'a>, path: &str) -> Result<(), BadRequest> {
        let parts = item.content_parts(path)?;
        match item.role.as_ref().map_or("user", |Text(role)| role) {
            "user" => self.user(Content::of_parts(parts)),
            "system" | "developer" => self.system(Content::of_parts(parts)),
            "assistant" => self.said(Content::of_parts(parts)),
            role => {
                let role = json::clip(role, 64);
                let message = format!(
                    "`{path}.role` is `{role}`; it must be user, assistant, system or developer"
                );
                return Err(BadRequest::new(format!("{path}.role"), message));
            }
        }
        Ok(())
    }

    fn user(&mut self, content: Content<'a>) {
        self.flush();
        self.push(Message::new(Role::User, content));
    }

    fn push(&mut self, message: Message<'a>) {
        self.messages.push(Message { origin: self.at, ..message });
    }

    fn system(&mut self, content: Content<'a>) {
        self.flush();
        instruct(&mut self.messages, content);
    }

    /// Adds the assistant's text. Text after text begins a new message. Text after calls does not,
    /// because the results of the calls must directly follow their message.
    fn said(&mut self, content: Content<'a>) {
        if self
            .assistant
            .as_ref()
            .is_some_and(|it| it.content.is_some() && it.tool_calls.is_empty())
        {
            self.flush();
        }
        let message = self.assistant();
        message.content = match (message.content.take(), content) {
            (Some(Content::Text(said)), Content::Text(more)) => {
                Some(Content::Text(join(said, "\n\n", &more)))
            }
            (said, content) => said.or(Some(content)),
        };
    }

    fn reasoning(&mut self, item: &Item<'a>, path: &str) -> Result<(), BadRequest> {
        if let Some(thought) = item.thought(path)? {
            self.assistant().think(thought);
        }
        Ok(())
    }

    fn call(
        &mut self,
        item: &Item<'a>,
        name: &str,
        arguments: Cow<'a, str>,
        path: &str,
    ) -> Result<(), BadRequest> {
        let id = match item.call_id(path)? {
            Some(id) => id,
            None => fields::text(item.id, format!("{path}.call_id"))?,
        };
        let space = item.namespace.map(|raw| fields::text(Some(raw), format!("{path}.namespace")));
        let name = Cow::Owned(chat_name(space.transpose()?.as_deref(), name).into_owned());
        self.assistant().tool_calls.push(ToolCall::new(id, name, arguments));
        Ok(())
    }

    fn result(&mut self, item: &Item<'a>, path: &str) -> Result<(), BadRequest> {
        let (text, images) = item.output(path)?;
        let Some(id) = item.answers(path)? else {
            self.uncalled(item, text, images, path)?;
            return Ok(());
        };
        self.flush_assistant();
        self.push(Message::tool(id, text));
        self.images.extend(images);
        Ok(())
    }

    /// Adds the result of a tool that no call asked for, as Codex sends it for automations.
    fn uncalled(
        &mut self,
        item: &Item<'a>,
        text: Cow<'a, str>,
        images: Vec<Part<'a>>,
        path: &str,
    ) -> Result<(), BadRequest> {
        let text = match item.name {
            Some(_) => join(item.name(path)?, ": ", &text),
            None => text,
        };
        let said = [Part::Text { text }].into_iter().chain(images);
        self.user(Content::of_parts(said.collect()));
        Ok(())
    }

    /// The assistant's message that is being gathered.
    fn assistant(&mut self) -> &mut Message<'a> {
        if !self.images.is_empty() {
            self.flush();
        }
        let origin = self.at;
        let begun = || Message { origin, ..Message::empty(Role::Assistant) };
        self.assistant.get_or_insert_with(begun)
    }

    /// Completes the gathered message, because another one begins.
    fn flush(&mut self) {
        self.flush_assistant();
        if !self.images.is_empty() {
            let images = Content::Parts(std::mem::take(&mut self.images));
            self.push(Message::new(Role::User, images));
        }
    }

    /// Completes the assistant's message. A message of thoughts alone is dropped.
    fn flush_assistant(&mut self) {
        self.messages.extend(self.assistant.take().filter(Message::says_something));
    }
}

fn unknown(kind: &str, path: &str) -> BadRequest {
    let why = match kind {
        "item_reference" => "responses are not stored here; send the item itself".to_owned(),
        _ => "this type of item cannot be carried over to the model server".to_owned(),
    };
    BadRequest::new(path, format!("`{path}` is of type `{}`: {why}", json::clip(kind, 64)))
}
