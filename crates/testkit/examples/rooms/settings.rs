//! The command line.

use std::{path::PathBuf, time::Duration};

/// What to do.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) binary: PathBuf,
    pub(crate) rooms: usize,
    pub(crate) participants: usize,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    pub(crate) time: Duration,
}

impl Settings {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self {
            binary: PathBuf::new(),
            rooms: 3,
            participants: 50,
            clients: 64,
            seed: 1,
            time: Duration::from_secs(60),
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
            "--rooms" => self.rooms = number()?.max(1) as usize,
            "--participants" => self.participants = number()?.max(1) as usize,
            "--clients" => self.clients = number()?.max(1) as usize,
            "--seed" => self.seed = number()?,
            "--minutes" => self.time = Duration::from_secs(number()?.max(1) * 60),
            _ => return Err(format!("{flag}: no such flag")),
        }
        Ok(())
    }
}
