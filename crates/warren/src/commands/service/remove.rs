//! `warren service remove`: stops a service and removes its unit.

use std::fs;

use anyhow::{Context, bail};
use clap::Args;
use daemon::settings::data_dir;

use super::{
    Whose,
    command::{ServiceContext, options_of},
    installed,
    manager::Manager,
    place::{Place, SYSTEM_DATA, Scope},
    quoting,
    role::Role,
    unit::command_of,
};
use crate::commands::say;

/// Stop a service and remove its unit; its data stays
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren service remove\n  sudo warren service remove --system worker"
)]
pub(crate) struct Remove {
    /// What it runs [default: the only installed one]
    #[arg(value_enum, value_name = "COMMAND")]
    role: Option<Role>,
    #[command(flatten)]
    whose: Whose,
}

impl Remove {
    pub(super) async fn run(self, context: ServiceContext<'_>) -> anyhow::Result<()> {
        let place = self.chosen(installed(&self.whose.scopes()))?;
        let remaining = remaining(&place, context);
        let manager = Manager::of(place.scope);
        let is_here = manager.is_here().await;
        if is_here {
            manager.stop(&place).await?;
        }
        fs::remove_file(&place.unit)
            .with_context(|| format!("{} cannot be removed", place.unit.display()))?;
        if is_here {
            manager.forget().await?;
        }
        say(&format!("stopped, and removed {}", place.unit.display()))?;
        Ok(say(&format!("kept: {}", remaining.join(", ")))?)
    }

    fn chosen(&self, mut places: Vec<Place>) -> anyhow::Result<Place> {
        if let Some(role) = self.role {
            places.retain(|place| place.runs(role));
        }
        match places.len() {
            0 => bail!("no such service is installed"),
            1 => Ok(places.remove(0)),
            _ => {
                let shown = |place: &Place| format!("{} ({})", place.name, place.scope.name());
                let all: Vec<String> = places.iter().map(shown).collect();
                bail!(
                    "several are installed: {}; name the command, and --user or --system",
                    all.join(", ")
                )
            }
        }
    }
}

/// The files that stay on the disk.
fn remaining(place: &Place, context: ServiceContext<'_>) -> Vec<String> {
    let text = fs::read_to_string(&place.unit).unwrap_or_default();
    let words = command_of(&text).and_then(|line| quoting::words(&line)).unwrap_or_default();
    let server = words.get(1..).and_then(|words| options_of(words, context));
    let data = match (server, place.scope) {
        (Some((role, _)), _) if !role.is_server() => None,
        (Some((_, options)), Scope::User) => data_dir(options.data_dir).ok(),
        (_, Scope::System) if place.name == "warren.service" => Some(SYSTEM_DATA.into()),
        _ => None,
    };
    let data = data.map(|data| format!("the data directory {}", data.display()));
    let environment = place.environment.exists();
    let environment =
        environment.then(|| format!("the secrets in {}", place.environment.display()));
    let remaining: Vec<String> = data.into_iter().chain(environment).collect();
    if remaining.is_empty() {
        vec!["nothing, there was nothing else".to_owned()]
    } else {
        remaining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(scope: Scope, name: &str) -> Place {
        Place { scope, name: name.to_owned(), unit: "/u".into(), environment: "/none".into() }
    }

    fn remove(role: Option<Role>) -> Remove {
        Remove { role, whose: Whose { user: false, system: false } }
    }

    #[test]
    fn the_only_service_needs_no_name_and_one_of_several_does() {
        let server = place(Scope::User, "warren.service");
        let worker = place(Scope::User, "warren-worker.service");
        assert_eq!(remove(None).chosen(vec![server.clone()]).unwrap(), server);
        let both = vec![server, worker.clone()];
        let error = remove(None).chosen(both.clone()).unwrap_err().to_string();
        assert!(error.contains("warren-worker.service (user)"), "{error}");
        assert_eq!(remove(Some(Role::Worker)).chosen(both.clone()).unwrap(), worker);
        assert!(remove(Some(Role::Join)).chosen(both).is_err());
    }
}
