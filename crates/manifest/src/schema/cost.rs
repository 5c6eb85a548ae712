//! How much work a schema can make, before any value is held against it.
//!
//! A few lines of references can double at every step: a tree of 2^26
//! branches in two kilobytes. Such a schema is refused, not run.

use std::collections::{HashMap, HashSet};

use super::refs::{Home, Refs, Target, for_each_subschema};
use crate::json::Node;

/// How many subschemas one value may be held against at one place.
const MAX_AT_ONE_PLACE: u64 = 20_000;

/// How far references and subschemas may lead, one from the other.
const MAX_DEPTH: usize = 300;

/// Why a schema makes too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// It doubles, or worse, at every step.
    Explodes,
    /// It comes back to itself without having looked at a part of the value.
    Circles,
    /// References lead to references lead to references.
    TooDeep,
}

impl Cost {
    pub(super) fn message(self) -> &'static str {
        match self {
            Cost::Explodes => {
                "checking one value would take more than 20,000 steps at one place, because parts are referred to again and again"
            }
            Cost::Circles => {
                "the schema refers to itself without getting anywhere: checking a value would never end"
            }
            Cost::TooDeep => "references lead more than 300 steps deep",
        }
    }
}

/// Finds whether a schema makes too much work.
pub(super) fn find<'n, 't>(root: &'n Node<'t>, refs: &Refs<'n, 't>) -> Option<Cost> {
    let mut walk = Walk { refs, seen: HashSet::new(), counted: HashMap::new() };
    walk.everything(root, Home::ROOT, 0).err()
}

struct Walk<'r, 'n, 't> {
    refs: &'r Refs<'n, 't>,
    seen: HashSet<*const Node<'t>>,
    /// The work at one place; none while it is being counted.
    counted: HashMap<*const Node<'t>, Option<u64>>,
}

impl<'n, 't> Walk<'_, 'n, 't> {
    /// Visits every subschema once, in the way a compiler would.
    fn everything(&mut self, schema: &'n Node<'t>, home: Home, depth: usize) -> Result<(), Cost> {
        if depth > MAX_DEPTH {
            return Err(Cost::TooDeep);
        }
        if !self.seen.insert(std::ptr::from_ref(schema)) {
            return Ok(());
        }
        let home = self.refs.home_of(schema, home);
        self.at_one_place(schema, home, depth)?;
        for (target, home) in self.targets(schema, home) {
            self.everything(target, home, depth + 1)?;
        }
        let mut subschemas = Vec::new();
        for_each_subschema(schema, &mut |_, sub| subschemas.push(sub));
        for sub in subschemas {
            self.everything(sub, home, depth + 1)?;
        }
        Ok(())
    }

    /// Counts the subschemas that judge the very same value.
    fn at_one_place(
        &mut self,
        schema: &'n Node<'t>,
        home: Home,
        depth: usize,
    ) -> Result<u64, Cost> {
        if depth > MAX_DEPTH {
            return Err(Cost::TooDeep);
        }
        let key = std::ptr::from_ref(schema);
        match self.counted.get(&key) {
            Some(Some(work)) => return Ok(*work),
            Some(None) => return Err(Cost::Circles),
            None => {}
        }
        self.counted.insert(key, None);
        let home = self.refs.home_of(schema, home);
        let mut same_place = self.targets(schema, home);
        for_each_subschema(schema, &mut |keyword, sub| {
            let is_same_place = matches!(
                keyword,
                "allOf"
                    | "anyOf"
                    | "oneOf"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "dependentSchemas"
                    | "dependencies"
            );
            if is_same_place {
                same_place.push((sub, home));
            }
        });
        let mut work = 1u64;
        for (next, home) in same_place {
            work = work.saturating_add(self.at_one_place(next, home, depth + 1)?);
        }
        if work > MAX_AT_ONE_PLACE {
            return Err(Cost::Explodes);
        }
        self.counted.insert(key, Some(work));
        Ok(work)
    }

    /// Where the references of a schema lead. A dynamic one may come back to where it stands
    /// by way of another value, so only its plain reading is followed.
    fn targets(&self, schema: &'n Node<'t>, home: Home) -> Vec<(&'n Node<'t>, Home)> {
        ["$ref", "$dynamicRef", "$recursiveRef"]
            .iter()
            .filter_map(|keyword| schema.text_at(keyword))
            .filter_map(|text| match self.refs.resolve(text, home) {
                Target::Found(target, home) => Some((target, home)),
                Target::NotASchema | Target::Missing | Target::Remote => None,
            })
            .collect()
    }
}
