//! Takes internal addresses out of text that goes to a client.

use std::net::{IpAddr, SocketAddr};

/// The text in place of an address.
const HIDDEN: &str = "(address hidden)";

/// The text without addresses of this network: URLs whose host is an IP address or has no domain,
/// and hosts of that kind with a port. An error of a backend may name them, and they tell a client
/// of the operator's machines. Public URLs stay.
pub fn without_addresses(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let (before, rest) = word.split_at(word.len() - word.trim_start_matches(OPENING).len());
        let inner = rest.trim_end_matches(CLOSING);
        match is_internal(inner) {
            true => shown.extend([before, HIDDEN, &rest[inner.len()..]]),
            false => shown.push_str(word),
        }
        shown.push_str(&piece[word.len()..]);
    }
    shown
}

const OPENING: [char; 5] = ['(', '"', '\'', '<', '`'];
const CLOSING: [char; 9] = [')', '"', '\'', '>', '`', ',', ';', '.', ':'];

fn is_internal(word: &str) -> bool {
    match word.split_once("://") {
        Some((_, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            is_internal_host(authority.rsplit('@').next().unwrap_or_default())
        }
        None => {
            let authority = word.split('/').next().unwrap_or_default();
            let named = authority.rsplit_once(':').is_some_and(|(host, port)| {
                host.eq_ignore_ascii_case("localhost") && port.parse::<u16>().is_ok()
            });
            named || authority.parse::<SocketAddr>().is_ok() || is_v4(authority)
        }
    }
}

/// Whether a URL's host, perhaps with a port, is an IP address or a name without a domain.
fn is_internal_host(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let local = [".local", ".internal", ".lan"].iter().any(|end| host.ends_with(end));
    !host.is_empty() && (local || !host.contains('.') || host.parse::<IpAddr>().is_ok())
}

fn is_v4(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_addresses_are_hidden_and_others_stay() {
        let table = [
            (
                "could not connect to http://127.0.0.1:11434: refused",
                "could not connect to (address hidden): refused",
            ),
            ("dial tcp 10.0.0.7:80: i/o", "dial tcp (address hidden): i/o"),
            ("at [::1]:8080, (http://[fd00::1]/v1).", "at (address hidden), ((address hidden))."),
            ("\"http://gpu:8000/v1/models\" is gone", "\"(address hidden)\" is gone"),
            ("localhost:1234/v1 and 192.168.1.4", "(address hidden) and (address hidden)"),
            ("http://user:pw@nas.local/x", "(address hidden)"),
            (
                "see https://ollama.com/library, or 3.5:1",
                "see https://ollama.com/library, or 3.5:1",
            ),
            ("version 1.2.3\nat 12:30, ratio 16:9", "version 1.2.3\nat 12:30, ratio 16:9"),
            ("", ""),
        ];
        for (text, shown) in table {
            assert_eq!(without_addresses(text), shown);
        }
    }
}
