//! The command line of a service, from the typed arguments and the environment.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use base::Secret;
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches, parser::ValueSource};
use daemon::{
    ConfigFile, ServeOptions, Settings,
    options::Seconds,
    settings::{DRAIN, data_dir},
};

use super::{
    environment::Variable,
    place::{SYSTEM_DATA, Scope},
    role::Role,
};
use crate::exit::usage;

/// The facts that are known before a command line is read.
#[derive(Clone, Copy)]
pub(crate) struct ServiceContext<'a> {
    /// The command line of this program.
    pub(crate) cli: &'a Command,
    /// The configuration file.
    pub(crate) file: &'a ConfigFile,
}

/// The command that a service is to run.
#[derive(Debug)]
pub(super) struct ServiceCommand {
    /// The words after the binary.
    pub(super) words: Vec<String>,
    /// The variables of its environment.
    pub(super) variables: Vec<Variable>,
    /// A server's data directory.
    pub(super) data_dir: Option<PathBuf>,
    /// How long its drain may take.
    pub(super) drain: Duration,
    /// A server's settings, as far as they are known here.
    pub(super) options: ServeOptions,
}

impl ServiceCommand {
    /// Checks the arguments as the command itself would. Secrets among them, and all that the environment sets, become
    /// variables.
    ///
    /// # Errors
    /// When the command does not take them, or a service of this scope cannot use them.
    pub(super) fn new(
        scope: Scope,
        role: Role,
        arguments: &[String],
        context: ServiceContext<'_>,
    ) -> anyhow::Result<Self> {
        let (command, matches) = parsed(context.cli, role, arguments)?;
        let mut words = arguments.to_vec();
        let mut variables = Vec::new();
        for arg in command.get_arguments() {
            variables.extend(variable(arg, &matches, &mut words)?);
        }
        let options = options(&matches, role).map_err(usage)?.or(context.file.serve.clone());
        let drain = match value::<Seconds>(&matches, "drain_timeout_secs") {
            Some(given) => given.0,
            None => options.drain_timeout_secs.map_or(DRAIN, |seconds| seconds.0),
        };
        let mut all = Self { words, variables, data_dir: None, drain, options };
        all.words.insert(0, role.command().to_owned());
        all.add_config(scope, context.file)?;
        if role.is_server() {
            all.add_data_dir(scope)?;
        }
        Ok(all)
    }

    /// Checks a server's settings as a start would.
    ///
    /// # Errors
    /// When a server would not start with them.
    pub(super) fn check(&self, role: Role) -> anyhow::Result<()> {
        if !role.is_server() {
            return Ok(());
        }
        Settings::new(self.options.clone(), role == Role::Up).map(drop).map_err(usage)
    }

    /// Names a configuration file that the service would not find by itself.
    fn add_config(&mut self, scope: Scope, file: &ConfigFile) -> anyhow::Result<()> {
        let Some(path) = &file.path else { return Ok(()) };
        let path = std::path::absolute(path)?;
        if path == Path::new("/etc/warren/warren.toml") {
            return Ok(());
        }
        if scope == Scope::System && is_out_of_reach(&path) {
            bail!(
                "the machine's service cannot read {}, as it is locked out of home directories: \
                 move it to /etc/warren/warren.toml, or install a user's service with --user",
                path.display()
            );
        }
        self.words.splice(0..0, ["--config".to_owned(), text(&path)?]);
        self.variables.retain(|(name, _)| name != "WARREN_CONFIG");
        Ok(())
    }

    fn add_data_dir(&mut self, scope: Scope) -> anyhow::Result<()> {
        let given = self.options.data_dir.clone();
        let directory = match (scope, given) {
            (Scope::User, given) => std::path::absolute(data_dir(given)?)?,
            (Scope::System, None) => PathBuf::from(SYSTEM_DATA),
            (Scope::System, Some(given)) if given == Path::new(SYSTEM_DATA) => given,
            (Scope::System, Some(given)) => bail!(
                "the machine's service has its data in {SYSTEM_DATA}, which systemd makes for it, and \
                 not in {}: leave --data-dir out, or install a user's service with --user",
                given.display()
            ),
        };
        take_out(&mut self.words, "--data-dir");
        self.variables.retain(|(name, _)| name != "WARREN_DATA_DIR");
        self.words.extend(["--data-dir".to_owned(), text(&directory)?]);
        self.options.data_dir = Some(directory.clone());
        self.data_dir = Some(directory);
        Ok(())
    }
}

/// Whether the unit of the machine's service keeps the service away from this path.
pub(super) fn is_out_of_reach(path: &Path) -> bool {
    ["/home", "/root", "/run/user", "/tmp", "/var/tmp"]
        .iter()
        .any(|parent| path.starts_with(parent))
}

/// The settings of a server that runs these words after its binary, over those of the file.
pub(super) fn options_of(
    words: &[String],
    context: ServiceContext<'_>,
) -> Option<(Role, ServeOptions)> {
    let matches = context.cli.clone().try_get_matches_from(with_name(words)).ok()?;
    let (name, matches) = matches.subcommand()?;
    let role = Role::ALL.into_iter().find(|role| role.command() == name)?;
    Some((role, options(matches, role).ok()?.or(context.file.serve.clone())))
}

fn with_name(words: &[String]) -> impl Iterator<Item = String> {
    std::iter::once("warren".to_owned()).chain(words.iter().cloned())
}

/// The role's command, and its arguments as it reads them.
fn parsed(
    cli: &Command,
    role: Role,
    arguments: &[String],
) -> anyhow::Result<(Command, ArgMatches)> {
    let Some(command) = cli.find_subcommand(role.command()).cloned() else {
        bail!("this Warren has no command `{}`", role.command());
    };
    let words: Vec<String> =
        std::iter::once(role.command().to_owned()).chain(arguments.to_vec()).collect();
    let matches = cli.clone().try_get_matches_from(with_name(&words));
    let mut matches = matches.map_err(|error| usage(anyhow::anyhow!("{}", words_of(&error))))?;
    let (_, matches) = matches.remove_subcommand().context("there is no command")?;
    Ok((command, matches))
}

/// The parser's words without its own `error: `.
fn words_of(error: &clap::Error) -> String {
    let text = error.to_string();
    text.trim_start_matches("error: ").trim_end().to_owned()
}

fn options(matches: &ArgMatches, role: Role) -> anyhow::Result<ServeOptions> {
    if role.is_server() {
        Ok(ServeOptions::from_arg_matches(matches)?)
    } else {
        Ok(ServeOptions::default())
    }
}

/// The variable that stands for an argument: for a secret on the command line, from which it is taken out, and for all
/// that the environment sets.
fn variable(
    arg: &Arg,
    matches: &ArgMatches,
    words: &mut Vec<String>,
) -> anyhow::Result<Option<Variable>> {
    let (Some(name), id) = (arg.get_env(), arg.get_id().as_str()) else { return Ok(None) };
    let name = name.to_string_lossy().into_owned();
    match matches.value_source(id) {
        Some(ValueSource::EnvVariable) => {
            let value = env::var_os(&name).map(OsString::into_string).transpose();
            let value = value.map_err(|_| anyhow::anyhow!("the value of {name} is no text"))?;
            Ok(value.map(|value| (name, Secret::from(value))))
        }
        Some(ValueSource::CommandLine) if arg.is_hide_env_values_set() => {
            let value = matches.get_raw(id).into_iter().flatten().last();
            let value = value.and_then(|value| value.to_str()).context("a secret is no text")?;
            let value = Secret::from(value);
            take_out(words, &format!("--{}", arg.get_long().unwrap_or_default()));
            Ok(Some((name, value)))
        }
        _ => Ok(None),
    }
}

/// Takes an option and its value out of the words.
fn take_out(words: &mut Vec<String>, option: &str) {
    while let Some(at) = words.iter().position(|word| word == option) {
        words.drain(at..words.len().min(at + 2));
    }
    words.retain(|word| !word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')));
}

fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.try_get_one::<T>(id).ok().flatten().cloned()
}

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().with_context(|| format!("{} is no text", path.display()))?.to_owned())
}

/// The settings that this environment sets for a server.
pub(crate) fn options_of_environment() -> anyhow::Result<ServeOptions> {
    let command = ServeOptions::augment_args(Command::new("warren"));
    let matches = command.try_get_matches_from(["warren"]);
    let matches = matches.map_err(|error| anyhow::anyhow!("{}", words_of(&error)))?;
    Ok(ServeOptions::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn command(scope: Scope, role: Role, arguments: &[&str]) -> anyhow::Result<ServiceCommand> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        service_command(scope, role, &arguments, &ConfigFile::default())
    }

    fn service_command(
        scope: Scope,
        role: Role,
        arguments: &[String],
        file: &ConfigFile,
    ) -> anyhow::Result<ServiceCommand> {
        let cli = crate::Cli::command();
        ServiceCommand::new(scope, role, arguments, ServiceContext { cli: &cli, file })
    }

    fn names(command: &ServiceCommand) -> Vec<&str> {
        command.variables.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn secrets_leave_the_command_line_in_both_spellings() {
        let arguments = [
            "--listen",
            "0.0.0.0:9178",
            "--client-token",
            "k1",
            "--admin-token=k2",
            "--log",
            "debug",
        ];
        let command = command(Scope::System, Role::Serve, &arguments).unwrap();
        let words = "serve --listen 0.0.0.0:9178 --log debug --data-dir /var/lib/warren";
        assert_eq!(command.words.join(" "), words);
        assert_eq!(names(&command), ["WARREN_CLIENT_TOKEN", "WARREN_ADMIN_TOKEN"]);
        assert_eq!(command.variables[0].1.expose(), "k1");
        assert_eq!(command.data_dir.as_deref(), Some(Path::new(SYSTEM_DATA)));
    }

    #[test]
    fn arguments_that_the_command_does_not_take_are_refused_before_anything_is_written() {
        let error = command(Scope::User, Role::Worker, &["--listen", "[::]:1"]).unwrap_err();
        assert!(error.to_string().contains("--listen"), "{error}");
        let open = command(Scope::User, Role::Serve, &["--listen", "0.0.0.0:9178"]).unwrap();
        let error = open.check(Role::Serve).unwrap_err().to_string();
        assert!(error.contains("no credentials are set"), "{error}");
    }

    #[test]
    fn the_machines_service_has_one_data_directory_and_a_users_has_any() {
        let error = command(Scope::System, Role::Up, &["--data-dir", "/srv/w"]).unwrap_err();
        assert!(error.to_string().contains("leave --data-dir out"), "{error}");
        let user = command(Scope::User, Role::Up, &["--data-dir=w"]).unwrap();
        assert!(
            user.data_dir.as_ref().is_some_and(|path| path.is_absolute() && path.ends_with("w"))
        );
        assert_eq!(user.words.iter().filter(|word| word.contains("--data-dir")).count(), 1);
    }

    #[test]
    fn a_configuration_in_a_home_directory_is_for_users_only() {
        let file = ConfigFile { path: Some("/home/a/warren.toml".into()), ..ConfigFile::default() };
        let refused = service_command(Scope::System, Role::Worker, &[], &file).unwrap_err();
        assert!(refused.to_string().contains("move it to /etc/warren"), "{refused}");
        let user = service_command(Scope::User, Role::Worker, &[], &file).unwrap();
        assert_eq!(user.words, ["--config", "/home/a/warren.toml", "worker"]);
    }

    #[test]
    fn the_drain_is_the_commands_own() {
        let drain = |role, words| command(Scope::User, role, words).unwrap().drain.as_secs();
        assert_eq!(drain(Role::Serve, &["--drain-timeout-secs", "90"]), 90);
        assert_eq!(drain(Role::Worker, &["--drain-timeout-secs", "60"]), 60);
        assert_eq!(drain(Role::Worker, &[]), DRAIN.as_secs());
    }

    #[test]
    fn the_settings_of_an_installed_service_are_read_from_its_words() {
        let words = ["serve", "--listen", "127.0.0.1:7000"].map(str::to_owned);
        let (cli, file) = (crate::Cli::command(), ConfigFile::default());
        let context = ServiceContext { cli: &cli, file: &file };
        let (role, options) = options_of(&words, context).unwrap();
        assert_eq!((role, options.listen.unwrap().port()), (Role::Serve, 7000));
        assert!(options_of(&["status".to_owned()], context).is_none());
    }
}
