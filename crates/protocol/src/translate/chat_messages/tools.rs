//! Tools, and whether they are to be called.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    anthropic::message_request::{Tool, ToolChoice},
    json,
    openai::chat_request::no_parameters,
    translate::{
        BadRequest,
        fields::{self, Text},
    },
};

/// The functions as tools, in their order.
pub(super) fn tools<'a>(asked: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    asked.iter().enumerate().map(|(at, raw)| tool(raw, &format!("tools[{at}]"))).collect()
}

/// Reads `tool_choice` and `parallel_tool_calls`, which mean nothing where there are no tools.
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
        Some(_) => ("tool", asked.map(forced).transpose()?),
    };
    let disable_parallel_tool_use = disable_parallel_tool_use && kind != "none";
    Ok(Some(ToolChoice { kind, name, disable_parallel_tool_use }))
}

fn forced(raw: &RawValue) -> Result<std::borrow::Cow<'_, str>, BadRequest> {
    let wrong = || {
        let message = "`tool_choice` must be auto, none, required or one function";
        BadRequest::new("tool_choice", message)
    };
    let asked: AskedTool<'_> = serde_json::from_str(raw.get()).map_err(|_| wrong())?;
    let function = asked.function.filter(|_| asked.kind.0 == "function").ok_or_else(wrong)?;
    fields::text(function.name, "tool_choice.function.name")
}

fn tool<'a>(raw: &'a RawValue, path: &str) -> Result<Tool<'a>, BadRequest> {
    let asked: AskedTool<'a> = fields::value(raw, path)?;
    if asked.kind.0 != "function" {
        let kind = json::clip(&asked.kind.0, 64);
        let message = format!("`{path}` is of type `{kind}`; only functions can be carried over");
        return Err(BadRequest::new(path, message));
    }
    let path = format!("{path}.function");
    let missing = || BadRequest::new(&*path, format!("`{path}` is missing"));
    let function = asked.function.ok_or_else(missing)?;
    let input_schema = function.parameters.unwrap_or_else(|| no_parameters());
    let input_schema = fields::object(Some(input_schema), format!("{path}.parameters"))?;
    let description = function.description.map(|Text(text)| text);
    Ok(Tool {
        name: fields::text(function.name, format!("{path}.name"))?,
        description,
        input_schema,
    })
}

#[derive(Deserialize)]
struct AskedTool<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    function: Option<AskedFunction<'a>>,
}

#[derive(Deserialize)]
struct AskedFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
}
