//! The address of a server of this machine, from its settings.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use daemon::{ServeOptions, settings::PORT};

/// The address at which a server with these settings listens.
pub(super) fn address(options: &ServeOptions) -> SocketAddr {
    options.listen.unwrap_or((Ipv4Addr::LOCALHOST, PORT).into())
}

/// The URL by which this machine reaches a server with these settings.
pub(super) fn local_url(options: &ServeOptions) -> String {
    let listen = address(options);
    let here = match listen.ip() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A server at `::` listens on IPv4 as well.
        IpAddr::V6(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        address => address,
    };
    url(options, SocketAddr::new(here, listen.port()))
}

/// The URL of a server with these settings at an address.
pub(super) fn url(options: &ServeOptions, at: SocketAddr) -> String {
    let scheme = if options.tls_cert.is_some() { "https" } else { "http" };
    format!("{scheme}://{at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_reached_by_loopback() {
        let url = |listen: &str| {
            let listen = Some(listen.parse().unwrap());
            local_url(&ServeOptions { listen, ..ServeOptions::default() })
        };
        assert_eq!(url("0.0.0.0:7"), "http://127.0.0.1:7");
        assert_eq!(url("[::]:7"), "http://127.0.0.1:7");
        assert_eq!(url("[::1]:7"), "http://[::1]:7");
        assert_eq!(local_url(&ServeOptions::default()), "http://127.0.0.1:9178");
        let tls = ServeOptions { tls_cert: Some("c".into()), ..ServeOptions::default() };
        assert_eq!(local_url(&tls), "https://127.0.0.1:9178");
    }
}
