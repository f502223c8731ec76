//! Models at machines, and the machine that a command means.

use anyhow::{Result, anyhow};
use base::LoadState;
use client::admin::status::{ModelFacts, WorkerJson};
use serde::Serialize;

use crate::commands::table::plain;

/// The scope of workers that serve all callers.
const SERVER: &str = "server";

/// A model at one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PlacedModel {
    pub(super) id: String,
    /// The name of the worker that serves it.
    pub(super) machine: String,
    pub(super) worker_id: String,
    /// Whether the worker loads and unloads it on request.
    pub(super) loads_models: bool,
    #[serde(flatten)]
    pub(super) facts: ModelFacts,
}

/// The models of all workers that serve all callers, by name, then by machine.
pub(super) fn placed(workers: &[WorkerJson]) -> Vec<PlacedModel> {
    let of_server = workers.iter().filter(|worker| worker.scope == SERVER);
    let mut all: Vec<PlacedModel> = of_server.flat_map(of_worker).collect();
    all.sort_by(|a, b| (&a.id, &a.machine).cmp(&(&b.id, &b.machine)));
    all
}

fn of_worker(worker: &WorkerJson) -> impl Iterator<Item = PlacedModel> {
    worker.models.iter().map(|id| PlacedModel {
        id: id.clone(),
        machine: worker.worker_name.clone(),
        worker_id: worker.worker_id.clone(),
        loads_models: worker.loads_models,
        facts: worker.model_facts.get(id).cloned().unwrap_or_default(),
    })
}

/// The machine to load a model at: the named worker, or else where it is loaded, where it is being
/// loaded, or where that takes the shortest time.
pub(super) fn to_load(
    all: &[PlacedModel],
    model: &str,
    worker: Option<&str>,
) -> Result<PlacedModel> {
    let able = able(all, model, worker)?;
    let order = |it: &&PlacedModel| {
        (rank(it.facts.load), it.facts.load_ms.unwrap_or(u64::MAX), it.machine.clone())
    };
    able.into_iter().min_by_key(order).cloned().ok_or_else(|| anyhow!("no machine has {model}"))
}

/// The machine to unload a model at: the named worker, or else the only one that may have it in memory.
pub(super) fn to_unload(
    all: &[PlacedModel],
    model: &str,
    worker: Option<&str>,
) -> Result<PlacedModel> {
    let able = able(all, model, worker)?;
    let mut loaded =
        able.iter().filter(|it| worker.is_some() || it.facts.load != Some(LoadState::Unloaded));
    match (loaded.next(), loaded.next()) {
        (Some(one), None) => Ok((*one).clone()),
        (Some(one), Some(other)) => Err(anyhow!(
            "{model} is in the memory of several machines, as {} and {}: name one with --worker",
            plain(&one.machine),
            plain(&other.machine)
        )),
        (None, _) => Err(anyhow!("{model} is in no machine's memory")),
    }
}

/// The workers that have the model and load models; with `worker`, only the one of this name or id.
fn able<'a>(
    all: &'a [PlacedModel],
    model: &str,
    worker: Option<&str>,
) -> Result<Vec<&'a PlacedModel>> {
    let is_named =
        |it: &&PlacedModel| worker.is_none_or(|name| it.machine == name || it.worker_id == name);
    let having: Vec<&PlacedModel> = all.iter().filter(|it| it.id == model).collect();
    if having.is_empty() {
        return Err(anyhow!("no machine has {model}; `warren model list` shows all models"));
    }
    let named: Vec<&PlacedModel> = having.into_iter().filter(is_named).collect();
    let Some(first) = named.first() else {
        let worker = plain(worker.unwrap_or_default());
        return Err(anyhow!(
            "no worker {worker} has {model}; `warren model list` shows who has it"
        ));
    };
    let machine = plain(&first.machine);
    let able: Vec<&PlacedModel> = named.into_iter().filter(|it| it.loads_models).collect();
    if able.is_empty() {
        return Err(anyhow!(
            "{model} is at {machine}, which does not load and unload models when it is told: only \
             machines that run their models themselves do"
        ));
    }
    Ok(able)
}

const fn rank(load: Option<LoadState>) -> u8 {
    match load {
        Some(LoadState::Loaded) => 0,
        Some(LoadState::Loading) => 1,
        None | Some(LoadState::Unloaded) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(machine: &str, load: Option<LoadState>, load_ms: Option<u64>) -> PlacedModel {
        PlacedModel {
            id: "m".to_owned(),
            machine: machine.to_owned(),
            worker_id: format!("w-{machine}"),
            loads_models: true,
            facts: ModelFacts { load, load_ms, ..ModelFacts::default() },
        }
    }

    fn error(result: Result<PlacedModel>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_model_is_loaded_where_that_is_quickest() {
        use LoadState::{Loaded, Loading, Unloaded};
        let slow = at("a", Some(Unloaded), Some(9_000));
        let quick = at("b", Some(Unloaded), Some(3_000));
        let all = [at("u", None, None), slow, quick, at("l", Some(Loading), None)];
        let chosen = |all: &[PlacedModel]| to_load(all, "m", None).unwrap().machine;
        assert_eq!(chosen(&all[..3]), "b");
        assert_eq!(chosen(&all), "l");
        assert_eq!(chosen(&[all.as_slice(), &[at("z", Some(Loaded), None)]].concat()), "z");
        assert_eq!(to_load(&all, "m", Some("w-a")).unwrap().machine, "a");
        assert!(error(to_load(&all, "n", None)).contains("no machine has n"));
        assert!(error(to_load(&all, "m", Some("x"))).contains("no worker x has m"));
    }

    #[test]
    fn a_model_is_unloaded_where_it_is() {
        let unloaded = at("a", Some(LoadState::Unloaded), None);
        let loaded = |name: &str| at(name, Some(LoadState::Loaded), None);
        let all = [unloaded.clone(), loaded("b")];
        assert_eq!(to_unload(&all, "m", None).unwrap().machine, "b");
        assert_eq!(to_unload(&all, "m", Some("a")).unwrap().machine, "a");
        let twice = error(to_unload(&[loaded("b"), loaded("c")], "m", None));
        assert!(twice.contains("b and c: name one with --worker"), "{twice}");
        assert!(error(to_unload(&[unloaded], "m", None)).contains("no machine's memory"));
    }

    #[test]
    fn a_model_server_of_others_is_not_told() {
        let foreign = PlacedModel { loads_models: false, ..at("ollama", None, None) };
        let words = error(to_load(&[foreign], "m", None));
        assert!(words.contains("at ollama, which does not load"), "{words}");
    }

    #[test]
    fn only_models_for_all_are_listed_by_name_and_machine() {
        let worker = |name: &str, scope: &str, models: &[&str]| WorkerJson {
            worker_name: name.to_owned(),
            scope: scope.to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..WorkerJson::default()
        };
        let all = placed(&[
            worker("b", SERVER, &["y", "x"]),
            worker("a", SERVER, &["y"]),
            worker("c", "swift-eagle-42", &["z"]),
        ]);
        let listed: Vec<_> = all.iter().map(|it| (it.id.as_str(), it.machine.as_str())).collect();
        assert_eq!(listed, [("x", "b"), ("y", "a"), ("y", "b")]);
    }
}
