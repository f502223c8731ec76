//! The model server to lend: the given one, or one found on this machine.

use std::path::PathBuf;

use anyhow::bail;
use base::Secret;
use clap::Args;
use daemon::options::{BackendOptions, WorkerOptions, heading};
use worker::{Lend, LocalBackend, find_local};

use crate::commands::{note, prompt, table::plain, worker as lending};

/// What to lend
#[derive(Args)]
pub(super) struct Backend {
    /// The model server [default: the one found here]
    ///
    /// A URL such as http://127.0.0.1:11434. If several are found, you are asked.
    #[arg(long, value_name = "URL", conflicts_with = "demo", help_heading = heading::MODELS)]
    backend: Option<String>,
    /// A file of certificates that it may show, beside those that this machine trusts
    #[arg(long, env = "WARREN_BACKEND_CA", value_name = "FILE", hide_short_help = true,
        help_heading = heading::MODELS)]
    backend_ca: Option<PathBuf>,
    /// The model server's API key
    #[arg(long, env = "WARREN_API_KEY", value_name = "KEY", hide_env_values = true,
        hide_short_help = true, help_heading = heading::MODELS)]
    api_key: Option<Secret>,
    /// The model to lend; a=b lends b as a (repeatable) [default: all that it has]
    #[arg(long, visible_alias = "models", value_name = "MODEL", value_delimiter = ',',
        help_heading = heading::MODELS)]
    model: Option<Vec<String>>,
    /// Requests that it takes at once [default: 1]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = heading::MODELS)]
    max_concurrent: Option<u32>,
    /// How long a context an Ollama is to give its models, in tokens [default: Ollama's own]
    #[arg(long, value_name = "TOKENS", hide_short_help = true, help_heading = heading::MODELS)]
    context: Option<u64>,
    /// Lend the built-in demo, which runs no model
    #[arg(long, help_heading = heading::MODELS)]
    demo: bool,
}

/// The backend to lend.
pub(in crate::commands::room) struct ChosenBackend {
    /// Identifies it among the backends of this machine.
    pub(super) key: String,
    pub(super) lend: Lend,
}

impl Backend {
    /// Whether a flag names it, or one of its models.
    pub(super) fn is_named(&self) -> bool {
        self.backend.is_some() || self.model.is_some() || self.demo
    }

    /// The choice that a worker's options make. Of their backends, the first is taken.
    pub(super) fn of(options: &WorkerOptions) -> Self {
        Self {
            backend: options.backend.as_ref().and_then(|all| all.first().cloned()),
            backend_ca: options.backend_ca.clone(),
            api_key: options.api_key.clone(),
            model: options.models.clone(),
            max_concurrent: options.max_concurrent,
            context: options.context,
            demo: options.demo.unwrap_or(false),
        }
    }

    /// The backend to lend. If there are several, the person at the terminal is asked.
    pub(super) async fn choose(&self) -> anyhow::Result<ChosenBackend> {
        if self.demo {
            let options =
                WorkerOptions { max_concurrent: self.max_concurrent, ..WorkerOptions::default() };
            return Ok(ChosenBackend { key: "demo".to_owned(), lend: lending::demo(&options) });
        }
        if let Some(url) = &self.backend {
            return self.at(url, self.model.clone());
        }
        let mut found = find_local().await;
        if found.is_empty() {
            bail!(
                "no model server was found on this machine: start one (Ollama, llama.cpp, vLLM, LM \
                 Studio), name one with --backend URL, or try --demo"
            );
        }
        let attended = prompt::is_attended();
        let which = self.which(&found, attended)?;
        let found = found.swap_remove(which);
        let models = match &self.model {
            Some(models) => Some(models.clone()),
            None if attended => which_model(&found)?,
            None => None,
        };
        note(&format!("lending {} at {}", plain(&found.name), plain(&found.url)));
        self.at(&found.url, models)
    }

    fn at(&self, url: &str, models: Option<Vec<String>>) -> anyhow::Result<ChosenBackend> {
        let options = BackendOptions {
            url: url.to_owned(),
            api_key: self.api_key.clone(),
            ca: self.backend_ca.clone(),
            models,
            max_concurrent: self.max_concurrent,
            context: self.context,
            endpoints: None,
            ..BackendOptions::default()
        };
        let lend = lending::backend(options).map_err(crate::exit::usage)?;
        Ok(ChosenBackend { key: base::redact_url(url.trim_end_matches('/')), lend })
    }

    fn which(&self, found: &[LocalBackend], attended: bool) -> anyhow::Result<usize> {
        if attended && found.len() > 1 && self.model.is_none() {
            let lines: Vec<String> = found.iter().map(line).collect();
            return prompt::choose("Several model servers run here. Which one is lent?", &lines);
        }
        Ok(best(found, self.model.as_deref().unwrap_or_default()))
    }
}

/// The first backend with all of these models, else the first with any model, else the first.
fn best(found: &[LocalBackend], models: &[String]) -> usize {
    // `a=b` asks the backend for b.
    let name_there = |model: &String| model.rsplit('=').next().unwrap_or_default().to_owned();
    let has =
        |found: &LocalBackend| models.iter().all(|model| found.models.contains(&name_there(model)));
    let fits = found.iter().position(|found| !found.models.is_empty() && has(found));
    fits.or_else(|| found.iter().position(|found| !found.models.is_empty())).unwrap_or(0)
}

fn line(found: &LocalBackend) -> String {
    let models =
        if found.models.is_empty() { "no models".to_owned() } else { found.models.join(", ") };
    format!("{} at {}: {}", plain(&found.name), plain(&found.url), plain(&models))
}

/// The user's choice of one of several models, or all.
fn which_model(found: &LocalBackend) -> anyhow::Result<Option<Vec<String>>> {
    if found.models.len() < 2 {
        return Ok(None);
    }
    let all = std::iter::once("all of them".to_owned());
    let choices: Vec<String> = all.chain(found.models.iter().map(|model| plain(model))).collect();
    let chosen = prompt::choose("Which model is lent?", &choices)?;
    Ok(chosen.checked_sub(1).map(|at| vec![found.models[at].clone()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_person_the_backend_with_the_model_is_lent() {
        let found = |models: &[&str]| LocalBackend {
            name: "x".to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            models: models.iter().map(|&model| model.to_owned()).collect(),
        };
        let all = [found(&[]), found(&["a", "b"]), found(&["c"])];
        let best = |models: &[&str]| {
            let models: Vec<String> = models.iter().map(|&model| model.to_owned()).collect();
            super::best(&all, &models)
        };
        assert_eq!([best(&[]), best(&["c"]), best(&["mine=b", "a"]), best(&["z"])], [1, 2, 1, 1]);
        assert_eq!(super::best(&all[..1], &[]), 0);
    }
}
