//! Asking the model that the fake agent is configured with, as its dialect does.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::setting::{Setting, variable};

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

struct Request {
    base: String,
    path: String,
    header: String,
    body: Value,
    /// Where the text is in the answer.
    text: &'static str,
}

/// Asks the model to say something; what it says, or what was wrong.
pub(super) fn ask(setting: &Setting) -> String {
    let request = match setting.name.as_str() {
        "claude" => anthropic(setting),
        "codex" => responses(setting),
        "opencode" => chat(setting),
        "gemini" => gemini(setting),
        _ => None,
    };
    match request {
        Some(request) => request.send().unwrap_or_else(|error| format!("no answer: {error}")),
        None => "no gateway".to_owned(),
    }
}

fn anthropic(setting: &Setting) -> Option<Request> {
    let model = setting.value("--model").unwrap_or("default").to_owned();
    Some(Request {
        base: variable("ANTHROPIC_BASE_URL")?,
        path: "/v1/messages?beta=true".to_owned(),
        header: format!("authorization: Bearer {}", variable("ANTHROPIC_AUTH_TOKEN")?),
        body: json!({ "model": model, "max_tokens": 64,
            "messages": [{ "role": "user", "content": "hello" }] }),
        text: "/content/0/text",
    })
}

fn responses(setting: &Setting) -> Option<Request> {
    let provider = setting.config("model_provider")?;
    let of = |key: &str| {
        let key = format!("model_providers.{}.{key}", provider.as_str()?);
        Some(setting.config(&key)?.as_str()?.to_owned())
    };
    Some(Request {
        base: of("base_url")?,
        path: "/responses".to_owned(),
        header: format!("authorization: Bearer {}", variable(&of("env_key")?)?),
        body: json!({ "model": setting.value("--model"), "input": "hello" }),
        text: "/output/0/content/0/text",
    })
}

fn chat(setting: &Setting) -> Option<Request> {
    let config = setting.json(variable("OPENCODE_CONFIG").as_deref());
    let (provider, model) = setting.value("--model")?.split_once('/')?;
    let options = &config["provider"][provider]["options"];
    Some(Request {
        base: options["baseURL"].as_str()?.to_owned(),
        path: "/chat/completions".to_owned(),
        header: format!("authorization: Bearer {}", options["apiKey"].as_str()?),
        body: json!({ "model": model, "messages": [{ "role": "user", "content": "hello" }] }),
        text: "/choices/0/message/content",
    })
}

/// The path of Gemini CLI's settings that it is started with.
pub(super) fn gemini_settings() -> Option<String> {
    let home = variable("GEMINI_CLI_HOME").map(|home| format!("{home}/.gemini/settings.json"));
    home.or_else(|| variable("GEMINI_CLI_SYSTEM_SETTINGS_PATH"))
}

/// The settings must name the kind of key, or the program refuses to take it.
fn gemini(setting: &Setting) -> Option<Request> {
    let settings = setting.json(gemini_settings().as_deref());
    if settings["security"]["auth"]["selectedType"] != "gemini-api-key" {
        return None;
    }
    let model = setting.value("--model").unwrap_or("default");
    Some(Request {
        base: variable("GOOGLE_GEMINI_BASE_URL")?,
        path: format!("/v1beta/models/{model}:generateContent"),
        header: format!("x-goog-api-key: {}", variable("GEMINI_API_KEY")?),
        body: json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] }),
        text: "/candidates/0/content/parts/0/text",
    })
}

impl Request {
    fn send(&self) -> std::io::Result<String> {
        let rest = self.base.strip_prefix("http://").unwrap_or(&self.base);
        let (host, before) = rest.split_once('/').unwrap_or((rest, ""));
        let before = if before.is_empty() { String::new() } else { format!("/{before}") };
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = self.body.to_string();
        write!(
            stream,
            "POST {before}{} HTTP/1.1\r\nhost: {host}\r\n{}\r\nanthropic-version: 2023-06-01\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.path,
            self.header,
            body.len(),
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(self.read(&String::from_utf8_lossy(&answer)))
    }

    fn read(&self, answer: &str) -> String {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let status = head.split(' ').nth(1).unwrap_or("none");
        // Of a body in chunks, what is between the sizes.
        let json = body.find('{').zip(body.rfind('}')).map(|(from, to)| &body[from..=to]);
        let json: Value = json.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        match json.pointer(self.text).and_then(Value::as_str) {
            Some(text) if status == "200" => text.replace('\n', " "),
            _ => format!("refused with {status}"),
        }
    }
}
