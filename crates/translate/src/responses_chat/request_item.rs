//! A raw item of `input`, and its content.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat_request::{Content, ImageUrl, PICTURES_FOLLOW, Part, join};

/// A raw item of the request, with the fields of all types.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Item<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) role: Option<Text<'a>>,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    call_id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) namespace: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    operation: Option<&'a RawValue>,
    pub(super) tools: Option<Vec<&'a RawValue>>,
}

/// A raw piece of content of the request.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Piece<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    image_url: Option<&'a RawValue>,
    detail: Option<Text<'a>>,
}

impl<'a> Item<'a> {
    pub(super) fn content_parts(&self, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
        let path = format!("{path}.content");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        parts(self.content.ok_or_else(missing)?, &path)
    }

    /// The id of the call; `None` if it is missing, `null` or empty.
    pub(super) fn call_id(&self, path: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let id = self.call_id.map(|raw| fields::text(Some(raw), format!("{path}.call_id")));
        Ok(id.transpose()?.filter(|id| !id.is_empty()))
    }

    /// The id of the call whose output this is. Outputs of `local_shell` have it in `id`.
    pub(super) fn answers(&self, path: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let own = self
            .id
            .filter(|_| self.kind.as_ref().is_some_and(|kind| kind.0 == "local_shell_call_output"));
        match (self.call_id(path)?, own) {
            (None, Some(id)) => fields::text(Some(id), format!("{path}.id")).map(Some),
            (id, _) => Ok(id),
        }
    }

    pub(super) fn name(&self, path: &str) -> Result<Cow<'a, str>, BadRequest> {
        fields::text(self.name, format!("{path}.name"))
    }

    /// The arguments of a call of a tool that the client runs itself.
    pub(super) fn action(&self) -> Cow<'a, str> {
        let action = self.action.or(self.operation).map_or("{}", RawValue::get);
        Cow::Borrowed(action)
    }

    /// A function's arguments. Empty arguments become `{}`, because servers require JSON.
    pub(super) fn arguments(&self, path: &str) -> Result<Cow<'a, str>, BadRequest> {
        let arguments = fields::text(self.arguments, format!("{path}.arguments"))?;
        Ok(if arguments.trim().is_empty() { Cow::Borrowed("{}") } else { arguments })
    }

    /// A custom tool's input, as the arguments of the function that represents it.
    pub(super) fn input(&self, path: &str) -> Result<Cow<'a, str>, BadRequest> {
        let input = fields::text(self.input, format!("{path}.input"))?;
        let mut arguments = String::with_capacity(input.len() + 16);
        arguments.push_str("{\"input\":\"");
        json::push_escaped(&mut arguments, &input);
        arguments.push_str("\"}");
        Ok(Cow::Owned(arguments))
    }

    /// The result of a call: text, and images beside it.
    pub(super) fn output(&self, path: &str) -> Result<(Cow<'a, str>, Vec<Part<'a>>), BadRequest> {
        let path = format!("{path}.output");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        let parts = output_parts(self.output.ok_or_else(missing)?, &path)?;
        let (texts, images): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| matches!(part, Part::Text { .. }));
        let text = match Content::of_parts(texts) {
            Content::Text(text) if text.is_empty() && !images.is_empty() => PICTURES_FOLLOW.into(),
            Content::Text(text) => text,
            Content::Parts(_) => Cow::Borrowed(""),
        };
        Ok((text, images))
    }

    /// The plain text of a reasoning item, if any.
    pub(super) fn thought(&self, path: &str) -> Result<Option<Cow<'a, str>>, BadRequest> {
        for (raw, name) in [(self.content, "content"), (self.summary, "summary")] {
            let Some(raw) = raw else { continue };
            let text = thought_text(raw, &format!("{path}.{name}"))?;
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// The parts of an output. If it is neither text nor a list of parts, it becomes a text with its JSON, as
/// a shell's list of objects does.
fn output_parts<'a>(raw: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
    #[derive(Deserialize)]
    struct OutputPart<'a> {
        #[serde(rename = "type", borrow)]
        kind: Option<Text<'a>>,
        #[serde(borrow)]
        image_url: Option<&'a RawValue>,
    }
    let json = || Ok(vec![Part::Text { text: Cow::Borrowed(raw.get()) }]);
    match raw.get().as_bytes().first() {
        Some(b'[') => {
            let pieces: Vec<OutputPart<'a>> = fields::value(raw, path)?;
            if pieces.iter().all(|piece| piece.kind.is_some()) { parts(raw, path) } else { json() }
        }
        Some(b'{') => match fields::value::<OutputPart<'a>>(raw, path)?.image_url {
            Some(url) => {
                let url = fields::text(Some(url), format!("{path}.image_url"))?;
                Ok(vec![Part::ImageUrl { image_url: ImageUrl { url, detail: None } }])
            }
            None => json(),
        },
        _ => parts(raw, path),
    }
}

/// The texts of a thought; each begins a line. Pieces without text are left out.
fn thought_text<'a>(raw: &'a RawValue, path: &str) -> Result<Cow<'a, str>, BadRequest> {
    let pieces = match TextOrList::read(raw, path)? {
        TextOrList::Text(text) => return Ok(text),
        TextOrList::List(pieces) => pieces,
    };
    let mut all = None;
    for (at, raw) in pieces.iter().enumerate() {
        let piece: Piece<'a> = fields::value(raw, format!("{path}[{at}]"))?;
        let Some(text) = piece.text else { continue };
        let text = fields::text(Some(text), format!("{path}[{at}].text"))?;
        all = Some(match all {
            Some(before) => join(before, "\n", &text),
            None => text,
        });
    }
    Ok(all.unwrap_or_default())
}

fn parts<'a>(raw: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, BadRequest> {
    match TextOrList::read(raw, path)? {
        TextOrList::Text(text) => Ok(vec![Part::Text { text }]),
        TextOrList::List(pieces) => {
            pieces.iter().enumerate().map(|(at, raw)| part(raw, &format!("{path}[{at}]"))).collect()
        }
    }
}

fn part<'a>(raw: &'a RawValue, path: &str) -> Result<Part<'a>, BadRequest> {
    let piece: Piece<'a> = fields::value(raw, path)?;
    match piece.kind.0.as_ref() {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            Ok(Part::Text { text: fields::text(piece.text, format!("{path}.text"))? })
        }
        "refusal" => {
            Ok(Part::Text { text: fields::text(piece.refusal, format!("{path}.refusal"))? })
        }
        "input_image" => piece.image(path),
        kind => {
            let message = format!(
                "`{path}` is of type `{}`, which cannot be carried over to the model server; \
                 send text or an image",
                json::clip(kind, 64)
            );
            Err(BadRequest::new(path, message))
        }
    }
}

impl<'a> Piece<'a> {
    fn image(&self, path: &str) -> Result<Part<'a>, BadRequest> {
        let Some(url) = self.image_url else {
            let message = format!(
                "`{path}` has no `image_url`: files are not stored here; send the image itself as \
                 a data: URL"
            );
            return Err(BadRequest::new(path, message));
        };
        let url = fields::text(Some(url), format!("{path}.image_url"))?;
        let detail = self.detail.as_ref().map(|Text(detail)| match detail.as_ref() {
            "original" => Cow::Borrowed("high"),
            _ => detail.clone(),
        });
        Ok(Part::ImageUrl { image_url: ImageUrl { url, detail } })
    }
}
