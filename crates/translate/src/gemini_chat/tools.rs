//! Tools, and the choice of tools.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{conversation::list, schema::in_json_schema};
use crate::{
    chat_request::{FunctionTool, Tool, ToolChoice, no_parameters},
    schema,
};

/// The functions of all tools, in their order.
pub(super) fn tools(raw: Option<&RawValue>) -> Result<Vec<Tool<'_>>, BadRequest> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let mut functions = Vec::new();
    for (at, raw) in list(raw, "tools")?.into_iter().enumerate() {
        let path = format!("tools[{at}]");
        let tool: AskedTool<'_> = fields::value(raw, &path)?;
        tool.refuse_googles(&path)?;
        let Some(raw) = tool.function_declarations else { continue };
        let path = format!("{path}.functionDeclarations");
        for (at, raw) in list(raw, &path)?.into_iter().enumerate() {
            functions.push(function(raw, &format!("{path}[{at}]"))?);
        }
    }
    Ok(functions)
}

/// Which tools are offered, and how the model must choose among them.
pub(super) struct Choice<'a> {
    pub(super) mode: Option<ToolChoice<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
}

/// Reads `toolConfig`. Without tools no choice is sent, because servers refuse any choice then.
pub(super) fn choice<'a>(
    raw: Option<&'a RawValue>,
    tools: Vec<Tool<'a>>,
) -> Result<Choice<'a>, BadRequest> {
    let config: Option<ToolConfig<'a>> =
        raw.map(|raw| fields::value(raw, "toolConfig")).transpose()?;
    let Some(calling) = config.and_then(|config| config.function_calling_config) else {
        return Ok(Choice { mode: None, tools });
    };
    const PATH: &str = "toolConfig.functionCallingConfig";
    let allowed = calling.allowed_function_names.unwrap_or_default();
    check(&allowed, &tools, PATH)?;
    let mode = calling.mode.map(|Text(mode)| mode).unwrap_or_default();
    let offered = offered(tools, &allowed);
    match (&*mode, offered.is_empty()) {
        ("ANY", true) => {
            let message = format!("`{PATH}.mode` asks for a call, but `tools` offers no function");
            Err(BadRequest::new(format!("{PATH}.mode"), message))
        }
        (_, true) => Ok(Choice { mode: None, tools: offered }),
        ("ANY", false) => Ok(Choice { mode: Some(forced(&offered, &allowed)), tools: offered }),
        ("NONE", false) => Ok(Choice { mode: Some(ToolChoice::Mode("none")), tools: offered }),
        ("AUTO" | "VALIDATED", false) => {
            Ok(Choice { mode: Some(ToolChoice::Mode("auto")), tools: offered })
        }
        ("" | "MODE_UNSPECIFIED", false) => Ok(Choice { mode: None, tools: offered }),
        (mode, false) => {
            let mode = json::clip(mode, 64);
            let message =
                format!("`{PATH}.mode` is `{mode}`; it must be AUTO, ANY, NONE or VALIDATED");
            Err(BadRequest::new(format!("{PATH}.mode"), message))
        }
    }
}

/// Refuses an allowed name that is not one of the functions.
fn check(allowed: &[Text<'_>], tools: &[Tool<'_>], path: &str) -> Result<(), BadRequest> {
    let is_known = |name: &str| tools.iter().any(|tool| tool.function.name == name);
    match allowed.iter().find(|Text(name)| !is_known(name)) {
        None => Ok(()),
        Some(Text(name)) => {
            let path = format!("{path}.allowedFunctionNames");
            let name = json::clip(name, 64);
            let message = format!("`{path}` has `{name}`, which is not among `tools`");
            Err(BadRequest::new(path, message))
        }
    }
}

/// The functions with these names; all if no name is given.
fn offered<'a>(tools: Vec<Tool<'a>>, allowed: &[Text<'_>]) -> Vec<Tool<'a>> {
    let is_allowed = |tool: &Tool<'_>| allowed.iter().any(|Text(name)| *name == tool.function.name);
    let all = allowed.is_empty();
    tools.into_iter().filter(|tool| all || is_allowed(tool)).collect()
}

fn forced<'a>(offered: &[Tool<'a>], allowed: &[Text<'a>]) -> ToolChoice<'a> {
    match (offered, allowed) {
        ([only], [_, ..]) => ToolChoice::function(only.function.name.clone()),
        _ => ToolChoice::Mode("required"),
    }
}

/// The fields of a tool. All but the first are tools that Google runs itself.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct AskedTool<'a> {
    #[serde(alias = "function_declarations")]
    function_declarations: Option<&'a RawValue>,
    #[serde(alias = "google_search")]
    google_search: Option<&'a RawValue>,
    #[serde(alias = "google_search_retrieval")]
    google_search_retrieval: Option<&'a RawValue>,
    #[serde(alias = "enterprise_web_search")]
    enterprise_web_search: Option<&'a RawValue>,
    #[serde(alias = "google_maps")]
    google_maps: Option<&'a RawValue>,
    #[serde(alias = "code_execution")]
    code_execution: Option<&'a RawValue>,
    #[serde(alias = "url_context")]
    url_context: Option<&'a RawValue>,
    #[serde(alias = "computer_use")]
    computer_use: Option<&'a RawValue>,
    #[serde(alias = "file_search")]
    file_search: Option<&'a RawValue>,
    #[serde(alias = "mcp_servers")]
    mcp_servers: Option<&'a RawValue>,
    retrieval: Option<&'a RawValue>,
}

impl AskedTool<'_> {
    fn refuse_googles(&self, path: &str) -> Result<(), BadRequest> {
        let tools = [
            ("googleSearch", self.google_search),
            ("googleSearchRetrieval", self.google_search_retrieval),
            ("enterpriseWebSearch", self.enterprise_web_search),
            ("googleMaps", self.google_maps),
            ("codeExecution", self.code_execution),
            ("urlContext", self.url_context),
            ("computerUse", self.computer_use),
            ("fileSearch", self.file_search),
            ("mcpServers", self.mcp_servers),
            ("retrieval", self.retrieval),
        ];
        // An empty object asks for the tool as well.
        let is_given = |raw: &RawValue| !matches!(raw.get(), "null" | "[]");
        match tools.iter().find(|(_, raw)| raw.is_some_and(is_given)) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!(
                    "`{path}.{name}` is a tool that only Google's own servers provide; leave it out, or ask a \
                     model that is served there"
                );
                Err(BadRequest::new(format!("{path}.{name}"), message))
            }
        }
    }
}

fn function<'a>(raw: &'a RawValue, path: &str) -> Result<Tool<'a>, BadRequest> {
    let function: AskedFunction<'a> = fields::value(raw, path)?;
    let name = fields::text(function.name, format!("{path}.name"))?;
    if name.is_empty() {
        let path = format!("{path}.name");
        return Err(BadRequest::new(&*path, format!("`{path}` must not be empty")));
    }
    let some = |raw: &&RawValue| raw.get() != "null";
    let parameters =
        match (function.parameters_json_schema.filter(some), function.parameters.filter(some)) {
            (Some(raw), _) => {
                schema::of_object(Some(raw), &format!("{path}.parametersJsonSchema"))?
            }
            (None, Some(raw)) => {
                let path = format!("{path}.parameters");
                let whole = in_json_schema(fields::object(Some(raw), &path)?, &path)?;
                Cow::Owned(schema::of_object(Some(&whole), &path)?.into_owned())
            }
            (None, None) => Cow::Borrowed(no_parameters()),
        };
    let description = function.description.map(|Text(text)| text).filter(|text| !text.is_empty());
    Ok(Tool::new(FunctionTool { name, description, parameters, strict: None }))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct AskedFunction<'a> {
    name: Option<&'a RawValue>,
    description: Option<Text<'a>>,
    parameters: Option<&'a RawValue>,
    #[serde(alias = "parameters_json_schema")]
    parameters_json_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    #[serde(borrow, alias = "function_calling_config")]
    function_calling_config: Option<CallingConfig<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    #[serde(borrow)]
    mode: Option<Text<'a>>,
    #[serde(borrow, alias = "allowed_function_names")]
    allowed_function_names: Option<Vec<Text<'a>>>,
}
