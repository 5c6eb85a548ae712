//! A package in a registry, and a file of none.

use bytes::Bytes;
use package::digest::Digest;

use super::packages::mcpkg;
use super::world::World;

pub(crate) async fn publish(world: &World, id: &str, note: &str) -> Digest {
    let bytes = mcpkg(id, "1.0.0", note);
    let digest = Digest::of(&bytes);
    assert_eq!(world.publish(bytes).await.status, 201);
    digest
}

pub(crate) async fn put(world: &World, text: &'static str) -> Digest {
    let digest = Digest::of(text.as_bytes());
    world.blobs.put(digest, Bytes::from_static(text.as_bytes())).await.unwrap();
    digest
}
