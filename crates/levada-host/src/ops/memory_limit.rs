// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory available for a load: what the system has, or what is left of the limits of the process's cgroups.

use std::path::Path;

/// The memory that is available without swapping, in bytes; none if unknown.
pub fn bytes_left() -> Option<u64> {
    left_in(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

fn left_in(proc: &Path, groups: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(proc.join("meminfo")).ok();
    let system = text.and_then(|t| Some(number(&t, "MemAvailable:")? << 10));
    system.into_iter().chain(of_groups(proc, groups)).min()
}

/// The number after a word at the beginning of a line.
fn number(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the limits of this process's cgroup and its ancestors leave; inactive file pages count as free.
fn of_groups(proc: &Path, groups: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(proc.join("self/cgroup")).ok()?;
    let own = text.lines().find_map(|l| l.strip_prefix("0::/"))?;
    let around = Path::new(own).ancestors().map(|g| groups.join(g));
    let left = around.filter_map(|group| {
        let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
        let value = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let most = value("memory.max")?; // "max": no limit
        let files = read("memory.stat").and_then(|t| number(&t, "inactive_file "));
        let used = value("memory.current")?.saturating_sub(files.unwrap_or(0));
        Some(most.saturating_sub(used))
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_limit_around_counts() {
        let place = tempfile::tempdir().unwrap();
        let (proc, groups) = (place.path().join("proc"), place.path().join("groups"));
        let write = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(left_in(&proc, &groups), None);
        write(
            &proc.join("meminfo"),
            "MemTotal: 9 kB\nMemAvailable:  4096 kB\n",
        );
        assert_eq!(left_in(&proc, &groups), Some(4096 << 10));
        write(&proc.join("self/cgroup"), "0::/a/b\n");
        write(&groups.join("a/b/memory.max"), "max\n");
        write(&groups.join("a/b/memory.current"), "5\n");
        assert_eq!(left_in(&proc, &groups), Some(4096 << 10));
        write(&groups.join("a/memory.max"), "100000\n");
        write(&groups.join("a/memory.current"), "60000\n");
        write(
            &groups.join("a/memory.stat"),
            "anon 1\ninactive_file 1000\n",
        );
        assert_eq!(left_in(&proc, &groups), Some(41000));
        write(&groups.join("a/memory.current"), "200000\n");
        assert_eq!(left_in(&proc, &groups), Some(0));
    }
}
