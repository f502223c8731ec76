//! Reads the answer of a Messages provider.

use protocol::{
    failure::{BadAnswer, Failure},
    json::{JsonReader, lenient::Count},
};

use super::event::{Block, Delta, Event, Message, MessageUsage};
use crate::chat::{
    ClientAnswer, Finish, Outcome, Part, ProviderReader, Usage, Writer, chunk::PromptDetails,
    not_understood,
};

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    open: Option<Open>,
    calls: usize,
    finish: Option<Finish>,
    stop_sequence: Option<String>,
    usage: MessageUsage,
}

/// The open block, if it is of a kind that is carried over.
#[derive(Debug)]
struct Open {
    part: Part,
    /// The arguments in the start of a call, which count if no delta comes.
    input: String,
    /// Whether any delta has come.
    any: bool,
}

impl ProviderReader for Reading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let event: Event<'_> = json.chunk(data).map_err(not_understood)?;
        match &*event.kind {
            "message_start" => self.start(&event, client),
            "content_block_start" => {
                self.block(&event.content_block.unwrap_or_default(), client);
            }
            "content_block_delta" => self.delta(&event.delta.unwrap_or_default(), client),
            "content_block_stop" => self.close(client),
            "message_delta" => self.note(&event),
            "message_stop" => return client.end(self),
            "error" => return client.fail(&Failure::read(data)),
            _ => {}
        }
        Ok(())
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let message: Message<'_> = json.whole(data).map_err(not_understood)?;
        let content = match message.content {
            Some(content) if &*message.kind != "error" => content,
            _ if &*message.kind == "error" => return client.fail(&Failure::read(data)),
            _ => return client.fail_with("the backend's answer has no content"),
        };
        client.begin();
        for block in &content.0 {
            self.block(block, client);
            self.close(client);
        }
        self.count(message.usage.unwrap_or_default());
        self.stop(&message.stop_reason, &message.stop_sequence);
        self.finish.get_or_insert(Finish::Stop);
        client.end(self)
    }

    fn outcome<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) -> Option<Outcome> {
        let finish = self.finish?;
        client.begin();
        self.close(client);
        let stop_sequence = self.stop_sequence.take();
        Some(Outcome { finish, stop_sequence, usage: usage(&self.usage) })
    }
}

impl Reading {
    fn start<W: Writer>(&mut self, event: &Event<'_>, client: &mut ClientAnswer<'_, W>) {
        client.begin();
        self.count(event.message.as_ref().and_then(|message| message.usage).unwrap_or_default());
    }

    /// Opens a block with the content of its start.
    fn block<W: Writer>(&mut self, block: &Block<'_>, client: &mut ClientAnswer<'_, W>) {
        client.begin();
        self.close(client);
        let (part, text) = match &*block.kind {
            "text" => (Part::Text, &block.text),
            "thinking" => (Part::Reasoning, &block.thinking),
            "tool_use" => return self.call(block, client),
            _ => return,
        };
        client.writer.open(&part, client.out);
        self.open = Some(Open { part, input: String::new(), any: false });
        self.write(text, client);
    }

    fn call<W: Writer>(&mut self, block: &Block<'_>, client: &mut ClientAnswer<'_, W>) {
        let (id, name) = (block.id.to_string(), block.name.to_string());
        let part = Part::Call { id, name, number: self.calls };
        self.calls += 1;
        client.writer.open(&part, client.out);
        let input = block.input.map_or("{}", |input| input.get()).to_owned();
        self.open = Some(Open { part, input, any: false });
    }

    fn delta<W: Writer>(&mut self, delta: &Delta<'_>, client: &mut ClientAnswer<'_, W>) {
        let Some(open) = &self.open else { return };
        let text = match (&*delta.kind, &open.part) {
            ("text_delta", Part::Text) => &*delta.text,
            ("thinking_delta", Part::Reasoning) => &*delta.thinking,
            ("input_json_delta", Part::Call { .. }) => {
                delta.partial_json.0.as_deref().unwrap_or_default()
            }
            _ => return,
        };
        self.write(text, client);
    }

    fn write<W: Writer>(&mut self, text: &str, client: &mut ClientAnswer<'_, W>) {
        let Some(open) = self.open.as_mut().filter(|_| !text.is_empty()) else { return };
        open.any = true;
        client.writer.delta(text, client.out);
    }

    fn close<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) {
        let Some(open) = self.open.take() else { return };
        if !open.any && !open.input.is_empty() {
            client.writer.delta(&open.input, client.out);
        }
        client.writer.close(client.out);
    }

    fn note(&mut self, event: &Event<'_>) {
        self.count(event.usage.unwrap_or_default());
        if let Some(delta) = &event.delta {
            self.stop(&delta.stop_reason, &delta.stop_sequence);
        }
    }

    /// Each count is for the whole message so far, so a later one replaces an earlier one.
    fn count(&mut self, usage: MessageUsage) {
        let replace = |old: &mut Count, new: Count| *old = Count(new.0.or(old.0));
        replace(&mut self.usage.input_tokens, usage.input_tokens);
        replace(&mut self.usage.cache_creation_input_tokens, usage.cache_creation_input_tokens);
        replace(&mut self.usage.cache_read_input_tokens, usage.cache_read_input_tokens);
        replace(&mut self.usage.output_tokens, usage.output_tokens);
    }

    fn stop(&mut self, reason: &str, sequence: &str) {
        self.finish = match reason {
            "" => self.finish,
            "max_tokens" | "model_context_window_exceeded" => Some(Finish::Length),
            "tool_use" => Some(Finish::ToolCalls),
            "refusal" => Some(Finish::ContentFilter),
            _ => Some(Finish::Stop),
        };
        self.stop_sequence = Some(sequence.to_owned()).filter(|sequence| !sequence.is_empty());
    }
}

/// The usage in the terms of Chat Completions, which includes cached tokens in those of the prompt.
fn usage(counts: &MessageUsage) -> Usage {
    let cached = counts.cache_read_input_tokens;
    let parts = [counts.input_tokens, counts.cache_creation_input_tokens, cached];
    let sum = |all: u64, part: &Count| all.saturating_add(part.0.unwrap_or(0));
    let has_any = parts.iter().any(|part| part.0.is_some());
    Usage {
        prompt_tokens: Count(has_any.then(|| parts.iter().fold(0, sum))),
        completion_tokens: counts.output_tokens,
        prompt_tokens_details: PromptDetails {
            cached_tokens: cached,
            cache_write_tokens: counts.cache_creation_input_tokens,
        },
        ..Usage::default()
    }
}
