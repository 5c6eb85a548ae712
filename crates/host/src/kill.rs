//! What came of a kill switch.

use manifest::kill_switch::ByHand;

use crate::error::{CallError, Kind};
use crate::secrets::Variables;

/// What came of a kill switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Killed {
    /// What the tool was given is worth nothing any more: whoever gave it out says so.
    Confirmed,
    /// Nobody says so.
    Unconfirmed {
        /// Why not.
        why: String,
        /// What the owner may do about it.
        by_hand: Option<ByHand>,
    },
    /// There is nothing to revoke.
    NothingToDo,
}

/// The name of the secret that shows who revokes: the only one there is, or the one that was named.
pub(crate) fn credential<'v>(
    variables: &'v Variables,
    named: Option<&str>,
) -> Result<Option<&'v str>, CallError> {
    let secrets = variables.iter().filter(|(_, one)| one.is_secret).map(|(name, _)| name.as_str());
    let secrets: Vec<_> = secrets.collect();
    let which = |message: String| {
        Err(CallError::new(Kind::BadInput, message).with("secrets", secrets.clone()))
    };
    match (named, secrets.as_slice()) {
        (Some(named), known) => match known.iter().find(|name| **name == named) {
            Some(name) => Ok(Some(*name)),
            None => which(format!("`{named}` is no secret that is kept for it")),
        },
        (None, []) => Ok(None),
        (None, [only]) => Ok(Some(*only)),
        (None, several) => which(format!(
            "it has several secrets, so the one to revoke with has to be named: {}",
            several.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Variable;

    #[test]
    fn of_several_secrets_one_has_to_be_named() {
        let variables = |names: &[(&str, bool)]| -> Variables {
            let one = |(name, is_secret): &(&str, bool)| {
                ((*name).to_owned(), Variable { value: "x".into(), is_secret: *is_secret })
            };
            names.iter().map(one).collect()
        };
        let (none, one) =
            (variables(&[("ZONE", false)]), variables(&[("ZONE", false), ("A", true)]));
        let two = variables(&[("A", true), ("B", true)]);
        assert_eq!(credential(&none, None), Ok(None));
        assert_eq!(credential(&one, None), Ok(Some("A")));
        assert_eq!(credential(&two, Some("B")), Ok(Some("B")));
        let error = credential(&two, None).unwrap_err();
        assert_eq!(error.kind, Kind::BadInput);
        assert!(error.message.ends_with(": A, B"), "{error}");
        assert_eq!(credential(&one, Some("ZONE")).unwrap_err().kind, Kind::BadInput);
        assert_eq!(credential(&none, Some("A")).unwrap_err().kind, Kind::BadInput);
    }
}
