//! Reads what a server writes, so that it is never held up, and never holds up this machine.

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use process::{ChildErrors, ChildOutput};
use tokio::{io::AsyncReadExt, time::sleep};

use super::log::ServerLog;

/// A read of this many bytes means that more is there already.
const MUCH: usize = 32 * 1024;
/// The pause after such a read: 64 KiB in each is more than any server has to say.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads both until both have ended.
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
