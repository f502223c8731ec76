//! `warren service install`: writes the unit and starts it.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use base::system::Rights;
use clap::Args;
use daemon::ConfigFile;
use tokio::time::{Instant, sleep};

use super::{
    Whose,
    command::{ServiceCommand, ServiceContext, is_out_of_reach},
    elsewhere, environment,
    manager::Manager,
    place::{Place, Scope},
    plist,
    quoting::command_line,
    role::Role,
    status,
    systemd::State,
    unit,
};
use crate::{
    commands::{note, say},
    system::IS_MACOS,
};

/// The time in which a new service has to show that it stays up.
const SETTLE: Duration = Duration::from_secs(10);

/// Write the unit, and start it now and with the machine
#[derive(Args)]
#[command(
    after_help = "Secrets among the arguments, and settings in this environment, go into a file that only its \
owner can read, never into the unit of systemd.\n\nExamples:\n  warren service install\n  \
warren service install up -- --listen 0.0.0.0:9178\n  \
sudo warren service install worker -- --server https://box.lan:9178 --secret SECRET\n  \
warren service install --print serve"
)]
pub(crate) struct Install {
    /// What it runs
    #[arg(value_enum, value_name = "COMMAND", default_value_t)]
    role: Role,
    /// Arguments of the command
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
    /// Print the unit, and write and start nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    whose: Whose,
}

impl Install {
    pub(super) async fn run(self, context: ServiceContext<'_>) -> anyhow::Result<()> {
        let scope = self.whose.scope();
        let place = Place::new(scope, self.role)?;
        let command = ServiceCommand::new(scope, self.role, &self.arguments, context)?;
        let binary = env::current_exe().context("the path of this program is not known")?;
        let words = words(&binary, &command)?;
        if self.print {
            return Ok(say(self.text(&place, &words, &command)?.trim_end())?);
        }
        let manager = Manager::of(scope);
        if !manager.is_here().await {
            bail!("{}", elsewhere::words(scope, &command_line(&words)));
        }
        self.refuse_what_cannot_start(&place, &binary, &command, context.file)?;
        self.install(manager, &place, &command, &words, context).await
    }

    fn refuse_what_cannot_start(
        &self,
        place: &Place,
        binary: &Path,
        command: &ServiceCommand,
        file: &ConfigFile,
    ) -> anyhow::Result<()> {
        if place.scope == Scope::System && is_out_of_reach(binary) {
            bail!(
                "the machine's service is locked out of home directories and cannot run {shown}: install the \
                 binary first (install -m 755 {shown} /usr/local/bin/warren), then use that one; or install a \
                 user's service with --user",
                shown = binary.display()
            );
        }
        // A file from before may hold the missing variables.
        if !place.environment.exists() && command.variables.is_empty() {
            command.check(self.role)?;
        }
        let has_secret = file.worker.secret.is_some()
            || environment::has(&place.environment, "WARREN_SECRET")
            || command.variables.iter().any(|(name, _)| name == "WARREN_SECRET");
        if self.role == Role::Worker && place.scope == Scope::System && !has_secret {
            bail!("the worker needs the server's secret: add `-- --server URL --secret SECRET`");
        }
        Ok(())
    }

    async fn install(
        &self,
        manager: Manager,
        place: &Place,
        command: &ServiceCommand,
        words: &[String],
        context: ServiceContext<'_>,
    ) -> anyhow::Result<()> {
        let was_there = place.unit.exists();
        environment::set(&place.environment, &command.variables)?;
        write_unit(&place.unit, &self.text(place, words, command)?)?;
        manager.start(place).await?;
        let done = if was_there { "replaced" } else { "installed" };
        say(&format!("{done} {}", place.unit.display()))?;
        for (name, _) in &command.variables {
            say(&format!("{name} is in {}", place.environment.display()))?;
        }
        let is_up = settled(manager, place).await?;
        status::show(std::slice::from_ref(place), false, context).await?;
        if place.scope == Scope::User && !lingers() {
            note(if IS_MACOS {
                "It runs while you are logged in at the screen."
            } else {
                "It ends when you log out. To keep it: loginctl enable-linger"
            });
        }
        if !is_up {
            bail!(
                "the service does not stay up: `warren logs` shows why; it is tried again and again"
            );
        }
        Ok(())
    }

    /// The text of the service's file.
    fn text(
        &self,
        place: &Place,
        words: &[String],
        command: &ServiceCommand,
    ) -> anyhow::Result<String> {
        if !IS_MACOS {
            return Ok(unit::text(place, self.role, words, command.drain));
        }
        let variables = environment::with(&place.environment, &command.variables)?;
        Ok(plist::text(place, words, &variables, command.drain, &place.log()))
    }
}

/// The whole command line.
fn words(binary: &Path, command: &ServiceCommand) -> anyhow::Result<Vec<String>> {
    let binary = binary.to_str().context("the path of this program is no text")?;
    Ok(std::iter::once(binary.to_owned()).chain(command.words.clone()).collect())
}

fn write_unit(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        let new: PathBuf = path.with_extension("service.new");
        let _left_over = fs::remove_file(&new);
        // A file of launchd has the service's secrets; everybody may read a unit of systemd.
        let mut options = fs::OpenOptions::new();
        let _rights = if IS_MACOS { options.private() } else { options.readable() };
        let mut file = options.write(true).create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(new, path)
    };
    write().with_context(|| format!("{} cannot be written; use --user, or root", path.display()))
}

/// Whether the service stays up: checked each second, up to [`SETTLE`].
async fn settled(manager: Manager, place: &Place) -> anyhow::Result<bool> {
    let by = Instant::now() + SETTLE;
    let mut before = manager.state(place).await?;
    loop {
        sleep(Duration::from_secs(1)).await;
        let now = manager.state(place).await?;
        if let Some(is_up) = stays_up(&before, &now) {
            return Ok(is_up);
        }
        if Instant::now() >= by {
            return Ok(false);
        }
        before = now;
    }
}

/// Whether a service stays up, by two states of it one second apart: whether it is active and still has the same process.
/// `None` if that is not known yet.
fn stays_up(before: &State, now: &State) -> Option<bool> {
    if now.restarts > before.restarts {
        return Some(false);
    }
    let is_same = now.pid.is_some() && now.pid == before.pid;
    (now.is_active() && is_same).then_some(true)
}

/// Whether this user's services run without a login.
fn lingers() -> bool {
    let name = env::var_os("USER").or_else(|| env::var_os("LOGNAME"));
    name.is_some_and(|name| Path::new("/var/lib/systemd/linger").join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(active: &str, pid: Option<u32>, restarts: u64) -> State {
        State { active: active.to_owned(), pid, restarts, ..State::default() }
    }

    #[test]
    fn a_service_stays_up_when_it_keeps_its_process_however_late_that_began() {
        let (none, new) = (state("activating", None, 0), state("active", Some(7), 0));
        assert_eq!(stays_up(&none, &none), None);
        assert_eq!(stays_up(&none, &new), None);
        assert_eq!(stays_up(&new, &new), Some(true));
        assert_eq!(stays_up(&new, &state("active", Some(8), 0)), None);
        assert_eq!(stays_up(&new, &state("activating", None, 0)), None);
        assert_eq!(stays_up(&new, &state("active", Some(8), 1)), Some(false));
    }
}
