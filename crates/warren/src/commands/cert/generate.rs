//! Generates the certificate and its key.

use std::net::IpAddr;

use anyhow::{Context, ensure};
use base::Secret;
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::DnsName;
use sha2::{Digest, Sha256};

use crate::exit::usage;

/// The most names that one certificate is for.
const MAX_NAMES: usize = 100;

/// A self-signed certificate and its key.
pub(super) struct Certificate {
    /// Its host names and addresses.
    pub(super) names: Vec<String>,
    /// The day, in UTC, at whose beginning it expires.
    pub(super) until: Date,
    /// The SHA-256 of its DER, as other programs write it: in capitals, with colons.
    pub(super) fingerprint: String,
    /// The certificate, as PEM.
    pub(super) certificate: String,
    /// Its key, as PEM.
    pub(super) key: Secret,
}

impl Certificate {
    /// A new certificate for these names, valid for this many days from `now`.
    ///
    /// # Errors
    /// When there are too many names, or one is neither a host name nor an address.
    pub(super) fn new(names: &[String], now: Timestamp, days: u16) -> anyhow::Result<Self> {
        let until = day(now, i64::from(days))?;
        let key = KeyPair::generate().context("no key could be made")?;
        let params = params(names, day(now, -1)?, until).map_err(usage)?;
        let made = params.self_signed(&key).context("no certificate could be made")?;
        Ok(Self {
            names: names.to_vec(),
            until,
            fingerprint: fingerprint(made.der()),
            certificate: made.pem(),
            key: Secret::from(key.serialize_pem()),
        })
    }

    /// The URL of its server, on the usual port.
    pub(super) fn url(&self) -> String {
        let host = self.names.iter().find(|name| !name.starts_with('*'));
        let host = host.map_or("SERVER", String::as_str);
        match host.parse() {
            Ok(IpAddr::V6(_)) => format!("https://[{host}]:9178"),
            _ => format!("https://{host}:9178"),
        }
    }
}

/// Whether a text is a host name or an address that a certificate can be for.
pub(super) fn is_name(text: &str) -> bool {
    let host = text.strip_prefix("*.").unwrap_or(text);
    text.parse::<IpAddr>().is_ok() || DnsName::try_from(host).is_ok()
}

/// The parameters of a certificate that may not sign others: a stolen key is then of no use for other names.
fn params(names: &[String], from: Date, until: Date) -> anyhow::Result<CertificateParams> {
    ensure!(names.len() <= MAX_NAMES, "a certificate is for at most {MAX_NAMES} names");
    for name in names {
        ensure!(
            is_name(name),
            "{name:?} is neither a host name nor an address: give it without scheme and port"
        );
    }
    let mut params = CertificateParams::new(names)?;
    let first = names.first().map_or("warren", String::as_str);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, first);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let begins = |day: Date| {
        date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    (params.not_before, params.not_after) = (begins(from), begins(until));
    Ok(params)
}

/// The day `days` from now, which may be in the past: clocks differ, so a certificate begins yesterday.
fn day(now: Timestamp, days: i64) -> anyhow::Result<Date> {
    let at =
        now.checked_add(SignedDuration::from_hours(24 * days)).context("the clock is wrong")?;
    Ok(at.to_zoned(TimeZone::UTC).date())
}

fn fingerprint(der: &[u8]) -> String {
    let digits: Vec<String> =
        Sha256::digest(der).iter().map(|byte| format!("{byte:02X}")).collect();
    digits.join(":")
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::{CertificateDer, pem::PemObject};

    use super::*;

    fn made(names: &[&str]) -> anyhow::Result<Certificate> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Certificate::new(&names, "2026-11-20T16:00:00Z".parse().unwrap(), 30)
    }

    #[test]
    fn names_and_addresses_are_taken_and_urls_are_not() {
        let made = made(&["box.lan", "*.box.lan", "10.0.0.7", "::1"]).unwrap();
        assert_eq!(made.until.to_string(), "2026-12-20");
        assert_eq!(made.url(), "https://box.lan:9178");
        for bad in ["http://box", "box:9178", "", "a b", "bo\u{1b}x", "*", "[::1]"] {
            assert!(self::made(&[bad]).is_err(), "{bad:?}");
        }
        assert_eq!(self::made(&["*.lan", "::1"]).unwrap().url(), "https://[::1]:9178");
        assert!(self::made(&["a"; MAX_NAMES]).is_ok());
        assert!(self::made(&["a"; MAX_NAMES + 1]).is_err());
    }

    #[test]
    fn the_fingerprint_is_that_of_the_certificate() {
        let made = made(&["localhost"]).unwrap();
        let der = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
        assert_eq!(made.fingerprint, fingerprint(&der));
        assert_eq!(made.fingerprint.len(), 32 * 3 - 1);
        assert!(made.key.expose().contains("PRIVATE KEY"));
    }
}
