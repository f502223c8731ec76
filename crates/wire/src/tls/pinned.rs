//! A server that is known by its certificate's fingerprint.

use std::sync::Arc;

use base::Fingerprint;
use ring::digest::{SHA256, digest};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring as provider, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::trust::Trust;

/// Verifies that a server shows the certificate that is known by its fingerprint.
#[derive(Debug)]
pub(super) struct Pinned {
    fingerprint: Fingerprint,
    /// The usual trust, which also accepts the certificate of a server that is called by a name.
    usual: Option<Trust>,
    algorithms: Arc<CryptoProvider>,
}

impl Pinned {
    pub(super) fn new(fingerprint: Fingerprint, usual: Option<Trust>) -> Self {
        Self { fingerprint, usual, algorithms: Arc::new(provider::default_provider()) }
    }
}

/// The fingerprint of a certificate; `None` when it cannot be read.
pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> Option<Fingerprint> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let digest = digest(&SHA256, &parsed.subject_public_key_info());
    digest.as_ref().try_into().ok().map(Fingerprint::of_sha256)
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if fingerprint(end_entity) == Some(self.fingerprint) {
            return Ok(ServerCertVerified::assertion());
        }
        match (&self.usual, server_name) {
            (Some(usual), ServerName::DnsName(_)) => {
                usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.algorithms.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.algorithms.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// 2026-11-20.
    const NOW: u64 = 1_795_132_800;

    fn made(key: &KeyPair, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["box.lan".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        params.self_signed(key).unwrap().into()
    }

    fn verified(pinned: &Pinned, shown: &CertificateDer<'_>, name: &'static str) -> bool {
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW));
        pinned.verify_server_cert(shown, &[], &name, &[], now).is_ok()
    }

    #[test]
    fn the_key_decides_and_neither_name_nor_date() {
        let key = KeyPair::generate().unwrap();
        let own = made(&key, 2030);
        let pinned = Pinned::new(fingerprint(&own).unwrap(), None);
        assert!(verified(&pinned, &own, "192.0.2.7"));
        assert!(verified(&pinned, &own, "other.lan"));
        assert!(verified(&pinned, &made(&key, 2025), "box.lan"), "renewed with the same key");
        let stranger = made(&KeyPair::generate().unwrap(), 2030);
        assert!(!verified(&pinned, &stranger, "box.lan"));
    }

    #[test]
    fn a_trusted_certificate_is_enough_for_a_name_and_not_for_an_address() {
        let of_authority = made(&KeyPair::generate().unwrap(), 2030);
        let old = made(&KeyPair::generate().unwrap(), 2030);
        let usual = Trust::of(std::slice::from_ref(&of_authority)).unwrap();
        let pinned = Pinned::new(fingerprint(&old).unwrap(), Some(usual));
        assert!(verified(&pinned, &of_authority, "box.lan"));
        assert!(!verified(&pinned, &of_authority, "other.lan"));
        assert!(!verified(&pinned, &of_authority, "192.0.2.7"));
    }

    #[test]
    fn what_is_no_certificate_has_no_fingerprint() {
        assert_eq!(fingerprint(&CertificateDer::from(vec![1, 2, 3])), None);
    }
}
