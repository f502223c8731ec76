//! Parses a Chat Completions request for a provider of another API.

use std::{borrow::Cow, collections::HashSet};

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::FunctionTool,
    schema,
    thoughts::{self, Thought},
};

/// A message of any role, with the fields of all roles.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) role: Text<'a>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) refusal: Option<Text<'a>>,
    pub(super) tool_calls: Option<Vec<&'a RawValue>>,
    pub(super) tool_call_id: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    /// The thoughts of an assistant.
    #[serde(skip)]
    pub(super) thoughts: Vec<Thought<'a>>,
}

impl<'a> Message<'a> {
    pub(super) fn read(raw: &'a RawValue, path: &str) -> Result<Self, BadRequest> {
        let mut message: Self = fields::value(raw, path)?;
        if message.role.0 == "assistant" {
            let given: thoughts::Given<'a> = fields::value(raw, path)?;
            message.thoughts = given.read(message.content, path)?;
        }
        fields::refuse(
            &[(&*format!("{path}.function_call"), message.function_call)],
            "is no longer spoken; use `tool_calls`",
        )?;
        Ok(message)
    }

    /// A tool's result.
    pub(super) fn of_tool(content: &'a RawValue) -> Self {
        Self {
            role: Text("tool".into()),
            content: Some(content),
            refusal: None,
            tool_calls: None,
            tool_call_id: None,
            function_call: None,
            thoughts: Vec::new(),
        }
    }

    /// The same content as a message of the user.
    pub(super) fn into_users(self) -> Self {
        Self { role: Text("user".into()), tool_call_id: None, ..self }
    }

    /// The error for an unknown role.
    pub(super) fn wrong_role(&self, path: &str) -> BadRequest {
        let (path, role) = (format!("{path}.role"), json::clip(&self.role.0, 64));
        let message =
            format!("`{path}` is `{role}`; it must be system, developer, user, assistant or tool");
        BadRequest::new(path, message)
    }
}

pub(super) enum Part<'a> {
    /// Text, including the text of an assistant's refusal.
    Text(Cow<'a, str>),
    /// A picture, by its address or as a `data:` URL.
    Image { url: Cow<'a, str>, detail: Option<Cow<'a, str>> },
    /// A file as a `data:` URL.
    File { name: Option<Cow<'a, str>>, data: Cow<'a, str> },
    /// A thought, which is read with the message.
    Thought,
}

impl<'a> Part<'a> {
    pub(super) fn read(raw: &'a RawValue, path: &str) -> Result<Self, BadRequest> {
        let part: RawPart<'a> = fields::value(raw, path)?;
        match &*part.kind.0 {
            "text" => fields::text(part.text, format!("{path}.text")).map(Self::Text),
            "refusal" => fields::text(part.refusal, format!("{path}.refusal")).map(Self::Text),
            "image_url" => part.image_url.unwrap_or_default().image(path),
            "file" => part.file.unwrap_or_default().file(path),
            kind if thoughts::is_thought(kind) => Ok(Self::Thought),
            kind => {
                let kind = json::clip(kind, 64);
                let message = format!(
                    "`{path}` is of type `{kind}`, which cannot be carried over to the model server"
                );
                Err(BadRequest::new(path, message))
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawPart<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    image_url: Option<RawImage<'a>>,
    file: Option<RawFile<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawImage<'a> {
    url: Option<&'a RawValue>,
    detail: Option<Text<'a>>,
}

impl<'a> RawImage<'a> {
    fn image(self, path: &str) -> Result<Part<'a>, BadRequest> {
        let url = fields::text(self.url, format!("{path}.image_url.url"))?;
        Ok(Part::Image { url, detail: self.detail.map(|Text(detail)| detail) })
    }
}

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawFile<'a> {
    filename: Option<Text<'a>>,
    file_data: Option<&'a RawValue>,
}

impl<'a> RawFile<'a> {
    fn file(self, path: &str) -> Result<Part<'a>, BadRequest> {
        let data = fields::text(self.file_data, format!("{path}.file.file_data"))?;
        Ok(Part::File { name: self.filename.map(|Text(name)| name), data })
    }
}

pub(super) struct Call<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    /// A text that should be a JSON object; `{}` if there was none.
    pub(super) arguments: Cow<'a, str>,
}

impl<'a> Call<'a> {
    pub(super) fn read(raw: &'a RawValue, path: &str) -> Result<Self, BadRequest> {
        let call: RawCall<'a> = fields::value(raw, path)?;
        let id = fields::text(call.id, format!("{path}.id"))?;
        let other_kind = || {
            let message = format!("`{path}` has no `function`; only functions can be carried over");
            BadRequest::new(path, message)
        };
        let function = call.function.ok_or_else(other_kind)?;
        let name = fields::text(function.name, format!("{path}.function.name"))?;
        // Some clients send the object itself.
        let said = function.arguments.map(|raw| match raw.get().starts_with('{') {
            true => Ok(Cow::Borrowed(raw.get())),
            false => fields::text(Some(raw), format!("{path}.function.arguments")),
        });
        let said = said.transpose()?.filter(|text| !text.trim().is_empty());
        let arguments = said.unwrap_or("{}".into());
        Ok(Self { id, name, arguments })
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawCall<'a> {
    id: Option<&'a RawValue>,
    function: Option<CalledFunction<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct CalledFunction<'a> {
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

impl<'a> FunctionTool<'a> {
    pub(super) fn all<T>(
        tools: &[&'a RawValue],
        carried: impl Fn(Self) -> T,
    ) -> Result<Vec<T>, BadRequest> {
        let mut names = HashSet::new();
        let read =
            tools.iter().enumerate().map(|(at, raw)| Self::read(raw, &format!("tools[{at}]")));
        // Some agents repeat tools, which providers refuse.
        let first = |tool: &Result<Self, _>| {
            tool.as_ref().map_or(true, |tool| names.insert(tool.name.clone()))
        };
        read.filter(first).map(|tool| tool.map(&carried)).collect()
    }

    fn read(raw: &'a RawValue, path: &str) -> Result<Self, BadRequest> {
        let tool: Tool<'a> = fields::value(raw, path)?;
        if tool.kind.0 != "function" {
            let kind = json::clip(&tool.kind.0, 64);
            let message =
                format!("`{path}` is of type `{kind}`; only functions can be carried over");
            return Err(BadRequest::new(path, message));
        }
        let path = format!("{path}.function");
        let missing = || BadRequest::new(&*path, format!("`{path}` is missing"));
        let function = tool.function.ok_or_else(missing)?;
        Ok(Self {
            name: fields::text(function.name, format!("{path}.name"))?,
            description: function.description.map(|Text(text)| text),
            parameters: schema::of_object(function.parameters, &format!("{path}.parameters"))?,
            strict: function.strict,
        })
    }
}

/// The name of the one function that `tool_choice` asks for, if it is an object.
pub(super) fn forced_function(tool_choice: &RawValue) -> Result<Cow<'_, str>, BadRequest> {
    let wrong = || {
        let message = "`tool_choice` must be auto, none, required or one function";
        BadRequest::new("tool_choice", message)
    };
    let tool: Tool<'_> = serde_json::from_str(tool_choice.get()).map_err(|_| wrong())?;
    let function = tool.function.filter(|_| tool.kind.0 == "function").ok_or_else(wrong)?;
    fields::text(function.name, "tool_choice.function.name")
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    function: Option<RawFunction<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawFunction<'a> {
    name: Option<&'a RawValue>,
    description: Option<Text<'a>>,
    parameters: Option<&'a RawValue>,
    strict: Option<bool>,
}

/// The form that an answer must have.
#[derive(Deserialize)]
pub(super) struct ResponseFormat<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) json_schema: Option<JsonSchema<'a>>,
}

/// A schema and its name.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct JsonSchema<'a> {
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    schema: Option<&'a RawValue>,
    pub(super) strict: Option<bool>,
}

impl<'a> ResponseFormat<'a> {
    pub(super) fn read(raw: &'a RawValue) -> Result<Self, BadRequest> {
        fields::value(raw, "response_format")
    }
}

impl<'a> JsonSchema<'a> {
    /// The schema itself, which must be there.
    pub(super) fn schema(&self) -> Result<&'a RawValue, BadRequest> {
        let path = "response_format.json_schema.schema";
        self.schema.ok_or_else(|| BadRequest::new(path, format!("`{path}` is missing")))
    }
}
