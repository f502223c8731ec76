//! Models for tests.

use std::sync::Arc;

use base::ModelFacts;

use crate::model::{EngineModel, Program};

/// A model of this name, served by a program that does not exist.
pub(crate) fn model(name: &str) -> EngineModel {
    EngineModel {
        name: name.to_owned(),
        file: format!("/models/{name}.gguf").into(),
        mmproj: None,
        facts: ModelFacts { file_bytes: Some(1000), ..ModelFacts::default() },
        memory_bytes: 1000,
        context: None,
        parallel: None,
        threads: None,
        program: Arc::new(Program {
            name: "llama-server".to_owned(),
            command: vec!["llama-server".to_owned()],
            env: Vec::new(),
            health: None,
            endpoints: None,
        }),
        flags: Vec::new(),
        keep: false,
        ttl: None,
        group: None,
    }
}
