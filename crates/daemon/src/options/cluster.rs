//! Settings of the workspace cluster, as they are written.

use std::net::SocketAddr;

use base::Secret;
use clap::{Args, builder::BoolishValueParser};
use serde::Deserialize;

use super::{deserialize_listen, heading, listen_address};

options! {
    /// Settings of `warren serve` about the workspace cluster, and of `[cluster]` in the file, where
    /// they are spelled without `cluster-`.
    ClusterOptions {
        /// Another machine of the workspace cluster, by its peer port (repeatable) [default: those
        /// that an invitation brought]
        #[arg(id = "cluster_peers", long = "peer", env = "WARREN_PEER", value_name = "HOST:PORT",
            value_delimiter = ',')]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        peers: Option<Vec<String>>,
        /// Dial only the given peers, and none that members tell of
        #[arg(long, env = "WARREN_NO_PEER_DISCOVERY", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        no_peer_discovery: Option<bool>,
        /// The secret that all machines of the cluster share. It counts less than the new one of a
        /// cluster from which a machine was taken out [default: the one that an invitation brought]
        #[arg(id = "cluster_token", long = "cluster-token", env = "WARREN_CLUSTER_TOKEN",
            value_name = "TOKEN", hide_env_values = true)]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        token: Option<Secret>,
        /// Take peers of other programs, which send the secret in plain, from other machines, too
        #[arg(long, env = "WARREN_ALLOW_PLAIN_PEERS", num_args = 0..=1, require_equals = true,
            default_missing_value = "true", value_name = "BOOL",
            value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        allow_plain_peers: Option<bool>,
        /// Address and port for other machines of the cluster [default: as --listen, one port
        /// higher]
        #[arg(long, env = "WARREN_PEER_LISTEN", value_name = "ADDR:PORT",
            value_parser = listen_address)]
        #[serde(deserialize_with = "deserialize_listen")]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        peer_listen: Option<SocketAddr>,
        /// The name that the other machines are shown [default: the host name]
        #[arg(id = "cluster_name", long = "node-name", env = "WARREN_NODE_NAME",
            value_name = "NAME")]
        #[arg(help_heading = heading::CLUSTER, hide_short_help = true)]
        name: Option<String>,
    }
}
