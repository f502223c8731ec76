//! Where the database is: read from a URL, which has a secret in it.

use std::{net::IpAddr, time::Duration};

use base::Secret;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

use super::system::name_or_socket;
use crate::StoreError;

/// How long the connection to one host may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a connection may be silent until TCP probes it, and how long sent bytes may then go unacknowledged.
const SILENT: Duration = Duration::from_secs(10);

/// The name of a connection in the database's own lists.
const NAME: &str = "warren";

pub(super) struct Address {
    pub(super) config: Config,
    /// Without user and password.
    pub(super) shown: String,
}

impl Address {
    /// The address in a URL, with defaults for what it leaves out: another machine has to speak TLS, and of several
    /// hosts, one that can be written to is used.
    pub(super) fn parse(url: &Secret) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::Address { problem };
        let text = url.expose();
        if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
            return Err(wrong("this is no URL of a PostgreSQL database".to_owned()));
        }
        let parsed =
            understood(text).parse::<Config>().map_err(|error| wrong(base::error::chain(&error)));
        let mut config = parsed?;
        if config.get_hosts().is_empty() {
            return Err(wrong("this URL has no host".to_owned()));
        }
        fill_in(&mut config, text);
        let shown = shown(&config);
        Ok(Self { config, shown })
    }
}

/// Whether all hosts are this machine.
pub(super) fn is_here(config: &Config) -> bool {
    config.get_hosts().iter().all(is_this_machine)
}

/// A URL in which modes of TLS that the library does not know are replaced by `require`. This loses nothing: a
/// certificate is always checked, with its name.
fn understood(text: &str) -> String {
    let Some((place, query)) = text.split_once('?') else { return text.to_owned() };
    let part = |part: &str| match part {
        "sslmode=verify-full" | "sslmode=verify-ca" => "sslmode=require".to_owned(),
        other => other.to_owned(),
    };
    let parts: Vec<String> = query.split('&').map(part).collect();
    format!("{place}?{}", parts.join("&"))
}

fn fill_in(config: &mut Config, text: &str) {
    if !says(text, "sslmode") && !is_here(config) {
        config.ssl_mode(SslMode::Require);
    }
    if !says(text, "target_session_attrs") && config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_application_name().is_none() {
        config.application_name(NAME);
    }
    config.keepalives_idle(SILENT).tcp_user_timeout(SILENT);
}

/// Whether the query of a URL has this parameter.
fn says(url: &str, name: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|part| part.split_once('=').is_some_and(|(said, _)| said == name))
}

fn is_this_machine(host: &Host) -> bool {
    match name_or_socket(host) {
        Err(_) | Ok("localhost") => true,
        Ok(name) => name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

fn shown(config: &Config) -> String {
    let host = |host: &Host| match name_or_socket(host) {
        Ok(name) => name.to_owned(),
        Err(path) => path.display().to_string(),
    };
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    format!("postgres://{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(&url.into()).unwrap()
    }

    #[test]
    fn it_is_shown_without_user_and_password() {
        let address = parsed("postgres://warren:hunter2@db1,db2:5433/state?sslmode=disable");
        assert_eq!(address.shown, "postgres://db1,db2/state");
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(parsed("postgres://u@%2Frun%2Fpg/x").shown, "postgres:///run/pg/x");
    }

    #[test]
    fn another_machine_is_reached_by_tls_unless_the_url_says_otherwise() {
        let mode = |url: &str| parsed(url).config.get_ssl_mode();
        for here in ["localhost", "127.0.0.1:5433", "[::1]", "%2Frun%2Fpostgresql"] {
            assert_eq!(mode(&format!("postgres://u@{here}/x")), SslMode::Prefer, "{here}");
        }
        assert_eq!(mode("postgres://u@db.example/x"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost,10.0.0.7/x"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/x?sslmode=disable"), SslMode::Disable);
        for checked in ["verify-full", "verify-ca", "require"] {
            let url = format!("postgres://u@localhost/x?connect_timeout=3&sslmode={checked}");
            assert_eq!(mode(&url), SslMode::Require);
        }
        assert_eq!(mode("postgres://sslmode=disable:x@db.example/x"), SslMode::Require);
    }

    #[test]
    fn what_is_no_database_is_refused_without_telling_its_secret() {
        for url in
            ["mysql://u:hunter2@h/x", "hunter2", "postgres://u:hunter2@h:port/x", "postgres:///x"]
        {
            let error = Address::parse(&url.into()).err().unwrap().to_string();
            assert!(!error.contains("hunter2") && error.contains("postgres://USER"), "{error}");
        }
    }
}
