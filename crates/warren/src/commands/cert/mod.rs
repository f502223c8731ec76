//! `warren cert`: a self-signed certificate.
//!
//! - `generate`: makes the certificate and its key
//! - `files`: writes them

mod files;
mod generate;

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, value_parser};
use jiff::civil::Date;
use serde_json::json;

use self::{files::Files, generate::Certificate};
use super::{say, say_json, table::plain};

/// Make a self-signed certificate for TLS and its key: cert.pem, which is public, and key.pem, which only
/// its owner can read. Machines that are to trust the server get a copy of cert.pem
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren cert\n  \
    warren cert gpu.lan 192.168.1.20 --dir /etc/warren")]
pub(crate) struct Cert {
    /// Host names and addresses by which the server is reached [default: this machine's]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The directory for both files
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// How many days it is valid
    #[arg(long, value_name = "N", default_value_t = 825,
        value_parser = value_parser!(u16).range(1..=3650))]
    days: u16,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Cert {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let names = if self.names.is_empty() { own_names() } else { self.names };
        let files = Files::within(&self.dir);
        let made = Certificate::new(&names, jiff::Timestamp::now(), self.days)?;
        files.write(&made, self.force)?;
        match self.json {
            true => tell_json(&files, &made),
            false => tell(&files, &made),
        }
    }
}

/// The names and addresses of this machine, for others and for itself.
fn own_names() -> Vec<String> {
    let host = hardware::host_name();
    let is_short = !host.contains('.') && host != "localhost";
    let names = [Some(host.clone()), is_short.then(|| format!("{host}.local"))];
    let named = names.into_iter().flatten().filter(|name| generate::is_name(name));
    let addresses = hardware::addresses();
    let here = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut all: Vec<String> = Vec::new();
    for name in named.chain(addresses.iter().map(IpAddr::to_string)).chain(here) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn tell_json(files: &Files, made: &Certificate) -> anyhow::Result<()> {
    let all = json!({
        "certificate": files.certificate, "key": files.key, "names": made.names,
        "until": until(made.until), "sha256": made.fingerprint,
    });
    Ok(say_json(&all)?)
}

fn tell(files: &Files, made: &Certificate) -> anyhow::Result<()> {
    let [certificate, key] =
        [&files.certificate, &files.key].map(|path| path.display().to_string());
    let url = made.url();
    say(&format!(
        "certificate  {certificate}\nkey          {key}\nfor          {}\nuntil        {}\n\
         sha-256      {}\n",
        plain(&made.names.join(", ")),
        until(made.until),
        made.fingerprint,
    ))?;
    say(&format!(
        "The server speaks TLS with both:\n  \
         warren serve --listen 0.0.0.0:9178 --require-key --tls-cert {certificate} --tls-key {key}\n\n\
         Machines that are to trust it get a copy of the certificate, never of the key:\n  \
         SSL_CERT_FILE=cert.pem warren worker --server {url} --secret SECRET\n  \
         SSL_CERT_FILE=cert.pem warren status --server {url} --admin-token TOKEN\n  \
         curl --cacert cert.pem {url}/health\n\
         Programs in Python take SSL_CERT_FILE too, those on Node NODE_EXTRA_CA_CERTS."
    ))?;
    Ok(())
}

fn until(day: Date) -> String {
    format!("{day}T00:00:00Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_names_fit_into_a_certificate() {
        let names = own_names();
        assert!(
            ["localhost", "127.0.0.1", "::1"].iter().all(|name| names.iter().any(|n| n == name))
        );
        let made = Certificate::new(&names, jiff::Timestamp::now(), 1).unwrap();
        assert_eq!(made.names, names);
    }
}
