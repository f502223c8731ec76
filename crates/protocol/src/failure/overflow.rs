//! A prompt that is too long for the model's context, in the words of each backend. Agents shorten their
//! conversation on this error, but only in the words of their own API.

use super::Failure;

/// The numbers that a backend gives for a request that does not fit into the context, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The length of the prompt.
    pub prompt: Option<u64>,
    /// The most tokens that the answer may have, if that is what makes the request too long.
    pub output: Option<u64>,
    /// The length of the context.
    pub limit: Option<u64>,
}

/// The words by which such an error is known, in small letters.
const SIGNS: [&str; 26] = [
    // llama.cpp
    "exceeds the available context size",
    "context size has been exceeded",
    "context size exceeded",
    // llama-cpp-python
    "exceed context window of",
    // vLLM, SGLang and OpenAI
    "maximum context length",
    "longer than the maximum model length",
    "model's context length is only",
    "longer than the model's context length",
    "exceeds the context window",
    "reduce the length of the messages",
    "reduce the length of the input",
    // Ollama
    "prompt too long",
    "exceeds the context length",
    "exceeds context length",
    "exceeded max context length",
    // LM Studio
    "greater than the context length",
    "loaded with context length of",
    "reached context length of",
    // TGI
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
    // TabbyAPI
    "is greater than max_seq_len",
    "is greater than cache_size",
    // Anthropic
    "prompt is too long",
    "exceed context limit",
    // Google
    "exceeds the maximum number of tokens allowed",
    // Others
    "context_length_exceeded",
];

/// The text around the length of a prompt.
const PROMPT: [&str; 18] = [
    "request (# tokens)",
    "your request has # input tokens",
    "your prompt contains # input tokens",
    "messages resulted in # tokens",
    "(# in the messages",
    "(length #)",
    "you passed # input tokens",
    "input (# tokens)",
    "# tokens from the input messages",
    "given: #",
    "prompt length #",
    "keep the first # tokens",
    "n_keep: #",
    "requested tokens (#)",
    "input token count (#)",
    "too long: # tokens",
    "context limit: #",
    "context length # is greater",
];

const OUTPUT: [&str; 6] = [
    "# in the completion",
    "requested # output tokens",
    "# tokens for the completion",
    "tokens and # `max_new_tokens`",
    "is too large: #",
    "+ # >",
];

const LIMIT: [&str; 16] = [
    "context length is # token",
    "context length of # token",
    "context length is only # token",
    "context length of only # token",
    "context size (# token",
    "context length (# token",
    "maximum model length of #",
    "context window of #",
    "max_seq_len #",
    "n_ctx: #",
    "must have less than # token",
    "tokens allowed (#",
    "> # maximum",
    "reached context length of #",
    "must be <= #",
    " > #, decrease",
];

impl Overflow {
    /// Reads it from an error; `None` when the error is another one.
    pub(super) fn read(failure: &Failure) -> Option<Self> {
        let message = failure.message.to_ascii_lowercase();
        let words = [failure.kind.as_deref(), failure.code.as_deref()];
        let known = ["exceed_context_size_error", "context_length_exceeded"];
        let told = words.into_iter().flatten().any(|word| known.contains(&word));
        if !told && !SIGNS.iter().any(|sign| message.contains(sign)) {
            return None;
        }
        let [prompt, limit] = failure.context.as_deref().copied().unwrap_or_default();
        Some(Self {
            prompt: prompt.or_else(|| first(&PROMPT, &message)),
            output: first(&OUTPUT, &message),
            limit: limit.or_else(|| first(&LIMIT, &message)),
        })
    }

    /// In the words of Anthropic, which its agents look for. `message` is the backend's own.
    pub fn in_anthropics_words(&self, message: &str) -> String {
        match (self.prompt, self.output, self.limit) {
            (Some(prompt), _, Some(limit)) if prompt > limit => {
                format!("prompt is too long: {prompt} tokens > {limit} maximum")
            }
            (Some(prompt), Some(output), Some(limit)) => format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {output} > {limit}, \
                 decrease input length or `max_tokens` and try again"
            ),
            _ if message.to_ascii_lowercase().contains("prompt is too long") => message.to_owned(),
            _ => format!("prompt is too long: {message}"),
        }
    }

    /// In the words of Google. `message` is the backend's own.
    pub fn in_googles_words(&self, message: &str) -> String {
        const EXCEEDS: &str = "exceeds the maximum number of tokens allowed";
        match (self.prompt, self.limit) {
            (Some(prompt), Some(limit)) if prompt > limit => {
                format!("The input token count ({prompt}) {EXCEEDS} ({limit}).")
            }
            _ if message.contains(EXCEEDS) => message.to_owned(),
            _ => format!("The input token count {EXCEEDS}: {message}"),
        }
    }
}

/// The number that stands for `#` in the first of these texts that is in the message.
fn first(texts: &[&str], message: &str) -> Option<u64> {
    texts.iter().find_map(|text| number(text, message))
}

fn number(text: &str, message: &str) -> Option<u64> {
    let (before, after) = text.split_once('#')?;
    if before.is_empty() {
        let mut places = message.match_indices(after);
        return places.find_map(|(at, _)| last_digits(&message[..at]).parse().ok());
    }
    message.match_indices(before).find_map(|(at, _)| {
        let rest = &message[at + before.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count = rest[..digits].parse().ok()?;
        rest[digits..].starts_with(after).then_some(count)
    })
}

fn last_digits(text: &str) -> &str {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    &text[text.len() - digits..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Option<Overflow> {
        Failure::new(message).overflow()
    }

    #[test]
    fn the_words_of_every_backend_are_known() {
        let whole = Overflow { prompt: Some(9000), output: None, limit: Some(4096) };
        for message in [
            "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "This model's maximum context length is 4096 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.",
            "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",
            "The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
            "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000>= n_ctx: 4096). Try to load the model with a larger context length",
            "Input validation error: `inputs` must have less than 4096 tokens. Given: 9000",
            "Prompt length 9000 is greater than max_seq_len 4096",
            "Context length 9000 is greater than max_seq_len 4096",
            "Requested tokens (9000) exceed context window of 4096",
            "prompt is too long: 9000 tokens > 4096 maximum",
            "The input token count (9000) exceeds the maximum number of tokens allowed (4096).",
        ] {
            assert_eq!(read(message), Some(whole), "{message}");
            let told = whole.in_anthropics_words(message);
            assert_eq!(told, "prompt is too long: 9000 tokens > 4096 maximum");
            let told = whole.in_googles_words(message);
            assert_eq!(
                told,
                "The input token count (9000) exceeds the maximum number of tokens allowed (4096)."
            );
        }
        for message in [
            "the request exceeds the available context size. try increasing the context size or enable context shift",
            "Context size has been exceeded.",
            "the input length exceeds the context length",
            "prompt too long; exceeded max context length by 12 tokens",
            "Reached context length of 4096 tokens with this model",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ] {
            let overflow = read(message).unwrap_or_else(|| panic!("{message}"));
            assert_eq!(
                overflow.in_anthropics_words(message),
                format!("prompt is too long: {message}")
            );
        }
    }

    #[test]
    fn an_answer_that_would_be_too_long_is_told_from_a_prompt() {
        let expected = Overflow { prompt: Some(1000), output: Some(5000), limit: Some(4096) };
        for message in [
            "This model's maximum context length is 4096 tokens. However, you requested 6000 tokens (1000 in the messages, 5000 in the completion).",
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 1000 input tokens (5000 > 4096 - 1000).",
            "You passed 1000 input tokens and requested 5000 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 1.",
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 6000 tokens: 1000 tokens from the input messages and 5000 tokens for the completion.",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1000 `inputs` tokens and 5000 `max_new_tokens`",
            "input length and `max_tokens` exceed context limit: 1000 + 5000 > 4096, decrease input length or `max_tokens` and try again",
        ] {
            assert_eq!(read(message), Some(expected), "{message}");
            let told = expected.in_anthropics_words(message);
            assert!(told.contains("exceed context limit: 1000 + 5000 > 4096,"), "{told}");
        }
    }

    #[test]
    fn fields_and_codes_tell_it_too_and_other_errors_do_not() {
        let llama = br#"{"error":{"code":400,"message":"too much","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#;
        let expected = Overflow { prompt: Some(9), output: None, limit: Some(8) };
        assert_eq!(Failure::read(llama).overflow(), Some(expected));
        let openai = br#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
        assert_eq!(Failure::read(openai).overflow(), Some(Overflow::default()));
        for other in ["model not found", "context is required", "length must be positive", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
