//! One program with the models that it serves: the engine of one `[[worker.engines]]`.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use daemon::options::{EngineCommand, EngineOptions};
use engines::{EngineModel, Program};
use models::{
    offer::Sources,
    shelf::{PassedOver, Shelf},
};

use super::{
    advice::{System, advice},
    find::Places,
    folders,
    offer::ServedProgram,
    program::KnownProgram,
};

/// The program that serves model files unless another is named.
const USUAL: &str = "llama-server";

/// Variables of this process by which people choose GPUs and libraries. Programs get them; all else of the
/// environment stays here.
const PASSED_ON: [&str; 7] = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "GGML_VK_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "LD_LIBRARY_PATH",
];

/// A program that was not found, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MissingProgram(String);

/// One program with the models that it serves.
#[derive(Debug)]
pub(crate) struct Part {
    options: EngineOptions,
    program: Arc<Program>,
    file: PathBuf,
    known: Option<KnownProgram>,
    /// The named paths; empty: the store.
    paths: Vec<PathBuf>,
    shelf: Shelf,
}

/// The models that a part has to serve at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) models: Vec<EngineModel>,
    pub(crate) passed_over: Vec<PassedOver>,
}

impl Part {
    /// Finds the program. Without named paths it serves the store.
    pub(crate) fn new(
        options: EngineOptions,
        places: &Places,
        store: &Path,
    ) -> Result<Self, MissingProgram> {
        let usual = EngineCommand::Program(USUAL.to_owned());
        let command = options.command.as_ref().unwrap_or(&usual);
        let (name, template) = match command {
            EngineCommand::Program(name) => (name.as_str(), None),
            EngineCommand::Template(words) => {
                (words.first().map_or(USUAL, String::as_str), Some(&words[1..]))
            }
        };
        let known = if template.is_some() { None } else { KnownProgram::of(Path::new(name)) };
        let file = places.find(name).ok_or_else(|| {
            let known = KnownProgram::of(Path::new(name));
            MissingProgram(advice(name, known, &System::here(places)))
        })?;
        let arguments = match (template, known) {
            (Some(template), _) => template.to_vec(),
            (None, Some(known)) => known.arguments().iter().map(|&word| word.to_owned()).collect(),
            (None, None) => return Err(MissingProgram(without_template(name))),
        };
        let endpoints = known.map(KnownProgram::endpoints);
        let program = Arc::new(Program { endpoints, ..program(&file, arguments, &options) });
        let paths = options.models.clone().unwrap_or_default().0;
        let shelf = match paths.is_empty() {
            true => {
                Shelf::new(Vec::new(), Sources { store: Some(store.into()), ..Sources::default() })
            }
            false => Shelf::new(paths.clone(), Sources::default()),
        };
        Ok(Self { options, program, file, known, paths, shelf })
    }

    /// The name of the program.
    pub(crate) fn name(&self) -> &str {
        &self.program.name
    }

    /// The program's file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The named files and folders; empty: it serves the store.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The models that are there to serve, with this much memory for all models together. Blocks on the disk.
    pub(crate) fn look(&mut self, now: SystemTime, memory: u64) -> Stock {
        let mut stock = Stock::default();
        let reads_gguf = self.known.is_none_or(KnownProgram::reads_gguf);
        let scan = if reads_gguf { self.shelf.scan(now) } else { models::shelf::Scan::default() };
        let known = self.known;
        let served =
            ServedProgram { options: &self.options, program: &self.program, known, memory };
        stock.models.extend(scan.models.iter().map(|local| served.gguf(local)));
        stock.passed_over = scan.passed_over;
        if known != Some(KnownProgram::LlamaServer) {
            let whole = folders::look(&self.paths).into_iter();
            stock.models.extend(whole.map(|it| served.whole(it.name, it.path, it.bytes)));
            // A file that is no GGUF file is a model of its own here.
            stock.passed_over.retain(|it| !stock.models.iter().any(|model| model.file == it.path));
        }
        stock
    }
}

fn without_template(name: &str) -> String {
    format!(
        "the flags of {name} are not known here: write command = [\"{name}\", \"--model\", \"{{model}}\", \"--port\", \
         \"{{port}}\"] with its own flags in [[worker.engines]]"
    )
}

fn program(file: &Path, arguments: Vec<String>, options: &EngineOptions) -> Program {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let command = std::iter::once(file.to_string_lossy().into_owned()).chain(arguments).collect();
    let value = |name: &str| env::var_os(name).and_then(|value| value.into_string().ok());
    let own = PASSED_ON.iter().filter_map(|&name| Some((name.to_owned(), value(name)?)));
    let mut all: BTreeMap<String, String> = own.collect();
    all.extend(options.env.clone().unwrap_or_default());
    let health = options.health.clone();
    Program { name, command, env: all.into_iter().collect(), health, endpoints: None }
}
