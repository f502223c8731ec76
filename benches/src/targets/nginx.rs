//! nginx as a plain reverse proxy, set up as well as we know: connections kept alive on both
//! sides, nothing buffered, nothing logged.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{net::TcpStream, process::Command};

use super::{Part, Target, eventually, free_address};
use crate::{child::Process, cli::Kind, proc};

const READY: Duration = Duration::from_secs(10);

/// Tries to start on a port that was free a moment ago.
const TRIES: usize = 3;

pub(crate) async fn find() -> Option<PathBuf> {
    for program in ["nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"] {
        let version = Command::new(program).arg("-v").output().await;
        if version.is_ok_and(|output| output.status.success()) {
            return Some(program.into());
        }
    }
    None
}

/// Starts it before `backend`, with room for `connections` from clients and as many behind.
pub(crate) async fn launch(
    program: &Path,
    backend: SocketAddr,
    connections: u32,
) -> Result<Target> {
    let mut last = None;
    for _ in 0..TRIES {
        match attempt(program, backend, connections).await {
            Ok(target) => return Ok(target),
            Err(e) => last = Some(e),
        }
    }
    Err(last.context("nginx was not tried")?)
}

async fn attempt(program: &Path, backend: SocketAddr, connections: u32) -> Result<Target> {
    let dir = tempfile::Builder::new().prefix("benches-nginx-").tempdir()?;
    let addr = free_address()?;
    let conf = dir.path().join("nginx.conf");
    fs::write(&conf, configuration(dir.path(), addr, backend, connections))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(dir.path()).arg("-c").arg(&conf).args(["-e", "stderr"]);
    let mut process = Process::spawn(command, "nginx", dir.path())?.with_children();
    let up = eventually(READY, async || {
        process.check().is_err() || TcpStream::connect(addr).await.is_ok()
    });
    let up = up.await;
    process.check()?;
    if !up {
        bail!("nginx does not listen: {}", process.last_words());
    }
    let parts = vec![Part { name: "server", pids: proc::children(process.pid()) }];
    let target = Target::new(Kind::Nginx.name(), addr, vec![process], Some(dir));
    Ok(Target { parts, ..target })
}

/// `reuseport` spreads the connections evenly over its processes; each connection of a client
/// needs another to the backend.
fn configuration(dir: &Path, addr: SocketAddr, backend: SocketAddr, connections: u32) -> String {
    let dir = dir.display();
    let room = (connections.saturating_mul(2)).max(512) + 512;
    let user = if proc::is_root() { "user root;" } else { "" };
    format!(
        "{user}
daemon off;
worker_processes auto;
worker_rlimit_nofile {files};
error_log stderr warn;
pid {dir}/nginx.pid;
events {{ worker_connections {room}; }}
http {{
  access_log off;
  client_max_body_size 0;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  upstream backend {{
    server {backend};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
  }}
  server {{
    listen {addr} reuseport backlog=4096;
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
",
        files = room.saturating_add(64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_room_for_both_sides_of_each_connection() {
        let addr = SocketAddr::from(([127, 0, 0, 1], 1));
        let text = configuration(Path::new("/d"), addr, addr, 10_000);
        assert!(text.contains("worker_connections 20512;"));
        assert!(text.contains("client_body_temp_path /d/body;"));
    }

    #[tokio::test]
    async fn it_passes_requests_on_and_ends_with_its_workers() {
        // Only where nginx is installed; the suite leaves it out elsewhere too.
        let Some(program) = find().await else { return };
        let target = launch(&program, crate::backend::start().await, 32).await.unwrap();
        let limit = Duration::from_secs(10);
        let models = crate::http1::get(target.addr, "/v1/models", limit).await.unwrap();
        assert!(models.starts_with(b"{\"object\":\"list\""));
        let workers = target.pids();
        assert!(!workers.is_empty() && proc::cpu(&workers).is_ok());
        target.stop().await;
        assert!(workers.iter().all(|&pid| proc::cpu(&[pid]).is_err()));
    }
}
