//! Models fetched from a hub of the documented shape, over networks that cut, stall and damage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{fs, path::Path, time::Duration};

use model_hub::{Hub, HubConfig, HubError, Offer, Patience, Progress, Wanted, fetch};
use models::{
    ArrivalError,
    arrival::{Download, RemoteFile, has},
};
use tempfile::TempDir;
use testkit::{FakeModelHub, GgufFile, HubFault, model_hub::COMMIT};

const REPO: &str = "org/Tiny-GGUF";
const FILE: &str = "Tiny-Q4_K_M.gguf";

/// Short enough for tests, and long enough for a machine that has much to do.
fn patience() -> Patience {
    Patience {
        stall: Duration::from_millis(300),
        first_pause: Duration::from_millis(1),
        last_pause: Duration::from_millis(2),
        tries: 4,
        ..Patience::default()
    }
}

struct Setting {
    server: FakeModelHub,
    store: TempDir,
    bytes: Vec<u8>,
}

impl Setting {
    /// A repository with one model of about 330 KB.
    async fn new() -> Self {
        let server = FakeModelHub::start().await;
        let bytes = GgufFile::model().tensor("more", &[256, 300]).bytes(7);
        server.put(REPO, FILE, &bytes);
        Self { server, store: tempfile::tempdir().unwrap(), bytes }
    }

    fn hub(&self, token: Option<&str>) -> Hub {
        Hub::new(&HubConfig {
            endpoint: Some(self.server.url.clone()),
            token: token.map(Into::into),
            agent: "test".to_owned(),
            patience: patience(),
        })
        .unwrap()
    }

    async fn fetch(&self) -> Result<Vec<Progress>, HubError> {
        self.fetch_with(None).await
    }

    /// Fetches the model, and puts it into its place.
    async fn fetch_with(&self, token: Option<&str>) -> Result<Vec<Progress>, HubError> {
        let hub = self.hub(token);
        let listing = hub.list(REPO, "main").await?;
        let offer = Offer::of(&listing);
        let variant = offer.find("Q4_K_M")?;
        let id = Wanted::parse(REPO).unwrap().id(&variant.quantization).unwrap();
        let files = offer.files(variant)?;
        let remote = files.iter().map(|(name, file)| RemoteFile {
            name: name.clone(),
            size: file.size,
            sum: file.sum.clone(),
        });
        let remote: Vec<_> = remote.collect();
        let plenty = |_: &Path| Ok(u64::MAX);
        let download = Download::open(self.store.path(), &id, remote.clone(), &plenty)?;
        let files: Vec<_> = files.into_iter().map(|(_, file)| file).collect();
        let mut steps = Vec::new();
        let mut hear = |step: &Progress| steps.push(step.clone());
        let download = fetch(&hub, &listing, &files, download, &mut hear).await?;
        download.finish(false, None)?;
        assert!(has(self.store.path(), &id, &remote)?);
        Ok(steps)
    }

    fn installed(&self) -> Vec<u8> {
        fs::read(self.store.path().join(REPO.to_owned() + ":Q4_K_M").join(FILE)).unwrap()
    }

    /// The ranges that were asked for, and nothing where all was.
    fn ranges(&self) -> Vec<String> {
        let range = |request: testkit::ModelHubRequest| {
            request.head.header("range").unwrap_or_default().to_owned()
        };
        self.server.downloads().into_iter().map(range).collect()
    }
}

#[tokio::test]
async fn a_model_comes_whole_and_the_token_goes_to_the_hub_alone() {
    let setting = Setting::new().await;
    setting.server.require("hf_secret");
    let steps = setting.fetch_with(Some("hf_secret")).await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
    let last = steps.last().unwrap();
    assert_eq!((last.bytes, last.total), (setting.bytes.len() as u64, setting.bytes.len() as u64));
    let requests = setting.server.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.path.contains(&format!("/tree/{COMMIT}?recursive=1")))
    );
    for request in requests {
        let token = request.head.header("authorization");
        assert_eq!(token, (!request.is_files).then_some("Bearer hf_secret"), "{}", request.path);
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_anywhere_goes_on_there() {
    let length = Setting::new().await.bytes.len();
    for cut in [0, 1, 100, 65_536, length / 2, length - 1] {
        let setting = Setting::new().await;
        setting.server.fail(FILE, &[HubFault::Cut(cut)]);
        let steps = setting.fetch().await.unwrap();
        assert_eq!(setting.installed(), setting.bytes, "{cut}");
        let second = if cut == 0 { String::new() } else { format!("bytes={cut}-") };
        assert_eq!(setting.ranges(), [String::new(), second]);
        assert!(steps.iter().any(|step| step.trouble.is_some()));
        assert_eq!(steps.last().unwrap().trouble, None);
    }
}

#[tokio::test]
async fn another_start_goes_on_where_the_last_one_ended() {
    let setting = Setting::new().await;
    setting.server.fail(FILE, &vec![HubFault::Cut(10); 4]);
    let error = setting.fetch().await.unwrap_err();
    assert!(matches!(&error, HubError::Cut { arrived: 40, .. }), "{error}");
    setting.fetch().await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
    assert_eq!(setting.ranges().last().unwrap(), "bytes=40-");
}

#[tokio::test]
async fn a_connection_that_stalls_is_given_up() {
    let setting = Setting::new().await;
    setting.server.fail(FILE, &[HubFault::Stall(1_000)]);
    let steps = setting.fetch().await.unwrap();
    let trouble = steps.into_iter().find_map(|step| step.trouble).unwrap();
    assert!(trouble.contains("1000 of") && trouble.contains("too slowly"), "{trouble}");
    assert_eq!(setting.installed(), setting.bytes);
}

#[tokio::test]
async fn a_file_that_comes_damaged_is_fetched_once_more_and_then_named() {
    let setting = Setting::new().await;
    setting.server.fail(FILE, &[HubFault::Damage(70_000)]);
    setting.fetch().await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
    let setting = Setting::new().await;
    setting.server.fail(FILE, &[HubFault::Damage(5), HubFault::Damage(300_000)]);
    let error = setting.fetch().await.unwrap_err();
    assert!(matches!(&error, HubError::Damaged { file } if file == FILE), "{error}");
    assert_eq!(setting.server.downloads().len(), 2);
}

#[tokio::test]
async fn a_server_that_knows_no_ranges_sends_all_of_it_again() {
    let setting = Setting::new().await;
    setting.server.fail(FILE, &[HubFault::Cut(1_000), HubFault::Whole]);
    setting.fetch().await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
}

#[tokio::test]
async fn what_a_server_must_not_send_is_refused() {
    for (fault, words) in [
        (vec![HubFault::Cut(10), HubFault::WrongRange], "it sends bytes 11-"),
        (vec![HubFault::Longer], "has changed on the hub"),
        (vec![HubFault::Elsewhere("ftp://files.example/x".to_owned())], "no web address"),
    ] {
        let setting = Setting::new().await;
        setting.server.fail(FILE, &fault);
        let error = setting.fetch().await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let setting = Setting::new().await;
    let circle = format!("{}/{REPO}/resolve/{COMMIT}/{FILE}", setting.server.url);
    setting.server.fail(FILE, &vec![HubFault::Elsewhere(circle); 10]);
    let error = setting.fetch().await.unwrap_err();
    assert!(matches!(error, HubError::Redirect { .. }), "{error}");
}

#[tokio::test]
async fn refusals_that_pass_are_tried_again_and_others_are_told() {
    let setting = Setting::new().await;
    let busy = HubFault::Status(429, "retry-after: 0\r\n");
    let passing = [busy.clone(), HubFault::Status(503, ""), HubFault::Status(403, "")];
    setting.server.fail(FILE, &passing);
    setting.fetch().await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
    let setting = Setting::new().await;
    setting.server.fail(FILE, &vec![busy; 4]);
    let error = setting.fetch().await.unwrap_err().to_string();
    assert!(error.contains("429"), "{error}");
    let setting = Setting::new().await;
    setting.server.fail(FILE, &[HubFault::Status(410, "")]);
    let error = setting.fetch().await.unwrap_err().to_string();
    assert!(error.contains("410") && error.contains(FILE), "{error}");
}

#[tokio::test]
async fn a_repository_that_is_not_open_says_what_to_do() {
    for (status, headers, words) in [
        (401, "x-error-code: GatedRepo\r\n", "accept the licence at"),
        (403, "x-error-code: GatedRepo\r\n", "set HF_TOKEN"),
        (401, "x-error-code: RepoNotFound\r\n", "check the name"),
        (404, "", "is not there"),
        (429, "retry-after: 0\r\n", "ask again in 0 s"),
        (500, "", "answers 500"),
    ] {
        let setting = Setting::new().await;
        setting.server.refuse(REPO, status, headers);
        let error = setting.fetch().await.unwrap_err().to_string();
        assert!(error.contains(words), "{status}: {error}");
    }
    let setting = Setting::new().await;
    setting.server.require("right");
    let error = setting.fetch_with(Some("wrong")).await.unwrap_err().to_string();
    assert!(error.contains("that was sent (HF_TOKEN) is not enough"), "{error}");
    let revision = setting.hub(Some("right")).list(REPO, "v9").await.unwrap_err().to_string();
    assert!(revision.contains("has no revision v9"), "{revision}");
}

#[tokio::test]
async fn a_long_listing_comes_in_pages() {
    let setting = Setting::new().await;
    for number in 0..25 {
        setting.server.put(REPO, &format!("dir/{number:02}.txt"), b"text");
    }
    setting.server.set_page(10);
    let listing = setting.hub(None).list(REPO, "main").await.unwrap();
    assert_eq!((listing.files.len(), listing.commit.as_str()), (26, COMMIT));
}

#[tokio::test]
async fn a_hash_that_changed_since_the_listing_is_noticed_before_a_byte_comes() {
    let setting = Setting::new().await;
    let hub = setting.hub(None);
    let listing = hub.list(REPO, "main").await.unwrap();
    setting.server.lie(FILE, &"ab".repeat(32));
    let error = hub.head(&listing, &listing.files[0]).await.unwrap_err();
    assert!(matches!(error, HubError::Changed { .. }), "{error}");
}

#[tokio::test]
async fn the_head_of_a_model_is_read_without_the_model() {
    let setting = Setting::new().await;
    let hub = setting.hub(None);
    let listing = hub.list(REPO, "main").await.unwrap();
    let head = hub.head(&listing, &listing.files[0]).await.unwrap().unwrap();
    assert_eq!(head.context_tokens, Some(512));
}

#[tokio::test]
async fn parts_and_the_projector_come_together() {
    let setting = Setting::new().await;
    let repo = "org/See-GGUF";
    let parts = ["q/See-Q8_0-00001-of-00002.gguf", "q/See-Q8_0-00002-of-00002.gguf"];
    for part in parts {
        setting.server.put(repo, part, &GgufFile::model().bytes(1));
    }
    setting.server.put(repo, "mmproj-F16.gguf", &GgufFile::projector().bytes(2));
    let listing = setting.hub(None).list(repo, "main").await.unwrap();
    let offer = Offer::of(&listing);
    let files = offer.files(offer.find("Q8_0").unwrap()).unwrap();
    assert_eq!(files.len(), 3);
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_has_arrived_stays() {
    let setting = Setting::new().await;
    setting.server.fail(FILE, &vec![HubFault::Cut(100); 4]);
    setting.fetch().await.unwrap_err();
    let arriving = setting.store.path().join(".arriving");
    let mut folders = fs::read_dir(&arriving).unwrap().map(|entry| entry.unwrap().path());
    let file = folders.find(|path| path.is_dir()).unwrap().join("files/0");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let error = setting.fetch().await.unwrap_err();
    assert!(matches!(error, HubError::Arrival(ArrivalError::Full { .. })), "{error}");
    fs::remove_file(&file).unwrap();
    setting.fetch().await.unwrap();
    assert_eq!(setting.installed(), setting.bytes);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for address in ["hub.example", "ftp://hub.example", "https://", "http://hub.example/?x=1"] {
        let config = HubConfig { endpoint: Some(address.to_owned()), ..HubConfig::default() };
        let error = Hub::new(&config).unwrap_err().to_string();
        assert!(error.contains("HF_ENDPOINT"), "{address}: {error}");
    }
    let config = HubConfig { token: Some("a\nb".into()), ..HubConfig::default() };
    assert!(matches!(Hub::new(&config), Err(HubError::Token)));
}

#[tokio::test]
async fn nobody_at_an_address_is_told() {
    let (server, _port) = testkit::RawServer::with_spare();
    let endpoint = Some(server.url());
    drop(server);
    let config = HubConfig { endpoint, patience: patience(), ..HubConfig::default() };
    let error = Hub::new(&config).unwrap().list(REPO, "main").await.unwrap_err().to_string();
    assert!(error.contains("does not answer"), "{error}");
}
