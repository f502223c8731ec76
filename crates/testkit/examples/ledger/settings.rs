//! The command line.

use std::path::PathBuf;

/// What to do.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) binary: PathBuf,
    pub(crate) requests: u64,
    pub(crate) clients: u64,
    pub(crate) seed: u64,
}

impl Settings {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self { binary: PathBuf::new(), requests: 10_000, clients: 64, seed: 1 };
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            let number = value.parse().map_err(|_| format!("{flag} {value}: not a number"));
            match flag.as_str() {
                "--binary" => settings.binary = value.into(),
                "--requests" => settings.requests = number?,
                "--clients" => settings.clients = number?.max(1),
                "--seed" => settings.seed = number?,
                _ => return Err(format!("{flag}: no such flag")),
            }
        }
        if settings.binary.as_os_str().is_empty() {
            return Err("--binary PATH is needed: the warren binary to be tested".to_owned());
        }
        Ok(settings)
    }
}
