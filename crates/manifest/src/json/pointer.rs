//! JSON pointers (RFC 6901), and the path from which one is made.

use std::fmt;

/// How many characters of a key are written.
const LONGEST_KEY: usize = 200;

/// A JSON pointer in its written form: `/actions/0/name`, or empty for the whole document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
pub struct Pointer(String);

impl Pointer {
    /// The whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a pointer; it must be empty or begin with `/`, and `~` may only stand in `~0` and `~1`.
    pub fn parse(text: &str) -> Option<Self> {
        let escapes_hold =
            text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
        ((text.is_empty() || text.starts_with('/')) && escapes_hold).then(|| Self(text.to_owned()))
    }

    /// The pointer of a member of what this one points at.
    pub fn key(&self, key: &str) -> Self {
        let mut longer = self.clone();
        longer.push(key);
        longer
    }

    /// The pointer of an element of what this one points at.
    pub fn index(&self, index: usize) -> Self {
        let mut longer = self.clone();
        longer.push(&index.to_string());
        longer
    }

    /// The written form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The steps, escapes resolved.
    pub fn steps(&self) -> impl Iterator<Item = String> + '_ {
        self.0.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
    }

    /// This pointer seen from a document in which its root stands at `base`.
    pub fn beneath(&self, base: &Pointer) -> Self {
        Self(format!("{}{}", base.0, self.0))
    }

    /// A key longer than anyone would read is shortened: a finding must not cost more to tell
    /// than the document was to write.
    fn push(&mut self, key: &str) {
        self.0.push('/');
        let shown = key.char_indices().nth(LONGEST_KEY).map_or(key, |(end, _)| &key[..end]);
        for character in shown.chars() {
            match character {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
        if shown.len() < key.len() {
            self.0.push('…');
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// One step down a document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'p> {
    /// Into an object.
    Key(&'p str),
    /// Into a list.
    Index(usize),
}

/// Where a walk over a document stands.
///
/// It lives on the stack of the walk and costs nothing until a finding needs its pointer.
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Option<Step<'p>>,
}

impl<'p> Path<'p> {
    /// The whole document.
    pub const ROOT: Path<'static> = Path { parent: None, step: None };

    /// One step further down, by key.
    pub fn key<'q>(&'q self, key: &'q str) -> Path<'q>
    where
        'p: 'q,
    {
        Path { parent: Some(self), step: Some(Step::Key(key)) }
    }

    /// One step further down, by index.
    pub fn index<'q>(&'q self, index: usize) -> Path<'q>
    where
        'p: 'q,
    {
        Path { parent: Some(self), step: Some(Step::Index(index)) }
    }

    /// The pointer to where the walk stands.
    pub fn pointer(&self) -> Pointer {
        let mut pointer = self.parent.map_or_else(Pointer::root, Path::pointer);
        match self.step {
            Some(Step::Key(key)) => pointer.push(key),
            Some(Step::Index(index)) => pointer.push(&index.to_string()),
            None => {}
        }
        pointer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_pointer_with_escapes() {
        let root = Path::ROOT;
        let actions = root.key("a/b~c");
        assert_eq!(actions.index(3).pointer().as_str(), "/a~1b~0c/3");
        assert_eq!(Path::ROOT.pointer().as_str(), "");
    }

    #[test]
    fn a_very_long_key_is_shortened() {
        let pointer = Pointer::root().key(&"é".repeat(300)).key("b");
        assert_eq!(pointer.as_str(), format!("/{}…/b", "é".repeat(200)));
    }

    #[test]
    fn a_pointer_is_read_only_when_it_is_one() {
        assert!(Pointer::parse("/a~1b").is_some());
        assert!(Pointer::parse("").is_some());
        assert!(Pointer::parse("a").is_none());
        assert!(Pointer::parse("/a~2").is_none());
        assert_eq!(
            Pointer::parse("/a~1b/0").unwrap().steps().collect::<Vec<_>>(),
            ["a/b".to_owned(), "0".to_owned()]
        );
    }
}
