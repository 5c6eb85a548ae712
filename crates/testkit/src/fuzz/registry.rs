//! What must hold for any bytes that a registry, a catalog or the disk may hand over.

use proptest::prelude::{prop_assert, prop_assert_eq};
use registry::catalog::read;
use registry::client::Registries;
use registry::client::cache::Kept as KeptAnswer;
use registry::{Describe, ErrorBody, Page, Published, Versions};

use super::Kept;

/// An answer: what is accepted can be written, and is then the same.
pub fn registry_answer(bytes: &[u8]) -> Kept {
    macro_rules! check {
        ($($kind:ty),*) => {$(
            if let Ok(value) = registry::read::<$kind>(bytes) {
                let text = serde_json::to_vec(&value).unwrap_or_default();
                prop_assert_eq!(registry::read::<$kind>(&text), Ok(value));
            }
        )*};
    }
    check!(Describe, ErrorBody, Page, Published, Versions);
    if let Ok(bundle) = registry::read::<registry::Bundle>(bytes) {
        prop_assert_eq!(bundle.listing().files().len(), bundle.files.len());
    }
    Ok(())
}

/// The list of registries: every name is one, and every address.
pub fn registry_list(bytes: &[u8]) -> Kept {
    if let Ok(list) = Registries::parse(bytes) {
        let text = serde_json::to_vec(&list).unwrap_or_default();
        prop_assert_eq!(Registries::parse(&text), Ok(list.clone()));
        for one in list.iter() {
            prop_assert!(registry::client::list::is_name(&one.name), "{:?}", one);
        }
    }
    Ok(())
}

/// A catalog, an index, and a manifest that an index points to.
pub fn registry_catalog(bytes: &[u8]) -> Kept {
    if let Ok(listing) = read::capabilities(bytes) {
        let mut ids: Vec<_> = listing.packages.iter().map(|one| &one.package.id).collect();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), listing.packages.len(), "one id, two packages");
    }
    if let Ok(read::Index { pointed, .. }) = read::index(bytes) {
        prop_assert!(pointed.len() <= manifest::index::MAX_ENTRIES);
        for one in &pointed {
            if let Ok(package) = read::pointed(one, bytes) {
                prop_assert_eq!(&package.id, &one.id);
            }
        }
    }
    Ok(())
}

/// A file with an answer that was kept: what is accepted has the digest that it names.
pub fn registry_kept(bytes: &[u8]) -> Kept {
    let url = "https://x.example/";
    if let Some(kept) = KeptAnswer::from_bytes(url, bytes) {
        prop_assert!(bytes.ends_with(&kept.body));
        prop_assert_eq!(KeptAnswer::from_bytes(url, &kept.to_bytes(url)), Some(kept));
    }
    Ok(())
}
