//! The JSON of `/admin/config`: the settings of a server as it runs, and where each is from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answer of `GET /admin/config`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigJson {
    /// The configuration file that the server has read; none if it found none.
    pub file: Option<String>,
    /// The settings, in the order of the settings reference.
    pub settings: Vec<SettingJson>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingJson {
    /// Its name in the file, with the names of its sections before it, such as `mesh.route`. A place in a list of
    /// tables is a number, from 0: `worker.backends.0.url`.
    pub name: String,
    /// Its value as the file would have it. It is null for a secret and where no value is set. Passwords in addresses are
    /// left out.
    pub value: Value,
    /// Where the value is from.
    pub source: SettingSource,
    /// Whether it is a secret that somebody has set. What is made in the data directory does not count.
    pub secret: bool,
}

/// Where the value of a setting is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingSource {
    /// Nobody has set it.
    Default,
    /// The configuration file.
    File,
    /// A variable of the environment.
    Environment,
    /// A flag of the command line.
    Flag,
}

impl SettingSource {
    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// Answer of `POST /admin/config/reload`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The configuration file that was read; none if there is none.
    pub file: Option<String>,
    /// The settings that have changed, and count from now on.
    pub changed: Vec<SettingChange>,
    /// The names of settings that are different in the file, and count from the next start on.
    pub needs_restart: Vec<String>,
    /// Notes for the owner about it.
    pub notes: Vec<String>,
}

/// A setting that has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its name, as in [`SettingJson`].
    pub name: String,
    /// Its value before; null for a secret and where it had none. Both values are the same where a file has changed that
    /// it names.
    pub before: Value,
    /// Its value now, likewise.
    pub after: Value,
    /// Whether it is a secret.
    pub secret: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_as_documented() {
        let json = r#"{"file":null,"settings":[{"name":"mesh.route","value":"mesh","source":"flag","secret":false}]}"#;
        let config: ConfigJson = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), json);
        assert_eq!(config.settings[0].source.as_str(), "flag");
    }
}
