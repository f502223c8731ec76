//! The port, the server, its addresses, proxies, mDNS.

use std::net::{IpAddr, SocketAddr};

use base::redact_url;
use daemon::VERSION;

use super::finding::Finding;
use crate::system::IS_MACOS;

/// The port that a server would listen on.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) address: SocketAddr,
    /// Why the port cannot be listened on; `None` if it can.
    pub(super) refused: Option<std::io::ErrorKind>,
    /// The process that listens there, if it is visible: its id and name.
    pub(super) user: Option<(u32, String)>,
}

/// The server that was examined.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) url: String,
    /// Whether it should be on this machine.
    pub(super) is_here: bool,
    pub(super) answer: Result<Health, String>,
}

/// A server's report of its health.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    pub(super) version: String,
    pub(super) status: String,
    pub(super) degraded: Option<String>,
    pub(super) workers: u64,
}

pub(super) fn port(port: &Port, server: &Server) -> Finding {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    const CHECK: &str = "port";
    let address = port.address;
    let user = port.user.as_ref().map(|(pid, name)| format!(" (process {pid}, {name})"));
    let user = user.unwrap_or_default();
    match port.refused {
        None => Finding::ok(CHECK, format!("{address} is free")),
        Some(AddrInUse) if server.is_here && server.answer.is_ok() => {
            Finding::ok(CHECK, format!("{address} is used by a Warren{user}"))
        }
        Some(AddrInUse) => Finding::fault(
            CHECK,
            format!("{address} is used by another program{user}"),
            "stop that program, or choose another port with --listen ADDRESS:PORT",
        ),
        Some(PermissionDenied) => Finding::fault(
            CHECK,
            format!("{address} may not be listened on by this user"),
            "choose a port above 1023, or run it as the machine's service",
        ),
        Some(AddrNotAvailable) => Finding::fault(
            CHECK,
            format!("this machine has no address {}", address.ip()),
            match IS_MACOS {
                true => "choose one that `ifconfig` shows, or 0.0.0.0 for all",
                false => "choose one that `ip address` shows, or 0.0.0.0 for all",
            },
        ),
        Some(kind) => {
            Finding::fault(CHECK, format!("{address}: {kind}"), "choose another with --listen")
        }
    }
}

/// The finding about the server. `holder`: the process that uses the data directory.
pub(super) fn server(server: &Server, holder: Option<u32>) -> Finding {
    const CHECK: &str = "server";
    let url = &server.url;
    let health = match &server.answer {
        Ok(health) => health,
        Err(error) => return unanswered(CHECK, server, error, holder),
    };
    if let Some(why) = &health.degraded {
        return Finding::fault(CHECK, format!("{url}: {why}"), "see `warren logs --level warn`");
    }
    if health.version != VERSION {
        let found = format!("{url} is version {}, this program {VERSION}", health.version);
        return Finding::note(CHECK, found, "restart the server, or update the older of the two");
    }
    let (status, workers) = (&health.status, health.workers);
    Finding::ok(
        CHECK,
        format!("{url}: {status}, version {VERSION}, {workers} workers and other providers"),
    )
}

/// The finding about a server that does not answer.
fn unanswered(check: &'static str, server: &Server, error: &str, holder: Option<u32>) -> Finding {
    let url = &server.url;
    match holder {
        Some(holder) if server.is_here => Finding::fault(
            check,
            format!(
                "process {holder} uses the data directory, and does not answer at {url}: {error}"
            ),
            "does it listen elsewhere? `warren logs`, `warren service status`",
        ),
        None if server.is_here => {
            Finding::note(check, format!("none answers at {url}"), "start one with `warren up`")
        }
        _ => Finding::fault(
            check,
            error,
            "is it up, and is this its address? Does a firewall lie between?",
        ),
    }
}

/// The ways in which others reach the server of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach {
    /// Whether it listens for this machine only.
    pub(super) is_loopback: bool,
    /// The addresses of this machine that it would be reached by, and whether it takes connections there; empty while
    /// no server answers.
    pub(super) tried: Vec<(SocketAddr, bool)>,
}

pub(super) fn reach(reach: &Reach) -> Finding {
    const CHECK: &str = "reachability";
    if reach.is_loopback {
        let advice =
            "for other machines: --listen 0.0.0.0:9178, with a key (`warren key create`) and TLS";
        return Finding::note(CHECK, "only this machine reaches the server", advice);
    }
    if reach.tried.is_empty() {
        return Finding::note(
            CHECK,
            "not tried, as no server answers here",
            "start one, then ask again",
        );
    }
    let shown = |taken: bool| {
        let addresses = reach.tried.iter().filter(|(_, is_taken)| *is_taken == taken);
        addresses.map(|(address, _)| address.to_string()).collect::<Vec<_>>().join(", ")
    };
    match (shown(true), shown(false)) {
        (open, closed) if closed.is_empty() => Finding::ok(
            CHECK,
            format!("{open}, from here; a firewall between can be seen only from outside"),
        ),
        (_, closed) => Finding::fault(
            CHECK,
            format!("no connection to {closed}"),
            "does --listen leave that address out, or a firewall of this machine block it?",
        ),
    }
}

/// Variables that name proxies, with their values.
pub(super) type ProxyVariables = Vec<(String, String)>;

pub(super) fn proxies(proxies: &ProxyVariables) -> Finding {
    const CHECK: &str = "proxies";
    let is_list = |name: &str| name.eq_ignore_ascii_case("no_proxy");
    let bad = proxies.iter().find(|(name, value)| {
        !is_list(name) && value.split_once("://").is_some_and(|(scheme, _)| scheme != "http")
    });
    if let Some((name, _)) = bad {
        let advice = format!("name an HTTP proxy in {name}, as http://HOST:PORT, or unset it");
        return Finding::fault(
            CHECK,
            format!("{name} names a proxy that Warren does not speak with"),
            advice,
        );
    }
    let shown = |(name, value): &(String, String)| match is_list(name) {
        true => format!("{name}={value}"),
        false => format!("{name}={}", redact_url(value)),
    };
    match proxies.iter().any(|(name, _)| !is_list(name)) {
        false => Finding::ok(CHECK, "none: everything is reached directly"),
        true => Finding::note(
            CHECK,
            proxies.iter().map(shown).collect::<Vec<_>>().join(", "),
            "servers and backends that it should not carry go into NO_PROXY",
        ),
    }
}

/// The result of a short look around by mDNS.
#[derive(Debug, Clone)]
pub(super) struct Mdns {
    /// Whether the server announces itself.
    pub(super) is_used: bool,
    /// The names that were found, or why nothing could be searched.
    pub(super) found: Result<Vec<String>, String>,
    /// The addresses of this machine on local networks.
    pub(super) addresses: Vec<IpAddr>,
}

pub(super) fn mdns(mdns: &Mdns) -> Finding {
    const CHECK: &str = "mDNS";
    let advice = "does another program hold UDP port 5353 alone, or a firewall block it?";
    match &mdns.found {
        Err(error) if mdns.is_used => Finding::fault(CHECK, error, advice),
        Err(error) => Finding::note(CHECK, error, advice),
        Ok(_) if mdns.addresses.is_empty() => {
            let advice =
                "name servers by their address: networks of containers and tunnels take no part";
            Finding::note(CHECK, "this machine is on no local network", advice)
        }
        Ok(found) if found.is_empty() => {
            Finding::ok(CHECK, "works here; nobody announces a Warren within a second")
        }
        Ok(found) => Finding::ok(CHECK, format!("found {}", found.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn at(answer: Result<Health, &str>) -> Server {
        let answer = answer.map_err(str::to_owned);
        Server { url: "http://127.0.0.1:9178".to_owned(), is_here: true, answer }
    }

    fn well() -> Health {
        Health { version: VERSION.to_owned(), status: "ok".to_owned(), ..Health::default() }
    }

    #[test]
    fn a_port_that_a_warren_uses_is_well_and_one_of_another_program_is_not() {
        let taken = |refused| Port {
            address: "127.0.0.1:9178".parse().unwrap(),
            refused,
            user: Some((77, "nginx".to_owned())),
        };
        assert_eq!(port(&taken(None), &at(Err("no"))).state, State::Ok);
        let in_use = taken(Some(ErrorKind::AddrInUse));
        assert_eq!(port(&in_use, &at(Ok(well()))).state, State::Ok);
        let other = port(&in_use, &at(Err("no")));
        assert!(other.state == State::Fault && other.found.contains("process 77, nginx"));
        for kind in [ErrorKind::PermissionDenied, ErrorKind::AddrNotAvailable, ErrorKind::Other] {
            assert_eq!(port(&taken(Some(kind)), &at(Err("no"))).state, State::Fault);
        }
    }

    #[test]
    fn a_server_is_judged_by_its_answer_and_by_who_holds_its_data() {
        assert_eq!(server(&at(Ok(well())), None).state, State::Ok);
        let old = Health { version: "0.0.9".to_owned(), ..well() };
        assert_eq!(server(&at(Ok(old)), None).state, State::Note);
        let ill = Health { degraded: Some("the disk is full".to_owned()), ..well() };
        assert_eq!(server(&at(Ok(ill)), None).state, State::Fault);
        assert_eq!(server(&at(Err("refused")), None).state, State::Note);
        assert_eq!(server(&at(Err("refused")), Some(77)).state, State::Fault);
        let far = Server { is_here: false, ..at(Err("refused")) };
        assert_eq!(server(&far, None).state, State::Fault);
    }

    #[test]
    fn every_address_of_the_machine_should_take_connections() {
        let tried = |all: &[(&str, bool)]| {
            let tried =
                all.iter().map(|(address, open)| (address.parse().unwrap(), *open)).collect();
            reach(&Reach { is_loopback: false, tried })
        };
        assert_eq!(tried(&[("192.0.2.7:9178", true)]).state, State::Ok);
        let half = tried(&[("192.0.2.7:9178", true), ("[fd00::2]:9178", false)]);
        assert!(half.state == State::Fault && half.found.contains("[fd00::2]:9178"));
        assert_eq!(tried(&[]).state, State::Note);
        assert_eq!(reach(&Reach { is_loopback: true, tried: Vec::new() }).state, State::Note);
    }

    #[test]
    fn a_proxy_is_shown_without_its_password_and_another_kind_is_a_fault() {
        let of = |name: &str, value: &str| proxies(&vec![(name.to_owned(), value.to_owned())]);
        let shown = of("HTTPS_PROXY", "http://me:geheim@proxy:3128");
        assert!(shown.state == State::Note && !shown.found.contains("geheim"), "{shown:?}");
        assert_eq!(of("all_proxy", "socks5://h:1").state, State::Fault);
        assert_eq!(of("NO_PROXY", "10.0.0.0/8").state, State::Ok);
        assert_eq!(proxies(&Vec::new()).state, State::Ok);
    }

    #[test]
    fn mdns_that_does_not_start_is_a_fault_only_where_it_is_used() {
        let of = |is_used, found: Result<Vec<String>, String>, addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            mdns(&Mdns { is_used, found, addresses }).state
        };
        assert_eq!(of(true, Err("no".to_owned()), &["192.0.2.7"]), State::Fault);
        assert_eq!(of(false, Err("no".to_owned()), &["192.0.2.7"]), State::Note);
        assert_eq!(of(false, Ok(Vec::new()), &[]), State::Note);
        assert_eq!(of(false, Ok(vec!["box".to_owned()]), &["192.0.2.7"]), State::Ok);
    }
}
