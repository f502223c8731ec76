//! Announcing and browsing, over the machine's own interface alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

use discovery::{
    Advertisement, Advertiser, BROWSE_FOR, Browser, Discovered, Reach, Service, Sighting,
    browse_on, rooms,
};
use testkit::{DEADLINE, within};

const LISTEN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port that nobody else on this machine has while it is held: other tests may be heard, too.
fn port() -> (TcpListener, u16) {
    let held = TcpListener::bind((LISTEN, 0)).unwrap();
    let port = held.local_addr().unwrap().port();
    (held, port)
}

fn browser(services: &[Service]) -> Browser {
    Browser::start(services, Reach::Machine, DEADLINE * 2).unwrap()
}

/// Browses until a service at `port` is seen.
async fn found(browser: &mut Browser, port: u16) -> Discovered {
    let seen = async {
        loop {
            match browser.next().await {
                Some(Sighting::Found(found)) if found.port == port => return found,
                Some(_) => {}
                None => panic!("the browsing ended"),
            }
        }
    };
    within("the service being found", seen).await
}

#[tokio::test]
async fn a_server_is_found_while_it_is_announced() {
    let (_held, port) = port();
    let (hub, url) = (format!("gambi-hub-{port}"), format!("http://127.0.0.1:{port}"));
    let (mut stock, mut own) = (browser(&[Service::Gambi]), browser(&[Service::Warren]));
    let advertiser = Advertiser::start(&rooms(port, "0.1.0", LISTEN, false, "07ab")).unwrap();
    assert_eq!(within("the announcement", advertiser.announced()).await, Ok(()));

    let seen = found(&mut stock, port).await;
    assert_eq!((&seen.instance, seen.service), (&hub, Service::Gambi));
    assert_eq!((seen.property("version"), seen.property("protocol")), (Some("1.0"), Some("http")));
    assert_eq!(seen.urls(), [url]);
    let seen = found(&mut own, port).await;
    assert!(seen.instance.starts_with(&format!("warren-{port}-")), "{}", seen.instance);
    assert_eq!(seen.property("version"), Some("0.1.0"));

    within("the withdrawal", advertiser.stop()).await;
    let gone = async {
        while let Some(sighting) = stock.next().await {
            if matches!(sighting, Sighting::Gone { instance, .. } if instance == hub) {
                return;
            }
        }
        panic!("the browsing ended");
    };
    within("the service being gone", gone).await;
}

#[tokio::test]
async fn two_that_have_the_same_name_are_both_found() {
    let ((_one, first), (_two, second)) = (port(), port());
    let name = format!("twin-{first}");
    let announce = |port| {
        let twin = Advertisement {
            service: Service::Warren,
            port,
            instance: name.clone(),
            properties: Vec::new(),
            addresses: vec![LISTEN],
        };
        Advertiser::start(&[twin]).unwrap()
    };
    let one = announce(first);
    within("the first one", one.announced()).await.unwrap();
    let two = announce(second);
    within("the second one", two.announced()).await.unwrap();
    let seen = async |port| found(&mut browser(&[Service::Warren]), port).await.instance;
    assert_eq!((seen(first).await, seen(second).await), (name.clone(), format!("{name} (2)")));
}

#[tokio::test]
async fn browsing_lists_a_server_once() {
    let (_held, port) = port();
    let advertiser = Advertiser::start(&rooms(port, "0.1.0", LISTEN, false, "07ab")).unwrap();
    within("the announcement", advertiser.announced()).await.unwrap();
    let services = [Service::Warren, Service::Gambi];
    let listed = async || {
        let listed = browse_on(Reach::Machine, &services, BROWSE_FOR).await.unwrap();
        let here = listed.into_iter().filter(|found| found.port == port);
        here.map(|found| found.service).collect::<Vec<_>>()
    };
    // On a busy machine one of the two may be heard of too late.
    let merged = async {
        loop {
            let listed = listed().await;
            assert!(listed.len() <= 1, "{listed:?}");
            if listed == [Service::Warren] {
                return;
            }
        }
    };
    within("the server being listed as ours", merged).await;
}

#[tokio::test]
async fn nobody_there_is_no_error() {
    let nothing = browse_on(Reach::Machine, &[], BROWSE_FOR).await;
    assert_eq!(nothing, Ok(Vec::new()));
}

#[tokio::test]
async fn an_announcement_that_cannot_be_made_is_refused_at_once() {
    let mut bad = rooms(1, "0.1.0", Ipv6Addr::LOCALHOST.into(), true, "07ab");
    bad[0].instance = "x".repeat(64);
    let error = Advertiser::start(&bad).err().unwrap().to_string();
    assert!(error.contains("1 to 63 bytes"), "{error}");
}
