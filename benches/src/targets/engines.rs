//! A model engine: a program that serves one model, started by hand or by `warren up`. It is this program's own backend.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use tempfile::TempDir;
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
    fs::write(&model, model_file())?;
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
        fs::write(models.join(format!("{name}.gguf")), model_file())?;
    }
    let (own, models) = (own.display(), models.display());
    Ok(format!(
        "[[worker.engines]]\n\
         command = [\"{own}\", \"engine\", \"--model\", \"{{model}}\", \"--port\", \"{{port}}\"]\n\
         models = \"{models}\"\nhealth = \"/v1/models\"\nmemory = \"1GiB\"\n\
         [worker.engines.model.\"*\"]\nmemory = \"768MiB\"\n"
    ))
}

/// A model's file in the form GGUF: its architecture, and one row of 64 zeros.
fn model_file() -> Vec<u8> {
    let string = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let (row, text_value, one) = (64_u64, 8_u32.to_le_bytes(), 1_u64.to_le_bytes());
    let head = [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &one, &one].concat();
    let value = [string("general.architecture"), text_value.to_vec(), string("llama")].concat();
    let shape = [1_u32.to_le_bytes().as_slice(), &row.to_le_bytes()].concat();
    // Numbers of 32 bits, from the beginning of the data on.
    let tensor = [string("token_embd.weight"), shape, vec![0; 4 + 8]].concat();
    let mut file = [head, value, tensor].concat();
    file.resize(file.len().next_multiple_of(32) + row as usize * 4, 0);
    file
}

fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("benches-engine-").tempdir()?)
}
