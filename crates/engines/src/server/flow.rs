//! Reads the output of a server, so that full pipes never hold it up, and its output never busies
//! this machine.

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use process::{ChildErrors, ChildOutput};
use tokio::{io::AsyncReadExt, time::sleep};

use super::log::ServerLog;

/// A read of this many bytes means that more is there already.
const MUCH: usize = 32 * 1024;
/// The pause after such a read. 64 KiB in every 10 ms is more than any server needs to write.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads standard output and standard error until both have ended.
pub(super) async fn keep(mut out: ChildOutput, mut err: ChildErrors, log: Arc<ServerLog>) {
    let output = async {
        let mut read = BytesMut::new();
        while let Ok(1..) = out.read(&mut read).await {
            take(&mut read, &log).await;
        }
    };
    let errors = async {
        let mut read = BytesMut::with_capacity(2 * MUCH);
        while let Ok(1..) = err.read_buf(&mut read).await {
            take(&mut read, &log).await;
            read.reserve(2 * MUCH);
        }
    };
    tokio::join!(output, errors);
}

async fn take(read: &mut BytesMut, log: &ServerLog) {
    log.add(read).await;
    let is_much = read.len() >= MUCH;
    read.clear();
    if is_much {
        sleep(PAUSE).await;
    }
}
