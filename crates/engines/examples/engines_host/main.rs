//! The programs that the tests start: `supervisor`; `serve`, a model server whose faults are in its model's file; and
//! `worker`, which loads a model and waits to be killed.

mod serve;

use std::{io::Write, path::Path, sync::Arc, time::Duration};

use base::ModelFacts;
use engines::{EngineModel, Engines, EnginesConfig, Memory, Program};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "supervisor"] => process::supervisor::main(),
        [_, "serve", model, port] => serve::serve(Path::new(model), port.parse().unwrap_or(0)),
        [_, "worker", dir, file] => worker(Path::new(dir), Path::new(file)),
        _ => std::process::exit(2),
    }
}

fn worker(dir: &Path, file: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map(|runtime| runtime.block_on(lend(dir, file)));
    std::process::exit(if matches!(done, Ok(Ok(()))) { 0 } else { 1 });
}

async fn lend(dir: &Path, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let ourselves = std::env::current_exe()?;
    let supervisor = Some((ourselves.clone(), vec!["supervisor".to_owned()]));
    let config =
        EnginesConfig { supervisor, ..EnginesConfig::new(dir, Memory { vram: 0, ram: 1 << 30 }) };
    let engines = Engines::new(config);
    engines.set_models(vec![model(&ourselves, file)]);
    engines.part("fake").load("m").await?;
    writeln!(std::io::stdout(), "loaded")?;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(engines);
    Ok(())
}

fn model(ourselves: &Path, file: &Path) -> EngineModel {
    let command = [&*ourselves.to_string_lossy(), "serve", "{model}", "{port}"];
    let program = Program {
        name: "fake".to_owned(),
        command: command.map(ToOwned::to_owned).to_vec(),
        env: Vec::new(),
        health: None,
        endpoints: None,
    };
    EngineModel {
        name: "m".to_owned(),
        file: file.to_owned(),
        mmproj: None,
        facts: ModelFacts::default(),
        memory_bytes: 1000,
        context: None,
        parallel: None,
        threads: None,
        program: Arc::new(program),
        flags: Vec::new(),
        keep: false,
        ttl: None,
        group: None,
    }
}
