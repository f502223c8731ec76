//! The URL of a Warren server, as people write it.

use url::Url;

/// The port of a server whose address names neither a port nor a scheme.
pub const PORT: u16 = 9178;

/// Reads the address of a server. `HOST` and `HOST:PORT` stand for `http://HOST:PORT`. A `/v1` at the end is
/// dropped, because people copy it from settings of API clients. `None` if the text is not a URL.
pub fn server_url(text: &str) -> Option<Url> {
    let text = text.trim();
    let mut url = match text.contains("://") {
        true => Url::parse(text).ok()?,
        false => without_scheme(text)?,
    };
    let path = url.path().trim_end_matches('/');
    if let Some(before) = path.strip_suffix("/v1") {
        let before = before.to_owned();
        url.set_path(&before);
    }
    Some(url)
}

fn without_scheme(text: &str) -> Option<Url> {
    let place = text.split(['/', '?', '#']).next().unwrap_or_default();
    if place.is_empty() {
        return None;
    }
    let mut url = Url::parse(&format!("http://{text}")).ok()?;
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        // A URL of http always takes a port.
        url.set_port(Some(PORT)).ok()?;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_scheme_and_port_and_may_end_as_a_base_url_does() {
        for (text, url) in [
            ("http://h:1", "http://h:1/"),
            (" https://h/warren/ ", "https://h/warren/"),
            ("127.0.0.1:9178", "http://127.0.0.1:9178/"),
            ("127.0.0.1", "http://127.0.0.1:9178/"),
            ("box.lan", "http://box.lan:9178/"),
            ("localhost:80", "http://localhost/"),
            ("[::1]:7", "http://[::1]:7/"),
            ("[::1]", "http://[::1]:9178/"),
            ("box/warren", "http://box:9178/warren"),
            ("box:7/v1/", "http://box:7/"),
            ("http://h:1/v1", "http://h:1/"),
            ("https://h/warren/v1/", "https://h/warren"),
            ("http://h/v1beta", "http://h/v1beta"),
            ("wss://h/v1", "wss://h/"),
        ] {
            assert_eq!(server_url(text).map(String::from).as_deref(), Some(url), "{text}");
        }
        for text in ["", " ", "http://", "/v1", "a b", "box:66000", "::1"] {
            assert_eq!(server_url(text), None, "{text}");
        }
    }
}
