//! What must hold for any bytes that may be a bundle.

use manifest::path::check_path;
use package::archive::{Archive, Trailer};
use package::bundle::{self, Bundle, BundleError};
use package::contents::{Contents, find_manifest, listing};
use package::digest::Listing;
use package::limits::Limits;
use package::pack::{Packing, Secrets, pack};
use proptest::prelude::{prop_assert, prop_assert_eq};
use proptest::test_runner::TestCaseError;

use super::Kept;

/// A bundle: whatever is accepted becomes an archive and a bundle again, with the same files.
pub fn bundle(bytes: &[u8]) -> Kept {
    let accepted = match Bundle::read(bytes, &Limits::DEFAULT) {
        Ok(accepted) => accepted,
        Err(BundleError::Invalid(report)) => {
            prop_assert!(!report.is_valid(), "what is not valid has a finding");
            return Ok(());
        }
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    for path in accepted.paths() {
        prop_assert_eq!(check_path(path), Ok(()), "{}", path);
    }
    prop_assert!(find_manifest(&accepted).is_ok(), "a package has one manifest");
    let files = listed(&accepted)?;
    prop_assert!(files.total() <= Limits::DEFAULT.total_bytes);
    let mut packed = Vec::new();
    let packing = Packing { contents: &accepted, secrets: Secrets::NotLookedFor };
    pack(&packing, &mut packed).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let archive = Archive::from_bytes(packed, Trailer::Refused, &Limits::DEFAULT);
    let archive = archive.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&listed(&archive)?, &files, "as an archive");
    match bundle::write(&archive, &[]) {
        Ok(again) => {
            let again = Bundle::read(&again, &Limits::DEFAULT);
            let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&listed(&again)?, &files, "as a bundle again");
            let runs = |contents: &Bundle| -> Vec<bool> {
                accepted.paths().iter().map(|path| contents.is_executable(path)).collect()
            };
            prop_assert_eq!(runs(&accepted), runs(&again));
        }
        Err(error) => return Err(TestCaseError::fail(format!("cannot be written again: {error}"))),
    }
    Ok(())
}

fn listed(contents: &dyn Contents) -> Result<Listing, TestCaseError> {
    listing(contents).map_err(|error| TestCaseError::fail(error.to_string()))
}
