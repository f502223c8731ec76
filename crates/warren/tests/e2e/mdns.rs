//! Servers that let themselves be found, over the machine's own interface alone.

use discovery::{Browser, Reach, Service, Sighting};
use testkit::{DEADLINE, within};

use crate::common::serve;

const BOTH: [Service; 2] = [Service::Gambi, Service::Warren];

/// The next sighting that `wanted` takes for its own.
async fn sees<T>(browser: &mut Browser, wanted: impl Fn(Sighting) -> Option<T>) -> T {
    let seen = async {
        loop {
            let sighting = browser.next().await.expect("the browsing goes on");
            if let Some(wanted) = wanted(sighting) {
                return wanted;
            }
        }
    };
    within("the sighting", seen).await
}

#[tokio::test]
async fn a_server_is_found_by_stock_clients_and_by_ours_until_it_stops() {
    let browse = |service| Browser::start(&[service], Reach::Machine, DEADLINE * 3).unwrap();
    let mut browsers = BOTH.map(browse);
    let mut daemon = serve().flag("--mdns").start().await;
    let (port, url) = (daemon.address().port(), daemon.url());
    daemon.line_with("other machines cannot reach").await;
    daemon.line_with("announced by mDNS").await;

    let found = |sighting| match sighting {
        Sighting::Found(found) => (found.port == port).then_some(found),
        Sighting::Gone { .. } => None,
    };
    let mut names = Vec::new();
    for browser in &mut browsers {
        let found = sees(browser, found).await;
        assert_eq!((found.urls(), found.property("protocol")), (vec![url.clone()], Some("http")));
        names.push(found.instance);
    }

    daemon.sigterm();
    let gone = |sighting| match sighting {
        Sighting::Gone { instance, .. } => names.contains(&instance).then_some(()),
        Sighting::Found(_) => None,
    };
    for browser in &mut browsers {
        sees(browser, gone).await;
    }
    assert_eq!(daemon.exit().await, Some(0));
}

#[tokio::test]
async fn a_server_that_was_not_asked_to_is_silent() {
    let mut browser = Browser::start(&BOTH, Reach::Machine, DEADLINE * 3).unwrap();
    let silent = serve().start().await;
    // A server with `--mdns` is found, so the other would be found, too.
    let loud = serve().flag("--mdns").start().await;
    let found = |sighting| match sighting {
        Sighting::Found(found) => Some(found.port),
        Sighting::Gone { .. } => None,
    };
    loop {
        let port = sees(&mut browser, found).await;
        assert_ne!(port, silent.address().port());
        if port == loud.address().port() {
            break;
        }
    }
    assert!(!silent.log().contains("mDNS"), "{}", silent.log());
}
