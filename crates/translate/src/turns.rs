//! The messages of a Chat Completions request, in an order that any provider accepts. The ids of
//! calls are valid for the provider and unique.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use protocol::json::{self, BadRequest, fields};
use serde_json::value::RawValue;

use crate::{
    from_chat::{Call, Message},
    order::{NO_RESULT, OrderedMessage, in_order},
};

/// A message, its calls, and the call whose result it is.
pub(crate) struct Turn<'a> {
    /// Its path in the client's request, such as `messages[3]`.
    pub(crate) path: String,
    pub(crate) message: Message<'a>,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) answers: Option<Cow<'a, str>>,
}

/// Reads `messages`. `fit` makes an id valid for the provider.
pub(crate) fn read<'a>(
    messages: Option<&'a RawValue>,
    fit: fn(Cow<'a, str>) -> Cow<'a, str>,
) -> Result<Vec<Turn<'a>>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` is missing");
    let raws: Vec<&RawValue> = fields::value(messages.ok_or_else(missing)?, "messages")?;
    let read = raws.iter().enumerate().map(|(at, raw)| Turn::read(raw, format!("messages[{at}]")));
    let mut turns = in_order(read.collect::<Result<_, _>>()?);
    give_own_ids(&mut turns, fit);
    Ok(turns)
}

impl<'a> Turn<'a> {
    fn read(raw: &'a RawValue, path: String) -> Result<Self, BadRequest> {
        let message = Message::read(raw, &path)?;
        let calls = message.tool_calls.iter().flatten().enumerate();
        let calls = calls.map(|(at, raw)| Call::read(raw, &format!("{path}.tool_calls[{at}]")));
        let calls = calls.collect::<Result<_, _>>()?;
        let answers = match &*message.role.0 {
            "tool" => Some(fields::text(message.tool_call_id, format!("{path}.tool_call_id"))?),
            _ => None,
        };
        Ok(Self { path, message, calls, answers })
    }
}

impl OrderedMessage for Turn<'_> {
    fn calls(&self) -> Vec<&str> {
        self.calls.iter().map(|call| &*call.id).collect()
    }

    fn answers(&self) -> Option<&str> {
        self.answers.as_deref()
    }

    fn into_words(self) -> Self {
        Self { message: self.message.into_users(), answers: None, ..self }
    }

    fn without_result(&self, call: usize) -> Self {
        static WORDS: LazyLock<Box<RawValue>> =
            LazyLock::new(|| RawValue::from_string(json::write(&NO_RESULT)).unwrap_or_default());
        let id = self.calls.get(call).map(|call| call.id.clone());
        Self {
            path: self.path.clone(),
            message: Message::of_tool(&WORDS),
            calls: Vec::new(),
            answers: id,
        }
    }
}

/// Gives each call and its result a valid, unique id. Some backends count ids from the start in each
/// answer, so an id that came before gets a number.
fn give_own_ids<'a>(turns: &mut [Turn<'a>], fit: fn(Cow<'a, str>) -> Cow<'a, str>) {
    let mut taken = HashMap::new();
    for at in 0..turns.len() {
        let Some((turn, results)) = turns[at..].split_first_mut() else { return };
        for (call, nth) in turn.calls.iter_mut().zip(0..) {
            call.id = own_id(&fit(call.id.clone()), &mut taken, fit);
            // `in_order` has put the results directly after their calls, in the same order.
            let result: Option<&mut Turn<'a>> = results.get_mut(nth);
            if let Some(answers) = result.and_then(|result| result.answers.as_mut()) {
                *answers = call.id.clone();
            }
        }
    }
}

/// This id, or, if it is taken, the next free one with a number. `taken`: the earlier ids, and how
/// often each was wanted.
fn own_id<'a>(
    id: &Cow<'a, str>,
    taken: &mut HashMap<Cow<'a, str>, usize>,
    fit: fn(Cow<'a, str>) -> Cow<'a, str>,
) -> Cow<'a, str> {
    let mut own = id.clone();
    while taken.contains_key(&own) {
        let wanted = taken.entry(id.clone()).or_default();
        *wanted += 1;
        own = fit(Cow::Owned(format!("{id}-{}", *wanted + 1)));
    }
    taken.insert(own.clone(), 0);
    own
}
