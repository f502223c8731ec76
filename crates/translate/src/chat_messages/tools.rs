//! Tools, and the choice of tools.

use std::{borrow::Cow, collections::HashSet};

use protocol::json::BadRequest;
use serde_json::value::RawValue;

use crate::{
    chat_request::FunctionTool,
    chat_request::no_parameters,
    from_chat::forced_function,
    message_request::{Block, Message, Tool, ToolChoice},
};

/// The functions as tools, in their order.
pub(super) fn tools<'a>(list: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    FunctionTool::all(list, |FunctionTool { name, description, parameters, .. }| Tool {
        name,
        description,
        input_schema: parameters,
    })
}

/// The tools and the choice for a conversation that may have calls. Messages refuses calls in a
/// conversation without tools. So if none are offered, the called tools are, with the choice `none`.
pub(super) fn with_called<'a>(
    offered: Vec<Tool<'a>>,
    choice: Option<ToolChoice<'a>>,
    messages: &[Message<'a>],
) -> (Vec<Tool<'a>>, Option<ToolChoice<'a>>) {
    if !offered.is_empty() {
        return (offered, choice);
    }
    let mut called: Vec<Tool<'a>> = Vec::new();
    let mut seen = HashSet::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        let Block::ToolUse { name, .. } = block else { continue };
        if seen.insert(name.clone()) {
            let input_schema = Cow::Borrowed(no_parameters());
            called.push(Tool { name: name.clone(), description: None, input_schema });
        }
    }
    let none = ToolChoice { kind: "none", name: None, disable_parallel_tool_use: false };
    let choice = (!called.is_empty()).then_some(none);
    (called, choice)
}

/// Reads `tool_choice` and `parallel_tool_calls`, which have no meaning without tools.
pub(super) fn choice<'a>(
    choice: Option<&'a RawValue>,
    parallel: Option<bool>,
    tools: &[Tool<'a>],
) -> Result<Option<ToolChoice<'a>>, BadRequest> {
    let disable_parallel_tool_use = parallel == Some(false);
    if tools.is_empty() || (choice.is_none() && !disable_parallel_tool_use) {
        return Ok(None);
    }
    let (kind, name) = match choice.map(RawValue::get) {
        None | Some(r#""auto""#) => ("auto", None),
        Some(r#""required""#) => ("any", None),
        Some(r#""none""#) => ("none", None),
        Some(_) => ("tool", choice.map(forced_function).transpose()?),
    };
    let disable_parallel_tool_use = disable_parallel_tool_use && kind != "none";
    Ok(Some(ToolChoice { kind, name, disable_parallel_tool_use }))
}
