//! The settings of the mesh: their defaults and checks.

use std::{net::Ipv4Addr, path::Path};

use anyhow::{Context, bail};
use base::{NodeId, redact_url};
use discovery::Reach;
use dispatch::Route;
use mesh::share::{Hours, Share, Sharing};
use url::Url;

use crate::{
    VERSION,
    options::{MeshOptions, MeshRelayServe, MeshRoute, MeshShare, ShareOptions},
};

/// The default port for peers on the local network.
pub const MESH_PORT: u16 = 9180;

/// The settings of the mesh.
#[derive(Debug, Clone)]
pub struct MeshSettings {
    /// Whether this machine takes part at all.
    pub enabled: bool,
    /// How far a request goes if its header does not say.
    pub route: Route,
    /// The settings of the node.
    pub node: mesh::Settings,
    /// Which nodes may use the mesh relay; `None`: those of this machine if the server listens on loopback, otherwise
    /// none.
    pub relay_serve: Option<MeshRelayServe>,
    /// The hosts by which nodes dial the mesh relay; empty: any.
    pub relay_hosts: Vec<String>,
    /// Whether the mesh relay accepts nodes that sign nothing.
    pub accept_unsigned: bool,
}

impl MeshSettings {
    /// Fills in defaults and checks the options. `open`: the owner wants everybody to be served. `data_dir`: the
    /// server's data directory.
    ///
    /// # Errors
    /// When a value is invalid, or anybody on the network could use this machine without `open`.
    pub fn new(options: MeshOptions, open: bool, data_dir: &Path) -> anyhow::Result<Self> {
        let enabled = options.enabled.unwrap_or(false);
        let default_listen = enabled.then_some((Ipv4Addr::UNSPECIFIED, MESH_PORT).into());
        let listen = options.listen.or(default_listen);
        // Other machines cannot reach a listener on loopback, so it is not announced to them.
        let is_local = listen.is_some_and(|listen| listen.ip().is_loopback());
        let trusted = node_ids(options.trusted.unwrap_or_default())?;
        let node = mesh::Settings {
            name: options.name.unwrap_or_else(hardware::host_name),
            version: VERSION,
            listen,
            passcode: super::secret(options.passcode, "mesh-passcode")?,
            plain_passcode: options.plain_passcode.unwrap_or(false),
            require_sealed: options.require_sealed.unwrap_or(false),
            peers: each(options.peer, peer)?,
            relays: each(options.relay, relay)?,
            advertise: options.advertise.unwrap_or(enabled),
            reach: if is_local { Reach::Machine } else { Reach::Network },
            share: share(options.share, options.limits.unwrap_or_default(), &trusted)?,
            trusted,
            model_dirs: options.models.unwrap_or_default(),
            offer_found: true,
            // Absolute, because paths are shown to people with another working directory.
            data_dir: std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned()),
        };
        refuse_defenceless(&node, open)?;
        let enabled =
            listen.is_some() || node.advertise || !node.peers.is_empty() || !node.relays.is_empty();
        Ok(Self {
            enabled,
            route: options.route.unwrap_or_default().into(),
            node,
            relay_serve: options.relay_serve,
            relay_hosts: options.relay_host.unwrap_or_default(),
            accept_unsigned: options.accept_unsigned.unwrap_or(false),
        })
    }
}

fn refuse_defenceless(node: &mesh::Settings, open: bool) -> anyhow::Result<()> {
    let beyond = node.listen.is_some_and(|listen| !listen.ip().is_loopback());
    let reached = beyond || !node.relays.is_empty();
    let guarded = node.passcode.is_some() || !node.trusted.is_empty();
    if reached && node.share.with == Sharing::Peers && !guarded && !open {
        bail!(
            "--mesh-share peers would answer whoever says hello: set a --mesh-passcode, name nodes \
             in `[mesh] trusted`, or say --mesh-share anyone, or --open, if that is meant"
        );
    }
    Ok(())
}

fn each(
    given: Option<Vec<String>>,
    read: impl Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<String>> {
    given.unwrap_or_default().iter().map(|text| read(text)).collect()
}

/// A peer as `HOST:PORT`; the port may be left out.
fn peer(text: &str) -> anyhow::Result<String> {
    let text = text.trim();
    let bracketed = text.ends_with(']') || text.parse::<std::net::Ipv6Addr>().is_ok();
    let host = if text.contains(':') && !text.starts_with('[') && bracketed {
        format!("[{text}]")
    } else {
        text.to_owned()
    };
    let has_port = !bracketed && host.contains(':');
    let whole = if has_port { host } else { format!("{host}:{MESH_PORT}") };
    let wrong =
        || format!("--mesh-peer {text:?} is no HOST:PORT, such as 192.168.1.20:{MESH_PORT}");
    let url = Url::parse(&format!("tcp://{whole}")).with_context(wrong)?;
    let is_bare = url.path().is_empty() && url.query().is_none() && url.username().is_empty();
    if !is_bare || url.host_str().is_none_or(str::is_empty) || url.port().unwrap_or(0) == 0 {
        bail!(wrong());
    }
    Ok(whole)
}

/// The URL of a mesh relay, with the scheme `ws` or `wss`.
fn relay(text: &str) -> anyhow::Result<String> {
    let wrong = || {
        let shown = redact_url(text);
        format!("--mesh-relay {shown:?} is no URL of a relay, such as wss://relay.example.org")
    };
    let mut url = Url::parse(text.trim()).with_context(wrong)?;
    let scheme = match url.scheme() {
        "http" | "ws" => "ws",
        "https" | "wss" => "wss",
        _ => bail!(wrong()),
    };
    if url.set_scheme(scheme).is_err() || !url.has_host() {
        bail!(wrong());
    }
    Ok(url.into())
}

fn node_ids(written: Vec<String>) -> anyhow::Result<Vec<NodeId>> {
    let read = |id: String| id.parse().with_context(|| format!("{id:?} in [mesh] trusted"));
    written.into_iter().map(read).collect()
}

fn share(
    with: Option<MeshShare>,
    written: ShareOptions,
    trusted: &[NodeId],
) -> anyhow::Result<Share> {
    let with = with.or(written.with).unwrap_or_default().into();
    if let Some(load) = written.max_load.filter(|load| !(0.0..=1.0).contains(load)) {
        bail!("max_load = {load} in [mesh.share] is not between 0 and 1");
    }
    Ok(Share {
        with,
        models: written.models,
        hours: written.hours.iter().map(|text| hours(text)).collect::<Result<_, _>>()?,
        max_load: written.max_load,
        jobs_per_peer: written.jobs_per_peer,
        jobs: written.jobs,
        tokens_per_day: written.tokens_per_day,
        pause_on_battery: written.pause_on_battery,
        models_offered: written.offer_models.unwrap_or(true),
        trusted: trusted.to_vec(),
    })
}

/// Hours that are written as `22:00-07:00`.
fn hours(text: &str) -> anyhow::Result<Hours> {
    let read = || {
        let (from, to) = text.split_once('-')?;
        Some(Hours { from: minutes(from)?, to: minutes(to)? })
    };
    read().with_context(|| format!("{text:?} in [mesh.share] hours is not like 22:00-07:00"))
}

fn minutes(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    let is_time = minute < 60 && (hour < 24 || (hour, minute) == (24, 0));
    is_time.then(|| hour * 60 + minute)
}

impl From<MeshRoute> for Route {
    fn from(written: MeshRoute) -> Self {
        match written {
            MeshRoute::LocalOnly => Self::LocalOnly,
            MeshRoute::PreferLocal => Self::PreferLocal,
            MeshRoute::Mesh => Self::Mesh,
        }
    }
}

impl From<MeshShare> for Sharing {
    fn from(written: MeshShare) -> Self {
        match written {
            MeshShare::Off => Self::Off,
            MeshShare::Peers => Self::Peers,
            MeshShare::Anyone => Self::Anyone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: MeshOptions) -> anyhow::Result<MeshSettings> {
        MeshSettings::new(options, false, Path::new("data"))
    }

    #[test]
    fn by_default_the_mesh_is_off_and_requests_prefer_local_providers() {
        let settings = of(MeshOptions::default()).unwrap();
        assert!(!settings.enabled && settings.node.listen.is_none() && !settings.node.advertise);
        assert_eq!((settings.route, settings.node.share.with), (Route::PreferLocal, Sharing::Off));
        let relayed = MeshOptions { relay: Some(vec!["ws://r".into()]), ..MeshOptions::default() };
        assert!(of(relayed).unwrap().enabled);
    }

    #[test]
    fn enabled_listens_and_advertises() {
        let settings = of(MeshOptions { enabled: Some(true), ..MeshOptions::default() }).unwrap();
        assert_eq!(settings.node.listen.unwrap().port(), MESH_PORT);
        assert!(settings.node.advertise && settings.enabled);
    }

    #[test]
    fn sharing_with_every_peer_must_be_explicit() {
        let shared = |listen: &str, share| MeshOptions {
            listen: Some(listen.parse().unwrap()),
            share: Some(share),
            ..MeshOptions::default()
        };
        let wide = || shared("0.0.0.0:0", MeshShare::Peers);
        assert!(of(wide()).unwrap_err().to_string().contains("--mesh-passcode"));
        assert!(MeshSettings::new(wide(), true, Path::new("data")).is_ok());
        assert!(of(MeshOptions { passcode: Some("p".into()), ..wide() }).is_ok());
        assert!(of(MeshOptions { trusted: Some(vec!["11".repeat(32)]), ..wide() }).is_ok());
        assert!(of(shared("127.0.0.1:0", MeshShare::Peers)).is_ok());
        assert!(of(shared("0.0.0.0:0", MeshShare::Anyone)).is_ok());
    }

    #[test]
    fn hours_are_spans_of_the_day() {
        assert_eq!(hours("22:00-07:30").unwrap(), Hours { from: 1320, to: 450 });
        assert_eq!(hours("0:00-24:00").unwrap(), Hours { from: 0, to: 1440 });
        let bad = ["", "22-7", "22:00", "25:00-07:00", "22:60-07:00", "x:00-07:00", "24:01-1:00"];
        let beyond = ["1093:00-07:00", "0:65535-07:00"];
        for bad in bad.into_iter().chain(beyond) {
            assert!(hours(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_peer_is_a_host_and_a_port_and_a_relay_a_url() {
        let port = MESH_PORT;
        for (written, meant) in [
            ("gpu.lan:1", "gpu.lan:1".to_owned()),
            (" 10.0.0.1 ", format!("10.0.0.1:{port}")),
            ("[::1]:7", "[::1]:7".to_owned()),
            ("[::1]", format!("[::1]:{port}")),
            ("fe80::1", format!("[fe80::1]:{port}")),
        ] {
            assert_eq!(peer(written).unwrap(), meant);
        }
        for bad in ["", ":1", "host:0", "host:port", "http://host", "host:1/x", "a b:1", "me@h:1"] {
            let error = peer(bad).unwrap_err().to_string();
            assert!(error.contains("--mesh-peer"), "{bad}: {error}");
        }
        assert_eq!(relay("https://r.example/x").unwrap(), "wss://r.example/x");
        assert_eq!(relay("ws://127.0.0.1:9190").unwrap(), "ws://127.0.0.1:9190/");
        for bad in ["", "r.example", "ftp://r", "r.example:9190"] {
            assert!(relay(bad).unwrap_err().to_string().contains("--mesh-relay"), "{bad}");
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        let limits = |limits| MeshOptions { limits: Some(limits), ..MeshOptions::default() };
        assert!(
            of(limits(ShareOptions { max_load: Some(1.5), ..ShareOptions::default() })).is_err()
        );
        assert!(
            of(MeshOptions { trusted: Some(vec!["me".into()]), ..MeshOptions::default() }).is_err()
        );
        assert!(of(MeshOptions { passcode: Some(" ".into()), ..MeshOptions::default() }).is_err());
    }
}
