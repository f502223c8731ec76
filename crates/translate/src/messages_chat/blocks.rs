//! Blocks of content.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::{Content, FAILED, ImageUrl, Message, PICTURES_FOLLOW, Part, join},
    media,
};

/// A raw block of the request, with the fields of all types.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    title: Option<Text<'a>>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) input: Option<&'a RawValue>,
    tool_use_id: Option<&'a RawValue>,
    tool_name: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    is_error: Option<bool>,
}

pub(super) fn block<'a>(raw: &'a RawValue, path: &str) -> Result<Block<'a>, BadRequest> {
    fields::value(raw, path)
}

impl<'a> Block<'a> {
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.0 == kind
    }

    pub(super) fn is_thought(&self) -> bool {
        self.is("thinking") || self.is("redacted_thinking")
    }

    /// Whether it is a trace of a tool that Anthropic's servers ran: its call, its result, or a file for it.
    /// Traces are left out, since the assistant's text gives the results.
    pub(super) fn is_trace(&self) -> bool {
        let kind = &*self.kind.0;
        let of_hosted = |ending: &str| kind.ends_with(ending) && kind.len() > ending.len();
        of_hosted("_tool_use") || of_hosted("_tool_result") || kind == "container_upload"
    }

    /// The text of a thought; `None` for other blocks and encrypted thoughts. The signature is
    /// dropped, since only Anthropic can use it.
    pub(super) fn thought(&self, path: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        if !self.is("thinking") {
            return Ok(None);
        }
        let text = fields::text(self.thinking, format!("{path}.thinking"))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// Text and pictures as parts of a message. Most blocks are one part.
    pub(super) fn into_parts(self, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
        match &*self.kind.0 {
            _ if self.is_thought() || self.is_trace() => Ok(Vec::new()),
            // A summary of turns that were dropped.
            "compaction" => match self.content {
                Some(raw) => parts(raw, &format!("{path}.content"), Self::into_leaf),
                None => Ok(Vec::new()),
            },
            "document" => self.document(path),
            "search_result" => self.search_result(path),
            // A tool that a search for tools has found. The model is shown all tools anyway.
            "tool_reference" => {
                Ok(vec![text(fields::text(self.tool_name, format!("{path}.tool_name"))?)])
            }
            _ => self.into_leaf(path),
        }
    }

    /// Text or a picture: a block within a document may be nothing else.
    fn into_leaf(self, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
        match &*self.kind.0 {
            "text" => Ok(vec![text(fields::text(self.text, format!("{path}.text"))?)]),
            "image" => Ok(vec![image(self.source, path)?]),
            kind => Err(unknown(kind, path)),
        }
    }

    /// A tool's result: its message, and its pictures, which a tool's message cannot hold.
    pub(super) fn into_result(
        self,
        path: &str,
    ) -> Result<(Message<'a>, Vec<Part<'a>>), BadRequest> {
        let id = fields::text(self.tool_use_id, format!("{path}.tool_use_id"))?;
        let parts = match self.content {
            Some(raw) => parts(raw, &format!("{path}.content"), Self::into_parts)?,
            None => Vec::new(),
        };
        let (texts, pictures): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| matches!(part, Part::Text { .. }));
        let said = match Content::of_parts(texts) {
            Content::Text(said) if said.is_empty() && !pictures.is_empty() => {
                PICTURES_FOLLOW.into()
            }
            Content::Text(said) => said,
            Content::Parts(_) => Cow::Borrowed(""),
        };
        let failed = self.is_error.unwrap_or(false);
        let said = if failed { join(FAILED.into(), "", &said) } else { said };
        Ok((Message::tool(id, said), pictures))
    }

    fn document(self, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
        let source_path = format!("{path}.source");
        let source = source(self.source, &source_path)?;
        let mut parts = match &*source.kind.0 {
            "text" => vec![text(fields::text(source.data, format!("{source_path}.data"))?)],
            "content" => {
                let path = format!("{source_path}.content");
                parts(source.content.ok_or_else(|| missing(&path))?, &path, Self::into_leaf)?
            }
            _ => {
                let message = format!(
                    "`{path}` is a document that is not plain text; the model server cannot read it"
                );
                return Err(BadRequest::new(path, message));
            }
        };
        parts.splice(..0, self.title.map(|Text(title)| text(title)));
        Ok(parts)
    }

    fn search_result(self, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
        let path = format!("{path}.content");
        let found = parts(self.content.ok_or_else(|| missing(&path))?, &path, Self::into_leaf)?;
        Ok(self.title.map(|Text(title)| text(title)).into_iter().chain(found).collect())
    }
}

/// Content within a block: a string, or blocks, each read by `read`.
fn parts<'a>(
    raw: &'a RawValue,
    path: &str,
    read: fn(Block<'a>, &str) -> Result<Vec<Part<'a>>, BadRequest>,
) -> Result<Vec<Part<'a>>, BadRequest> {
    let blocks = match TextOrList::read(raw, path)? {
        TextOrList::Text(said) => return Ok(vec![text(said)]),
        TextOrList::List(blocks) => blocks,
    };
    let mut parts = Vec::with_capacity(blocks.len());
    for (at, raw) in blocks.iter().enumerate() {
        let path = format!("{path}[{at}]");
        parts.append(&mut read(block(raw, &path)?, &path)?);
    }
    Ok(parts)
}

fn image<'a>(raw: Option<&'a RawValue>, path: &str) -> Result<Part<'a>, BadRequest> {
    let path = format!("{path}.source");
    let source = source(raw, &path)?;
    let url = match &*source.kind.0 {
        "url" => fields::text(source.url, format!("{path}.url"))?,
        "base64" => {
            let kind = fields::text(source.media_type, format!("{path}.media_type"))?;
            let data = fields::text(source.data, format!("{path}.data"))?;
            format!("data:{};base64,{data}", media::of_picture(&kind, &data)).into()
        }
        kind => {
            let kind = json::clip(kind, 64);
            let message = format!("`{path}.type` is `{kind}`; it must be base64 or url");
            return Err(BadRequest::new(format!("{path}.type"), message));
        }
    };
    Ok(Part::ImageUrl { image_url: ImageUrl { url, detail: None } })
}

fn text(text: Cow<'_, str>) -> Part<'_> {
    Part::Text { text }
}

fn source<'a>(raw: Option<&'a RawValue>, path: &str) -> Result<Source<'a>, BadRequest> {
    fields::value(raw.ok_or_else(|| missing(path))?, path)
}

fn missing(path: &str) -> BadRequest {
    BadRequest::new(path, format!("`{path}` is missing"))
}

fn unknown(kind: &str, path: &str) -> BadRequest {
    let kind = json::clip(kind, 64);
    let message = format!(
        "`{path}` is of type `{kind}`, which cannot be carried over to the model server here"
    );
    BadRequest::new(path, message)
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    media_type: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    url: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}
