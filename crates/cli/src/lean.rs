//! What a service need not keep: it runs for days, works for minutes of them, and needs most of its code once.

#[cfg(target_os = "linux")]
use std::time::Duration;

/// How often it is looked what was needed since.
#[cfg(target_os = "linux")]
const WHILE: Duration = Duration::from_secs(4);

/// Less time of a processor than this, within that, is nothing: looking around takes some as well.
#[cfg(target_os = "linux")]
const NOTHING: Duration = Duration::from_millis(4);

/// Lets go of code now and then while there is something to do, and once more afterwards, so that what is kept is what is needed
/// again and again.
#[cfg(target_os = "linux")]
pub(crate) async fn stay_lean() {
    let (mut seen, mut is_lean) = (Duration::ZERO, false);
    loop {
        let has_worked = worked().saturating_sub(seen) > NOTHING;
        if has_worked || !is_lean {
            let_go_of_code();
        }
        is_lean = !has_worked;
        seen = worked();
        tokio::time::sleep(WHILE).await;
    }
}

/// For how long this process has had a processor.
#[cfg(target_os = "linux")]
fn worked() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.try_into().unwrap_or_default()
}

/// Lets go of the pages of this program. Those that are needed come back from the file.
#[cfg(target_os = "linux")]
fn let_go_of_code() {
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
pub(crate) async fn stay_lean() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    fn resident() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    #[test]
    fn code_that_was_let_go_of_is_still_there() {
        let before = resident();
        super::let_go_of_code();
        assert!(resident() < before);
    }
}
