//! Settings of the mesh, as they are written.

use std::{net::SocketAddr, path::PathBuf};

use base::Secret;
use clap::{Args, ValueEnum, builder::BoolishValueParser};
use serde::{Deserialize, Deserializer};

use super::{deserialize_listen, heading, listen_address};

/// How far a request goes if its header does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshRoute {
    /// Only to providers of this server.
    LocalOnly,
    /// To another machine only when no provider of this server is free.
    #[default]
    PreferLocal,
    /// To the fastest that is free, on any machine.
    Mesh,
}

/// Whose requests this machine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshShare {
    /// None.
    #[default]
    Off,
    /// Those of trusted nodes, and of peers that proved the passcode or, without one, of all peers.
    Peers,
    /// Those of anyone who reaches this machine.
    Anyone,
}

/// Which nodes may use this server as a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshRelayServe {
    /// None.
    Off,
    /// Those of this machine, if they do not come through a proxy.
    Local,
    /// This one and those in `[mesh] trusted`.
    Members,
    /// All.
    Open,
}

options! {
    /// Settings of `warren serve` about the mesh, and of `[mesh]` in the file, where they are
    /// spelled without `mesh-`.
    MeshOptions {
        /// Where peers on the local network connect to, such as 0.0.0.0:9180 [default: nowhere;
        /// with enabled in the file 0.0.0.0:9180]
        #[arg(id = "mesh_listen", long = "mesh-listen", env = "WARREN_MESH_LISTEN",
            value_name = "ADDR:PORT", value_parser = listen_address)]
        #[serde(deserialize_with = "deserialize_listen")]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        listen: Option<SocketAddr>,
        /// Take part with the defaults: listen for peers, and advertise
        #[arg(skip)]
        enabled: Option<bool>,
        /// The name that peers are shown [default: the host name]
        #[arg(id = "mesh_name", long = "mesh-name", env = "WARREN_MESH_NAME", value_name = "NAME")]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        name: Option<String>,
        /// A passcode that peers must prove they know [default: none]
        #[arg(id = "mesh_passcode", long = "mesh-passcode", env = "WARREN_MESH_PASSCODE",
            value_name = "PASSCODE", hide_env_values = true)]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        passcode: Option<Secret>,
        /// Send the passcode's hash to a stock peer that hangs up without it; eavesdroppers can use
        /// it
        #[arg(id = "mesh_plain_passcode", long = "mesh-plain-passcode",
            env = "WARREN_MESH_PLAIN_PASSCODE", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        plain_passcode: Option<bool>,
        /// Take only links that nobody in between can read, so none of stock peers
        #[arg(long, env = "WARREN_REQUIRE_SEALED", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        require_sealed: Option<bool>,
        /// A peer on the local network, where multicast does not pass (repeatable)
        #[arg(id = "mesh_peer", long = "mesh-peer", env = "WARREN_MESH_PEER",
            value_name = "HOST:PORT", value_delimiter = ',')]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        peer: Option<Vec<String>>,
        /// A relay to meet peers of other networks at, ws(s):// or http(s):// (repeatable)
        #[arg(id = "mesh_relay", long = "mesh-relay", env = "WARREN_MESH_RELAY",
            value_name = "URL", value_delimiter = ',')]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        relay: Option<Vec<String>>,
        /// Be announced on the local network by mDNS, and look for peers there
        #[arg(id = "mesh_advertise", long = "mesh-advertise", env = "WARREN_MESH_ADVERTISE",
            num_args = 0..=1, require_equals = true, default_missing_value = "true",
            value_name = "BOOL", value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        advertise: Option<bool>,
        /// Whose requests this machine answers [default: off]
        #[arg(id = "mesh_share", long = "mesh-share", env = "WARREN_MESH_SHARE",
            value_name = "WHOSE")]
        #[serde(skip)]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        share: Option<MeshShare>,
        /// A folder of models that peers may fetch: DIR/ORG/NAME/, DIR/NAME.gguf (repeatable)
        #[arg(id = "mesh_models", long = "mesh-models", env = "WARREN_MESH_MODELS",
            value_name = "DIR", value_delimiter = ',')]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        models: Option<Vec<PathBuf>>,
        /// How far a request goes without the header x-warren-route [default: prefer-local]
        #[arg(id = "mesh_route", long = "mesh-route", env = "WARREN_MESH_ROUTE",
            value_name = "ROUTE")]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        route: Option<MeshRoute>,
        /// Which nodes may use this server as a relay, at /ws?node= [default: local on loopback,
        /// else off]
        #[arg(id = "mesh_relay_serve", long = "mesh-relay-serve", env = "WARREN_MESH_RELAY_SERVE",
            value_name = "WHOM")]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        relay_serve: Option<MeshRelayServe>,
        /// A host, with its port, by which nodes dial this relay (repeatable); other names are
        /// refused, so that no other relay can use the nodes' signatures here [default: any]
        #[arg(id = "mesh_relay_host", long = "mesh-relay-host", env = "WARREN_MESH_RELAY_HOST",
            value_name = "HOST", value_delimiter = ',')]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        relay_host: Option<Vec<String>>,
        /// As a relay, accept nodes that sign nothing
        #[arg(long, env = "WARREN_ACCEPT_UNSIGNED", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::MESH, hide_short_help = true)]
        accept_unsigned: Option<bool>,
        /// Ids of nodes that need no passcode
        #[arg(skip)]
        trusted: Option<Vec<String>>,
        /// How much is shared: `[mesh.share]` in the file, unless `share` is a word
        #[arg(skip)]
        #[serde(rename = "share", deserialize_with = "share_word_or_table")]
        limits: Option<ShareOptions>,
    }
}

section! {
    /// `[mesh.share]` of the file: how much of this machine peers may have.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    ShareOptions {
        /// Whose requests are answered, as with `--mesh-share`, which wins.
        with: Option<MeshShare>,
        /// The models that peers may ask for [default: all]
        models: Vec<String>,
        /// The hours in which peers are answered, in local time, such as `22:00-07:00` [default:
        /// always]
        hours: Vec<String>,
        /// Peers are refused while this machine's own jobs use more than this share of its
        /// capacity.
        max_load: Option<f64>,
        /// Requests at once, of all peers together [default: no bound]
        jobs: Option<u32>,
        /// Requests at once, of each peer [default: no bound]
        jobs_per_peer: Option<u32>,
        /// Tokens a day (UTC), of each peer [default: no bound]
        tokens_per_day: Option<u64>,
        /// Refuse peers while this machine runs on battery.
        pause_on_battery: bool,
        /// Whether peers may fetch models.
        offer_models: Option<bool>,
    }
}

/// `share` in `[mesh]`: a word, or a table of its own.
fn share_word_or_table<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<ShareOptions>, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let share = match value {
        toml::Value::String(_) => value
            .try_into()
            .map(|with| ShareOptions { with: Some(with), ..ShareOptions::default() }),
        table => table.try_into(),
    };
    share.map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MeshOptions, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn sharing_is_a_word_or_a_table() {
        let word = read("share = 'peers'").unwrap().limits.unwrap();
        assert_eq!(word, ShareOptions { with: Some(MeshShare::Peers), ..ShareOptions::default() });
        let table = read("[share]\nwith = 'anyone'\nhours = ['22:00-07:00']\njobs = 2").unwrap();
        let table = table.limits.unwrap();
        assert_eq!((table.with, table.jobs), (Some(MeshShare::Anyone), Some(2)));
        assert_eq!(table.hours, ["22:00-07:00"]);
    }

    #[test]
    fn invalid_sharing_is_refused_by_name() {
        for (text, named) in
            [("share = 'all'", "all"), ("share = 1", "share"), ("[share]\nwho = 1", "who")]
        {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
