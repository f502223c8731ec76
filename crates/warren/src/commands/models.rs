//! `warren models`: what can be asked.

use std::collections::BTreeMap;

use anyhow::Context;
use base::{Capability, ModelName};
use clap::Args;
use client::{
    Warren,
    admin::status::{HealthDetails, ModelFacts, WorkerJson},
};
use daemon::ConfigFile;
use serde::Serialize;
use tui::text::middle;

use super::{
    answer::ChatServer,
    run_client,
    table::{plain, show_list, table},
    words::bytes,
};

/// The most columns of names and places: a row fits 80.
const NAME: usize = 28;
const PLACES: usize = 22;

/// List what can be asked: models and aliases, where they are, and what is known of them
///
/// `warren model list` shows each model at each machine, and whether it is in memory there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  warren models
  warren models qwen3:8b
  warren models --json | jq -r '.models[].id'
  warren models --server http://gpu-box:9178")]
pub(crate) struct Models {
    /// The model to show with all that is known of it [default: all, each in a row]
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ChatServer,
}

/// A model or an alias.
#[derive(Debug, PartialEq, Serialize)]
struct Model {
    id: String,
    /// The targets of an alias, in order of preference; empty for a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<String>,
    /// The machines that serve it.
    machines: Vec<Machine>,
    /// `ready`, `busy` if all of its machines are, or `away` if none serves it; `null` where the server does not say.
    state: Option<&'static str>,
    #[serde(flatten)]
    facts: ModelFacts,
}

/// A machine that serves a model.
#[derive(Debug, PartialEq, Serialize)]
struct Machine {
    name: String,
    distance: String,
    state: &'static str,
}

impl Models {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(file)?;
        let models = run_client(models(&warren))?;
        if let Some(name) = &self.model {
            let one = named(models, name)?;
            return show_list(&[one], self.json, "models", "", |one| details(&one[0]));
        }
        let empty =
            "No model can be asked now: start a model server, and `warren worker` beside it";
        show_list(&models, self.json, "models", empty, readable)
    }
}

async fn models(warren: &Warren) -> anyhow::Result<Vec<Model>> {
    let (ids, health) = tokio::try_join!(warren.model_ids(), warren.health())?;
    Ok(joined(&ids, &health.details.unwrap_or_default()))
}

/// The models and aliases that can be asked, and aliases without a target that is served now.
fn joined(ids: &[String], details: &HealthDetails) -> Vec<Model> {
    let away = details.aliases.keys().filter(|alias| !ids.contains(alias)).cloned();
    let mut all: Vec<String> = away.chain(ids.iter().cloned()).collect();
    all.sort_unstable();
    all.into_iter().map(|id| model(id, details, ids)).collect()
}

fn model(id: String, details: &HealthDetails, served: &[String]) -> Model {
    let targets = details.aliases.get(&id).cloned().unwrap_or_default();
    let names: Vec<&String> = if targets.is_empty() { vec![&id] } else { targets.iter().collect() };
    let serves = |worker: &&WorkerJson| {
        is_for_all(worker) && worker.models.iter().any(|model| names.contains(&model))
    };
    let workers: Vec<&WorkerJson> = details.workers.iter().filter(serves).collect();
    let is_known = !details.workers.is_empty();
    let state = match served.contains(&id) {
        false => Some("away"),
        true if is_known => Some(of_all(&workers)),
        true => None,
    };
    let fact = names.iter().find_map(|name| facts(name, &workers));
    Model { state, facts: fact.unwrap_or_default(), machines: machines(&workers), targets, id }
}

/// A worker's facts about a model. Of several workers, the first that has facts counts.
fn facts(name: &str, workers: &[&WorkerJson]) -> Option<ModelFacts> {
    workers.iter().find_map(|worker| worker.model_facts.get(name)).cloned()
}

/// Whether a provider serves all callers, and not only a room.
fn is_for_all(worker: &WorkerJson) -> bool {
    worker.scope == "server"
}

/// Each machine once, even if it lends several backends.
fn machines(workers: &[&WorkerJson]) -> Vec<Machine> {
    let mut machines: BTreeMap<&str, Machine> = BTreeMap::new();
    for worker in workers {
        let (name, distance) = (worker.worker_name.clone(), worker.distance.clone());
        let machine = Machine { name, distance, state: state(worker) };
        let known = machines.entry(&worker.worker_name).or_insert(machine);
        if state(worker) == "ready" {
            known.state = "ready";
        }
    }
    machines.into_values().collect()
}

fn of_all(workers: &[&WorkerJson]) -> &'static str {
    if workers.iter().any(|worker| state(worker) == "ready") { "ready" } else { "busy" }
}

fn state(worker: &WorkerJson) -> &'static str {
    let is_full = worker.in_flight.max(worker.reported_load) >= worker.max_concurrent.max(1);
    let is_out = worker.is_draining || worker.resting_secs.is_some() || worker.throttle == 0;
    if is_full || is_out { "busy" } else { "ready" }
}

/// The model of this name, which may leave out or add `:latest`.
fn named(models: Vec<Model>, name: &str) -> anyhow::Result<Model> {
    let other = ModelName::from(name).with_or_without_latest();
    let is_it = |model: &&Model| {
        model.id == name || other.as_ref().is_some_and(|other| other.as_str() == model.id)
    };
    let found = models.iter().find(is_it).map(|model| model.id.clone());
    let found = found.and_then(|id| models.into_iter().find(|model| model.id == id));
    found.with_context(|| {
        format!("no model {} can be asked now: `warren models` lists those that can", plain(name))
    })
}

/// The known facts about a model, a line each.
fn details(model: &Model) -> String {
    let facts = &model.facts;
    let can = facts.capabilities.map(|able| able.iter().map(Capability::name).collect::<Vec<_>>());
    let machine =
        |machine: &Machine| format!("{} ({}, {})", machine.name, machine.distance, machine.state);
    let machines: Vec<String> = model.machines.iter().map(machine).collect();
    let tokens = |tokens: Option<u64>| tokens.map(|tokens| format!("{tokens} tokens"));
    let lines = [
        ("model", Some(model.id.clone())),
        ("stands for", Some(model.targets.join(", "))),
        ("machines", Some(machines.join(", "))),
        ("state", Some(shown_state(model))),
        ("can", can.map(|can| can.join(", "))),
        ("context", tokens(facts.context_tokens)),
        ("longest", tokens(facts.max_context_tokens)),
        ("quantization", facts.quantization.as_deref().map(str::to_owned)),
        ("family", facts.family.as_deref().map(str::to_owned)),
        ("parameters", facts.parameters.map(billions)),
        ("files", facts.file_bytes.map(bytes)),
        ("memory", facts.memory_bytes.map(bytes)),
    ];
    let known = lines.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let known = known.filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| format!("{name:<12}  {}\n", plain(&value))).collect()
}

/// A count of parameters as people write it.
fn billions(count: u64) -> String {
    match count {
        1_000_000_000.. => format!("{:.1}B", count as f64 / 1e9),
        _ => format!("{:.0}M", count as f64 / 1e6),
    }
}

/// Whether it is loaded, if that is known and it could be asked at once.
fn shown_state(model: &Model) -> String {
    match (model.state, model.facts.load) {
        (Some("ready"), Some(load)) => load.to_string(),
        (state, _) => state.unwrap_or("-").to_owned(),
    }
}

fn readable(models: &[Model]) -> String {
    let header = ["model", "where", "state", "context", "memory"];
    let rows: Vec<Vec<String>> = models.iter().map(row).collect();
    table(&header, &rows, 2)
}

fn row(model: &Model) -> Vec<String> {
    let places = if model.targets.is_empty() { places(model) } else { targets(model) };
    let number = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    vec![
        middle(&plain(&model.id), NAME),
        places,
        shown_state(model),
        number(model.facts.context_tokens.map(|tokens| tokens.to_string())),
        number(model.facts.memory_bytes.map(bytes)),
    ]
}

/// The names of the machines, as far as there is room.
fn places(model: &Model) -> String {
    let named = |machine: &Machine| match machine.distance.as_str() {
        "" | "here" => plain(&machine.name),
        distance => format!("{} ({})", plain(&machine.name), plain(distance)),
    };
    fitting(&model.machines.iter().map(named).collect::<Vec<_>>())
}

fn targets(model: &Model) -> String {
    format!("= {}", fitting(&model.targets.iter().map(|target| plain(target)).collect::<Vec<_>>()))
}

/// Names in a row, as far as there is room, and the number of the others.
fn fitting(names: &[String]) -> String {
    let all = names.join(", ");
    if all.chars().count() <= PLACES - 2 {
        return if all.is_empty() { "-".to_owned() } else { all };
    }
    match names.len() {
        1 => middle(&all, PLACES - 2),
        more => format!("{}, {} more", middle(&names[0], PLACES - 12), more - 1),
    }
}

#[cfg(test)]
mod tests {
    use base::{Capabilities, LoadState};

    use super::*;

    fn worker(name: &str, models: &[&str], in_flight: u32) -> WorkerJson {
        WorkerJson {
            worker_name: name.to_owned(),
            scope: "server".to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            distance: "here".to_owned(),
            max_concurrent: 1,
            throttle: 100,
            in_flight,
            ..WorkerJson::default()
        }
    }

    fn shown(details: &HealthDetails, ids: &[&str]) -> Vec<String> {
        let models = joined(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>(), details);
        readable(&models).lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_model_has_its_machines_and_its_state() {
        let far = WorkerJson { distance: "far".to_owned(), ..worker("ben", &["llama3:8b"], 1) };
        let mut gpu = worker("gpu-box", &["qwen3:8b", "llama3:8b"], 0);
        let facts = ModelFacts {
            context_tokens: Some(40_960),
            memory_bytes: Some(6 << 30),
            load: Some(LoadState::Unloaded),
            ..ModelFacts::default()
        };
        gpu.model_facts.insert("qwen3:8b".to_owned(), facts);
        let alias = |name: &str, target: &str| (name.to_owned(), vec![target.to_owned()]);
        let details = HealthDetails {
            workers: vec![gpu, far, worker("laptop", &["qwen3-coder:30b-a3b-instruct-q4_K_M"], 1)],
            aliases: [alias("fast", "qwen3:8b"), alias("huge", "glm-5")].into_iter().collect(),
            ..HealthDetails::default()
        };
        let ids = ["llama3:8b", "qwen3:8b", "qwen3-coder:30b-a3b-instruct-q4_K_M", "fast"];
        let rows = shown(&details, &ids);
        let expected = [
            "MODEL                         WHERE               STATE     CONTEXT   MEMORY",
            "fast                          = qwen3:8b          unloaded    40960  6.0 GiB",
            "huge                          = glm-5             away            -        -",
            "llama3:8b                     ben (far), gpu-box  ready           -        -",
            "qwen3-coder:30…struct-q4_K_M  laptop              busy            -        -",
            "qwen3:8b                      gpu-box             unloaded    40960  6.0 GiB",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_fit_the_terminal_whatever_the_names() {
        let names: Vec<String> =
            (0..5).map(|number| format!("{}{number}", "n".repeat(60))).collect();
        let workers = names.iter().map(|name| worker(name, &["m"], 0)).collect();
        let details = HealthDetails { workers, ..HealthDetails::default() };
        let rows = shown(&details, &["m", &"m".repeat(100)]);
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:#?}");
        assert!(rows[1].contains("4 more"), "{rows:#?}");
    }

    #[test]
    fn one_model_is_shown_with_all_that_is_known() {
        let mut gpu = worker("gpu-box", &["qwen3:latest"], 0);
        let facts = ModelFacts {
            max_context_tokens: Some(40_960),
            quantization: Some("Q4_K_M".into()),
            parameters: Some(8_190_735_360),
            capabilities: Some(Capabilities::of_names(["completion", "tools"])),
            load: Some(LoadState::Loaded),
            ..ModelFacts::default()
        };
        gpu.model_facts.insert("qwen3:latest".to_owned(), facts);
        let details = HealthDetails { workers: vec![gpu], ..HealthDetails::default() };
        let models = joined(&["qwen3:latest".to_owned()], &details);
        let shown = super::details(&named(models, "qwen3").unwrap());
        let expected = "model         qwen3:latest\nmachines      gpu-box (here, ready)\n\
                        state         loaded\ncan           completion, tools\n\
                        longest       40960 tokens\nquantization  Q4_K_M\nparameters    8.2B\n";
        assert_eq!(shown, expected);
        let error = named(Vec::new(), "x").unwrap_err().to_string();
        assert!(error.contains("no model x can be asked now"), "{error}");
        assert_eq!(billions(494_030_000), "494M");
    }

    #[test]
    fn a_server_that_says_less_is_listed_with_less() {
        let rows = shown(&HealthDetails::default(), &["m"]);
        assert_eq!(rows[1].split_whitespace().collect::<Vec<_>>(), ["m", "-", "-", "-", "-"]);
    }
}
