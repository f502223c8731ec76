//! The accepted certificates: one that a trusted certificate has signed, and a trusted certificate
//! itself.
//!
//! The library does not accept a certificate as a server's own if it may sign others, but `openssl
//! req -x509` makes such certificates. Anyone who trusts one already lets its key vouch for any
//! server, so letting it vouch for its own server grants nothing more.

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::ring as provider,
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Verifies servers' certificates.
#[derive(Debug)]
pub(super) struct Trust {
    usual: Arc<WebPkiServerVerifier>,
    /// The SHA-256 of each certificate that is trusted.
    trusted: Vec<[u8; 32]>,
    /// The SHA-256 of the certificate of this machine's own server.
    own: Option<[u8; 32]>,
}

impl Trust {
    /// Trusts the readable ones of these certificates.
    ///
    /// # Errors
    /// When none of them can be read.
    pub(super) fn of(certificates: &[CertificateDer<'static>]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let algorithms = Arc::new(provider::default_provider());
        let usual =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), algorithms).build();
        let usual = usual.map_err(|error| Error::General(error.to_string()))?;
        let trusted = certificates.iter().filter_map(|certificate| sha256(certificate)).collect();
        Ok(Self { usual, trusted, own: None })
    }

    /// Accepts this certificate whatever name its server is called by. Only that server has the key, and on its
    /// own machine it is called by an address.
    pub(super) fn with_own(self, certificate: Option<&CertificateDer<'_>>) -> Self {
        Self { own: certificate.and_then(|certificate| sha256(certificate)), ..self }
    }

    fn is_own(&self, certificate: &CertificateDer<'_>) -> bool {
        self.own.is_some() && sha256(certificate) == self.own
    }

    /// Checks a currently valid certificate that may sign others: it is accepted if it is trusted and
    /// has the server's name.
    fn signs_others(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
    ) -> Result<ServerCertVerified, Error> {
        if !sha256(certificate).is_some_and(|digest| self.trusted.contains(&digest)) {
            return Err(CertificateError::UnknownIssuer.into());
        }
        if !self.is_own(certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }
}

fn sha256(certificate: &[u8]) -> Option<[u8; 32]> {
    digest(&SHA256, certificate).as_ref().try_into().ok()
}

/// Whether a certificate was refused only because it may sign others. The library checks this after the
/// validity period.
fn may_sign_others(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Whether a certificate was refused only because it is for another name. The library checks this last.
fn is_of_other_name(error: &Error) -> bool {
    let Error::InvalidCertificate(why) = error else { return false };
    matches!(
        why,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    )
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match usual {
            Err(error) if may_sign_others(&error) => self.signs_others(end_entity, server_name),
            Err(error) if is_of_other_name(&error) && self.is_own(end_entity) => {
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// 2026-11-20.
    const NOW: u64 = 1_795_132_800;

    /// A self-signed certificate of `box.lan` until this year.
    fn made(is_ca: IsCa, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["box.lan".to_owned()]).unwrap();
        params.is_ca = is_ca;
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().into()
    }

    fn ca() -> IsCa {
        IsCa::Ca(BasicConstraints::Unconstrained)
    }

    fn verified(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &'static str,
    ) -> Result<(), String> {
        let trust = Trust::of(std::slice::from_ref(trusted)).unwrap();
        verified_by(&trust, shown, name)
    }

    fn verified_by(
        trust: &Trust,
        shown: &CertificateDer<'static>,
        name: &'static str,
    ) -> Result<(), String> {
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW));
        let verified = trust.verify_server_cert(shown, &[], &name, &[], now);
        verified.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_trusted_certificate_is_its_own_servers_whether_it_may_sign_others_or_not() {
        for is_ca in [ca(), IsCa::NoCa, IsCa::ExplicitNoCa] {
            let own = made(is_ca, 2030);
            assert_eq!(verified(&own, &own, "box.lan"), Ok(()));
        }
    }

    #[test]
    fn the_own_servers_certificate_counts_by_any_name_and_no_other_does() {
        for is_ca in [ca(), IsCa::NoCa] {
            let (own, other, old) = (made(is_ca, 2030), made(is_ca, 2030), made(is_ca, 2025));
            let all = [own.clone(), other.clone(), old.clone()];
            let trust = Trust::of(&all).unwrap().with_own(Some(&own));
            assert_eq!(verified_by(&trust, &own, "127.0.0.1"), Ok(()));
            let refused = verified_by(&trust, &other, "127.0.0.1").unwrap_err();
            assert!(refused.contains("not valid for name"), "{refused}");
            let trust = Trust::of(&all).unwrap().with_own(Some(&old));
            assert!(verified_by(&trust, &old, "127.0.0.1").unwrap_err().contains("expired"));
        }
    }

    #[test]
    fn another_name_another_certificate_and_another_time_are_refused() {
        for is_ca in [ca(), IsCa::NoCa] {
            let own = made(is_ca, 2030);
            let name = verified(&own, &own, "other.lan").unwrap_err();
            assert!(name.contains("not valid for name"), "{name}");
            let stranger = verified(&own, &made(is_ca, 2030), "box.lan").unwrap_err();
            assert!(
                stranger.contains("UnknownIssuer") || stranger.contains("BadSignature"),
                "{stranger}"
            );
            let old = made(is_ca, 2025);
            let old = verified(&old, &old, "box.lan").unwrap_err();
            assert!(old.contains("expired"), "{old}");
        }
    }

    #[test]
    fn without_a_certificate_there_is_no_trust() {
        assert!(Trust::of(&[]).is_err());
    }
}
