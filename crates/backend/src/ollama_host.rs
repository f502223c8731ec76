//! The address in `OLLAMA_HOST`, read as Ollama's own programs read it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The usual port of Ollama.
pub(crate) const PORT: u16 = 11434;

/// The base URL of the Ollama that `OLLAMA_HOST` names. Host, port, scheme and path may each be left out,
/// and the value may be in quotes. An unspecified address (`0.0.0.0`), on which servers listen, stands
/// for this machine.
pub(crate) fn base_url(value: &str) -> String {
    let value = value.trim().trim_matches(['"', '\'']);
    let (scheme, rest, usual) = match value.split_once("://") {
        None if value == "ollama.com" => ("https", value, 443),
        None => ("http", value, PORT),
        Some(("http", rest)) => ("http", rest, 80),
        Some(("https", rest)) => ("https", rest, 443),
        Some((other, rest)) => (other, rest, PORT),
    };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = split(place);
    let port = port.and_then(|port| port.parse::<u16>().ok()).unwrap_or(usual);
    let path = path.trim_matches('/');
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    format!("{scheme}://{}:{port}{path}", reachable(host))
}

/// Host and port. A host with colons that has no brackets is an IPv6 address without a port.
fn split(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    }
}

/// A host that can be connected to, with brackets if it needs them.
fn reachable(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)) => format!("[{}]", Ipv6Addr::LOCALHOST),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ if bare.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
        _ => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_as_by_ollama() {
        for (value, url) in [
            ("", "http://127.0.0.1:11434"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            (":1234", "http://127.0.0.1:1234"),
            ("1.2.3.4:1234", "http://1.2.3.4:1234"),
            ("  'box' ", "http://box:11434"),
            ("\"box:80\"", "http://box:80"),
            ("http://1.2.3.4", "http://1.2.3.4:80"),
            ("https://box.example", "https://box.example:443"),
            ("https://box.example:1234/", "https://box.example:1234"),
            ("http://box/ollama/", "http://box:80/ollama"),
            ("example.com/ollama", "http://example.com:11434/ollama"),
            ("example.com:1/a/b", "http://example.com:1/a/b"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:5", "http://127.0.0.1:5"),
            ("http://0.0.0.0:5", "http://127.0.0.1:5"),
            ("[::]:5", "http://[::1]:5"),
            ("::", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("[fd00::7]:9/x", "http://[fd00::7]:9/x"),
            ("box:", "http://box:11434"),
            ("box:66000", "http://box:11434"),
            ("box:port", "http://box:11434"),
            ("https://box:-1", "https://box:443"),
            ("ollama.com", "https://ollama.com:443"),
        ] {
            assert_eq!(base_url(value), url, "{value:?}");
        }
    }
}
