//! `warren man`: manual pages.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, Command};

use super::note;
use crate::{exit::usage, help};

/// Print a manual page, or write all of them
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren man room join | man -l -\n  \
    warren man --dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command whose page is printed [default: that of warren]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands here, instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(directory) = &self.dir {
            return write_all(directory);
        }
        let command = named(&self.command).map_err(usage)?;
        Ok(stdout().lock().write_all(&page(command)?)?)
    }
}

fn write_all(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(help::whole(), directory));
    written.with_context(|| format!("the manual pages could not be written to {shown}"))?;
    note(&format!("The manual pages are in {shown}."));
    Ok(())
}

fn page(command: Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

/// The command of this path below `warren`.
fn named(path: &[String]) -> anyhow::Result<Command> {
    let mut whole = help::whole();
    whole.build();
    let mut command = &whole;
    for name in path {
        command = command.find_subcommand(name).with_context(|| {
            anyhow!("{} has no command {name}", command.get_bin_name().unwrap_or("warren"))
        })?;
    }
    Ok(command.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(path: &[&str]) -> anyhow::Result<String> {
        let path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        Ok(String::from_utf8(page(named(&path)?)?)?)
    }

    #[test]
    fn a_page_is_of_the_command_that_is_named() {
        assert!(page_of(&[]).unwrap().contains(".TH warren 1"));
        let join = page_of(&["room", "join"]).unwrap();
        assert!(join.contains("warren\\-room\\-join") && join.contains("nickname"), "{join}");
        let error = page_of(&["room", "jion"]).unwrap_err().to_string();
        assert_eq!(error, "warren room has no command jion");
    }

    #[test]
    fn all_pages_are_written_into_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        write_all(&directory.path().join("man1")).unwrap();
        for page in ["warren.1", "warren-key.1", "warren-key-create.1"] {
            let page = directory.path().join("man1").join(page);
            assert!(page.metadata().unwrap().len() > 500, "{}", page.display());
        }
    }
}
