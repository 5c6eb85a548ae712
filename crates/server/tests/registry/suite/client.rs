//! Our own client and our own registry, over a socket.

use std::sync::Arc;

use package::contents::Contents;
use package::digest::Digest;
use registry::Channel;
use registry::client::{
    Address, Cache, FetchError, Fetcher, Kind, Question, Reach, Remote, Settings, Token,
};
use registry::{ErrorCode, Outcome, State, Yank};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::packages::{bundle, mcpkg};
use super::world::World;

pub(crate) async fn the_client_does_all_that_a_registry_offers(world: World) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = server::web::router(Arc::clone(&world.registry));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server::web::serve(listener, app, async {
        let _or_dropped = stopped.await;
    }));
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::new(folder.path(), 1 << 30));
    let remote = |token: Option<&str>, reach| {
        let token = token.map(|token| Token::parse(token).unwrap());
        let settings = Settings { reach, ..Settings::default() };
        let address = Address::parse(&url).unwrap();
        let fetcher = Fetcher::new(&address, token.as_ref(), Arc::clone(&cache), settings);
        Remote::new("ours", fetcher.unwrap())
    };
    let publisher = remote(Some(&world.token), Reach::Online);
    let reader = remote(None, Reach::Online);

    let bytes = mcpkg("acme.pdf.read", "1.0.0", "a");
    let foreseen = publisher.foresee(bytes.clone(), None, Channel::Beta).await.unwrap();
    assert_eq!((foreseen.outcome, foreseen.channel), (Outcome::Published, State::Beta));
    let nothing = reader.describe("acme.pdf.read", None).await.unwrap_err();
    assert_eq!(nothing.code(), Some(ErrorCode::ToolNotFound), "it was only foreseen");
    let published = publisher.publish(bytes.clone(), None, Channel::Stable).await.unwrap();
    assert_eq!(published.outcome, Outcome::Published);
    let again = publisher.publish(bytes.clone(), None, Channel::Stable).await.unwrap();
    assert_eq!(again.outcome, Outcome::Unchanged);
    let again = publisher.foresee(bytes.clone(), None, Channel::Beta).await.unwrap();
    assert_eq!((again.outcome, again.channel), (Outcome::Unchanged, State::Stable));
    // What is foreseen is refused in the same words as what is meant.
    let twin = mcpkg("acme.PDF.read", "1.0.0", "a");
    for package in [mcpkg("acme.pdf.read", "1.0.0", "b"), twin, b"PK".to_vec()] {
        let meant = publisher.publish(package.clone(), None, Channel::Stable).await.unwrap_err();
        let foreseen = publisher.foresee(package, None, Channel::Stable).await.unwrap_err();
        assert_eq!(foreseen.to_string(), meant.to_string());
        assert_eq!(foreseen.code(), meant.code());
    }
    let other = publisher
        .publish(mcpkg("acme.pdf.read", "1.0.0", "b"), None, Channel::Stable)
        .await
        .unwrap_err();
    assert_eq!((other.kind(), other.code()), (Kind::Conflict, Some(ErrorCode::Conflict)));
    assert!(matches!(
        reader.publish(bytes.clone(), None, Channel::Stable).await,
        Err(FetchError::NoToken)
    ));
    let stranger = remote(Some("haft_nobody"), Reach::Online);
    let refused = stranger.publish(bytes.clone(), None, Channel::Stable).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Unauthorized));
    let dice = bundle("tool:post.send", "post.send", "2.0.0").to_string();
    publisher.publish(dice.into_bytes(), None, Channel::Stable).await.unwrap();

    let question = Question { words: "pdf".to_owned(), limit: 5, ..Question::default() };
    let page = reader.search(&question).await.unwrap();
    assert_eq!((page.total, page.results[0].name.as_str()), (1, "acme.pdf.read"));
    let fetched = reader.package("acme.pdf.read", None).await.unwrap();
    assert_eq!((fetched.digest, fetched.described.yanked.as_ref()), (Digest::of(&bytes), None));
    assert_eq!(fetched.bytes().unwrap(), bytes);
    let sent = reader.bundle("post.send", "2.0.0").await.unwrap();
    assert!(sent.size("dist/index.js").is_some() && sent.size("dist/icon.png").is_some());
    let missing = reader.describe("acme.no.such", None).await.unwrap_err();
    assert_eq!(missing.code(), Some(ErrorCode::ToolNotFound));
    let missing = reader.describe("acme.pdf.read", Some("9.0.0")).await.unwrap_err();
    assert_eq!(missing.code(), Some(ErrorCode::VersionNotFound));
    assert!(reader.bundle("acme.pdf.read", "1.0.0").await.is_err(), "it does not run in Node");

    let yank = Yank { reason: "loses data, 100 %".to_owned(), security: true };
    publisher.yank("acme.pdf.read", "1.0.0", Some(&yank)).await.unwrap();
    let versions = reader.versions("acme.pdf.read").await.unwrap();
    assert_eq!((versions.latest, versions.versions[0].yank_security), (None, true));
    assert_eq!(reader.search(&question).await.unwrap().total, 0);
    let yanked = reader.package("acme.pdf.read", Some("1.0.0")).await.unwrap();
    assert_eq!(yanked.described.yanked, Some(yank));
    publisher.yank("acme.pdf.read", "1.0.0", None).await.unwrap();
    let offered = reader.describe("acme.pdf.read", Some("1.0.0")).await.unwrap();
    assert_eq!(offered.yanked, None);
    assert_eq!(reader.search(&question).await.unwrap().total, 1);

    let _gone = stop.send(());
    serving.await.unwrap();
    let offline = remote(None, Reach::Offline);
    let kept = offline.package("acme.pdf.read", Some("1.0.0")).await.unwrap();
    assert_eq!(kept.bytes().unwrap(), bytes);
    assert_eq!(offline.search(&question).await.unwrap().total, 1);
    let unknown = offline.package("post.send", None).await.unwrap_err();
    assert!(matches!(unknown, FetchError::Offline(_)), "{unknown}");
}
