//! The tools of a request, and their names in Chat Completions.
//!
//! Chat Completions has functions only, in one flat list. A custom tool becomes a function with the
//! one parameter `input`; a function in a namespace becomes `NAMESPACE__NAME`. [`Names`] leads back.

use std::{borrow::Cow, collections::HashMap, fmt::Display};

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::{FunctionTool, Tool, input_parameter},
    ids, schema,
};

/// Tools that the API's own servers run. They are left out, since a model may do without them.
const HOSTED: [&str; 5] = [
    "web_search",
    "code_interpreter",
    "image_generation",
    "tool_search",
    "programmatic_tool_calling",
];

/// Hosted tools that provide the user's own data. They are refused, since a model without that data
/// would make it up.
const OF_THE_USER: [(&str, &str); 2] = [
    ("file_search", "it looks into files that are kept at OpenAI"),
    ("mcp", "OpenAI's own servers ask the MCP server that it names"),
];

/// The tools of a request in the shape of Chat Completions.
#[derive(Debug, Default)]
pub(super) struct Tools<'a> {
    /// The tools; no two have the same name.
    pub(super) offered: Vec<Tool<'a>>,
    pub(super) names: Names,
}

impl<'a> Tools<'a> {
    /// Adds a list of tools. A tool whose name is already taken is skipped: Codex repeats tools.
    pub(super) fn add(
        &mut self,
        tools: &[&'a RawValue],
        path: impl Display,
    ) -> Result<(), BadRequest> {
        tools.iter().enumerate().try_for_each(|(at, raw)| {
            let path = format!("{path}[{at}]");
            let tool: RawTool<'a> = fields::value(raw, &path)?;
            match tool.kind.0.as_ref() {
                "namespace" => self.add_namespace(&tool, &path),
                _ => self.add_one(&tool, None, &path),
            }
        })
    }

    pub(super) fn keep(&mut self, names: &[String]) {
        self.offered.retain(|tool| names.iter().any(|name| *name == tool.function.name));
    }

    fn add_namespace(&mut self, space: &RawTool<'a>, path: &str) -> Result<(), BadRequest> {
        let name = space.name(path)?;
        space.tools.iter().flatten().enumerate().try_for_each(|(at, raw)| {
            let path = format!("{path}.tools[{at}]");
            self.add_one(&fields::value(raw, &path)?, Some(&name), &path)
        })
    }

    fn add_one(
        &mut self,
        tool: &RawTool<'a>,
        namespace: Option<&str>,
        path: &str,
    ) -> Result<(), BadRequest> {
        let Some(kind) = tool.called_as(path)? else { return Ok(()) };
        let name = tool.name(path)?;
        let called =
            NamedTool { kind, name: name.to_string(), namespace: namespace.map(str::to_owned) };
        let chat_name = chat_name(namespace, &name).into_owned();
        if self.names.add(chat_name.clone(), called) {
            self.offered.push(Tool::new(tool.function(chat_name, kind, path)?));
        }
        Ok(())
    }
}

/// The name of a tool in Chat Completions, which bounds the length and characters of names.
pub(super) fn chat_name<'n>(namespace: Option<&str>, name: &'n str) -> Cow<'n, str> {
    let whole = match namespace {
        None => Cow::Borrowed(name),
        Some(space) => Cow::Owned(format!("{}__{name}", space.trim_end_matches("__"))),
    };
    if whole.is_empty() { whole } else { ids::at_most(ids::plain(whole), ids::OPENAI_ID) }
}

/// The client's tools, by their names in Chat Completions.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(HashMap<String, NamedTool>);

/// A tool as the client named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedTool {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function, which takes JSON.
    Function,
    /// A custom tool, which takes text.
    Custom,
}

impl Names {
    /// The names in lists of tools that were accepted before.
    pub(super) fn of<'a>(lists: impl IntoIterator<Item = &'a RawValue>) -> Self {
        let mut read = Tools::default();
        for list in lists {
            let tools: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
            // Faults were reported when the request was translated.
            let _ = read.add(&tools, "tools");
        }
        read.names
    }

    /// The client's tool for this name in Chat Completions. An unknown name counts as a function of
    /// that name.
    pub(super) fn called(&self, chat_name: &str) -> NamedTool {
        let unknown =
            || NamedTool { kind: Kind::Function, name: chat_name.to_owned(), namespace: None };
        self.0.get(chat_name).cloned().unwrap_or_else(unknown)
    }

    /// Whether a tool has this name in Chat Completions.
    pub(super) fn contains(&self, chat_name: &str) -> bool {
        self.0.contains_key(chat_name)
    }

    fn add(&mut self, chat_name: String, called: NamedTool) -> bool {
        let free = !self.0.contains_key(&chat_name);
        if free {
            self.0.insert(chat_name, called);
        }
        free
    }
}

/// A raw tool of the request.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawTool<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    name: Option<Text<'a>>,
    description: Option<Text<'a>>,
    parameters: Option<&'a RawValue>,
    strict: Option<bool>,
    format: Option<Format<'a>>,
    tools: Option<Vec<&'a RawValue>>,
}

/// The format of a custom tool's input.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Format<'a> {
    syntax: Option<Text<'a>>,
    definition: Option<Text<'a>>,
}

impl<'a> RawTool<'a> {
    /// The kind of tool; `None` for a tool that is left out.
    fn called_as(&self, path: &str) -> Result<Option<Kind>, BadRequest> {
        match self.kind.0.as_ref() {
            "function" => Ok(Some(Kind::Function)),
            "custom" => Ok(Some(Kind::Custom)),
            kind if is_one_of(&HOSTED, kind) => Ok(None),
            kind => {
                let why = OF_THE_USER.iter().find(|(tool, _)| is_one_of(&[tool], kind));
                let why = why.map(|(_, why)| format!(" ({why})")).unwrap_or_default();
                let kind = json::clip(kind, 64);
                let message = format!(
                    "`{path}`: a tool of type `{kind}` cannot be carried over to the model \
                     server{why}; offer a function instead"
                );
                Err(BadRequest::new(format!("{path}.type"), message))
            }
        }
    }

    fn name(&self, path: &str) -> Result<Cow<'a, str>, BadRequest> {
        let name = self.name.as_ref().map(|Text(name)| name.clone());
        let missing =
            || BadRequest::new(format!("{path}.name"), format!("`{path}.name` is missing"));
        name.filter(|name| !name.is_empty()).ok_or_else(missing)
    }

    fn function(
        &self,
        name: String,
        kind: Kind,
        path: &str,
    ) -> Result<FunctionTool<'a>, BadRequest> {
        let (description, parameters) = match kind {
            Kind::Function => {
                let path = format!("{path}.parameters");
                (self.description(), schema::of_object(self.parameters, &path)?)
            }
            Kind::Custom => (self.description_with_format(), Cow::Borrowed(input_parameter())),
        };
        Ok(FunctionTool { name: name.into(), description, parameters, strict: self.strict })
    }

    fn description(&self) -> Option<Cow<'a, str>> {
        self.description.as_ref().map(|Text(text)| text.clone())
    }

    /// The description, with the grammar as text, since no model server would enforce it.
    fn description_with_format(&self) -> Option<Cow<'a, str>> {
        let format = self.format.as_ref();
        let Some(Text(grammar)) = format.and_then(|format| format.definition.as_ref()) else {
            return self.description();
        };
        let syntax = format.and_then(|format| format.syntax.as_ref());
        let syntax = syntax.map_or("", |Text(syntax)| syntax);
        let description = self.description().unwrap_or_default();
        Some(Cow::Owned(format!(
            "{description}\n\nThe input must match this {syntax} grammar:\n{grammar}"
        )))
    }
}

/// Whether a type of tool, such as `web_search_preview_2025_03_11`, is one that the API's own
/// servers run.
pub(super) fn is_hosted(kind: &str) -> bool {
    is_one_of(&HOSTED, kind) || OF_THE_USER.iter().any(|(tool, _)| is_one_of(&[tool], kind))
}

/// Whether it is one of these types, in any version.
fn is_one_of(types: &[&str], kind: &str) -> bool {
    types.iter().any(|known| {
        kind.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn offered(tools: &Value) -> Result<(Value, Names), BadRequest> {
        let text = tools.to_string();
        let raws: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
        let mut read = Tools::default();
        read.add(&raws, "tools")?;
        Ok((serde_json::to_value(&read.offered).unwrap(), read.names))
    }

    #[test]
    fn a_function_keeps_its_fields() {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let (tools, names) = offered(&json!([
            {"type": "function", "name": "weather", "description": "d", "strict": false, "parameters": parameters},
            {"type": "function", "name": "now", "parameters": null},
        ]))
        .unwrap();
        assert_eq!(
            tools,
            json!([
                {"type": "function", "function": {"name": "weather", "description": "d", "parameters": parameters, "strict": false}},
                {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
            ])
        );
        assert_eq!(names.called("weather").kind, Kind::Function);
        assert!(names.contains("now") && !names.contains("then"));
    }

    #[test]
    fn a_custom_tool_becomes_a_function_of_its_input() {
        let (tools, names) = offered(&json!([{
            "type": "custom", "name": "apply_patch", "description": "Patches.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
        }]))
        .unwrap();
        let function = &tools[0]["function"];
        assert_eq!(
            function["description"],
            "Patches.\n\nThe input must match this lark grammar:\nstart: X"
        );
        assert_eq!(function["parameters"]["required"], json!(["input"]));
        assert_eq!(names.called("apply_patch").kind, Kind::Custom);
    }

    #[test]
    fn a_namespace_is_flattened_and_leads_back() {
        let (tools, names) = offered(&json!([
            {"type": "namespace", "name": "mcp__files__", "description": "", "tools": [{"type": "function", "name": "read"}]},
            {"type": "namespace", "name": "web", "description": "", "tools": [{"type": "custom", "name": "read"}]},
        ]))
        .unwrap();
        assert_eq!(tools[0]["function"]["name"], "mcp__files__read");
        assert_eq!(tools[1]["function"]["name"], "web__read");
        let called = NamedTool {
            kind: Kind::Function,
            name: "read".into(),
            namespace: Some("mcp__files__".into()),
        };
        assert_eq!(names.called("mcp__files__read"), called);
        assert_eq!(names.called("web__read").kind, Kind::Custom);
    }

    #[test]
    fn names_fit_into_their_bounds_and_lead_back() {
        let (space, name) = ("mcp__".to_owned() + &"x".repeat(70), "read.file");
        let (tools, names) = offered(&json!([
            {"type": "namespace", "name": space, "tools": [{"type": "function", "name": name}]},
            {"type": "function", "name": name},
        ]))
        .unwrap();
        for (tool, namespace) in [(&tools[0], Some(space)), (&tools[1], None)] {
            let chat_name = tool["function"]["name"].as_str().unwrap();
            assert!(chat_name.len() <= 64 && !chat_name.contains('.'), "{chat_name}");
            let called = NamedTool { kind: Kind::Function, name: name.into(), namespace };
            assert_eq!(names.called(chat_name), called);
        }
    }

    #[test]
    fn hosted_tools_are_left_out_and_unknown_ones_refused() {
        let hosted = json!([
            {"type": "web_search"}, {"type": "web_search_preview_2025_03_11"},
            {"type": "tool_search", "description": "d"},
        ]);
        assert_eq!(offered(&hosted).unwrap().0, json!([]));
        for kind in
            ["local_shell", "apply_patch", "computer_use_preview", "mcpx", "mcp", "file_search"]
        {
            let refused = offered(&json!([{"type": "function", "name": "f"}, {"type": kind}]));
            let refused = refused.unwrap_err();
            assert_eq!(refused.param.as_deref(), Some("tools[1].type"));
            assert!(refused.message.contains(kind), "{refused}");
        }
    }

    #[test]
    fn tools_with_data_of_the_user_are_refused_with_the_reason() {
        for (tool, reason) in [
            (json!({"type": "file_search", "vector_store_ids": ["vs_1"]}), "kept at OpenAI"),
            (json!({"type": "mcp", "server_label": "x", "server_url": "https://x"}), "MCP server"),
        ] {
            let refused = offered(&json!([tool])).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some("tools[0].type"));
            let kind = tool["type"].as_str().unwrap();
            assert!(
                refused.message.contains(kind) && refused.message.contains(reason),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_repeated_tool_is_offered_once() {
        let tool = json!({"type": "function", "name": "f"});
        assert_eq!(offered(&json!([tool, tool])).unwrap().0.as_array().unwrap().len(), 1);
        let nameless = offered(&json!([{"type": "function", "name": ""}])).unwrap_err();
        assert_eq!(nameless.param.as_deref(), Some("tools[0].name"));
    }
}
