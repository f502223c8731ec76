//! The wanted model engines, by the flags and the file.

use std::path::{Path, PathBuf};

use anyhow::bail;
use daemon::options::{
    EngineCommand, EngineOptions, WorkerOptions,
    engines::{Paths, path},
};

/// The model engines that the user wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedEngines {
    /// The engines, each with the models that one program serves.
    pub(crate) engines: Vec<EngineOptions>,
    /// Whether the user named them. Otherwise their programs may be missing.
    pub(crate) is_named: bool,
}

/// Takes the folders among `--models` out of the options. Returns the wanted engines; `None`: no engines, as
/// other backends are named.
///
/// # Errors
/// When a file that a flag names is not there, or the settings contradict each other.
pub(crate) fn wanted(options: &mut WorkerOptions) -> anyhow::Result<Option<WantedEngines>> {
    let named = named_paths(options)?;
    let file = options.engines.clone().unwrap_or_default();
    if options.demo.unwrap_or(false) && named.is_empty() {
        return Ok(None);
    }
    let has_backend = options.backend.is_some() || own_backends(options);
    if named.is_empty() && file.is_empty() && options.engine.is_none() && has_backend {
        return Ok(None);
    }
    let is_named = !named.is_empty() || !file.is_empty() || options.engine.is_some();
    let engines = merged(named, options.engine.clone(), file);
    engines.iter().try_for_each(check)?;
    Ok(Some(WantedEngines { engines, is_named }))
}

/// Whether the file names backends that are not clouds.
fn own_backends(options: &WorkerOptions) -> bool {
    options.backends.iter().flatten().any(|backend| !backend.cloud.unwrap_or(false))
}

/// The flags' models, with the settings of the first engine of the file.
fn merged(
    named: Vec<PathBuf>,
    command: Option<EngineCommand>,
    mut file: Vec<EngineOptions>,
) -> Vec<EngineOptions> {
    if named.is_empty() && !file.is_empty() {
        if let Some(command) = command {
            file.iter_mut().for_each(|engine| engine.command = Some(command.clone()));
        }
        return file;
    }
    let mut first = file.first().cloned().unwrap_or_default();
    first.command = command.or(first.command);
    if !named.is_empty() {
        first.models = Some(Paths(named));
    }
    [vec![first], file].concat()
}

/// The files and folders that flags name. Folders are taken out of `--models`, where they stand among the
/// names of models.
fn named_paths(options: &mut WorkerOptions) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for file in options.gguf.iter().flatten() {
        paths.push(found(&path(&file.to_string_lossy()), "--gguf")?);
    }
    let has_backend = options.backend.is_some();
    let (folders, names): (Vec<String>, Vec<String>) = options
        .models
        .take()
        .unwrap_or_default()
        .into_iter()
        .partition(|text| is_path(text) || (!has_backend && Path::new(text).is_dir()));
    for folder in folders {
        paths.push(found(&path(&folder), "--models")?);
    }
    options.models = Some(names).filter(|names| !names.is_empty());
    Ok(paths)
}

/// Whether a text can only be a path, and not the name of a model.
fn is_path(text: &str) -> bool {
    !text.contains('=')
        && (["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start))
            || Path::new(text).is_absolute()
            || text.ends_with('/')
            || matches!(text, "." | ".." | "~"))
}

fn found(path: &Path, flag: &str) -> anyhow::Result<PathBuf> {
    if !path.exists() {
        bail!("{flag}: there is no {}", path.display());
    }
    Ok(std::path::absolute(path)?)
}

/// Refuses flags that would replace the model, the host or the port that Warren sets.
fn check(engine: &EngineOptions) -> anyhow::Result<()> {
    let own = engine.model.iter().flatten().flat_map(|(_, model)| model.flags.iter().flatten());
    for flag in engine.flags.iter().flatten().chain(own) {
        let name = flag.split('=').next().unwrap_or_default();
        if matches!(name, "--port" | "--host" | "--model" | "-m") {
            bail!("flags = [\"{name}\"] of [[worker.engines]] is for Warren to set: leave it out");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: WorkerOptions) -> (Option<WantedEngines>, WorkerOptions) {
        let mut options = options;
        (wanted(&mut options).unwrap(), options)
    }

    fn words(all: &[&str]) -> Option<Vec<String>> {
        Some(all.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn paths_among_models_are_folders_and_the_rest_are_names() {
        let place = tempfile::tempdir().unwrap();
        let folder = format!("{}/", place.path().display());
        let models = words(&[&folder, "qwen3", "fast=qwen3"]);
        let (wanted, left) = of(WorkerOptions { models, ..WorkerOptions::default() });
        let wanted = wanted.unwrap();
        assert!(wanted.is_named);
        assert_eq!(wanted.engines[0].models.as_ref().unwrap().0.len(), 1);
        assert_eq!(left.models, words(&["qwen3", "fast=qwen3"]));
        for text in ["a/b", "qwen3:8b", "a=./b", "org/model"] {
            assert!(!is_path(text), "{text}");
        }
        for text in ["./models", "~/m", "/m", "models/", "..", "../m"] {
            assert!(is_path(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_its_flag() {
        let gguf = Some(vec![PathBuf::from("/nowhere/m.gguf")]);
        let mut options = WorkerOptions { gguf, ..WorkerOptions::default() };
        let error = wanted(&mut options).unwrap_err().to_string();
        assert_eq!(error, "--gguf: there is no /nowhere/m.gguf");
    }

    #[test]
    fn named_backends_leave_the_store_alone() {
        let backend = words(&["http://127.0.0.1:1"]);
        let (none, _) = of(WorkerOptions { backend: backend.clone(), ..WorkerOptions::default() });
        assert_eq!(none, None);
        let demo = WorkerOptions { demo: Some(true), ..WorkerOptions::default() };
        assert_eq!(of(demo).0, None);
        let (usual, _) = of(WorkerOptions::default());
        let usual = usual.unwrap();
        assert!(!usual.is_named && usual.engines == [EngineOptions::default()]);
        let place = tempfile::tempdir().unwrap();
        let gguf = Some(vec![place.path().to_owned()]);
        let (both, _) = of(WorkerOptions { gguf, backend, ..WorkerOptions::default() });
        assert!(both.is_some_and(|both| both.is_named));
    }

    #[test]
    fn flags_go_with_the_settings_of_the_first_engine() {
        let place = tempfile::tempdir().unwrap();
        let file = EngineOptions { parallel: Some(2), ..EngineOptions::default() };
        let engine = Some(EngineCommand::Program("other".to_owned()));
        let options = WorkerOptions {
            gguf: Some(vec![place.path().to_owned()]),
            engine: engine.clone(),
            engines: Some(vec![file.clone()]),
            ..WorkerOptions::default()
        };
        let engines = of(options.clone()).0.unwrap().engines;
        assert_eq!(engines.len(), 2);
        assert_eq!((engines[0].parallel, &engines[0].command), (Some(2), &engine));
        assert_eq!(engines[1], file);
        let only_command = WorkerOptions { gguf: None, ..options };
        assert_eq!(of(only_command).0.unwrap().engines[0].command, engine);
    }

    #[test]
    fn flags_that_warren_sets_are_refused() {
        let flags = words(&["--port=1"]);
        let engines = Some(vec![EngineOptions { flags, ..EngineOptions::default() }]);
        let mut options = WorkerOptions { engines, ..WorkerOptions::default() };
        let error = wanted(&mut options).unwrap_err().to_string();
        assert!(error.contains("--port") && error.contains("[[worker.engines]]"), "{error}");
    }
}
