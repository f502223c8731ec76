//! TLS to the database: the certificate is checked with its name, whatever the mode.

use std::process::{Command, Output};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use testkit::postgres::PostgresServer;

use crate::servers::binary;

/// An authority of its own, and a database with a certificate by it for 127.0.0.1.
struct Setting {
    postgres: PostgresServer,
    files: TempDir,
}

impl Setting {
    fn new() -> Self {
        let files = TempDir::new().unwrap();
        let (issuer, ca) = authority("ours");
        std::fs::write(files.path().join("ca.pem"), ca).unwrap();
        std::fs::write(files.path().join("other.pem"), authority("other").1).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let postgres = PostgresServer::start_with_tls(&certificate.pem(), &key.serialize_pem());
        Self { postgres, files }
    }

    /// Makes a key in a database, which is trusted by this file.
    fn make_key(&self, database: &str, trusted: &str) -> Output {
        let mut command = Command::new(binary());
        command
            .args(["key", "create", "--name", "n", "--data-dir"])
            .arg(self.files.path().join("d"));
        command.env("WARREN_DATABASE", database);
        command.env("SSL_CERT_FILE", self.files.path().join(trusted)).env_remove("SSL_CERT_DIR");
        command.output().unwrap()
    }
}

fn authority(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn a_certificate_of_a_trusted_authority_is_accepted_for_its_name_alone() {
    let setting = Setting::new();
    let here = setting.postgres.database_at("127.0.0.1");
    for mode in ["require", "verify-ca", "verify-full"] {
        let done = setting.make_key(&format!("{here}?sslmode={mode}"), "ca.pem");
        assert!(done.status.success(), "{mode}: {}", said(&done));
    }
    let encrypted = "SELECT count(*) FROM warren.keys";
    assert_eq!(setting.postgres.sql(&here, encrypted), "3");
    for (database, trusted, words) in [
        (here.clone(), "other.pem", "UnknownIssuer"),
        (setting.postgres.database_at("localhost"), "ca.pem", "not valid for name"),
    ] {
        for mode in ["require", "verify-full"] {
            let done = setting.make_key(&format!("{database}?sslmode={mode}"), trusted);
            let said = said(&done);
            assert!(!done.status.success() && said.contains(words), "{mode}: {said}");
            assert!(said.contains("cannot be used now") && !said.contains("warren@"), "{said}");
        }
    }
    let done = setting.make_key(&format!("{here}?sslmode=disable"), "other.pem");
    assert!(done.status.success(), "without TLS nothing is checked: {}", said(&done));
}

#[test]
fn a_database_without_tls_is_refused_where_tls_is_required() {
    let postgres = PostgresServer::shared();
    let directory = TempDir::new().unwrap();
    let mut command = Command::new(binary());
    command.args(["key", "create", "--name", "n", "--data-dir"]).arg(directory.path());
    command.env("WARREN_DATABASE", format!("{}?sslmode=require", postgres.database()));
    let done = command.output().unwrap();
    assert!(!done.status.success() && said(&done).contains("TLS"), "{}", said(&done));
}
