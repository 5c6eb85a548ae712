//! Where the references of a schema lead.
//!
//! A part with an `$id` is a resource of its own: it has an address, and the
//! references in it are read from there. They are resolved just as the library
//! does that runs the schema, because what a schema costs is counted along them.

use std::collections::HashMap;
use std::sync::LazyLock;

use fluent_uri::{Uri, UriRef};

use super::MAX_SUBSCHEMAS;
use super::keywords::{Kind, kind};
use crate::json::{Node, Pointer, Value};

/// What a reference turned out to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'n, 't> {
    /// A schema in this document, and the resource it stands in.
    Found(&'n Node<'t>, Home),
    /// Something that is there, but is no schema.
    NotASchema,
    /// Nothing that is there.
    Missing,
    /// Something outside the document.
    Remote,
}

/// The resource that a schema stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Home(usize);

impl Home {
    /// The whole schema, or the document around it.
    pub(crate) const ROOT: Home = Home(0);

    /// Some resource within it.
    pub(super) const WITHIN: Home = Home(1);
}

/// The parts of a schema that references can lead to.
#[derive(Debug)]
pub(super) struct Refs<'n, 't> {
    /// The whole schema comes first.
    resources: Vec<Resource<'n, 't>>,
    by_address: HashMap<Uri<String>, Home>,
    by_schema: HashMap<*const Node<'t>, Home>,
    anchors: HashMap<(Home, &'n str), &'n Node<'t>>,
    by_name: HashMap<&'n str, Vec<(&'n Node<'t>, Home)>>,
    faults: Vec<(&'n Node<'t>, &'static str)>,
    gathered: usize,
}

#[derive(Debug)]
struct Resource<'n, 't> {
    schema: &'n Node<'t>,
    /// None when its `$id` makes none.
    address: Option<Uri<String>>,
}

/// The address of a schema that has none.
static NOWHERE: LazyLock<Uri<String>> = LazyLock::new(|| {
    Uri::parse("json-schema:///".to_owned()).expect("a URI that was written here")
});

impl<'n, 't> Refs<'n, 't> {
    /// Gathers addresses and anchors.
    pub(super) fn of(root: &'n Node<'t>) -> Self {
        let mut refs = Refs {
            resources: vec![Resource { schema: root, address: Some(NOWHERE.clone()) }],
            by_address: HashMap::new(),
            by_schema: HashMap::new(),
            anchors: HashMap::new(),
            by_name: HashMap::new(),
            faults: Vec::new(),
            gathered: 0,
        };
        refs.gather(root, Home::ROOT);
        refs
    }

    fn gather(&mut self, schema: &'n Node<'t>, home: Home) {
        self.gathered += 1;
        if self.gathered > MAX_SUBSCHEMAS {
            // The schema is refused for its size.
            return;
        }
        let home = match schema.get("$id") {
            Some(id) => self.gather_id(schema, id, home),
            None => home,
        };
        for member in schema.members() {
            if let ("$anchor" | "$dynamicAnchor", Some(name)) =
                (member.key.as_ref(), member.value.as_text())
            {
                let earlier = self.anchors.insert((home, name), schema);
                if earlier.is_some_and(|earlier| !std::ptr::eq(earlier, schema)) {
                    self.faults.push((&member.value, "this name is already taken"));
                }
                self.by_name.entry(name).or_default().push((schema, home));
            }
        }
        for_each_subschema(schema, &mut |keyword, sub| match keyword {
            "dependencies" => self.refuse_addresses(sub),
            _ => self.gather(sub, home),
        });
    }

    /// The draft has no `dependencies` any more: they are run, but nothing in them is found.
    fn refuse_addresses(&mut self, schema: &'n Node<'t>) {
        for keyword in ["$id", "$anchor", "$dynamicAnchor"] {
            if let Some(value) = schema.get(keyword) {
                self.faults.push((value, "nothing in `dependencies` can have a name or address"));
            }
        }
        for_each_subschema(schema, &mut |_, sub| self.refuse_addresses(sub));
    }

    fn gather_id(&mut self, schema: &'n Node<'t>, id: &'n Node<'t>, home: Home) -> Home {
        let Some(text) = id.as_text() else { return home };
        let base = self.resources[home.0].address.as_ref();
        let address = base.and_then(|base| resolved(text.trim_end_matches('#'), base));
        let own = if std::ptr::eq(schema, self.resources[0].schema) {
            self.resources.clear();
            Home::ROOT
        } else {
            Home(self.resources.len())
        };
        match &address {
            Some(address) => {
                let is_that_of_the_whole =
                    own != Home::ROOT && self.resources[0].address.as_ref() == Some(address);
                let earlier = self.by_address.insert(address.clone(), own);
                if earlier.is_some() || is_that_of_the_whole {
                    self.faults.push((id, "this `$id` is already taken"));
                }
            }
            None => self.faults.push((id, "`$id` is not a URI reference that can be resolved")),
        }
        self.by_schema.insert(schema, own);
        self.resources.push(Resource { schema, address });
        own
    }

    /// What is wrong with an address or anchor.
    pub(super) fn fault_of(&self, value: &Node<'_>) -> Option<&'static str> {
        let same = |(node, _): &&(&Node<'t>, _)| std::ptr::addr_eq(*node, value);
        self.faults.iter().find(same).map(|(_, fault)| *fault)
    }

    /// Whether the whole schema is one resource, so that a path is a path wherever it stands.
    pub(super) fn are_in_one_resource(&self) -> bool {
        self.resources.len() == 1
    }

    /// Whether its references are all plain: within the schema, by path.
    pub(super) fn are_plain(&self) -> bool {
        self.has_no_addresses() && has_only_plain_refs(self.resources[0].schema)
    }

    /// Whether it has references or addresses at all.
    pub(super) fn are_used(&self) -> bool {
        !self.has_no_addresses() || has_ref(self.resources[0].schema)
    }

    fn has_no_addresses(&self) -> bool {
        self.by_schema.is_empty() && self.anchors.is_empty()
    }

    /// The resource that a schema stands in which was come upon in `home`.
    pub(super) fn home_of(&self, schema: &Node<'t>, home: Home) -> Home {
        if self.by_schema.is_empty() {
            return home;
        }
        self.by_schema.get(&std::ptr::from_ref(schema)).copied().unwrap_or(home)
    }

    /// Where a reference leads that stands in the resource `home`.
    pub(super) fn resolve(&self, reference: &str, home: Home) -> Target<'n, 't> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut home = home;
        if !address.is_empty() {
            let base = self.resources[home.0].address.as_ref();
            let uri = base.and_then(|base| resolved(address, base));
            match uri.and_then(|uri| self.by_address.get(&uri)) {
                Some(found) => home = *found,
                None if address.contains(':') || address.starts_with("//") => {
                    return Target::Remote;
                }
                None => return Target::Missing,
            }
        }
        let resource = self.resources[home.0].schema;
        if fragment.is_empty() {
            return Target::Found(resource, home);
        }
        if !fragment.starts_with('/') {
            let anchor = self.anchors.get(&(home, fragment));
            return anchor.map_or(Target::Missing, |schema| Target::Found(schema, home));
        }
        let Some(pointer) = percent_decoded(fragment) else { return Target::Missing };
        match lead(resource, &pointer, &mut |schema| home = self.home_of(schema, home)) {
            Led::ToSchema(schema) => Target::Found(schema, home),
            Led::ToOther => Target::NotASchema,
            Led::Nowhere => Target::Missing,
        }
    }

    /// Every schema that a dynamic reference could lead to.
    pub(super) fn dynamic_targets(&self, reference: &str) -> &[(&'n Node<'t>, Home)] {
        let name = reference.rsplit('#').next().unwrap_or_default();
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Calls back for each subschema that stands directly in a schema, with its keyword.
pub(super) fn for_each_subschema<'n, 't>(
    schema: &'n Node<'t>,
    visit: &mut impl FnMut(&'n str, &'n Node<'t>),
) {
    for member in schema.members() {
        let keyword = member.key.as_ref();
        match (kind(keyword), &member.value.value) {
            (Some(Kind::Schema), _) => visit(keyword, &member.value),
            (Some(Kind::Schemas), Value::List(items)) => {
                for item in items {
                    visit(keyword, item);
                }
            }
            (Some(Kind::SchemaMap | Kind::PatternMap), Value::Object(members)) => {
                for inner in members {
                    visit(keyword, &inner.value);
                }
            }
            (Some(Kind::Dependencies), Value::Object(members)) => {
                // A list there names properties; it is no schema.
                for inner in members {
                    if !matches!(inner.value.value, Value::List(_)) {
                        visit(keyword, &inner.value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The schema that a plain reference leads to, from a root without resources within it.
pub fn follow<'n, 't>(root: &'n Node<'t>, pointer: &str) -> Option<&'n Node<'t>> {
    let mut crosses = false;
    match lead(root, pointer, &mut |schema| crosses |= schema.get("$id").is_some()) {
        Led::ToSchema(schema) if !crosses => Some(schema),
        _ => None,
    }
}

/// Where a path leads.
enum Led<'n, 't> {
    ToSchema(&'n Node<'t>),
    ToOther,
    Nowhere,
}

/// Goes down a path from schema to schema, calling back for each.
fn lead<'n, 't>(
    from: &'n Node<'t>,
    pointer: &str,
    passed: &mut impl FnMut(&'n Node<'t>),
) -> Led<'n, 't> {
    let Some(pointer) = Pointer::parse(pointer) else { return Led::Nowhere };
    let mut schema = from;
    let mut steps = pointer.steps();
    while let Some(keyword) = steps.next() {
        let Some(value) = schema.get(&keyword) else { return Led::Nowhere };
        let next = match (kind(&keyword), &value.value) {
            (Some(Kind::Schema), _) => Some(value),
            (Some(Kind::Schemas), Value::List(items)) => match steps.next() {
                Some(step) => step.parse().ok().and_then(|index: usize| items.get(index)),
                None => return Led::ToOther,
            },
            (Some(Kind::SchemaMap | Kind::PatternMap), Value::Object(_)) => match steps.next() {
                Some(step) => value.get(&step),
                None => return Led::ToOther,
            },
            _ => return Led::ToOther,
        };
        let Some(next) = next else { return Led::Nowhere };
        schema = next;
        passed(schema);
    }
    if schema.is_object() || schema.as_bool().is_some() {
        Led::ToSchema(schema)
    } else {
        Led::ToOther
    }
}

fn has_only_plain_refs(schema: &Node<'_>) -> bool {
    let mut plain = schema.members().iter().all(|member| match kind(&member.key) {
        Some(Kind::Ref) => {
            member.key == "$ref"
                && member
                    .value
                    .as_text()
                    .is_some_and(|text| text.starts_with('#') && !text.contains('%'))
        }
        _ => true,
    });
    for_each_subschema(schema, &mut |_, sub| plain = plain && has_only_plain_refs(sub));
    plain
}

fn has_ref(schema: &Node<'_>) -> bool {
    let here = schema.members().iter().any(|member| kind(&member.key) == Some(Kind::Ref));
    let mut beneath = false;
    for_each_subschema(schema, &mut |_, sub| beneath = beneath || has_ref(sub));
    here || beneath
}

/// An address read from a base, in the one form in which addresses are compared.
fn resolved(address: &str, base: &Uri<String>) -> Option<Uri<String>> {
    let reference = UriRef::parse(address).ok()?;
    Some(reference.resolve_against(&base.borrow()).ok()?.normalize())
}

/// A text whose `%XX` are resolved; none when they are no UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    /// What the reference at `from` leads to, as the title of its target.
    fn leads(schema: &str, reference: &str, from: &str) -> Option<String> {
        let root = parse(schema).root.unwrap();
        let refs = Refs::of(&root);
        let Target::Found(_, home) = refs.resolve(from, Home::ROOT) else { panic!("{from}") };
        match refs.resolve(reference, home) {
            Target::Found(target, _) => target.text_at("title").map(str::to_owned),
            _ => None,
        }
    }

    const TWO: &str = r#"{
        "title": "root",
        "$defs": {
            "a": {"title": "root a"},
            "one": {"$id": "https://one.example/part", "title": "one"},
            "two": {
                "$id": "https://two.example/part",
                "title": "two",
                "$defs": {
                    "a": {"title": "two a", "$anchor": "name"},
                    "deeper": {"$id": "x/y", "title": "deeper"}
                }
            }
        }
    }"#;

    #[test]
    fn a_reference_is_read_from_the_resource_it_stands_in() {
        let two = "https://two.example/part";
        assert_eq!(leads(TWO, "#/$defs/a", "#").as_deref(), Some("root a"));
        assert_eq!(leads(TWO, "#/$defs/a", two).as_deref(), Some("two a"));
        assert_eq!(leads(TWO, "part", two).as_deref(), Some("two"));
        assert_eq!(leads(TWO, "x/y", two).as_deref(), Some("deeper"));
        assert_eq!(leads(TWO, "../part", "https://two.example/x/y").as_deref(), Some("two"));
        assert_eq!(leads(TWO, "#name", two).as_deref(), Some("two a"));
        assert_eq!(leads(TWO, "#name", "#"), None);
        assert_eq!(leads(TWO, "part", "#"), None);
    }

    #[test]
    fn a_path_through_a_resource_stands_in_it() {
        let through = "#/$defs/two/$defs/a";
        assert_eq!(leads(TWO, "part", through).as_deref(), Some("two"));
        assert_eq!(leads(TWO, "#/$defs/deeper", through).as_deref(), Some("deeper"));
    }

    #[test]
    fn a_path_to_something_else_is_no_reference() {
        let root = parse(r#"{"x-a": {"type": 3}, "$defs": {"a": {"default": {}}}}"#).root.unwrap();
        let refs = Refs::of(&root);
        for reference in ["#/x-a", "#/$defs", "#/$defs/a/default"] {
            assert!(
                matches!(refs.resolve(reference, Home::ROOT), Target::NotASchema),
                "{reference}"
            );
        }
        assert!(matches!(refs.resolve("#/$defs/b", Home::ROOT), Target::Missing));
        assert!(matches!(refs.resolve("https://a.example/", Home::ROOT), Target::Remote));
    }

    #[test]
    fn an_address_is_given_once() {
        let text = r#"{"$defs": {
            "a": {"$id": "https://a.example/x"},
            "b": {"$id": "https://a.example/./x"},
            "c": {"$anchor": "n", "$dynamicAnchor": "n"},
            "d": {"$anchor": "n"},
            "e": {"$id": "urn:e", "$anchor": "n"}
        }}"#;
        let root = parse(text).root.unwrap();
        let refs = Refs::of(&root);
        let faults: Vec<_> =
            refs.faults.iter().map(|(value, _)| &text[value.span.range()]).collect();
        assert_eq!(faults, [r#""https://a.example/./x""#, r#""n""#]);
    }
}
