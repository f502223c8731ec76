//! A model engine: a program that serves one model, started by hand or by `warren up`. It is this program's own backend.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use testkit::gguf::GgufFile;
use tokio::process::Command;

use super::{
    Target, eventually, free_address, names_model,
    warren::{CONNECTS, LISTENS, clean},
};
use crate::{child::Process, payload::MODEL};

pub(crate) const DIRECT: &str = "direct";

pub(crate) const ENGINE: &str = "engine";

/// The model that takes the place of [`MODEL`].
pub(crate) const OTHER: &str = "other";

/// Starts the program by hand and waits until it answers.
pub(crate) async fn by_hand(own: &Path) -> Result<Target> {
    let dir = directory()?;
    let addr = free_address()?;
    let mut command = Command::new(own);
    let model = dir.path().join(MODEL);
    fs::write(&model, GgufFile::model().bytes(0))?;
    command.args(["engine", "--port", &addr.port().to_string(), "--model"]).arg(model);
    let mut process = Process::spawn(command, "engine", dir.path())?;
    let knows = async || process.check().is_err() || names_model(addr, "/v1/models").await;
    let up = eventually(CONNECTS, knows).await;
    process.check()?;
    ensure!(up, "the engine does not listen: {}", process.last_words());
    Ok(Target::new(DIRECT, addr, vec![process], Some(dir)))
}

/// Starts `warren up` over two models, with memory for one. None is loaded yet.
pub(crate) async fn launch(program: &Path, own: &Path) -> Result<Target> {
    let dir = directory()?;
    let file = dir.path().join("warren.toml");
    fs::write(&file, settings(own, dir.path())?)?;
    let mut command = clean(program, dir.path());
    command.args(["up", "--listen", "127.0.0.1:0"]).arg("--config").arg(&file);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut process = Process::spawn(command, "warren-up", dir.path())?.with_children();
    let addr = process.listening(LISTENS).await?;
    let knows = async || process.check().is_err() || names_model(addr, "/health").await;
    let up = eventually(CONNECTS, knows).await;
    process.check()?;
    ensure!(up, "it offers no model: {}", process.last_words());
    Ok(Target::new(ENGINE, addr, vec![process], Some(dir)))
}

/// Writes the files of the models, and the settings that serve them.
fn settings(own: &Path, dir: &Path) -> Result<String> {
    let models = dir.join("models");
    fs::create_dir(&models)?;
    for name in [MODEL, OTHER] {
        fs::write(models.join(format!("{name}.gguf")), GgufFile::model().bytes(0))?;
    }
    let (own, models) = (own.display(), models.display());
    Ok(format!(
        "[[worker.engines]]\n\
         command = [\"{own}\", \"engine\", \"--model\", \"{{model}}\", \"--port\", \"{{port}}\"]\n\
         models = \"{models}\"\nhealth = \"/v1/models\"\nmemory = \"1GiB\"\n\
         [worker.engines.model.\"*\"]\nmemory = \"768MiB\"\n"
    ))
}

fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("benches-engine-").tempdir()?)
}
