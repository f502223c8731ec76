//! The request to a proxy for a tunnel, and its answer.

use std::io;

use http::StatusCode;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use super::{BadProxy, Proxy, authority, bare};

/// The longest head of a proxy's answer.
const MAX_HEAD: usize = 16 * 1024;

/// Why a proxy opened no tunnel. The error never contains the name and password for the proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The environment names no usable proxy.
    #[error(transparent)]
    Setting(#[from] BadProxy),
    /// There is no connection to the proxy.
    #[error("could not connect to the proxy {proxy} that {variable} names")]
    Connect {
        /// Host and port of the proxy.
        proxy: String,
        /// The variable that names it.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The connection to the proxy broke before it had answered.
    #[error("the proxy {proxy} that {variable} names broke off")]
    Broke {
        /// Host and port of the proxy.
        proxy: String,
        /// The variable that names it.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The proxy opened no tunnel.
    #[error("the proxy {proxy} that {variable} names {words}")]
    Refused {
        /// Host and port of the proxy.
        proxy: String,
        /// The variable that names it.
        variable: &'static str,
        /// The proxy's answer, and what to do.
        words: String,
    },
}

impl Proxy {
    /// Connects to the proxy, and through it to `host`. Has no deadline: the caller must set one.
    ///
    /// # Errors
    /// [`ProxyError`] when there is no tunnel.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ProxyError> {
        let (proxy, variable) = (self.shown(), self.variable);
        let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
        let connected = connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        let mut stream = connected.map_err(|source| ProxyError::Connect {
            proxy: proxy.clone(),
            variable,
            source,
        })?;
        self.open(&mut stream, &authority(bare(host), port)).await?;
        tracing::debug!(proxy, host, port, "connected by a proxy");
        Ok(stream)
    }

    /// Asks for a tunnel to `target` over a connection to the proxy.
    async fn open<S>(&self, stream: &mut S, target: &str) -> Result<(), ProxyError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (proxy, variable) = (self.shown(), self.variable);
        let answer = async {
            stream.write_all(self.question(target).as_bytes()).await?;
            head(stream).await
        };
        let head = answer.await.map_err(|source| ProxyError::Broke {
            proxy: proxy.clone(),
            variable,
            source,
        })?;
        let refused = |words| ProxyError::Refused { proxy, variable, words };
        match status(&head) {
            Some(status) if status.is_success() => Ok(()),
            Some(status) => Err(refused(self.words(status, &head, target))),
            None => Err(refused(
                "does not answer as an HTTP proxy does: is it one, and without TLS?".to_owned(),
            )),
        }
    }

    fn question(&self, target: &str) -> String {
        let authorization = self.authorization.as_ref().map(|own| own.expose());
        let authorization =
            authorization.map(|own| format!("Proxy-Authorization: {own}\r\n")).unwrap_or_default();
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n")
    }

    fn words(&self, status: StatusCode, head: &str, target: &str) -> String {
        let variable = self.variable;
        match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED if !offers_basic(head) => format!(
                "asks for a kind of authentication that Warren does not speak ({status}): it needs a \
                 proxy that takes name and password (Basic), or none"
            ),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED if self.authorization.is_some() => format!(
                "does not take the name and password in {variable} ({status}): write them as \
                 http://NAME:PASSWORD@HOST:PORT, with special characters percent-encoded"
            ),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => format!(
                "asks for name and password ({status}): write {variable} as \
                 http://NAME:PASSWORD@HOST:PORT"
            ),
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                format!("could not reach {target} ({status}): is the address right?")
            }
            _ => format!(
                "does not allow a connection to {target} ({status}): let its rules allow CONNECT to \
                 this address and port, or list the host in NO_PROXY if it can be reached directly"
            ),
        }
    }
}

/// Reads the head of an answer and nothing of what follows it.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == MAX_HEAD {
            return Err(io::Error::other(format!(
                "its answer begins with more than {MAX_HEAD} bytes"
            )));
        }
        head.push(stream.read_u8().await?);
        if head.len() == 5 && head != b"HTTP/" {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn status(head: &str) -> Option<StatusCode> {
    let line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a 407 answer accepts Basic authentication. An answer that names no scheme counts as
/// accepting it.
fn offers_basic(head: &str) -> bool {
    let offers = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("proxy-authenticate").then(|| value.to_ascii_lowercase())
    });
    let mut offers = offers.peekable();
    offers.peek().is_none() || offers.any(|offer| offer.contains("basic"))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::proxy::Proxies;

    fn proxy(url: &str) -> Proxy {
        let proxies = Proxies::read(|name| (name == "HTTPS_PROXY").then(|| url.to_owned()));
        proxies.towards(true, "far.example", 443).unwrap().unwrap().clone()
    }

    /// The request to a proxy, and the result of its answer.
    async fn opened(url: &str, answer: &[u8]) -> (String, Result<(), String>) {
        let (mut ours, mut theirs) = duplex(2 * MAX_HEAD);
        theirs.write_all(answer).await.unwrap();
        let opened = proxy(url).open(&mut ours, "far.example:443").await;
        let mut rest = Vec::new();
        drop(theirs.shutdown().await);
        if opened.is_ok() {
            ours.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"rest", "what follows the head belongs to the tunnel");
        }
        drop(ours);
        let mut asked = String::new();
        theirs.read_to_string(&mut asked).await.unwrap();
        (asked, opened.map_err(|error| base::error::chain(&error)))
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_by_name_with_the_password() {
        let answer = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nrest";
        let (asked, opened) = opened("http://ann:pw@p:1", answer).await;
        assert_eq!(
            asked,
            "CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\
             Proxy-Authorization: Basic YW5uOnB3\r\n\r\n"
        );
        assert_eq!(opened, Ok(()));
    }

    #[tokio::test]
    async fn a_refusal_says_what_to_do_and_hides_the_password() {
        let ntlm = "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\n\r\n";
        let basic = "HTTP/1.1 407 No\r\nproxy-authenticate: Basic realm=\"x\"\r\n\r\n";
        let open = "http://p:1";
        let cases = [
            (open, "HTTP/1.0 407 No\r\n\r\n", "asks for name and password"),
            ("http://ann:pw@p:1", basic, "does not take the name and password in HTTPS_PROXY"),
            (open, ntlm, "a kind of authentication"),
            (
                open,
                "HTTP/1.1 403 Forbidden\r\n\r\n",
                "does not allow a connection to far.example:443",
            ),
            (open, "HTTP/1.1 503 X\r\n\r\n", "could not reach far.example:443"),
            (open, "\x15\x03\x01\x00\x02\x02\x46", "does not answer as an HTTP proxy"),
            (open, "HTTP/1.1 2", "broke off"),
        ];
        for (url, answer, words) in cases {
            let (mut ours, mut theirs) = duplex(1024);
            theirs.write_all(answer.as_bytes()).await.unwrap();
            theirs.shutdown().await.unwrap();
            let error = proxy(url).open(&mut ours, "far.example:443").await.unwrap_err();
            let error = base::error::chain(&error);
            assert!(error.contains(words), "{error}");
            assert!(error.contains("p:1") && !error.contains("pw"), "{error}");
        }
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_bounded() {
        let long = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'x'; MAX_HEAD]].concat();
        let (_, opened) = opened("http://p:1", &long).await;
        assert!(opened.unwrap_err().contains("more than"), "bounded");
    }
}
