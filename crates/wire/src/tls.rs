//! Certificates, ours and theirs.

mod trust;

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier, crypto::ring,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use self::trust::Trust;

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
    /// Certificate and key do not go together, or are of an unknown kind.
    #[error("the certificate and its key cannot be used")]
    Pair(#[from] rustls::Error),
}

/// The TLS configuration of a server: HTTP/2 and HTTP/1.1 over TLS 1.2 and 1.3.
///
/// # Errors
/// [`TlsError`] when a file is missing or not PEM, or the two do not match.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = read(certificate, "certificate", |path| {
        CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>()
    })?;
    let key = read(key, "private key", |path| PrivateKeyDer::from_pem_file(path))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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

/// The same for an HTTP client of one server, as a copy that the caller can change. A server
/// without TLS (`secure` is not set) never shows a certificate, so none need be trusted here.
///
/// # Errors
/// When the server speaks TLS, and the machine has no trusted certificates at all.
pub fn http_client_config(secure: bool) -> io::Result<ClientConfig> {
    if secure {
        return client_config().map(|shared| ClientConfig::clone(&shared));
    }
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn build_client_config() -> io::Result<ClientConfig> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    let trust = Trust::of(&certificates).map_err(|_| {
        let hint = "this machine has no trusted certificates: install ca-certificates";
        io::Error::new(io::ErrorKind::NotFound, hint)
    })?;
    let verifying = builder()?.dangerous().with_custom_certificate_verifier(Arc::new(trust));
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
}
