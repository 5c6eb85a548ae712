//! Places that hold keys and settings: nobody should be led to lend them to a tool.

use std::path::Path;

/// Folders of the system that hold them.
const OF_SYSTEM: [&str; 5] = ["/etc", "/boot", "/proc", "/sys", "/var/lib"];

/// Whether a path is, lies in or holds such a place: the system's settings, or what is hidden in somebody's own folder.
pub(crate) fn is_private(path: &Path, user_home: Option<&Path>) -> bool {
    let of_system =
        OF_SYSTEM.iter().any(|one| path.starts_with(one) || Path::new(one).starts_with(path));
    let hidden = |home: &Path| {
        let below = path.strip_prefix(home).ok().and_then(|below| below.components().next());
        home.starts_with(path)
            || below.is_some_and(|first| first.as_os_str().to_string_lossy().starts_with('.'))
    };
    of_system || user_home.into_iter().chain([Path::new("/root")]).any(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_settings_are_told_from_what_somebody_works_on() {
        let home = Path::new("/home/ann");
        for private in
            ["/etc/shadow", "/etc", "/", "/home", "/home/ann", "/home/ann/.ssh/id", "/root/.netrc"]
        {
            assert!(is_private(Path::new(private), Some(home)), "{private}");
        }
        for plain in ["/home/ann/notes/.git", "/srv/data", "/home/ann/work/a.txt", "/tmp/x"] {
            assert!(!is_private(Path::new(plain), Some(home)), "{plain}");
        }
    }
}
