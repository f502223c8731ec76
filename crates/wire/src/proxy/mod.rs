//! The HTTP proxies that this machine's environment names.
//!
//! `HTTPS_PROXY` is for `https` and `wss`, and `HTTP_PROXY` for `http` and `ws`. `ALL_PROXY` stands in
//! for either one that is not set. `NO_PROXY` lists the hosts that are reached directly. Each name may
//! be in lower case; if both spellings are set, lower case wins. A proxy is always asked for a tunnel
//! (`CONNECT`), also for clear HTTP.
//!
//! - `exempt`: the hosts that are reached directly
//! - `tunnel`: the request to a proxy, and its answer
//! - `connector`: connections by a proxy for HTTP clients

mod connector;
mod exempt;
mod tunnel;

use std::{env, sync::OnceLock};

use base::Secret;
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use url::Url;

use self::exempt::Exempt;
pub use self::{connector::ByProxy, tunnel::ProxyError};

/// The longest value of a variable that is read, in bytes.
const MAX_VALUE: usize = 64 * 1024;

/// Why the environment names no usable proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} names no proxy that can be used: {reason}")]
pub struct BadProxy {
    variable: &'static str,
    reason: &'static str,
}

/// A proxy, from one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    variable: &'static str,
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    authorization: Option<Secret>,
}

/// The proxies by which this machine reaches others.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    secure: Option<Result<Proxy, BadProxy>>,
    clear: Option<Result<Proxy, BadProxy>>,
    exempt: Exempt,
}

impl Proxies {
    /// The proxies of this process's environment, which is read once.
    #[expect(clippy::disallowed_methods, reason = "the variables are no settings of Warren's")]
    pub fn of_environment() -> &'static Self {
        static PROXIES: OnceLock<Proxies> = OnceLock::new();
        PROXIES.get_or_init(|| Self::read(|name| env::var(name).ok()))
    }

    /// No proxy at all: everything is reached directly.
    pub fn none() -> &'static Self {
        static NONE: OnceLock<Proxies> = OnceLock::new();
        NONE.get_or_init(Self::default)
    }

    /// The proxies that an environment names. `value` gives the value of a variable.
    pub fn read(value: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| {
            let given = value(&name.to_ascii_lowercase()).filter(|text| !text.trim().is_empty());
            let given = given.or_else(|| value(name))?;
            Some(given.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let proxy = |variable| set(variable).map(|text| Proxy::parse(variable, &text));
        let all = proxy("ALL_PROXY");
        Self {
            secure: proxy("HTTPS_PROXY").or_else(|| all.clone()),
            clear: proxy("HTTP_PROXY").or(all),
            exempt: set("NO_PROXY").map(|text| exempt(&text)).unwrap_or_default(),
        }
    }

    /// The proxy by which a host is reached; `None`: the host is reached directly. This machine and
    /// link-local addresses are always reached directly. `secure`: whether the connection uses TLS.
    ///
    /// # Errors
    /// [`BadProxy`] when the variable that decides cannot be used.
    pub fn towards(&self, secure: bool, host: &str, port: u16) -> Result<Option<&Proxy>, BadProxy> {
        let proxy = if secure { &self.secure } else { &self.clear };
        match proxy {
            Some(proxy) if !self.exempt.has(host, port) => {
                proxy.as_ref().map(Some).map_err(BadProxy::clone)
            }
            _ => Ok(None),
        }
    }
}

/// Reads `NO_PROXY`. Of a list that is too long, no entry counts: one of them may be cut in two.
fn exempt(list: &str) -> Exempt {
    if list.len() > MAX_VALUE {
        tracing::warn!("NO_PROXY is longer than {MAX_VALUE} bytes and was ignored");
        return Exempt::default();
    }
    Exempt::parse(list)
}

impl Proxy {
    /// Reads `[http://][NAME:PASSWORD@]HOST[:PORT]`.
    fn parse(variable: &'static str, text: &str) -> Result<Self, BadProxy> {
        let bad = |reason| BadProxy { variable, reason };
        if text.len() > MAX_VALUE {
            return Err(bad("it is longer than 64 KiB"));
        }
        let not_a_url = "write it as http://HOST:PORT";
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&full).map_err(|_| bad(not_a_url))?;
        match url.scheme() {
            "http" => {}
            "https" => {
                return Err(bad(
                    "the way to a proxy itself must be without TLS: write http://HOST:PORT",
                ));
            }
            socks if socks.starts_with("socks") => {
                return Err(bad(
                    "it is a SOCKS proxy, and only HTTP proxies are spoken to: name an HTTP proxy \
                     (http://HOST:PORT), or unset the variable",
                ));
            }
            _ => return Err(bad(not_a_url)),
        }
        let host = url.host_str().ok_or_else(|| bad(not_a_url))?;
        Ok(Self {
            variable,
            host: bare(host).to_owned(),
            port: url.port().unwrap_or(80),
            authorization: authorization(&url),
        })
    }

    /// Host and port, without name and password.
    fn shown(&self) -> String {
        authority(&self.host, self.port)
    }
}

fn authorization(url: &Url) -> Option<Secret> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let name = percent_decode_str(url.username());
    let password = percent_decode_str(url.password().unwrap_or_default());
    let both: Vec<u8> = name.chain([b':']).chain(password).take(MAX_VALUE).collect();
    Some(format!("Basic {}", STANDARD.encode(both)).into())
}

/// A host without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// A bare host and a port, as one text.
fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(set: &[(&str, &str)]) -> Proxies {
        let set: Vec<(String, String)> =
            set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Proxies::read(|name| {
            set.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
        })
    }

    /// The proxies towards a host, with TLS and without.
    fn both(set: &[(&str, &str)]) -> [Option<String>; 2] {
        let proxies = proxies(set);
        [true, false]
            .map(|secure| proxies.towards(secure, "far.example", 443).unwrap().map(Proxy::shown))
    }

    fn named(proxy: &str) -> Option<String> {
        Some(proxy.to_owned())
    }

    #[test]
    fn each_variable_is_for_its_schemes_in_either_case_of_letters() {
        assert_eq!(both(&[]), [None, None]);
        assert_eq!(both(&[("HTTPS_PROXY", "http://p:1")]), [named("p:1"), None]);
        assert_eq!(both(&[("http_proxy", "p:1")]), [None, named("p:1")]);
        assert_eq!(both(&[("all_proxy", "p")]), [named("p:80"), named("p:80")]);
        let own = [("ALL_PROXY", "http://a:1"), ("https_proxy", "http://b:2")];
        assert_eq!(both(&own), [named("b:2"), named("a:1")]);
        let small = [("HTTPS_PROXY", "http://large:1"), ("https_proxy", "http://small:2/")];
        assert_eq!(both(&small), [named("small:2"), None]);
        assert_eq!(
            both(&[("https_proxy", " "), ("HTTPS_PROXY", "[::1]:3")]),
            [named("[::1]:3"), None]
        );
        assert_eq!(both(&[("HTTPS_PROXY", "")]), [None, None]);
    }

    #[test]
    fn what_no_proxy_lists_is_reached_directly() {
        let proxies =
            proxies(&[("HTTPS_PROXY", "http://p:1"), ("no_proxy", "near.example,10.0.0.0/8")]);
        let by_proxy = |host| proxies.towards(true, host, 443).unwrap().is_some();
        assert!(by_proxy("far.example"));
        for host in ["a.near.example", "10.1.2.3", "localhost", "127.0.0.1", "[::1]"] {
            assert!(!by_proxy(host), "{host}");
        }
    }

    #[test]
    fn name_and_password_are_decoded_and_not_shown() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://ann:p%40ss%2B+w@p:3128")]);
        let proxy = proxies.towards(true, "far.example", 443).unwrap().unwrap();
        let sent = proxy.authorization.as_ref().unwrap().expose().to_owned();
        assert_eq!(sent, format!("Basic {}", STANDARD.encode("ann:p@ss++w")));
        let shown = format!("{proxies:?} {}", proxy.shown());
        assert!(!shown.contains("ann") && !shown.contains("p@ss"), "{shown}");
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused_where_it_would_be_used() {
        for (value, words) in [
            ("socks5://p:1080", "SOCKS"),
            ("socks5h://u:pw@p", "SOCKS"),
            ("https://p", "without TLS"),
            ("ftp://p", "http://HOST:PORT"),
            ("http://", "http://HOST:PORT"),
            (&*format!("http://{}", "p".repeat(MAX_VALUE)), "longer than 64 KiB"),
        ] {
            let proxies = proxies(&[("ALL_PROXY", value)]);
            let error = proxies.towards(false, "far.example", 80).unwrap_err().to_string();
            assert!(error.contains("ALL_PROXY") && error.contains(words), "{error}");
            assert!(!error.contains("pw"), "{error}");
            assert!(proxies.towards(false, "localhost", 80).unwrap().is_none());
        }
    }
}
