//! Removing what no version has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use package::digest::Digest;
use server::care::CareError;
use server::care::gc::{Collected, Mode, Step, collect};
use server::store::removals::Removal;

use super::checking::checked;
use super::files::{publish, put};
use super::packages::mcpkg;
use super::world::{World, ask};

pub(crate) const AT_ONCE: Duration = Duration::ZERO;

async fn collected(world: &World, grace: Duration, mode: Mode) -> (Collected, Vec<Digest>) {
    let mut gone = Vec::new();
    let mut looked = 0;
    let tell = |step| match step {
        Step::Looked => looked += 1,
        Step::Goes(digest, _) => gone.push(digest),
    };
    let done = collect(&world.registry.store, &world.blobs, grace, mode, tell).await.unwrap();
    assert_eq!(looked, done.files, "each file is told once");
    (done, gone)
}

/// What no version has goes, after its grace and no sooner.
pub(crate) async fn gc_removes_what_no_version_has(world: World) {
    let used = publish(&world, "acme.used", "").await;
    let yanked = publish(&world, "acme.yanked", "").await;
    let path = "/v1/tools/acme.yanked/versions/1.0.0/yank";
    assert_eq!(world.send(axum::http::Method::POST, path, &world.token, "").await.status, 204);
    let left = [put(&world, "one").await, put(&world, "two").await];
    let (young, gone) = collected(&world, Duration::from_hours(1), Mode::Remove).await;
    assert_eq!((young.files, young.removed, young.young, gone.len()), (4, 0, 2, 0));
    let (named, gone) = collected(&world, AT_ONCE, Mode::Name).await;
    assert_eq!((named.removed, named.bytes, gone.len()), (2, 6, 2));
    assert_eq!(world.blobs.size(left[0]).await.unwrap(), 3);
    let (removed, mut gone) = collected(&world, AT_ONCE, Mode::Remove).await;
    gone.sort_unstable();
    let mut expected = left.to_vec();
    expected.sort_unstable();
    assert_eq!((removed.removed, gone), (2, expected));
    for digest in left {
        assert!(world.blobs.size(digest).await.is_err());
    }
    for digest in [used, yanked] {
        world.blobs.verify(digest).await.unwrap();
    }
    assert_eq!(collected(&world, AT_ONCE, Mode::Remove).await.0.removed, 0);
}

/// What is refused because the version is taken leaves no file.
pub(crate) async fn a_refused_publish_leaves_nothing(world: World) {
    publish(&world, "acme.taken", "first").await;
    for other in ["second", "third"] {
        assert_eq!(world.publish(mcpkg("acme.taken", "1.0.0", other)).await.status, 409);
    }
    let (done, findings) = checked(&world).await;
    assert_eq!((done.files, findings.len()), (1, 0), "{findings:?}");
}

/// Each order in which a publish and a removal of the same file can meet, one after the other.
pub(crate) async fn a_publish_keeps_its_file_whatever_gc_does(world: World) {
    let store = &world.registry.store;
    let now = server::service::now();
    let bytes = |name: &str| mcpkg(&format!("acme.{name}"), "1.0.0", name);
    let put = async |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        world.blobs.put(digest, Bytes::copy_from_slice(bytes)).await.unwrap();
        digest
    };
    let remove = async |digest: Digest| {
        let remove = async { world.blobs.remove(digest).await.map_err(CareError::from) };
        store.remove_marked(digest, now, remove).await.unwrap()
    };
    let is_whole = async |digest: Digest| world.blobs.verify(digest).await.is_ok();
    // The file was put by a publish that has not got to its second step, and is gone when it does.
    let gone = bytes("gone");
    let digest = put(&gone).await;
    assert_eq!(store.mark(&[digest], now).await.unwrap(), [digest]);
    assert_eq!(remove(digest).await, Removal::Removed);
    assert_eq!(world.publish(gone).await.status, 201);
    assert!(is_whole(digest).await);
    assert_eq!(remove(digest).await, Removal::Kept);
    assert!(store.mark(&[digest], now).await.unwrap().is_empty());
    // Somebody marked it a while ago, was killed, and nothing was removed.
    let marked = bytes("marked");
    let digest = put(&marked).await;
    let long_ago = now - 3_600_000;
    store.mark(&[digest], long_ago).await.unwrap();
    assert_eq!(world.publish(marked).await.status, 201);
    assert_eq!(remove(digest).await, Removal::Kept);
    assert!(is_whole(digest).await);
    // It is marked at this moment: whoever publishes waits until it is gone, and puts it there again.
    let underway = bytes("underway");
    let digest = put(&underway).await;
    store.mark(&[digest], now).await.unwrap();
    let request = Request::post("/v1/tools")
        .header("authorization", format!("Bearer {}", world.token))
        .body(Body::from(underway))
        .unwrap();
    let registry = Arc::clone(&world.registry);
    let publishing = tokio::spawn(async move { ask(&registry, request).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!publishing.is_finished());
    assert_eq!(remove(digest).await, Removal::Removed);
    assert_eq!(publishing.await.unwrap().status, 201);
    assert!(is_whole(digest).await);
    assert_eq!(checked(&world).await.0.damaged, 0);
}

/// The same by chance: several publish and remove as fast as they can.
pub(crate) async fn publishes_and_gc_at_the_same_moment_lose_nothing(world: World) {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut collecting = Vec::new();
    for _ in 0..2 {
        let (is_over, replica) = (Arc::clone(&is_over), world.replica().await);
        let blobs = world.blobs.clone();
        collecting.push(tokio::spawn(async move {
            let mut removed = 0;
            while !is_over.load(Ordering::Acquire) {
                let done = collect(&replica.store, &blobs, AT_ONCE, Mode::Remove, |_| {}).await;
                removed += done.unwrap().removed;
            }
            removed
        }));
    }
    let mut publishing = Vec::new();
    for publisher in 0..4 {
        let (registry, token) = (Arc::clone(&world.registry), world.token.clone());
        let blobs = world.blobs.clone();
        publishing.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0..15 {
                // Two at a time publish the same bytes, which somebody has left there before.
                let bytes = mcpkg(&format!("acme.p{}", publisher / 2), &format!("1.0.{round}"), "");
                let digest = Digest::of(&bytes);
                let _there_already = blobs.put(digest, Bytes::from(bytes.clone())).await;
                let request = Request::post("/v1/tools")
                    .header("authorization", format!("Bearer {token}"))
                    .body(Body::from(bytes))
                    .unwrap();
                let answer = ask(&registry, request).await;
                if answer.status.is_success() {
                    acknowledged.push(digest);
                } else {
                    // Removed between putting and looking, again and again: whoever publishes comes again.
                    assert!([500, 503].contains(&answer.status.as_u16()), "{answer:?}");
                }
            }
            acknowledged
        }));
    }
    let mut acknowledged = 0;
    for publisher in publishing {
        for digest in publisher.await.unwrap() {
            world.blobs.verify(digest).await.unwrap();
            acknowledged += 1;
        }
    }
    is_over.store(true, Ordering::Release);
    let mut removed = 0;
    for collector in collecting {
        removed += collector.await.unwrap();
    }
    assert!(acknowledged >= 30 && removed > 0, "{acknowledged} acknowledged, {removed} removed");
    collected(&world, AT_ONCE, Mode::Remove).await;
    let (last, findings) = checked(&world).await;
    assert_eq!((last.damaged, last.noted), (0, 0), "{findings:#?}");
}
