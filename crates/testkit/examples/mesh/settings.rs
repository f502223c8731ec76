//! The command line.

use std::{path::PathBuf, time::Duration};

/// The least number of requests for each minute; a slow machine takes longer for them.
const REQUESTS_A_MINUTE: u64 = 1_000;

/// What to do.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) binary: PathBuf,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    pub(crate) minutes: u64,
    /// If given, only a file of this many GiB is pulled.
    pub(crate) pull_gib: Option<f64>,
    pub(crate) interrupts: u32,
    /// Where what the machines print is kept.
    pub(crate) logs: Option<PathBuf>,
}

impl Settings {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self {
            binary: PathBuf::new(),
            clients: 32,
            seed: 1,
            minutes: 2,
            pull_gib: None,
            interrupts: 3,
            logs: None,
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
        let wrong = || format!("{flag} {value}: not a number");
        let number = || value.parse::<u64>().map_err(|_| wrong());
        match flag {
            "--binary" => self.binary = value.into(),
            "--logs" => self.logs = Some(value.into()),
            "--clients" => self.clients = number()?.max(1) as usize,
            "--seed" => self.seed = number()?,
            "--minutes" => self.minutes = number()?.max(1),
            "--pull-gib" => self.pull_gib = Some(value.parse().map_err(|_| wrong())?),
            "--interrupts" => self.interrupts = u32::try_from(number()?).map_err(|_| wrong())?,
            _ => return Err(format!("{flag}: no such flag")),
        }
        Ok(())
    }

    /// How long clients ask at least.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(self.minutes * 60)
    }

    /// How many requests they send at least.
    pub(crate) fn requests(&self) -> u64 {
        self.minutes * REQUESTS_A_MINUTE
    }
}
