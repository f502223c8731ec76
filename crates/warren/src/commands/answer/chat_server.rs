//! The choice of the server and of the model.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use base::Secret;
use clap::Args;
use client::{AnswerEvents, ClientError, Warren};
use daemon::ConfigFile;
use protocol::model_use::is_for_chat;
use serde_json::{Value, json};

use crate::{
    commands::{private_file::PrivateFile, table::plain, target::RunningServer},
    exit::usage,
};

/// The file that remembers the last model of each server.
const LAST_MODELS: &str = "last-models.json";

/// The most servers whose last models are remembered.
const MOST_SERVERS: usize = 100;

/// The most models that an error names.
const NAMED: usize = 12;

/// The path that questions are posted to.
const CHAT: &str = "/v1/chat/completions";

/// The server that is asked
#[derive(Args)]
pub(crate) struct ChatServer {
    /// A key for the server, where it asks for one
    #[arg(
        long,
        visible_alias = "token",
        env = "WARREN_TOKEN",
        value_name = "KEY",
        hide_env_values = true,
        hide_short_help = true
    )]
    key: Option<Secret>,
    #[command(flatten)]
    server: RunningServer,
}

/// What a model is asked with
#[derive(Args, Default)]
pub(crate) struct Parameters {
    /// The model or alias [default: the last one, or the only one]
    ///
    /// The last one is what this server was asked for last.
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Instructions for the model, before the question
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "N", hide_short_help = true)]
    max_tokens: Option<u64>,
    /// How freely the model chooses its words: 0 always takes the likeliest
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    temperature: Option<f64>,
}

impl ChatServer {
    /// The server, with the key if one is given.
    pub(crate) fn warren(&self, file: &ConfigFile) -> anyhow::Result<Warren> {
        let servers = self.server.lookup(&file.serve).servers();
        servers.check()?;
        let warren = Warren::new(servers.first(), self.key.as_ref());
        warren.map_err(|error| usage(error.into()))
    }
}

impl Parameters {
    /// The model to ask: the named one, or else the last one or the only one.
    ///
    /// # Errors
    /// When the server cannot be asked for its models, or if none is named and it has several for chat, or none.
    pub(crate) async fn choose_model(&self, warren: &Warren) -> anyhow::Result<String> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let listed = warren.model_ids().await.context("asking which models there are")?;
        choose(&listed, last_model(&warren.url()).as_deref())
    }

    /// The body of a request.
    pub(crate) fn body(&self, model: &str, messages: &[Value]) -> Value {
        let mut body = json!({
            "model": model,
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": messages,
        });
        if let Some(most) = self.max_tokens {
            body["max_tokens"] = most.into();
        }
        if let Some(temperature) = self.temperature {
            body["temperature"] = temperature.into();
        }
        body
    }
}

/// Posts a request.
pub(crate) async fn post(warren: &Warren, body: &Value) -> anyhow::Result<AnswerEvents> {
    Ok(warren.post(CHAT, serde_json::to_vec(body)?).await?)
}

/// Remembers the last model of a server. If that fails, the next question has to name it.
pub(crate) fn remember_model(server: &str, model: &str) {
    let Ok(file) = last_models() else { return };
    let mut models: BTreeMap<String, String> = file.read().unwrap_or_default();
    if models.get(server).is_some_and(|last| last == model) {
        return;
    }
    while models.len() >= MOST_SERVERS {
        models.pop_first();
    }
    models.insert(server.to_owned(), model.to_owned());
    let _ = file.replace(&models);
}

fn last_model(server: &str) -> Option<String> {
    let models: BTreeMap<String, String> = last_models().ok()?.read().ok()?;
    models.get(server).cloned()
}

fn last_models() -> anyhow::Result<PrivateFile> {
    PrivateFile::of_user(LAST_MODELS, "the last models")
}

fn choose(listed: &[String], last: Option<&str>) -> anyhow::Result<String> {
    if let Some(last) = last.filter(|last| listed.iter().any(|model| model == last)) {
        return Ok(last.to_owned());
    }
    let mut chat = listed.iter().filter(|model| is_for_chat(model));
    match (chat.next(), chat.next()) {
        (None, _) => {
            let words = "the server has no model for chat now: `warren models` lists what it has";
            Err(ClientError::NotFound { words: words.to_owned() }.into())
        }
        (Some(only), None) => Ok(only.clone()),
        (Some(_), Some(_)) => Err(usage(several(listed))),
    }
}

fn several(listed: &[String]) -> anyhow::Error {
    let chat: Vec<&String> = listed.iter().filter(|model| is_for_chat(model)).collect();
    let named: Vec<String> = chat.iter().take(NAMED).map(|model| plain(model)).collect();
    let more = match chat.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more (`warren models`)"),
    };
    anyhow!("several models can be asked: name one with --model: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(listed: &[&str], last: Option<&str>) -> anyhow::Result<String> {
        let listed: Vec<String> = listed.iter().map(|model| (*model).to_owned()).collect();
        choose(&listed, last)
    }

    #[test]
    fn the_last_model_is_asked_or_the_only_one() {
        assert_eq!(chosen(&["a", "b"], Some("b")).unwrap(), "b");
        assert_eq!(chosen(&["a", "nomic-embed-text"], Some("gone")).unwrap(), "a");
        let none = chosen(&["nomic-embed-text"], None).unwrap_err();
        assert!(none.is::<ClientError>(), "{none}");
        let several = chosen(&["a", "b"], None).unwrap_err().to_string();
        assert!(several.contains("--model: a, b"), "{several}");
        let many: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
        let several = choose(&many, None).unwrap_err().to_string();
        assert!(several.ends_with("m11 and 8 more (`warren models`)"), "{several}");
    }

    #[test]
    fn only_what_is_given_is_in_the_request() {
        let body = Parameters::default().body("m", &[json!({"role": "user", "content": "hi"})]);
        assert!(body.get("max_tokens").is_none() && body.get("temperature").is_none(), "{body}");
        let given =
            Parameters { max_tokens: Some(5), temperature: Some(0.0), ..Parameters::default() };
        let body = given.body("m", &[]);
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(5), &json!(0.0)));
    }
}
