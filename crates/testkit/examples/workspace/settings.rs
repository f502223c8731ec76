//! The command line.

use std::{path::PathBuf, time::Duration};

/// What to do.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) binary: PathBuf,
    pub(crate) agents: Option<PathBuf>,
    pub(crate) cuts: u64,
    pub(crate) terminals: usize,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    pub(crate) time: Duration,
}

impl Settings {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self {
            binary: PathBuf::new(),
            agents: None,
            cuts: 1_000,
            terminals: 12,
            clients: 24,
            seed: 1,
            time: Duration::from_secs(120),
        };
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            settings.set(&flag, &value)?;
        }
        if settings.binary.as_os_str().is_empty() {
            return Err("--binary PATH is needed: the warren binary to be tested".to_owned());
        }
        Ok(settings)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag {
            "--binary" => self.binary = value.into(),
            "--agents" => self.agents = Some(value.into()),
            "--cuts" => self.cuts = number()?,
            "--terminals" => self.terminals = number()?.max(1) as usize,
            "--clients" => self.clients = number()?.max(1) as usize,
            "--seed" => self.seed = number()?,
            "--minutes" => self.time = Duration::from_secs(number()?.max(1) * 60),
            _ => return Err(format!("{flag}: no such flag")),
        }
        Ok(())
    }
}
