//! The table of options.
//!
//! | Option | What becomes of it |
//! | --- | --- |
//! | `num_predict` | `max_tokens`; 0 and negative numbers: no limit |
//! | `temperature`, `top_p`, `top_k`, `min_p`, `seed`, `stop`, `repeat_penalty`, `presence_penalty`, `frequency_penalty` | themselves |
//! | `num_ctx`, `num_keep`, `num_batch`, `num_gpu`, `main_gpu`, `num_thread`, `use_mmap`, `numa`, … | dropped: they are about how the model is loaded, which its own machine decides |
//! | `repeat_last_n`, `typical_p`, `tfs_z`, `mirostat…`, `penalize_newline`, and others | dropped: OpenAI's API has no word for them |
//!
//! Beside the options a body may have the same parameters by OpenAI's names: the defaults of an alias
//! are added there. The options come first.

use std::ops::RangeInclusive;

use protocol::json::{
    BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat_request::ChatRequest;

/// The options of a request. [`Self::read`] has checked them.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Options<'a> {
    num_predict: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    pub(crate) temperature: Option<&'a RawValue>,
    pub(crate) top_p: Option<&'a RawValue>,
    pub(crate) top_k: Option<&'a RawValue>,
    pub(crate) min_p: Option<&'a RawValue>,
    pub(crate) seed: Option<&'a RawValue>,
    pub(crate) stop: Option<&'a RawValue>,
    pub(crate) repeat_penalty: Option<&'a RawValue>,
    pub(crate) presence_penalty: Option<&'a RawValue>,
    pub(crate) frequency_penalty: Option<&'a RawValue>,
}

const ANY: RangeInclusive<f64> = f64::MIN..=f64::MAX;
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
const POSITIVE: RangeInclusive<f64> = 0.0..=f64::MAX;

impl<'a> Options<'a> {
    /// The options of a body.
    ///
    /// # Errors
    /// [`BadRequest`] for one of the wrong kind, or out of its range.
    pub(crate) fn read(body: &'a [u8], options: Option<&'a RawValue>) -> Result<Self, BadRequest> {
        let own: Self = match options {
            Some(raw) => fields::value(raw, "options")?,
            None => Self::default(),
        };
        own.check("options.")?;
        let beside: Self = fields::body(body)?;
        beside.check("")?;
        Ok(own.or(&beside))
    }

    fn check(&self, at: &str) -> Result<(), BadRequest> {
        let table = [
            ("num_predict", self.num_predict, ANY),
            ("max_tokens", self.max_tokens, ANY),
            ("temperature", self.temperature, POSITIVE),
            ("top_p", self.top_p, SHARE),
            ("top_k", self.top_k, -1.0..=f64::MAX),
            ("min_p", self.min_p, SHARE),
            ("seed", self.seed, ANY),
            ("repeat_penalty", self.repeat_penalty, POSITIVE),
            ("presence_penalty", self.presence_penalty, ANY),
            ("frequency_penalty", self.frequency_penalty, ANY),
        ];
        for (name, raw, range) in table {
            number(raw, &format!("{at}{name}"), &range)?;
        }
        stops(self.stop, &format!("{at}stop"))
    }

    fn or(self, other: &Self) -> Self {
        Self {
            num_predict: self.num_predict,
            max_tokens: other.max_tokens,
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            min_p: self.min_p.or(other.min_p),
            seed: self.seed.or(other.seed),
            stop: self.stop.or(other.stop).filter(|stop| !matches!(stop.get(), "[]" | "\"\"")),
            repeat_penalty: self.repeat_penalty.or(other.repeat_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
        }
    }

    /// The most tokens that the answer may have; `None`: no limit.
    pub(crate) fn max_tokens(&self) -> Option<u64> {
        let most = self.num_predict.or(self.max_tokens)?;
        // The cast cuts fractions off, as Ollama does, and saturates.
        let most = serde_json::from_str::<f64>(most.get()).ok()? as u64;
        Some(most).filter(|most| *most > 0)
    }

    /// Puts them into a request.
    pub(crate) fn apply(self, request: ChatRequest<'a>) -> ChatRequest<'a> {
        ChatRequest {
            max_tokens: self.max_tokens(),
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            seed: self.seed,
            stop: self.stop,
            repeat_penalty: self.repeat_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            ..request
        }
    }
}

fn number(
    raw: Option<&RawValue>,
    path: &str,
    range: &RangeInclusive<f64>,
) -> Result<(), BadRequest> {
    let Some(raw) = raw else { return Ok(()) };
    let number: f64 = fields::value(raw, path)?;
    if range.contains(&number) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let words = match *most == f64::MAX {
        true => format!("`{path}` is {number}; it must be at least {least}"),
        false => format!("`{path}` is {number}; it must be from {least} to {most}"),
    };
    Err(BadRequest::new(path, words))
}

fn stops(raw: Option<&RawValue>, path: &str) -> Result<(), BadRequest> {
    let Some(raw) = raw else { return Ok(()) };
    let TextOrList::List(stops) = TextOrList::read(raw, path)? else { return Ok(()) };
    for (at, stop) in stops.into_iter().enumerate() {
        fields::value::<Text<'_>>(stop, format!("{path}[{at}]"))?;
    }
    Ok(())
}
