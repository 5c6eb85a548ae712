//! Names that every system accepts: a letter, then at most 63 letters, digits, `_` and `-`.
//!
//! [`assign`] depends on the set alone: no name is given twice, and the order
//! in which the tools arrive decides nothing. Nobody reads a name backwards;
//! the table beside it says what it stands for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sha2::{Digest, Sha256};

use crate::dialect::lowering::hex;

/// The longest name.
const LONGEST: usize = 64;

/// Hexadecimal digits of the digest that one level adds.
const DIGITS: usize = 8;

/// The most digits a name can hold and still begin as it would like to.
const MOST_DIGITS: usize = 56;

/// What a format takes for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// The portable rule.
    Portable,
    /// The portable rule, for names of files: some systems do not tell `A` from `a`.
    PortableFile,
    /// Anything.
    Verbatim,
}

/// A name that is asked for, and for what.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'t> {
    /// The name it would like to have.
    pub name: String,
    /// The canonical id of the package.
    pub package: &'t str,
    /// The action.
    pub action: &'t str,
}

/// Who has a name: the one tool that came for it at the highest level, if it was alone there.
struct Seat {
    level: usize,
    holder: Option<usize>,
}

/// Gives every tool a name of its own, in the order asked. No two may be the same action of the
/// same package.
///
/// At level 0 a tool has the name it would like; at each further level, more of its digest. Two
/// that meet at one level both move on, and a lower one yields to a higher one, so no tool takes
/// a name that was made for another. A name once contested stays so, which makes the outcome the
/// same whoever comes first.
pub(super) fn assign(wanted: &[Wanted<'_>], grammar: Grammar) -> Vec<String> {
    let mut names = vec![String::new(); wanted.len()];
    let mut seats: HashMap<String, Seat> = HashMap::new();
    let mut waiting: Vec<(usize, usize)> = (0..wanted.len()).map(|index| (index, 0)).collect();
    while let Some((index, level)) = waiting.pop() {
        let Some(name) = grammar.name_at(&wanted[index], level) else {
            waiting.push((index, level + 1));
            continue;
        };
        match seats.entry(grammar.identity(&name)) {
            Entry::Vacant(vacant) => {
                vacant.insert(Seat { level, holder: Some(index) });
            }
            Entry::Occupied(mut occupied) => {
                let seat = occupied.get_mut();
                if level >= seat.level {
                    waiting.extend(seat.holder.take().map(|holder| (holder, seat.level + 1)));
                }
                if level > seat.level {
                    *seat = Seat { level, holder: Some(index) };
                } else {
                    waiting.push((index, level + 1));
                }
            }
        }
        names[index] = name;
    }
    names
}

impl Grammar {
    /// The name of a tool at a level; none when it would be too long.
    fn name_at(self, wanted: &Wanted<'_>, level: usize) -> Option<String> {
        let (name, longest) = match self {
            Grammar::Portable | Grammar::PortableFile => (portable(&wanted.name), LONGEST),
            Grammar::Verbatim => (wanted.name.clone(), usize::MAX),
        };
        if level == 0 {
            return (name.len() <= longest).then_some(name);
        }
        let digest = wanted.digest(level);
        // What is cut was made portable, so it is ASCII.
        let kept = name.len().min(longest - digest.len() - 1);
        Some(format!("{}_{digest}", &name[..kept]))
    }

    /// What makes two names the same.
    fn identity(self, name: &str) -> String {
        match self {
            Grammar::PortableFile => name.to_ascii_lowercase(),
            Grammar::Portable | Grammar::Verbatim => name.to_owned(),
        }
    }
}

impl Wanted<'_> {
    /// Digits that tell it from others, more at each level. Ids and actions may hold a `/`, so
    /// two can share the first digest; from the second level on the parts are told apart.
    fn digest(&self, level: usize) -> String {
        let Wanted { package, action, .. } = self;
        let text = match level {
            0 | 1 => format!("{package}/{action}"),
            _ => format!("{}:{package}/{action}", package.len()),
        };
        let mut digits = hex(&Sha256::digest(text));
        digits.truncate((level * DIGITS).min(MOST_DIGITS));
        digits
    }
}

/// A name with every character that is not portable replaced, and a letter first.
fn portable(name: &str) -> String {
    let is_portable = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mapped: String = name.chars().map(|c| if is_portable(c) { c } else { '_' }).collect();
    if mapped.starts_with(|c: char| c.is_ascii_alphabetic()) {
        mapped
    } else {
        format!("t_{mapped}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn tool<'t>(package: &'t str, action: &'t str) -> Wanted<'t> {
        let name = package.split_once(':').unwrap().1.to_owned();
        Wanted { name, package, action }
    }

    fn names_of(ids: &[&str], grammar: Grammar) -> Vec<String> {
        let wanted: Vec<_> = ids.iter().map(|id| tool(id, "run")).collect();
        assign(&wanted, grammar)
    }

    #[test]
    fn dots_become_underscores() {
        let names = names_of(&["mcpkg:stripe.payments.create_charge"], Grammar::Portable);
        assert_eq!(names, ["stripe_payments_create_charge"]);
    }

    #[test]
    fn a_name_begins_with_a_letter_and_is_ascii() {
        let names = names_of(&["m:7zip.pack", "m:_x", "m:", "m:größe"], Grammar::Portable);
        assert_eq!(names, ["t_7zip_pack", "t__x", "t_", "gr__e"]);
    }

    #[test]
    fn a_name_is_cut_only_above_64_characters() {
        let fits = format!("m:{}", "a".repeat(64));
        let long = format!("m:{}", "a".repeat(65));
        let names = names_of(&[&fits, &long], Grammar::Portable);
        assert_eq!(names[0], "a".repeat(64));
        assert_eq!(names[1].len(), 64);
        assert!(names[1].starts_with(&format!("{}_", "a".repeat(55))));
    }

    #[test]
    fn both_parties_of_a_collision_get_the_digest_of_their_id_and_action() {
        let digest = |text: &str| hex(&Sha256::digest(text))[..8].to_owned();
        let names = names_of(&["m:a.b", "m:a_b", "m:c"], Grammar::Portable);
        let expected = [
            format!("a_b_{}", digest("m:a.b/run")),
            format!("a_b_{}", digest("m:a_b/run")),
            "c".to_owned(),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_tool_cannot_take_the_name_that_was_made_for_another() {
        let made = names_of(&["m:a.b", "m:a_b"], Grammar::Portable);
        let thief = format!("m:{}", made[0]);
        let second_thief = {
            let names = names_of(&["m:a.b", "m:a_b", &thief], Grammar::Portable);
            format!("m:{}", names[2])
        };
        let names = names_of(&[&second_thief, &thief, "m:a.b", "m:a_b"], Grammar::Portable);
        assert_eq!(names[2..], made);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 4);
    }

    #[test]
    fn ids_and_actions_that_read_alike_when_joined_are_told_apart() {
        let x = |package, action| Wanted { name: "x".into(), package, action };
        let names = assign(&[x("j:a", "b/c"), x("j:a/b", "c")], Grammar::Portable);
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() == "x_".len() + 16), "{names:?}");
    }

    #[test]
    fn names_of_files_differ_in_more_than_case() {
        assert_eq!(names_of(&["m:Run", "m:run"], Grammar::Portable), ["Run", "run"]);
        let names = names_of(&["m:Run", "m:run"], Grammar::PortableFile);
        assert!(names.iter().all(|name| name.len() == "run_".len() + 8), "{names:?}");
    }

    #[test]
    fn a_verbatim_name_is_neither_mapped_nor_cut() {
        let long = format!("m:{}", "a.".repeat(100));
        assert_eq!(names_of(&[&long], Grammar::Verbatim), [&long[2..]]);
        let names = names_of(&["m:größe", "c:größe"], Grammar::Verbatim);
        assert!(names.iter().all(|name| name.starts_with("größe_")), "{names:?}");
    }

    /// Ids that collide as often as they can, from a seeded generator.
    fn hostile_ids(seed: u64) -> Vec<String> {
        let mut state = seed;
        let mut draw = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let letters = ['a', 'b', '.', '_', '-', ':', '/', '7', 'é', '数', ' ', '\0', 'A'];
        let mut ids: HashSet<String> = HashSet::new();
        for _ in 0..400 {
            let length = [1, 2, 3, 64, 65, 300][usize::try_from(draw(6)).unwrap()];
            let few = 2 + draw(letters.len() as u64 - 1);
            let text = (0..length).map(|_| letters[usize::try_from(draw(few)).unwrap()]);
            ids.insert(format!("m:{}", text.collect::<String>()));
        }
        // Some that ask for the names the others were given.
        let mut ids: Vec<String> = ids.into_iter().collect();
        ids.sort();
        for _ in 0..2 {
            let given =
                names_of(&ids.iter().map(String::as_str).collect::<Vec<_>>(), Grammar::Portable);
            ids.extend(given.into_iter().take(100).map(|name| format!("m:{name}")));
            ids.sort();
            ids.dedup();
        }
        ids
    }

    #[test]
    fn names_are_unique_and_portable_whatever_the_ids() {
        let portable = regex::Regex::new("^[a-zA-Z][a-zA-Z0-9_-]{0,63}$").unwrap();
        for seed in 0..20 {
            let ids = hostile_ids(seed);
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            for grammar in [Grammar::Portable, Grammar::PortableFile] {
                let names = names_of(&ids, grammar);
                let bad: Vec<_> = names.iter().filter(|name| !portable.is_match(name)).collect();
                assert!(bad.is_empty(), "{bad:?}");
                let different: HashSet<_> =
                    names.iter().map(|name| grammar.identity(name)).collect();
                assert_eq!(different.len(), ids.len());
            }
        }
    }

    #[test]
    fn the_order_of_the_tools_decides_nothing() {
        for seed in 0..20 {
            let ids = hostile_ids(seed);
            let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let table = |ids: &[&str]| -> HashMap<String, String> {
                let names = names_of(ids, Grammar::Portable);
                ids.iter().map(|id| (*id).to_owned()).zip(names).collect()
            };
            let expected = table(&ids);
            ids.reverse();
            assert_eq!(table(&ids), expected);
            for turn in [1, 7, 100] {
                ids.rotate_left(turn);
                assert_eq!(table(&ids), expected);
            }
        }
    }
}
