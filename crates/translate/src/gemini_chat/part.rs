//! The parts of a content.

use std::borrow::Cow;

use protocol::{
    gemini::base64,
    json::{
        self, BadRequest,
        fields::{self, Text},
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::results::Response;
use crate::{
    chat_request::{File, ImageUrl, InputAudio, Part},
    media,
};

/// The content of a part.
pub(super) enum Said<'a> {
    Text {
        text: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
    },
    Thought {
        text: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
    },
    /// A picture, sound or document.
    File(Part<'a>),
    Call(Call<'a>),
    Result(Response<'a>),
    /// A trace of a tool that Google's servers ran.
    Trace,
}

/// A call that a model made.
pub(super) struct Call<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Cow<'a, str>,
    /// A JSON object.
    pub(super) arguments: &'a str,
    pub(super) signature: Option<Cow<'a, str>>,
}

/// Reads one part.
pub(super) fn read<'a>(raw: &'a RawValue, path: &str) -> Result<Said<'a>, BadRequest> {
    let part: AskedPart<'a> = fields::value(raw, path)?;
    let kind = part.kind();
    let signature = part.thought_signature.map(|Text(text)| text).filter(|text| !text.is_empty());
    match kind {
        Kind::Text(text) if part.thought.unwrap_or(false) => {
            Ok(Said::Thought { text: fields::text(Some(text), format!("{path}.text"))?, signature })
        }
        Kind::Text(text) => {
            Ok(Said::Text { text: fields::text(Some(text), format!("{path}.text"))?, signature })
        }
        Kind::Blob(raw) => blob(raw, &format!("{path}.inlineData")).map(Said::File),
        Kind::FileData(raw) => file(raw, &format!("{path}.fileData")).map(Said::File),
        Kind::Call(raw) => call(raw, signature, &format!("{path}.functionCall")).map(Said::Call),
        Kind::Response(raw) => {
            Response::read(raw, &format!("{path}.functionResponse")).map(Said::Result)
        }
        Kind::Trace => Ok(Said::Trace),
        // A signature may come without text, at the end of an answer.
        Kind::Nothing if signature.is_some() => {
            Ok(Said::Text { text: Cow::Borrowed(""), signature })
        }
        Kind::Nothing => {
            let message = format!(
                "`{path}` must be one of text, inlineData, fileData, functionCall and functionResponse"
            );
            Err(BadRequest::new(path, message))
        }
    }
}

impl<'a> Said<'a> {
    /// A part of a user's message; thoughts and traces are left out.
    pub(super) fn into_part(self, path: &str) -> Result<Option<Part<'a>>, BadRequest> {
        match self {
            Self::Text { text, .. } => Ok(Some(Part::Text { text })),
            Self::File(part) => Ok(Some(part)),
            Self::Thought { .. } | Self::Trace => Ok(None),
            Self::Call(_) | Self::Result(_) => {
                let message = format!("`{path}` has no place in this content");
                Err(BadRequest::new(path, message))
            }
        }
    }
}

/// A part with the fields of all kinds of parts.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct AskedPart<'a> {
    text: Option<&'a RawValue>,
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<Text<'a>>,
    #[serde(alias = "inline_data")]
    inline_data: Option<&'a RawValue>,
    #[serde(alias = "file_data")]
    file_data: Option<&'a RawValue>,
    #[serde(alias = "function_call")]
    function_call: Option<&'a RawValue>,
    #[serde(alias = "function_response")]
    function_response: Option<&'a RawValue>,
    #[serde(alias = "executable_code")]
    executable_code: Option<&'a RawValue>,
    #[serde(alias = "code_execution_result")]
    code_execution_result: Option<&'a RawValue>,
    #[serde(alias = "tool_call")]
    tool_call: Option<&'a RawValue>,
    #[serde(alias = "tool_response")]
    tool_response: Option<&'a RawValue>,
}

enum Kind<'a> {
    Text(&'a RawValue),
    Blob(&'a RawValue),
    FileData(&'a RawValue),
    Call(&'a RawValue),
    Response(&'a RawValue),
    Trace,
    Nothing,
}

impl<'a> AskedPart<'a> {
    fn kind(&self) -> Kind<'a> {
        let traces =
            [self.executable_code, self.code_execution_result, self.tool_call, self.tool_response];
        let is_trace = traces.iter().any(Option::is_some);
        match self {
            Self { function_call: Some(raw), .. } => Kind::Call(raw),
            Self { function_response: Some(raw), .. } => Kind::Response(raw),
            Self { inline_data: Some(raw), .. } => Kind::Blob(raw),
            Self { file_data: Some(raw), .. } => Kind::FileData(raw),
            Self { text: Some(raw), .. } => Kind::Text(raw),
            _ if is_trace => Kind::Trace,
            _ => Kind::Nothing,
        }
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(alias = "mime_type")]
    mime_type: Option<Text<'a>>,
    data: Option<&'a RawValue>,
    #[serde(alias = "file_uri")]
    file_uri: Option<&'a RawValue>,
    #[serde(alias = "display_name")]
    display_name: Option<Text<'a>>,
}

/// A file whose content is in the request itself.
pub(super) fn blob<'a>(raw: &'a RawValue, path: &str) -> Result<Part<'a>, BadRequest> {
    let Blob { mime_type, data, display_name, .. } = fields::value(raw, path)?;
    let kind = mime_type.map(|Text(kind)| kind).unwrap_or_default();
    let data = fields::text(data, format!("{path}.data"))?;
    let bad = || BadRequest::new(format!("{path}.data"), format!("`{path}.data` is not base64"));
    let name = display_name.map(|Text(name)| name);
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_text(&essence) {
        let bytes = base64::decode(&data).ok_or_else(bad)?;
        return Ok(Part::Text { text: String::from_utf8_lossy(&bytes).into_owned().into() });
    }
    let data = match data {
        Cow::Borrowed(data) => base64::standard(data).ok_or_else(bad)?,
        Cow::Owned(data) => base64::standard(&data).ok_or_else(bad)?.into_owned().into(),
    };
    match &*essence {
        "application/pdf" => {
            let file_data = format!("data:application/pdf;base64,{data}").into();
            let filename = Some(name.unwrap_or(Cow::Borrowed("document.pdf")));
            Ok(Part::File { file: File { filename, file_data } })
        }
        "audio/wav" | "audio/x-wav" | "audio/wave" => Ok(sound(data, "wav")),
        "audio/mp3" | "audio/mpeg" => Ok(sound(data, "mp3")),
        _ if essence.starts_with("image/") => {
            let url = format!("data:{};base64,{data}", media::of_picture(&kind, &data)).into();
            Ok(Part::ImageUrl { image_url: ImageUrl { url, detail: None } })
        }
        _ => Err(wrong_type(&kind, path)),
    }
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || matches!(kind, "application/json" | "application/xml")
}

fn sound<'a>(data: Cow<'a, str>, format: &'static str) -> Part<'a> {
    Part::InputAudio { input_audio: InputAudio { data, format } }
}

fn wrong_type(kind: &str, path: &str) -> BadRequest {
    let kind = json::clip(kind, 64);
    let message = format!(
        "`{path}.mimeType` is `{kind}`; only pictures, wav and mp3, PDF and text can be carried over to the \
         model server"
    );
    BadRequest::new(format!("{path}.mimeType"), message)
}

/// A file by its address.
fn file<'a>(raw: &'a RawValue, path: &str) -> Result<Part<'a>, BadRequest> {
    let Blob { mime_type, file_uri, .. } = fields::value(raw, path)?;
    let kind = mime_type.map(|Text(kind)| kind).unwrap_or_default();
    let url = fields::text(file_uri, format!("{path}.fileUri"))?;
    let is_googles = url.contains("generativelanguage.googleapis.com") || url.starts_with("gs:");
    let is_picture = kind.is_empty() || kind.to_ascii_lowercase().starts_with("image/");
    let is_address = url.starts_with("https:") || url.starts_with("http:");
    if !is_googles && is_address && is_picture {
        return Ok(Part::ImageUrl { image_url: ImageUrl { url, detail: None } });
    }
    let message = format!(
        "`{path}` names a file that the model server cannot read; send its content as inlineData"
    );
    Err(BadRequest::new(path, message))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedCall<'a> {
    id: Option<Text<'a>>,
    name: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
}

fn call<'a>(
    raw: &'a RawValue,
    signature: Option<Cow<'a, str>>,
    path: &str,
) -> Result<Call<'a>, BadRequest> {
    let AskedCall { id, name, args } = fields::value(raw, path)?;
    let arguments = args.map_or("{}", RawValue::get);
    let arguments = if arguments == "null" { "{}" } else { arguments };
    if !arguments.starts_with('{') {
        let path = format!("{path}.args");
        return Err(BadRequest::new(&*path, format!("`{path}` must be an object")));
    }
    let id = id.map(|Text(id)| id).filter(|id| !id.is_empty());
    Ok(Call { id, name: fields::text(name, format!("{path}.name"))?, arguments, signature })
}
