//! Gathers the facts: asks the system, the server and the model servers, each within a deadline.

use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use base::system::{file_id, file_limits, mode};
use client::Warren;
use daemon::{
    ConfigFile, ServeOptions, Settings,
    database::{DatabaseReport, examine},
    nats::{self, ExaminedNats},
    options::WorkerOptions,
    settings::data_dir,
};
use discovery::Service;
use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::{net::TcpStream, task::spawn_blocking, time::timeout};
use worker::Lend;
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

use super::{
    backends::Backend,
    data::{self, Data, Entry},
    engines::wrong,
    machine::{Clocks, Limits, Services, available_memory},
    network::{Health, Mdns, Port, ProxyVariables, Reach, Server},
    settings::{Certificate, Configuration, Dates},
};
use crate::{
    commands::{
        model_engines::{self, SurveyedEngine},
        servers::address,
        service::{self, Manager, ServiceContext},
        target::RunningServer,
        worker as lending,
    },
    system::{is_writable, owner, user_id},
};

/// The longest time that a server or a model server may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long to wait for answers by mDNS.
const BROWSE: Duration = Duration::from_secs(1);

/// The most processes that are searched for the one that uses the port.
const PROCESSES: usize = 10_000;

/// The facts for the checks.
pub(super) struct Facts {
    pub(super) now: Timestamp,
    pub(super) configuration: Configuration,
    pub(super) certificate: Option<Certificate>,
    pub(super) data: Data,
    pub(super) database: Option<DatabaseReport>,
    pub(super) nats: Option<Result<ExaminedNats, String>>,
    pub(super) port: Port,
    pub(super) server: Server,
    pub(super) reach: Reach,
    pub(super) service: Services,
    pub(super) clocks: Clocks,
    pub(super) limits: Limits,
    pub(super) backends: Vec<Backend>,
    pub(super) engines: Vec<SurveyedEngine>,
    pub(super) proxies: ProxyVariables,
    pub(super) mdns: Mdns,
}

pub(super) async fn gather(
    named: &RunningServer,
    file: anyhow::Result<ConfigFile>,
    cli: &clap::Command,
) -> Facts {
    let (path, file) = match file {
        Ok(file) => (Ok(file.path.clone()), file),
        Err(error) => (Err(format!("{error:#}")), ConfigFile::default()),
    };
    let (options, environment) = options(ServiceContext { cli, file: &file });
    let server = server(named, &options).await;
    let listen = listening(named, &options);
    let (backends, engines, mdns) =
        tokio::join!(backends(&file.worker), engines(&file.worker, &options), mdns(&options));
    Facts {
        now: Timestamp::now(),
        configuration: configuration(path.and_then(|path| environment.map(|()| path)), &options),
        certificate: options.tls_cert.as_deref().map(certificate),
        data: data(&options),
        database: database(&options).await,
        nats: nats_server(&options).await,
        port: port(listen),
        reach: reach(listen, &server).await,
        service: services().await,
        clocks: clocks(&server, &file.worker, &backends).await,
        limits: limits(),
        proxies: proxies(),
        server,
        backends,
        engines,
        mdns,
    }
}

/// A server's settings: those of the environment first, then those of an installed service, then those of the
/// file. And whether the environment can be used.
fn options(context: ServiceContext<'_>) -> (ServeOptions, Result<(), String>) {
    let of_service = service::server_options(context);
    match service::options_of_environment() {
        Ok(own) => (own.or(of_service.unwrap_or_default()).or(context.file.serve.clone()), Ok(())),
        Err(error) => {
            (of_service.unwrap_or_else(|| context.file.serve.clone()), Err(error.to_string()))
        }
    }
}

fn configuration(file: Result<Option<PathBuf>, String>, options: &ServeOptions) -> Configuration {
    let refuses = |makes_key| {
        let settings = Settings::new(options.clone(), makes_key);
        settings.err().map(|error| format!("{error:#}"))
    };
    Configuration { file, serve_refuses: refuses(false), up_refuses: refuses(true) }
}

fn certificate(path: &Path) -> Certificate {
    let read = || {
        let der = CertificateDer::from_pem_file(path).map_err(|error| error.to_string())?;
        let (_, parsed) = parse_x509_certificate(&der).map_err(|error| error.to_string())?;
        let validity = parsed.validity();
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.iter().flat_map(|names| &names.value.general_names);
        Ok(Dates {
            names: names.filter_map(name).collect(),
            from: time(validity.not_before.timestamp())?,
            until: time(validity.not_after.timestamp())?,
        })
    };
    Certificate(read().map_err(|error: String| format!("{}: {error}", path.display())))
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => {
                <[u8; 4]>::try_from(*bytes).ok().map(|v4| std::net::Ipv4Addr::from(v4).to_string())
            }
            _ => {
                <[u8; 16]>::try_from(*bytes).ok().map(|v6| std::net::Ipv6Addr::from(v6).to_string())
            }
        },
        _ => None,
    }
}

fn data(options: &ServeOptions) -> Data {
    let path = data_dir(options.data_dir.clone()).unwrap_or_default();
    let entry = fs::metadata(&path).ok();
    let nearest = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let lock = fs::metadata(path.join("lock")).ok();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    Data {
        entry: entry.map(|entry| Entry {
            is_directory: entry.is_dir(),
            owner: owner(&entry),
            mode: mode(&entry),
        }),
        is_writable: is_writable(nearest),
        user: user_id(),
        holder: lock.and_then(|lock| data::holder(&locks, file_id(&lock)[1])),
        free: hardware::free_space(nearest).ok(),
        path,
    }
}

/// The database that servers share, if these settings name one.
async fn database(options: &ServeOptions) -> Option<DatabaseReport> {
    let url = options.database.clone()?;
    let directory = data_dir(options.data_dir.clone()).unwrap_or_default();
    spawn_blocking(move || examine(&url, &directory)).await.ok()
}

/// The NATS server by which servers act as one, if these settings name one.
async fn nats_server(options: &ServeOptions) -> Option<Result<ExaminedNats, String>> {
    Some(nats::examine(options.fleet.as_ref()?).await)
}

fn port(address: SocketAddr) -> Port {
    let refused = TcpListener::bind(address).err().map(|error| error.kind());
    Port { address, refused, user: refused.and_then(|_| user_of(address.port())) }
}

/// The process that listens on a port: its id and name. Only root sees the processes of other users.
fn user_of(port: u16) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|table| listeners(table, port)).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut users = ids.filter(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| {
            link.to_str().is_some_and(|link| sockets.iter().any(|socket| socket == link))
        })
    });
    let pid = users.next()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim().to_owned()))
}

/// The sockets that listen on a port, in the form of descriptors' links.
fn listeners(table: &str, port: u16) -> Vec<String> {
    /// The state of a socket that listens.
    const LISTENS: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENS, _, _, _, _, _, inode, ..] = fields[..] else { return None };
        let of_line = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (of_line == port).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(socket).collect()
}

async fn server(named: &RunningServer, options: &ServeOptions) -> Server {
    let url = named.url(options);
    let warren = match Warren::new(&url, None) {
        Ok(warren) => warren,
        Err(error) => return Server { url, is_here: false, answer: Err(error.to_string()) },
    };
    let answer = match timeout(PATIENCE, warren.health()).await {
        Err(_) => Err(format!("{url} does not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(health)) => {
            let details = health.details.unwrap_or_default();
            Ok(Health {
                version: health.version,
                status: health.status,
                degraded: details.degraded,
                workers: details.workers_connected,
            })
        }
    };
    Server { is_here: warren.is_on_this_machine() || !named.is_named(), url, answer }
}

/// The address at which the server of this machine listens, or at which one with these settings would.
fn listening(named: &RunningServer, options: &ServeOptions) -> SocketAddr {
    let running = named.lookup(options).running();
    running.and_then(|file| of_urls(&file.urls)).unwrap_or_else(|| address(options))
}

/// The address at which a server with these URLs listens: one with several listens at all addresses.
fn of_urls(urls: &[String]) -> Option<SocketAddr> {
    let places = urls.iter().map(|url| url.rsplit('/').next()?.parse().ok());
    let places: Vec<SocketAddr> = places.collect::<Option<_>>()?;
    let any = |has_v6: bool| match has_v6 {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    match places[..] {
        [] => None,
        [only] => Some(only),
        [first, ..] => {
            Some(SocketAddr::new(any(places.iter().any(SocketAddr::is_ipv6)), first.port()))
        }
    }
}

async fn reach(listen: SocketAddr, server: &Server) -> Reach {
    let mut tried = Vec::new();
    if server.answer.is_ok() && server.is_here {
        let ip = listen.ip();
        let own = if ip.is_unspecified() { hardware::addresses() } else { vec![ip] };
        // 0.0.0.0 is IPv4 alone.
        for ip in own.into_iter().filter(|own| listen.is_ipv6() || own.is_ipv4()) {
            let address = SocketAddr::new(ip, listen.port());
            let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
            tried.push((address, matches!(connected, Ok(Ok(_)))));
        }
    }
    Reach { is_loopback: listen.ip().is_loopback(), tried }
}

async fn services() -> Services {
    let mut installed = Vec::new();
    for place in service::installed_anywhere() {
        let manager = Manager::of(place.scope());
        let state = if manager.is_here().await { manager.state(&place).await.ok() } else { None };
        installed.push((place.name.clone(), state.map(|state| state.active).unwrap_or_default()));
    }
    Services { installed }
}

/// The clocks of the server, of a worker's servers and of model servers, by the dates of their answers.
async fn clocks(server: &Server, worker: &WorkerOptions, backends: &[Backend]) -> Clocks {
    let answering = backends.iter().filter(|backend| backend.answer.is_ok());
    let mut urls: Vec<&str> =
        server.answer.is_ok().then_some(server.url.as_str()).into_iter().collect();
    urls.extend(worker.server.iter().flatten().map(String::as_str));
    urls.extend(answering.map(|backend| backend.url.as_str()));
    let mut clocks = Vec::new();
    for url in urls {
        let Ok(warren) = Warren::new(url, None) else { continue };
        // A server on this machine has the same clock.
        if warren.is_on_this_machine() {
            continue;
        }
        if let Ok(Ok(Some(time))) = timeout(PATIENCE, warren.clock()).await {
            let off = Timestamp::now().duration_since(time).as_secs();
            clocks.push((warren.url(), off));
        }
    }
    clocks
}

fn limits() -> Limits {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Limits { files: file_limits().maximum, memory: available_memory(&meminfo) }
}

async fn backends(worker: &WorkerOptions) -> Vec<Backend> {
    let is_named = worker.backend.is_some() || worker.backends.is_some();
    if is_named {
        return named_backends(worker).await;
    }
    let mut all = Vec::new();
    for found in worker::find_local().await {
        let config = worker::BackendConfig::new(&found.url);
        let answer = examined(&config).await;
        all.push(Backend { name: Some(found.name), url: found.url, answer });
    }
    all
}

/// The model engines that a worker with these settings would start.
async fn engines(worker: &WorkerOptions, options: &ServeOptions) -> Vec<SurveyedEngine> {
    let Ok(directory) = data_dir(options.data_dir.clone()) else { return Vec::new() };
    let worker = worker.clone();
    let surveyed = spawn_blocking(move || model_engines::survey(&worker, &directory)).await;
    match surveyed {
        Ok(Ok(all)) => all,
        Ok(Err(error)) => vec![wrong(format!("{error:#}"))],
        Err(_) => Vec::new(),
    }
}

async fn named_backends(worker: &WorkerOptions) -> Vec<Backend> {
    let named = match lending::named_backends(worker) {
        Ok(named) => named,
        Err(error) => {
            let answer = Err(format!("{error:#}"));
            return vec![Backend { name: None, url: "[worker] backends".to_owned(), answer }];
        }
    };
    let mut all = Vec::new();
    for lend in named {
        if let Lend::Http(config) = lend {
            let answer = examined(&config).await;
            all.push(Backend { name: None, url: base::redact_url(&config.url), answer });
        }
    }
    all
}

async fn examined(config: &worker::BackendConfig) -> Result<worker::Examined, String> {
    let examined = timeout(PATIENCE * 2, worker::examine(config)).await;
    examined.map_err(|_| "it does not answer in time".to_owned())?
}

fn proxies() -> ProxyVariables {
    let names = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];
    let small = names.map(str::to_ascii_lowercase);
    let all = names.into_iter().map(str::to_owned).chain(small);
    let set = all.filter_map(|name| Some((env::var_os(&name)?.into_string().ok()?, name)));
    set.filter(|(value, _)| !value.trim().is_empty()).map(|(value, name)| (name, value)).collect()
}

async fn mdns(options: &ServeOptions) -> Mdns {
    let found = discovery::browse(&[Service::Warren], BROWSE).await;
    let found = found.map(|all| all.into_iter().map(|one| one.instance).collect());
    Mdns {
        is_used: options.mdns.unwrap_or(false),
        found: found.map_err(|error| error.to_string()),
        addresses: hardware::addresses(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_by_their_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:23DA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n\
             1: 0100007F:23DA 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n";
        assert_eq!(listeners(table, 9178), ["socket:[4711]"]);
        assert!(listeners(table, 80).is_empty());
    }

    #[test]
    fn a_server_with_several_urls_listens_at_all_addresses() {
        let at = |urls: &[&str]| {
            let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
            of_urls(&urls).map(|address| address.to_string())
        };
        assert_eq!(at(&["https://127.0.0.1:7"]).as_deref(), Some("127.0.0.1:7"));
        let both = at(&["http://127.0.0.1:7", "http://192.0.2.2:7"]);
        assert_eq!(both.as_deref(), Some("0.0.0.0:7"));
        assert_eq!(at(&["http://[::1]:7", "http://[fd00::7]:7"]).as_deref(), Some("[::]:7"));
        assert_eq!(at(&["http://box.lan:7"]), None);
    }

    #[test]
    fn the_process_that_listens_is_this_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let port = port(address);
        assert_eq!(port.refused, Some(std::io::ErrorKind::AddrInUse));
        assert_eq!(port.user.map(|(pid, _)| pid), Some(std::process::id()));
    }

    #[test]
    fn a_certificate_of_our_own_is_read_with_its_names_and_dates() {
        let made =
            rcgen::generate_simple_self_signed(vec!["box.lan".to_owned(), "192.0.2.7".to_owned()]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cert.pem");
        fs::write(&path, made.unwrap().cert.pem()).unwrap();
        let dates = certificate(&path).0.unwrap();
        assert_eq!(dates.names, ["box.lan", "192.0.2.7"]);
        assert!(dates.from < dates.until);
        assert!(certificate(Path::new("/nowhere.pem")).0.unwrap_err().contains("/nowhere.pem"));
    }
}
