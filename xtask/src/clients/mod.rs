//! Real clients and a real model server: installs them under `target/clients`, at fixed versions,
//! and runs Warren's tests with them, cut off from every network but loopback.

mod install;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::{command, workspace::Workspace};

/// Where the tests, their scripts and the lists of packages lie.
const TESTS: &str = "crates/warren/tests/clients";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    step: Option<Step>,
    #[command(flatten)]
    named: Named,
}

#[derive(Subcommand)]
enum Step {
    /// Only install them
    Install(Named),
    /// Only run the tests with those that are installed
    Run(Named),
}

#[derive(Args)]
struct Named {
    /// Which ones; without it, all
    #[arg(value_name = "NAME")]
    names: Vec<Client>,
}

impl Named {
    fn clients(&self) -> Vec<Client> {
        if self.names.is_empty() { Client::value_variants().to_vec() } else { self.names.clone() }
    }
}

/// The clients that are tested with, each in modules of the test of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    OpenaiPython,
    AnthropicPython,
    OpenaiNode,
    AnthropicNode,
    OllamaPython,
    OllamaNode,
    GooglePython,
    GoogleNode,
    CoherePython,
    ClaudeCode,
    Codex,
    Opencode,
    Gemini,
    LlamaCpp,
    Screens,
}

impl Client {
    /// The packages that its tests need, by the names of the lists of packages. Coding agents also think with the
    /// real model server's model, and that is also asked by the packages for Node.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiPython
            | Self::AnthropicPython
            | Self::GooglePython
            | Self::CoherePython
            | Self::OllamaPython => &[install::PYTHON],
            Self::OpenaiNode | Self::AnthropicNode | Self::GoogleNode | Self::OllamaNode => {
                &["sdks"]
            }
            Self::ClaudeCode => &["claude-code", install::PYTHON],
            Self::Codex => &["codex", install::PYTHON],
            Self::Opencode => &["opencode", install::PYTHON],
            Self::Gemini => &["gemini", install::PYTHON],
            Self::LlamaCpp => &[install::PYTHON, "sdks"],
            Self::Screens => &["xterm"],
        }
    }

    /// The command line tools are large, and a registry may lack them.
    fn may_be_left_out(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::Opencode | Self::Gemini)
    }

    fn tests(self) -> String {
        format!("{}::", self.name().replace('-', "_"))
    }

    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    match &arguments.step {
        Some(Step::Install(named)) => install_all(workspace, &named.clients()).map(drop),
        Some(Step::Run(named)) => test(workspace, &installed(workspace, &named.clients())),
        None => {
            let clients = arguments.named.clients();
            let tried = install_all(workspace, &clients)?;
            test(workspace, &tried)?;
            tell(&clients, &tried);
            Ok(())
        }
    }
}

/// Installs what is not there yet, and gives back what there is then.
fn install_all(workspace: &Workspace, clients: &[Client]) -> Result<Vec<Client>> {
    let mut there = Vec::new();
    for &client in clients {
        match install_one(workspace, client) {
            Ok(()) => there.push(client),
            Err(error) if client.may_be_left_out() => {
                println!("clients: {} cannot be had here: {error:#}", client.name());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

fn install_one(workspace: &Workspace, client: Client) -> Result<()> {
    client.parts().iter().try_for_each(|part| install::part(workspace, part))
}

fn installed(workspace: &Workspace, clients: &[Client]) -> Vec<Client> {
    let is_done = |client: &Client| client.parts().iter().all(|p| install::is_done(workspace, p));
    let is_there = |client: &&Client| !client.may_be_left_out() || is_done(client);
    let there: Vec<_> = clients.iter().filter(is_there).copied().collect();
    tell(clients, &there);
    there
}

fn tell(clients: &[Client], tried: &[Client]) {
    let names = |clients: &mut dyn Iterator<Item = &Client>| {
        clients.map(|client| client.name()).collect::<Vec<_>>().join(", ")
    };
    println!("clients: with {}", names(&mut tried.iter()));
    let left_out = names(&mut clients.iter().filter(|client| !tried.contains(client)));
    if !left_out.is_empty() {
        println!("clients: LEFT OUT: {left_out}");
    }
}

/// Runs the tests of these clients. They are built first, with the network.
fn test(workspace: &Workspace, clients: &[Client]) -> Result<()> {
    if clients.is_empty() {
        bail!("none of these clients is installed");
    }
    let build = ["test", "--package", "warren", "--test", "clients"];
    command::run(workspace.cargo(&[&build[..], &["--no-run"]].concat()))?;
    if clients.contains(&Client::Screens) {
        let cases = ["build", "--package", "session", "--example", "screen_cases"];
        command::run(workspace.cargo(&cases))?;
    }
    let mut tests = cut_off(workspace.root());
    tests.args(["cargo", "--offline"]).args(build).arg("--");
    tests.args(clients.iter().map(|client| client.tests())).current_dir(workspace.root());
    command::run(tests)
}

/// Runs another command where there is no network but loopback. Where namespaces are not
/// allowed, the tests' own settings (a proxy that is not there) have to do.
fn cut_off(root: &Path) -> Command {
    let alone = [&["--net"][..], &["--map-root-user", "--net"]];
    let Some(options) = alone.into_iter().find(|options| may_unshare(options)) else {
        println!("clients: no network namespace can be made here: the clients are not cut off");
        return Command::new("env");
    };
    let mut command = Command::new("unshare");
    command.args(options).arg("python3").arg(root.join(TESTS).join("loopback_only.py"));
    command
}

fn may_unshare(options: &[&str]) -> bool {
    let mut probe = Command::new("unshare");
    probe.args(options).arg("true").stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(words: &[&str]) -> Arguments {
        Line::try_parse_from([&["clients"], words].concat()).map(|line| line.arguments).unwrap()
    }

    #[test]
    fn clients_are_named_alone_or_after_a_step() {
        assert_eq!(parsed(&[]).named.clients(), Client::value_variants());
        assert_eq!(parsed(&["codex"]).named.clients(), [Client::Codex]);
        let Some(Step::Run(named)) = parsed(&["run", "codex", "llama-cpp"]).step else {
            panic!("a step")
        };
        assert_eq!(named.clients(), [Client::Codex, Client::LlamaCpp]);
        assert!(Line::try_parse_from(["clients", "nobody"]).is_err());
    }

    #[test]
    fn every_client_has_a_module_of_tests_and_a_list_of_packages() {
        let workspace = Workspace::here();
        let roots = ["main.rs", "workspace/mod.rs"];
        let roots = roots.map(|root| workspace.read(&format!("{TESTS}/{root}")).unwrap()).concat();
        for client in Client::value_variants() {
            let module = client.tests().replace("::", ";");
            assert!(roots.contains(&format!("mod {module}")), "{client:?}");
            for part in client.parts() {
                assert!(!install::digest(&workspace, part).unwrap().is_empty(), "{part}");
            }
        }
    }

    #[test]
    fn lists_of_packages_name_no_registry() {
        let workspace = Workspace::here();
        for path in workspace.files(&[&format!("{TESTS}/packages")], "").unwrap() {
            assert!(!workspace.read(&path).unwrap().contains("://"), "{path}");
        }
    }
}
