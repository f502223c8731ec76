//! Tools, and the choice of tools.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::{FunctionTool, Tool, ToolChoice},
    schema,
};

/// The tools as functions, in their order.
pub(super) fn tools<'a>(list: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    let read = list.iter().enumerate().map(|(at, raw)| tool(raw, &format!("tools[{at}]")));
    read.filter_map(Result::transpose).collect()
}

#[derive(Default)]
pub(super) struct Choice<'a> {
    pub(super) mode: Option<ToolChoice<'a>>,
    pub(super) one_at_a_time: bool,
}

/// Reads `tool_choice`. Without tools no choice is sent, because servers refuse any choice then.
pub(super) fn choice<'a>(
    given: Option<&'a RawValue>,
    tools: &[Tool<'a>],
) -> Result<Choice<'a>, BadRequest> {
    let Some(raw) = given else { return Ok(Choice::default()) };
    let choice: AskedChoice<'a> = fields::value(raw, "tool_choice")?;
    let forced = matches!(&*choice.kind.0, "any" | "tool");
    match (tools.is_empty(), forced) {
        (true, true) => {
            let message = "`tool_choice` asks for a tool, but `tools` offers none";
            Err(BadRequest::new("tool_choice", message))
        }
        (true, false) => Ok(Choice::default()),
        (false, _) => {
            let one_at_a_time = choice.disable_parallel_tool_use.unwrap_or(false);
            Ok(Choice { mode: Some(mode(&choice, tools)?), one_at_a_time })
        }
    }
}

fn mode<'a>(choice: &AskedChoice<'a>, tools: &[Tool<'a>]) -> Result<ToolChoice<'a>, BadRequest> {
    match &*choice.kind.0 {
        "auto" => Ok(ToolChoice::Mode("auto")),
        "any" => Ok(ToolChoice::Mode("required")),
        "none" => Ok(ToolChoice::Mode("none")),
        "tool" => {
            let name = fields::text(choice.name, "tool_choice.name")?;
            if tools.iter().any(|tool| tool.function.name == name) {
                return Ok(ToolChoice::function(name));
            }
            let name = json::clip(&name, 64);
            let message = format!("`tool_choice.name` is `{name}`, which is not among `tools`");
            Err(BadRequest::new("tool_choice.name", message))
        }
        _ => {
            let message = "`tool_choice.type` must be auto, any, tool or none";
            Err(BadRequest::new("tool_choice.type", message))
        }
    }
}

fn tool<'a>(raw: &'a RawValue, path: &str) -> Result<Option<Tool<'a>>, BadRequest> {
    let tool: AskedTool<'a> = fields::value(raw, path)?;
    let kind = tool.kind.as_ref().map_or("custom", |Text(kind)| kind);
    match kind {
        "custom" => function(tool, path).map(Some),
        // Left out: every tool is shown to the model, so none has to be searched for.
        _ if kind.starts_with("tool_search_tool_") => Ok(None),
        _ => {
            let message = format!(
                "`{path}` is of type `{}`, which only Anthropic's own servers provide; leave it out, \
                 or ask a model that is served there",
                json::clip(kind, 64)
            );
            Err(BadRequest::new(path, message))
        }
    }
}

fn function<'a>(tool: AskedTool<'a>, path: &str) -> Result<Tool<'a>, BadRequest> {
    let parameters = schema::of_object(tool.input_schema, &format!("{path}.input_schema"))?;
    let name = fields::text(tool.name, format!("{path}.name"))?;
    if name.is_empty() {
        let path = format!("{path}.name");
        return Err(BadRequest::new(&*path, format!("`{path}` must not be empty")));
    }
    let description = tool.description.map(|Text(text)| text).filter(|text| !text.is_empty());
    let description: Option<Cow<'a, str>> = description;
    Ok(Tool::new(FunctionTool { name, description, parameters, strict: tool.strict }))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedTool<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    name: Option<&'a RawValue>,
    description: Option<Text<'a>>,
    input_schema: Option<&'a RawValue>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct AskedChoice<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    disable_parallel_tool_use: Option<bool>,
}
