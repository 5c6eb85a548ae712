//! Package files: whole, in parts, again, from what is kept.

use std::sync::Arc;

use registry::client::cache::Begun;
use registry::client::{FetchError, Kind};

use crate::stand_in::{Desk, Packed, Reply, StandIn, wait};

/// What came of fetching the one tool there is.
fn fetch(desk: &Desk, url: &str) -> Result<Vec<u8>, FetchError> {
    let fetched = wait(desk.remote(url).package("demo.echo", None))?;
    Ok(fetched.bytes().unwrap())
}

#[test]
fn a_package_is_fetched_once_and_then_taken_from_what_is_kept() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(10_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| served.reply(asked));
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    let downloads = registry.paths().iter().filter(|path| path.ends_with("/package")).count();
    assert_eq!(downloads, 1);
    // Without the registry both the description and the package are still there.
    let desk = desk.offline();
    let asked = registry.paths().len();
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(registry.paths().len(), asked);
}

#[test]
fn what_is_damaged_on_the_disk_is_fetched_again() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(10_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| served.reply(asked));
    fetch(&desk, &registry.url).unwrap();
    let file = desk.folder.path().join("cache/packages").join(packed.digest.to_string());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    std::fs::write(&file, "").unwrap();
    let error = fetch(&desk.offline(), &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::Offline(_)), "{error}");
}

#[test]
fn a_broken_connection_is_gone_on_with_where_it_broke() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(1_000_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, number| {
        let reply = served.reply(asked);
        // The description, then a beginning, then some more, then the rest.
        match number {
            1 => reply.cut(300_000),
            2 => reply.cut(200_000),
            _ => reply,
        }
    });
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    let asked = registry.asked();
    let ranges: Vec<_> = asked[1..].iter().map(|asked| asked.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=300000-"), Some("bytes=500000-")]);
    assert_eq!(asked[2].header("if-range"), Some(packed.tag().as_str()));
}

#[test]
fn what_a_killed_process_left_is_gone_on_with() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(100_000)));
    let Begun::Part(mut part) = desk.cache.begin(packed.digest).unwrap() else { panic!() };
    part.restart(Some(&packed.tag())).unwrap();
    part.write(&packed.bytes[..60_000]).unwrap();
    drop(part);
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| served.reply(asked));
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(registry.asked()[1].header("range"), Some("bytes=60000-"));
}

#[test]
fn a_beginning_of_something_else_is_thrown_away() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(100_000)));
    let Begun::Part(mut part) = desk.cache.begin(packed.digest).unwrap() else { panic!() };
    part.restart(Some(&packed.tag())).unwrap();
    part.write(&vec![7; 60_000]).unwrap();
    drop(part);
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| served.reply(asked));
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    let ranges: Vec<_> =
        registry.asked()[1..].iter().map(|asked| asked.header("range").is_some()).collect();
    assert_eq!(ranges, [true, false]);
}

#[test]
fn a_registry_that_has_other_bytes_now_sends_all_of_them() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(100_000)));
    let Begun::Part(mut part) = desk.cache.begin(packed.digest).unwrap() else { panic!() };
    part.restart(Some("\"an-earlier-tag\"")).unwrap();
    part.write(&vec![7; 60_000]).unwrap();
    drop(part);
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| served.reply(asked));
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(registry.paths().len(), 2);
}

#[test]
fn other_bytes_are_refused_and_nothing_of_them_is_kept() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(10_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| {
        let mut reply = served.reply(asked);
        if asked.path.ends_with("/package") {
            reply.body[5_000] ^= 1;
        }
        reply
    });
    let error = fetch(&desk, &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::Digest { .. }), "{error}");
    assert_eq!(error.kind(), Kind::Untrustworthy);
    let left = std::fs::read_dir(desk.folder.path().join("cache/packages")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_package_of_another_size_than_described_is_refused() {
    for (extra, length) in [(1_usize, true), (50_000, true), (50_000, false)] {
        let (desk, packed) = (Desk::new(), Arc::new(Packed::new(10_000)));
        let served = Arc::clone(&packed);
        let registry = StandIn::new(move |asked, _| {
            let mut reply = served.reply(asked);
            if asked.path.ends_with("/package") {
                reply.body.extend(vec![0; extra]);
                if !length {
                    // Without a length it ends where the connection ends.
                    reply
                        .headers
                        .push(("content-length".to_owned(), served.bytes.len().to_string()));
                }
            }
            reply
        });
        let fetched = fetch(&desk, &registry.url);
        if length {
            let error = fetched.unwrap_err();
            assert!(matches!(error, FetchError::Other { what: "size", .. }), "{error}");
        } else {
            assert_eq!(fetched.unwrap(), packed.bytes, "what follows the length is nobody's");
        }
    }
}

#[test]
fn a_package_that_is_said_to_be_too_large_is_not_asked_for() {
    let (desk, mut packed) = (Desk::new(), Packed::new(100));
    packed.describe["size"] = (desk.settings.limits.package + 1).into();
    let registry = StandIn::new(move |asked, _| packed.reply(asked));
    let error = fetch(&desk, &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
    assert_eq!(registry.paths().len(), 1);
}

#[test]
fn without_a_digest_nothing_is_fetched() {
    let (desk, mut packed) = (Desk::new(), Packed::new(100));
    packed.describe.as_object_mut().unwrap().remove("sha256");
    let registry = StandIn::new(move |asked, _| packed.reply(asked));
    let error = fetch(&desk, &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::NoDigest), "{error}");
    assert_eq!(registry.paths().len(), 1);
}

#[test]
fn a_registry_that_falls_silent_is_left_and_asked_again() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(100_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, number| {
        let reply = served.reply(asked);
        if number == 1 { reply.stalling(40_000) } else { reply }
    });
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(registry.asked()[2].header("range"), Some("bytes=40000-"));
}

#[test]
fn bytes_that_are_described_but_no_package_are_refused() {
    let desk = Desk::new();
    let junk = vec![b'x'; 500];
    let digest = package::digest::Digest::of(&junk).to_string();
    let registry = StandIn::new(move |asked, _| {
        let mut packed = Packed::new(1);
        packed.describe["sha256"] = digest.clone().into();
        packed.describe["size"] = 500.into();
        packed.bytes.clone_from(&junk);
        packed.reply(asked)
    });
    let error = fetch(&desk, &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::Package(_)), "{error}");
}

#[test]
fn two_at_once_fetch_it_once() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(200_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, _| {
        if asked.path.ends_with("/package") {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        served.reply(asked)
    });
    std::thread::scope(|scope| {
        let each: Vec<_> =
            (0..4).map(|_| scope.spawn(|| fetch(&desk, &registry.url).unwrap())).collect();
        for one in each {
            assert_eq!(one.join().unwrap(), packed.bytes);
        }
    });
    let downloads = registry.paths().iter().filter(|path| path.ends_with("/package")).count();
    assert_eq!(downloads, 1);
}

#[test]
fn a_part_that_is_no_part_of_it_is_not_put_together() {
    let (desk, packed) = (Desk::new(), Arc::new(Packed::new(100_000)));
    let served = Arc::clone(&packed);
    let registry = StandIn::new(move |asked, number| match number {
        1 => served.reply(asked).cut(40_000),
        // Says that it goes on elsewhere than it was asked to.
        2 => Reply::new(206, &served.bytes[..1_000])
            .with("content-range", &format!("bytes 0-999/{}", served.bytes.len())),
        _ => served.reply(asked),
    });
    assert_eq!(fetch(&desk, &registry.url).unwrap(), packed.bytes);
    assert_eq!(registry.asked()[3].header("range"), None);
}

#[test]
fn a_package_without_a_size_ends_where_one_must_end() {
    let (mut desk, mut packed) = (Desk::new(), Packed::new(50_000));
    packed.describe.as_object_mut().unwrap().remove("size");
    desk.settings.limits.package = 10_000;
    let whole = packed.bytes.clone();
    let registry = StandIn::new(move |asked, _| packed.reply(asked));
    let error = fetch(&desk, &registry.url).unwrap_err();
    assert!(matches!(error, FetchError::TooMuch(_)), "{error}");
    desk.settings.limits.package = 1 << 20;
    assert_eq!(fetch(&desk, &registry.url).unwrap(), whole);
}
