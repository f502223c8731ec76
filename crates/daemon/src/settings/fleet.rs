//! The settings of a server that acts as one with others, and their checks.

use anyhow::bail;
use base::Secret;

/// The longest name of a server, in bytes.
const MAX_NAME: usize = 128;

/// The settings of a server that acts as one with others.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// The URLs of NATS servers, separated by commas. They may hold a password.
    pub nats: Secret,
    /// The group of servers, unless the URLs name it.
    pub group: Option<String>,
    /// The name of this server; `None`: the host name and the port.
    pub name: Option<String>,
}

impl FleetSettings {
    /// Checks the given values. `None` if the server works alone.
    ///
    /// # Errors
    /// When a value is invalid, or a group is given without the NATS servers.
    pub(super) fn new(
        nats: Option<Secret>,
        group: Option<String>,
        name: Option<String>,
    ) -> anyhow::Result<Option<Self>> {
        if name.as_ref().is_some_and(|name| name.trim().is_empty() || name.len() > MAX_NAME) {
            bail!("--server-name must have 1 to {MAX_NAME} bytes");
        }
        match super::secret(nats, "cluster")? {
            Some(nats) => Ok(Some(Self { nats, group, name })),
            None if group.is_some() => {
                bail!(
                    "--cluster-group says which group of servers this one is in: name the NATS server with --cluster"
                )
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nats: Option<&str>, group: Option<&str>, name: Option<&str>) -> anyhow::Result<bool> {
        let owned = |text: &str| text.to_owned();
        let made = FleetSettings::new(nats.map(Secret::from), group.map(owned), name.map(owned));
        made.map(|settings| settings.is_some())
    }

    #[test]
    fn a_server_works_alone_unless_it_is_told_where_nats_is() {
        assert!(!of(None, None, None).unwrap());
        assert!(!of(None, None, Some("lab")).unwrap());
        assert!(of(Some("nats://box"), Some("g"), Some("lab")).unwrap());
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        let long = "x".repeat(129);
        for (given, words) in [
            ((None, Some("g"), None), "--cluster-group"),
            ((Some("nats://box"), None, Some(" ")), "--server-name"),
            ((Some("nats://box"), None, Some(long.as_str())), "--server-name"),
            ((Some(" "), None, None), "--cluster"),
        ] {
            let error = of(given.0, given.1, given.2).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
