//! Requests in the four shapes.

use serde_json::{Value, json};

/// The paths that are answered. Those like vLLM's have the first two.
pub(super) const PATHS: [&str; 4] =
    ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Chat,
    Completions,
    Messages,
    Responses,
}

/// A request, as far as a story depends on it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) shape: Shape,
    pub(super) model: String,
    /// The conversation so far, with the beginning of the answer.
    pub(super) context: String,
    /// The text of the answer so far, and its thoughts.
    pub(super) begun: String,
    pub(super) begun_thoughts: String,
    /// Whether it is in the middle of its thoughts, or has not begun to think.
    pub(super) thinks: bool,
    pub(super) most: usize,
    /// The first tool that is offered.
    pub(super) tool: Option<String>,
    pub(super) usage: bool,
}

/// A message of a conversation.
struct Message {
    role: String,
    text: String,
    thoughts: String,
}

impl Request {
    /// Reads a request for a path. `goes_on`: whether the server continues the assistant's last message without being
    /// asked to.
    pub(super) fn read(path: &str, body: &Value, goes_on: bool) -> Result<Self, String> {
        let path = path.split('?').next().unwrap_or_default();
        let shapes = [Shape::Chat, Shape::Completions, Shape::Messages, Shape::Responses];
        let shape = PATHS.iter().position(|known| *known == path).map(|at| shapes[at]);
        let shape = shape.ok_or("there is no such path")?;
        if body["continue_final_message"] == true && body["add_generation_prompt"] != false {
            return Err("add_generation_prompt and continue_final_message are both true".to_owned());
        }
        let goes_on = goes_on || body["continue_final_message"] == true;
        let most = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let most = most.iter().filter_map(|name| body[*name].as_u64()).min().unwrap_or(400);
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let tool = body["tools"][0].clone();
        let tool = tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned);
        let mut request = Self {
            shape,
            context: String::new(),
            begun: String::new(),
            begun_thoughts: String::new(),
            thinks: model == "thoughts",
            most: usize::try_from(most).unwrap_or(usize::MAX),
            tool: tool.filter(|_| model == "tools"),
            usage: body["stream_options"]["include_usage"] == true,
            model,
        };
        match shape {
            Shape::Completions => request.prompt(body)?,
            Shape::Responses => request.conversation(input(&body["input"]), goes_on)?,
            Shape::Chat | Shape::Messages => {
                let messages = body["messages"].as_array().ok_or("there are no messages")?;
                let mut all = Vec::new();
                if body["system"].is_string() {
                    all.push(json!({"role": "system", "content": body["system"]}));
                }
                all.extend(messages.iter().cloned());
                request.conversation(all.iter().map(message).collect(), goes_on)?;
            }
        }
        Ok(request)
    }

    fn prompt(&mut self, body: &Value) -> Result<(), String> {
        let prompt = &body["prompt"];
        let prompt = prompt.as_str().or(prompt[0].as_str()).ok_or("the prompt is no text")?;
        (self.context, self.thinks) = (prompt.to_owned(), false);
        Ok(())
    }

    fn conversation(&mut self, mut messages: Vec<Message>, goes_on: bool) -> Result<(), String> {
        let mut assistants =
            messages.iter().rev().take_while(|message| message.role == "assistant");
        if goes_on && assistants.nth(1).is_some() {
            return Err(
                "Cannot have 2 or more assistant messages at the end of the list.".to_owned()
            );
        }
        let begun = messages.pop_if(|last| goes_on && last.role == "assistant");
        for Message { role, text, .. } in &messages {
            self.context.push_str(&format!("<{role}>{text}</{role}>"));
        }
        self.context.push_str("<assistant>");
        if let Some(Message { text, thoughts, .. }) = begun {
            self.thinks = self.thinks && text.is_empty();
            self.begun_thoughts = thoughts;
            self.begun = text;
        }
        if !self.begun_thoughts.is_empty() || self.thinks {
            self.context.push_str(&format!("<think>{}", self.begun_thoughts));
        }
        if !self.begun_thoughts.is_empty() && !self.thinks {
            self.context.push_str("</think>");
        }
        self.context.push_str(&self.begun);
        Ok(())
    }
}

fn message(message: &Value) -> Message {
    let thoughts = message["reasoning_content"].as_str().unwrap_or_default().to_owned();
    let block = |name: &str| {
        let parts = message["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| part[name].as_str()).collect::<String>()
    };
    let text = message["content"].as_str().map_or_else(|| block("text"), str::to_owned);
    let role = message["role"].as_str().unwrap_or_default().to_owned();
    Message { role, text, thoughts: thoughts + &block("thinking") }
}

/// The input of Responses; thoughts belong to the message that follows them.
fn input(input: &Value) -> Vec<Message> {
    if let Some(text) = input.as_str() {
        return vec![message(&json!({"role": "user", "content": text}))];
    }
    let mut messages: Vec<Message> = Vec::new();
    for item in input.as_array().into_iter().flatten() {
        let read = message(item);
        if item["type"] == "reasoning" {
            let (role, text) = ("assistant".to_owned(), String::new());
            messages.push(Message { role, thoughts: read.text, text });
            continue;
        }
        match messages.last_mut() {
            Some(last)
                if last.role == "assistant" && last.text.is_empty() && read.role == "assistant" =>
            {
                last.text = read.text;
            }
            _ => messages.push(read),
        }
    }
    messages
}
