//! TLS for servers and clients: certificates, and which ones a client trusts.

mod pinned;
mod trust;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use base::Fingerprint;
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier, crypto::ring,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use self::{pinned::Pinned, trust::Trust};

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or holds no PEM of the kind that was asked for.
    #[error("{path} cannot be used as a {what}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The expected content.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("the certificate and its key cannot be used")]
    Pair(#[from] rustls::Error),
}

/// The TLS configuration of a server: HTTP/2 and HTTP/1.1 over TLS 1.2 and 1.3.
///
/// # Errors
/// [`TlsError`] when a file is missing or not PEM, or the two do not match.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(certificate)?;
    let key = read(key, "private key", |path| PrivateKeyDer::from_pem_file(path))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The fingerprint of the first certificate of a chain, which is the server's own.
///
/// # Errors
/// [`TlsError`] when the file is missing, or holds no certificate that can be read.
pub fn fingerprint(certificate: &Path) -> Result<Fingerprint, TlsError> {
    let chain = certificates(certificate)?;
    let first = chain.first().and_then(|first| pinned::fingerprint(first));
    first.ok_or_else(|| TlsError::File {
        path: certificate.display().to_string(),
        what: "certificate",
        reason: "no certificate in it can be read".to_owned(),
    })
}

fn read<T>(
    path: &Path,
    what: &'static str,
    parse: impl FnOnce(&Path) -> Result<T, rustls_pki_types::pem::Error>,
) -> Result<T, TlsError> {
    parse(path).map_err(|error| TlsError::File {
        path: path.display().to_string(),
        what,
        reason: error.to_string(),
    })
}

/// The TLS configuration of a client: it trusts the certificates that this machine trusts, read
/// once.
///
/// # Errors
/// When the machine has no trusted certificates at all.
pub fn client_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let config = Arc::new(build_client_config()?);
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// The TLS configuration of a client that knows a server's certificate by its fingerprint. The certificate may have
/// any name and any issuer, and may have expired: the holder of its key is the intended server. A server
/// that is called by a name may show another certificate instead, if this machine trusts that one for the
/// name. For certificates from authorities are replaced regularly, often with new keys.
///
/// # Errors
/// When TLS cannot be used at all.
pub(crate) fn pinned_client_config(fingerprint: Fingerprint) -> io::Result<ClientConfig> {
    let usual = Trust::of(&rustls_native_certs::load_native_certs().certs).ok();
    let pinned = Arc::new(Pinned::new(fingerprint, usual));
    let verifying = builder()?.dangerous().with_custom_certificate_verifier(pinned);
    Ok(verifying.with_no_client_auth())
}

/// The TLS configuration of an HTTP client of one server, as a copy that the caller can change. A server without TLS
/// (`secure` is false) never shows a certificate, so the configuration for it trusts none. `pin`: the fingerprint of
/// the server's certificate. `ca`: a file of certificates that are trusted beside those of the machine.
///
/// # Errors
/// When the server speaks TLS, and the machine has no trusted certificates at all, or the file has none.
pub fn http_client_config(
    secure: bool,
    pin: Option<Fingerprint>,
    ca: Option<&Path>,
) -> io::Result<ClientConfig> {
    if secure {
        if let Some(pin) = pin {
            return pinned_client_config(pin);
        }
        return match ca {
            Some(ca) => trusting(&with_those_of_machine(ca)?, None),
            None => client_config().map(|shared| ClientConfig::clone(&shared)),
        };
    }
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn build_client_config() -> io::Result<ClientConfig> {
    match OWN.get() {
        // If the file cannot be read, only the machine's certificates are trusted: no server could
        // show this one.
        Some(own) => with_those_of_machine(own).map(|all| trusting(&all, all.first())),
        None => Err(io::ErrorKind::NotFound.into()),
    }
    .unwrap_or_else(|_| trusting(&rustls_native_certs::load_native_certs().certs, None))
}

/// The certificate of this machine's own server.
static OWN: OnceLock<PathBuf> = OnceLock::new();

/// Trusts the certificates of a file in this process, beside those that this machine trusts. The first one is
/// that of the user's own server on this machine, and is accepted whatever name the server is called by. Call
/// this before the first connection: the client's configuration is made once. Only the first call counts.
pub fn trust_own(file: PathBuf) {
    let _first_counts = OWN.set(file);
}

/// The certificates of a file, and those that the machine trusts.
fn with_those_of_machine(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let mut all = certificates(file).map_err(io::Error::other)?;
    if all.is_empty() {
        return Err(io::Error::other(format!("{} holds no certificate", file.display())));
    }
    all.extend(rustls_native_certs::load_native_certs().certs);
    Ok(all)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    read(file, "certificate", |path| {
        CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>()
    })
}

fn trusting(
    certificates: &[CertificateDer<'static>],
    own: Option<&CertificateDer<'static>>,
) -> io::Result<ClientConfig> {
    let trust = Trust::of(certificates).map_err(|_| {
        let hint = "this machine has no trusted certificates: install ca-certificates";
        io::Error::new(io::ErrorKind::NotFound, hint)
    })?;
    let verifying = builder()?.dangerous();
    let trust = Arc::new(trust.with_own(own));
    let verifying = verifying.with_custom_certificate_verifier(trust);
    Ok(verifying.with_no_client_auth())
}

fn builder() -> io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let nowhere = Path::new("/nowhere/cert.pem");
        let error = server_config(nowhere, nowhere).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/cert.pem cannot be used as a certificate"), "{error}");
    }

    #[test]
    fn a_file_of_certificates_is_trusted_beside_the_machines() {
        let directory = std::env::temp_dir().join(format!("warren-ca-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (own, empty) = (directory.join("own.pem"), directory.join("empty.pem"));
        let made = rcgen::generate_simple_self_signed(["box.lan".to_owned()]).unwrap();
        std::fs::write(&own, made.cert.pem()).unwrap();
        std::fs::write(&empty, "").unwrap();
        let trusted = with_those_of_machine(&own).unwrap();
        assert_eq!(&trusted[0], made.cert.der());
        assert!(http_client_config(true, None, Some(&own)).is_ok());
        for bad in [&empty, &directory.join("absent.pem")] {
            let error = http_client_config(true, None, Some(bad)).unwrap_err().to_string();
            assert!(error.contains(&bad.display().to_string()), "{error}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
