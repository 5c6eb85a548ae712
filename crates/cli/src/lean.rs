//! What a service does not need any more once it has started.

/// Lets go of the pages of this program that were needed to start it: they are in the memory of whoever runs for days, and most of
/// them are never needed again. Those that are come back from the file.
#[cfg(target_os = "linux")]
pub(crate) fn let_go_of_start() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Some(program) = std::fs::read_link("/proc/self/exe").ok() else { return };
    for line in maps.lines() {
        // `55d0c0fd2000-55d0c3ae7000 r-xp 00fd2000 fe:00 11509964    /usr/bin/haft`
        let mut words = line.splitn(6, ' ');
        let (Some(range), Some("r-xp"), Some(path)) = (words.next(), words.next(), words.nth(3))
        else {
            continue;
        };
        let number = |text| usize::from_str_radix(text, 16).ok();
        let bounds = range.split_once('-').and_then(|(from, to)| number(from).zip(number(to)));
        if let Some((from, to)) = bounds
            && std::path::Path::new(path.trim_start()) == program
        {
            let_go(from, to.saturating_sub(from));
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only a program itself can let go of its pages")]
fn let_go(from: usize, length: usize) {
    use rustix::mm::{Advice, madvise};
    let begin = std::ptr::with_exposed_provenance_mut(from);
    // SAFETY: these are the pages of our own code, which nobody has written to: the system reads them from the file again,
    // which it lets nobody change while it is executed.
    let _ = unsafe { madvise(begin, length, Advice::LinuxDontNeed) };
}

/// Elsewhere the system decides.
#[cfg(not(target_os = "linux"))]
pub(crate) fn let_go_of_start() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn code_that_was_let_go_of_is_still_there() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        let before = resident();
        super::let_go_of_start();
        assert!(resident() < before);
    }
}
