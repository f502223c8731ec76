//! The memory for all models together: one amount for the machine, whatever the programs are.

use anyhow::bail;
use daemon::options::{EngineOptions, engines::Bytes};
use engines::{EnginesConfig, Memory};

/// The amount in the settings, in bytes.
///
/// # Errors
/// When two engines name different amounts.
pub(crate) fn named(engines: &[EngineOptions]) -> anyhow::Result<Option<u64>> {
    let mut amounts = engines.iter().filter_map(|engine| engine.memory).map(|Bytes(bytes)| bytes);
    let Some(first) = amounts.next() else { return Ok(None) };
    if amounts.any(|other| other != first) {
        bail!(
            "memory of [[worker.engines]] is for all of them together: write the same one, or only one"
        );
    }
    Ok(Some(first))
}

/// The memory that models may take on a machine with this memory, in bytes.
pub(crate) fn usual(whole: Memory) -> u64 {
    whole.for_models().total()
}

/// The bounds of engines, with the amount of the settings.
pub(crate) fn bounds(config: EnginesConfig, named: Option<u64>) -> EnginesConfig {
    match named {
        Some(bytes) => config.with_memory(bytes),
        None => config,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_amount_is_for_all() {
        let with = |bytes: Option<u64>| EngineOptions {
            memory: bytes.map(Bytes),
            ..EngineOptions::default()
        };
        assert_eq!(named(&[with(None)]).unwrap(), None);
        assert_eq!(named(&[with(None), with(Some(5))]).unwrap(), Some(5));
        assert_eq!(named(&[with(Some(5)), with(Some(5))]).unwrap(), Some(5));
        let error = named(&[with(Some(5)), with(Some(6))]).unwrap_err().to_string();
        assert!(error.contains("memory of [[worker.engines]]"), "{error}");
    }
}
