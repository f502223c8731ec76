//! Advice about an error of a connection.

use std::{error::Error, fmt, io};

use rustls::CertificateError;

/// Advice for people, by what went wrong. Shown after the error itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// No authority that this machine trusts has signed the certificate.
    Untrusted,
    /// The certificate is for another name.
    OtherName,
    /// The certificate is not valid now.
    NotNow,
    /// This side spoke TLS, and the answer was not TLS.
    NoTls,
    /// This side spoke HTTP, and the answer was not HTTP.
    NoHttp,
    /// The name has no address.
    NoName,
}

impl Advice {
    /// Advice on an error: for the error itself, or else for the first of its causes that has any.
    pub fn on(error: &(dyn Error + 'static)) -> Option<Self> {
        let own = error.downcast_ref().map(of_tls).or_else(|| error.downcast_ref().map(of_http));
        let own = own.or_else(|| error.downcast_ref().map(of_io)).flatten();
        // `io::Error::source` skips the error that it holds, and returns that error's source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let held = held.map(|held| held as &(dyn Error + 'static));
        own.or_else(|| held.or_else(|| error.source()).and_then(Self::on))
    }
}

fn of_tls(error: &rustls::Error) -> Option<Advice> {
    match error {
        rustls::Error::InvalidCertificate(why) => of_certificate(why),
        rustls::Error::InvalidMessage(_) => Some(Advice::NoTls),
        _ => None,
    }
}

fn of_certificate(why: &CertificateError) -> Option<Advice> {
    match why {
        // A certificate that was replaced under the same name has a signature that does not match
        // the old certificate's key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(Advice::Untrusted),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some(Advice::OtherName)
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Some(Advice::NotNow),
        _ => None,
    }
}

fn of_http(error: &hyper::Error) -> Option<Advice> {
    error.is_parse().then_some(Advice::NoHttp)
}

fn of_io(error: &io::Error) -> Option<Advice> {
    // Neither the resolver nor the TLS library has an error kind for these cases, so the words must
    // do.
    let words = error.get_ref().map(ToString::to_string).unwrap_or_default();
    if words.starts_with("failed to lookup address") {
        return Some(Advice::NoName);
    }
    (words == "tls handshake eof").then_some(Advice::NoTls)
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Untrusted => {
                "nobody whom this machine trusts stands for the server's certificate; if the server \
                 is your own, name the file of its certificate in SSL_CERT_FILE (a backend's with \
                 --backend-ca)"
            }
            Self::OtherName => {
                "use a name that the certificate is for, or make one for this name on the server: \
                 `warren cert NAME`"
            }
            Self::NotNow => {
                "if the certificate should be valid now, the clock of this machine is wrong; else the \
                 server needs a new certificate"
            }
            Self::NoTls => {
                "what answers there speaks no TLS; if the server has none, write http:// or ws:// \
                 instead of https:// or wss://"
            }
            Self::NoHttp => {
                "what answers there speaks no HTTP; if it speaks TLS, write https:// or wss:// instead \
                 of http:// or ws://"
            }
            Self::NoName => "is the name spelt right, and does this machine's DNS know it?",
        })
    }
}

/// An error with all its causes, and the advice on it.
pub fn advised(error: &(dyn Error + 'static)) -> String {
    let words = base::error::chain(error);
    match Advice::on(error) {
        Some(advice) => format!("{words}: {advice}"),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(error: rustls::Error) -> io::Error {
        io::Error::other(io::Error::other(error))
    }

    #[test]
    fn an_error_is_advised_upon_however_deep_it_lies() {
        let refused = |why: CertificateError| wrapped(why.into());
        let cases = [
            (refused(CertificateError::UnknownIssuer), Some(Advice::Untrusted)),
            (refused(CertificateError::BadSignature), Some(Advice::Untrusted)),
            (refused(CertificateError::Expired), Some(Advice::NotNow)),
            (refused(CertificateError::NotValidYet), Some(Advice::NotNow)),
            (refused(CertificateError::NotValidForName), Some(Advice::OtherName)),
            (
                wrapped(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)),
                Some(Advice::NoTls),
            ),
            (
                io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof"),
                Some(Advice::NoTls),
            ),
            (io::Error::other("failed to lookup address information: x"), Some(Advice::NoName)),
            (io::ErrorKind::ConnectionRefused.into(), None),
        ];
        for (error, advice) in cases {
            assert_eq!(Advice::on(&error), advice, "{error:?}");
        }
        let told = advised(&wrapped(CertificateError::UnknownIssuer.into()));
        assert!(told.contains("UnknownIssuer") && told.contains("SSL_CERT_FILE"), "{told}");
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_is_advised_upon() {
        // Too long for the resolver to ask anybody.
        let error = tokio::net::TcpStream::connect(("x".repeat(300), 1)).await.unwrap_err();
        assert_eq!(Advice::on(&error), Some(Advice::NoName), "{error:?}");
    }
}
