// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of a process by its number alone.

/// Is there no such process, or only what is left of one until somebody waits for it? One of another user lives.
pub fn has_ended(process: i32) -> bool {
    // SAFETY: signal 0 is none: it asks whether there is such a process.
    let there = unsafe { libc::kill(process, 0) } == 0;
    if !there {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    }
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|line| is_left_only(&line).unwrap_or(false))
}

/// Whether a line of `/proc/PID/stat` is of one that is dead, with all of its threads.
fn is_left_only(line: &str) -> Option<bool> {
    // Its name is in brackets, and may have brackets and blanks in it.
    let (_, behind) = line.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X");
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    Some(dead && threads <= 1)
}

/// Is it stopped, by a signal or by who looks into it? Nothing of it runs then.
pub fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|line| matches!(state(&line), Some("T" | "t")))
}

/// As a line of `/proc/PID/stat` tells it: its name is in brackets before, and may have brackets and blanks in it.
fn state(line: &str) -> Option<&str> {
    line.rsplit_once(')')?.1.split_ascii_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_dead_and_not_waited_for_has_ended_and_who_is_stopped_has_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let number = child.id() as i32;
        assert!(!has_ended(number) && !has_ended(std::process::id() as i32));
        assert!(!is_stopped(child.id()));
        // SAFETY: it is ours, and has not been waited for.
        assert_eq!(unsafe { libc::kill(number, libc::SIGSTOP) }, 0);
        let start = std::time::Instant::now();
        while !is_stopped(child.id()) {
            assert!(start.elapsed().as_secs() < 60, "it runs");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        let start = std::time::Instant::now();
        while !has_ended(number) {
            assert!(start.elapsed().as_secs() < 60, "it is a zombie");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(has_ended(number) && !is_stopped(number as u32));
    }

    #[test]
    fn who_has_a_thread_that_lives_lives() {
        let line = |state: &str, threads: u32| {
            format!("7 (a) Z b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 99\n")
        };
        for (state, threads, left) in [("S", 1, false), ("Z", 2, false), ("Z", 1, true)] {
            assert_eq!(is_left_only(&line(state, threads)), Some(left), "{state}");
        }
        assert_eq!(is_left_only("7 (a"), None);
    }
}
