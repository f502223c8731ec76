//! Tools, and the choice of tools.

use protocol::json::BadRequest;
use serde_json::value::RawValue;

use crate::{
    from_chat::{Function, forced_function},
    message_request::{Tool, ToolChoice},
};

/// The functions as tools, in their order.
pub(super) fn tools<'a>(asked: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    Function::all(asked, |Function { name, description, parameters, .. }| Tool {
        name,
        description,
        input_schema: parameters,
    })
}

/// Reads `tool_choice` and `parallel_tool_calls`, which have no meaning without tools.
pub(super) fn choice<'a>(
    asked: Option<&'a RawValue>,
    parallel: Option<bool>,
    tools: &[Tool<'a>],
) -> Result<Option<ToolChoice<'a>>, BadRequest> {
    let disable_parallel_tool_use = parallel == Some(false);
    if tools.is_empty() || (asked.is_none() && !disable_parallel_tool_use) {
        return Ok(None);
    }
    let (kind, name) = match asked.map(RawValue::get) {
        None | Some(r#""auto""#) => ("auto", None),
        Some(r#""required""#) => ("any", None),
        Some(r#""none""#) => ("none", None),
        Some(_) => ("tool", asked.map(forced_function).transpose()?),
    };
    let disable_parallel_tool_use = disable_parallel_tool_use && kind != "none";
    Ok(Some(ToolChoice { kind, name, disable_parallel_tool_use }))
}
