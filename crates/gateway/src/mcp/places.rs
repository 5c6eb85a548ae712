//! Places for what is kept for clients, by names that nobody guesses: so many in all, and so many for one client, so that none
//! takes those of all others.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::client::lock;

/// The places, and what is in them.
#[derive(Debug)]
pub(crate) struct Places<T> {
    most: usize,
    most_of_one: usize,
    kept: Mutex<HashMap<String, Kept<T>>>,
}

#[derive(Debug)]
struct Kept<T> {
    /// The client that it is kept for.
    of: String,
    since: Instant,
    what: T,
}

impl<T> Places<T> {
    /// So many, and so many for one client.
    pub(crate) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most, most_of_one, kept: Mutex::default() }
    }

    /// Keeps something for a client, and says by which name. Where every place is taken, the oldest that is over makes room; where
    /// nothing is, it is not kept.
    pub(crate) fn keep(&self, of: &str, what: T, is_over: impl Fn(&T) -> bool) -> Option<String> {
        let name = unguessed()?;
        let mut kept = lock(&self.kept);
        let own = kept.values().filter(|one| one.of == of).count();
        if own >= self.most_of_one {
            make_room(&mut kept, |one| one.of == of && is_over(&one.what))?;
        }
        if kept.len() >= self.most {
            make_room(&mut kept, |one| is_over(&one.what))?;
        }
        kept.insert(name.clone(), Kept { of: of.to_owned(), since: Instant::now(), what });
        Some(name)
    }

    /// What is kept by a name.
    pub(crate) fn get(&self, name: &str) -> Option<T>
    where
        T: Clone,
    {
        lock(&self.kept).get(name).map(|one| one.what.clone())
    }

    /// What was kept by a name, and is no more.
    pub(crate) fn take(&self, name: &str) -> Option<T> {
        lock(&self.kept).remove(name).map(|one| one.what)
    }

    /// Takes what is there for longer than this.
    pub(crate) fn take_older(&self, than: Duration) -> Vec<T> {
        self.take_all(|one| one.since.elapsed() >= than)
    }

    /// Takes everything.
    pub(crate) fn clear(&self) -> Vec<T> {
        self.take_all(|_| true)
    }

    fn take_all(&self, is_taken: impl Fn(&Kept<T>) -> bool) -> Vec<T> {
        let mut kept = lock(&self.kept);
        kept.extract_if(|_, one| is_taken(one)).map(|(_, one)| one.what).collect()
    }
}

/// A name that nobody guesses, and that is no other's; none where there is no randomness.
pub(crate) fn unguessed() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Drops the oldest of those that may go.
fn make_room<T>(
    kept: &mut HashMap<String, Kept<T>>,
    may_go: impl Fn(&Kept<T>) -> bool,
) -> Option<()> {
    let going = kept.iter().filter(|(_, one)| may_go(one)).min_by_key(|(_, one)| one.since)?;
    let name = going.0.clone();
    kept.remove(&name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_takes_the_places_of_all_others() {
        let places = Places::new(4, 2);
        let keep = |of: &str| places.keep(of, (), |()| false);
        assert!(keep("a").is_some() && keep("a").is_some());
        assert_eq!(keep("a"), None);
        assert!(keep("b").is_some());
        let last = keep("c").unwrap();
        assert_eq!(keep("b"), None, "all are taken");
        assert_eq!((places.take(&last), places.take(&last)), (Some(()), None));
        assert!(keep("b").is_some());
    }

    #[test]
    fn the_oldest_that_is_over_makes_room() {
        let places = Places::new(4, 3);
        let keep = |of: &str, number: i32| places.keep(of, number, |number| number % 2 == 0);
        let names: Vec<_> = [1, 2, 4].map(|number| keep("a", number).unwrap()).into();
        let of_other = keep("b", 6).unwrap();
        // Its own first, whatever is over of others.
        let next = keep("a", 3).unwrap();
        let now = |name: &String| places.get(name);
        assert_eq!([&names[0], &names[1], &names[2]].map(now), [Some(1), None, Some(4)]);
        assert_eq!(now(&of_other), Some(6));
        let last = keep("c", 5).unwrap();
        assert_eq!(
            [&names[2], &of_other, &next, &last].map(now),
            [None, Some(6), Some(3), Some(5)]
        );
        assert!(keep("c", 7).is_some());
        assert_eq!(keep("c", 9), None, "nothing is over");
        assert_eq!(places.clear().len(), 4);
    }
}
