//! Where the NATS servers are, and which group of servers meets there.

use std::net::IpAddr;

use base::Secret;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// The group of servers that name none.
pub const GROUP: &str = "warren";

/// The longest name of a group, in bytes.
const MAX_GROUP: usize = 64;

/// The port of NATS.
const PORT: u16 = 4222;

/// Where the NATS servers are, how this server signs in there, and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsAddress {
    /// The servers without credentials, one of which is used.
    pub(crate) servers: Vec<String>,
    pub(crate) credentials: Credentials,
    pub(crate) tls: bool,
    group: String,
    is_exposed: bool,
}

/// How this server signs in at NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    None,
    Token(Secret),
    Password { user: String, password: Secret },
}

/// A text that is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// A part of it is no URL, or none of NATS.
    #[error(
        "each of its URLs is nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ or TOKEN@ before the host"
    )]
    Url,
    /// Its URLs do not agree.
    #[error(
        "its URLs must have the same user and password, the same group, and all tls:// or none"
    )]
    Several,
    /// The group cannot be a part of a subject.
    #[error("the group has 1 to {MAX_GROUP} letters, digits, hyphens and underscores")]
    Group,
    /// The URLs name another group than the setting.
    #[error("the URL and the setting name two groups")]
    TwoGroups,
}

impl NatsAddress {
    /// Reads `nats://…`, one URL or several separated by commas. The group is the path of the URLs, or the one
    /// that is given, or [`GROUP`].
    ///
    /// # Errors
    /// [`BadAddress`] says what is wrong, and shows nothing of the text: it may hold a password.
    pub fn parse(text: &Secret, group: Option<&str>) -> Result<Self, BadAddress> {
        let parts = text.expose().split(',').map(str::trim).filter(|part| !part.is_empty());
        let parts = parts.map(Part::parse).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = parts.first() else { return Err(BadAddress::Url) };
        let agrees = |part: &Part| {
            (&part.credentials, part.tls, &part.group)
                == (&first.credentials, first.tls, &first.group)
        };
        if !parts.iter().all(agrees) {
            return Err(BadAddress::Several);
        }
        let group = match (first.group.as_deref(), group) {
            (Some(path), Some(given)) if path != given => return Err(BadAddress::TwoGroups),
            (path, given) => path.or(given).unwrap_or(GROUP),
        };
        Ok(Self {
            servers: parts.iter().map(|part| part.server.clone()).collect(),
            credentials: first.credentials.clone(),
            tls: first.tls,
            group: checked_group(group)?.to_owned(),
            is_exposed: !first.tls && !parts.iter().all(|part| part.is_loopback),
        })
    }

    /// The name of the group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Whether others on the network can read along: a NATS server on another machine is spoken to without TLS.
    pub fn is_exposed(&self) -> bool {
        self.is_exposed
    }

    /// Whether anybody who reaches the NATS servers may use them, as far as this server can tell.
    pub fn is_open(&self) -> bool {
        self.credentials == Credentials::None
    }

    /// The NATS servers, for people: without credentials.
    pub fn shown(&self) -> String {
        self.servers.join(", ")
    }
}

/// One of several URLs.
struct Part {
    server: String,
    credentials: Credentials,
    tls: bool,
    group: Option<String>,
    is_loopback: bool,
}

impl Part {
    fn parse(text: &str) -> Result<Self, BadAddress> {
        let url = Url::parse(text).map_err(|_| BadAddress::Url)?;
        let tls = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(BadAddress::Url),
        };
        let host = url.host().filter(|host| !host.to_string().is_empty()).ok_or(BadAddress::Url)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BadAddress::Url);
        }
        let path = url.path().trim_matches('/');
        let (scheme, port) = (url.scheme(), url.port().unwrap_or(PORT));
        Ok(Self {
            server: format!("{scheme}://{host}:{port}"),
            credentials: credentials(&url)?,
            tls,
            group: (!path.is_empty()).then(|| path.to_owned()),
            is_loopback: is_loopback(&host),
        })
    }
}

fn credentials(url: &Url) -> Result<Credentials, BadAddress> {
    let plain = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(std::borrow::Cow::into_owned).map_err(|_| BadAddress::Url)
    };
    let user = plain(url.username())?;
    match url.password() {
        Some(password) => {
            Ok(Credentials::Password { user, password: Secret::from(plain(password)?) })
        }
        None if user.is_empty() => Ok(Credentials::None),
        None => Ok(Credentials::Token(Secret::from(user))),
    }
}

/// A host of a URL whose scheme is not one of the web's is text even where it is an address.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let is_address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            is_address || name.eq_ignore_ascii_case("localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

fn checked_group(group: &str) -> Result<&str, BadAddress> {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = !group.is_empty() && group.len() <= MAX_GROUP && group.bytes().all(may);
    if fits { Ok(group) } else { Err(BadAddress::Group) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<NatsAddress, BadAddress> {
        NatsAddress::parse(&Secret::from(text.to_owned()), None)
    }

    #[test]
    fn credentials_are_taken_out_of_what_is_shown() {
        let address = of("nats://warren:p%40ss@a.example,nats://warren:p%40ss@b:4333").unwrap();
        assert_eq!(address.shown(), "nats://a.example:4222, nats://b:4333");
        let Credentials::Password { user, password } = &address.credentials else { panic!() };
        assert_eq!((user.as_str(), password.expose()), ("warren", "p@ss"));
        assert!(!format!("{address:?}").contains("p@ss"));
        let token = of("tls://s3cret@a.example").unwrap();
        assert_eq!(token.credentials, Credentials::Token(Secret::from("s3cret".to_owned())));
    }

    #[test]
    fn a_group_is_in_the_path_or_given_or_the_usual_one() {
        let group = |text: &str, given| {
            let address = NatsAddress::parse(&Secret::from(text.to_owned()), given);
            address.map(|address| address.group().to_owned())
        };
        assert_eq!(group("nats://a", None).as_deref(), Ok("warren"));
        assert_eq!(group("nats://a/lab", None).as_deref(), Ok("lab"));
        assert_eq!(group("nats://a", Some("lab")).as_deref(), Ok("lab"));
        assert_eq!(group("nats://a/lab", Some("lab")).as_deref(), Ok("lab"));
        assert_eq!(group("nats://a/lab", Some("other")), Err(BadAddress::TwoGroups));
        let long = "x".repeat(65);
        for bad in ["a.b", "a/b", "*", "é", &long] {
            assert_eq!(group("nats://a", Some(bad)), Err(BadAddress::Group), "{bad}");
        }
    }

    #[test]
    fn what_others_can_read_is_known() {
        for safe in ["nats://127.0.0.1:1", "nats://localhost", "nats://[::1]", "tls://box"] {
            assert!(!of(safe).unwrap().is_exposed(), "{safe}");
        }
        for exposed in ["nats://box", "nats://10.0.0.1", "nats://127.0.0.1,nats://box"] {
            assert!(of(exposed).unwrap().is_exposed(), "{exposed}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_showing_it() {
        for bad in ["", ",", "box:4222", "http://box", "nats://", "nats://a?x=1"] {
            assert_eq!(of(bad), Err(BadAddress::Url), "{bad}");
        }
        for apart in ["nats://u:a@x,nats://u:b@y", "nats://x/a,nats://y", "nats://x,tls://y"] {
            assert_eq!(of(apart), Err(BadAddress::Several), "{apart}");
        }
    }
}
