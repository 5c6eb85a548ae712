//! What must hold for any bytes that may be a vault's file, a reference, or a text that shows a secret.

use std::collections::HashSet;

use proptest::prelude::{prop_assert, prop_assert_eq};
use vault::file::listed_in;
use vault::{Redactor, Reference, Secret};

use super::{Kept, halves};

/// The file of a vault: what is accepted lists each secret once, under a sound name.
pub fn vault(bytes: &[u8]) -> Kept {
    match listed_in(bytes) {
        Ok(listed) => {
            let places: HashSet<_> = listed.iter().map(|listed| &listed.place).collect();
            prop_assert_eq!(places.len(), listed.len(), "one place, two secrets");
            prop_assert!(listed.is_sorted_by(|a, b| a.place < b.place));
            for place in places {
                prop_assert!(!place.name().is_empty() && !place.name().contains(char::is_control));
            }
            prop_assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
        }
        Err(unreadable) => prop_assert!(!unreadable.to_string().is_empty()),
    }
    Ok(())
}

/// A reference: what is accepted is written as it was read, and leads to no other place.
pub fn reference(bytes: &[u8]) -> Kept {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    match text.parse::<Reference>() {
        Ok(reference) => {
            prop_assert_eq!(reference.to_string(), text);
            if let Reference::Vault { path, mount, .. } = &reference {
                prop_assert!(mount.split('/').chain(path.split('/')).all(|part| part != ".."));
            }
            prop_assert!(!text.contains(char::is_control));
        }
        Err(error) => {
            let shown = error.to_string();
            prop_assert!(!shown.contains(|c: char| c.is_control()), "{}", shown);
            prop_assert!(shown.chars().count() < 250, "{}", shown);
        }
    }
    Ok(())
}

/// A secret, then, after a NUL, a text: however the text is cut, the same comes out, and the secret is
/// not in it.
pub fn redaction(bytes: &[u8]) -> Kept {
    let (value, text) = halves(bytes);
    let Ok(secret) = Secret::from_bytes(value.to_vec()) else { return Ok(()) };
    let redactor = Redactor::new([("NAME", &secret)]);
    let whole = redactor.bytes(text);
    prop_assert!(redactor.text(secret.expose()) != secret.expose(), "a value alone is replaced");
    if value.len() < 4 {
        return Ok(());
    }
    prop_assert!(!contains(&whole, value), "{:?}", String::from_utf8_lossy(&whole));
    for size in [1, 2, 7] {
        let mut stream = redactor.stream();
        let mut cut: Vec<u8> = text.chunks(size).flat_map(|chunk| stream.push(chunk)).collect();
        cut.extend(stream.finish());
        prop_assert_eq!(&cut, &whole, "cut after every {}", size);
    }
    let mut document = serde_json::json!({ secret.expose(): [secret.expose()] });
    redactor.json(&mut document);
    prop_assert!(
        !document.as_object().is_some_and(|document| document.contains_key(secret.expose()))
    );
    Ok(())
}

fn contains(text: &[u8], value: &[u8]) -> bool {
    text.windows(value.len()).any(|window| window == value)
}
