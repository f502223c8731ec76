//! `warren completions`: what a shell completes.

use std::io::{Write, stdout};

use clap::Args;
use clap_complete::{Shell, generate};

use crate::help;

/// Print the completions of a shell
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren completions bash > ~/.local/share/bash-completion/completions/warren\n  \
    warren completions zsh > ~/.zfunc/_warren\n  \
    warren completions fish > ~/.config/fish/completions/warren.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(stdout().lock().write_all(&script(self.shell))?)
    }
}

/// The script of a shell. It is written to memory first: the generator cannot fail there.
fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    generate(shell, &mut help::whole(), "warren", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_is_told_the_commands_and_their_options() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            assert!(script.contains("completions") && script.contains("require-key"), "{shell}");
            assert!(!script.contains("supervisor"), "{shell}");
        }
    }
}
