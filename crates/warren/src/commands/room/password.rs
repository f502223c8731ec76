//! The password of a room, as an option of commands.

use base::Secret;
use clap::Args;

/// The password of a room
#[derive(Args)]
pub(super) struct Password {
    /// The room's password, if it has one
    #[arg(long, env = "WARREN_ROOM_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
}

impl Password {
    pub(super) const fn of(password: Option<Secret>) -> Self {
        Self { password }
    }

    pub(super) fn get(&self) -> Option<&Secret> {
        self.password.as_ref().filter(|password| !password.expose().is_empty())
    }
}
