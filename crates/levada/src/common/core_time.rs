// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU time that other programs used on each core: the kernel's busy time of the core (/proc/stat) minus the time
//! that threads of this process ran there. Kernel ticks are 10 ms, so runs shorter than [`ELAPSED_MIN`] are not
//! measured.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Shorter intervals are too inaccurate, since a kernel tick is 10 ms.
const ELAPSED_MIN: Duration = Duration::from_millis(200);

/// The counters at one moment.
pub struct Sample {
    at: Instant,
    /// For each core, the time in which anything ran.
    busy: HashMap<i32, Duration>,
    /// For each thread of this process, the core on which it ran last, and its CPU time.
    own: HashMap<i32, (i32, Duration)>,
}

impl Sample {
    pub fn now() -> Sample {
        Sample {
            at: Instant::now(),
            busy: busy_of_cores(&std::fs::read_to_string("/proc/stat").unwrap_or_default()),
            own: own_threads(),
        }
    }

    /// From 0 to 1 for each core; empty if too little time has passed since `first`.
    pub fn others_since(&self, first: &Sample) -> HashMap<i32, f64> {
        let elapsed = self.at - first.at;
        if elapsed < ELAPSED_MIN {
            return HashMap::new();
        }
        let mut own: HashMap<i32, Duration> = HashMap::new();
        for (thread, (core, ran)) in &self.own {
            let before = first.own.get(thread).map_or(Duration::ZERO, |b| b.1);
            *own.entry(*core).or_default() += ran.saturating_sub(before);
        }
        let share = |(core, busy): (&i32, &Duration)| {
            let before = first.busy.get(core).copied().unwrap_or_default();
            let own = own.get(core).copied().unwrap_or_default();
            let others = busy.saturating_sub(before).saturating_sub(own);
            (
                *core,
                (others.as_secs_f64() / elapsed.as_secs_f64()).min(1.0),
            )
        };
        self.busy.iter().map(share).collect()
    }
}

/// user, nice, system, idle, iowait, irq, softirq, steal: all but idle and iowait.
fn busy_of_cores(stat: &str) -> HashMap<i32, Duration> {
    // SAFETY: no pointers.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let core = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let core = words.next()?.parse().ok()?;
        let ticks = words.take(8).map(|w| w.parse::<u64>().unwrap_or(0));
        let busy: u64 = ticks
            .enumerate()
            .filter(|(i, _)| !(3..5).contains(i))
            .map(|t| t.1)
            .sum();
        Some((core, Duration::from_secs_f64(busy as f64 / ticks_per_s)))
    };
    stat.lines().filter_map(core).collect()
}

fn own_threads() -> HashMap<i32, (i32, Duration)> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return HashMap::new();
    };
    let thread = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        // The name may hold anything, so the fields are counted from its end; the 39th is the core.
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let core = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(36)?
            .parse()
            .ok()?;
        let schedstat = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        let ran_ns = schedstat.split_whitespace().next()?.parse().ok()?;
        Some((id, (core, Duration::from_nanos(ran_ns))))
    };
    threads.flatten().filter_map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_busy_but_for_idle_and_iowait() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 4000 50 6 7 8 0 0\ncpu11 1 0 0 7 0 0 0 0 0 0\nintr 5\n";
        let busy = busy_of_cores(stat);
        assert_eq!(busy.len(), 2);
        // SAFETY: no pointers.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        assert!((busy[&0].as_secs_f64() * ticks_per_s - 171.0).abs() < 1e-6);
        assert!((busy[&11].as_secs_f64() * ticks_per_s - 1.0).abs() < 1e-6);
    }

    #[test]
    fn time_of_this_process_is_not_counted_as_that_of_others() {
        let ms = Duration::from_millis;
        let at = Instant::now();
        let first = Sample {
            at,
            busy: [(0, ms(1000)), (1, ms(0))].into(),
            own: [(7, (0, ms(10)))].into(),
        };
        let busy = [(0, ms(1900)), (1, ms(250))].into();
        let own = [(7, (0, ms(310))), (8, (1, ms(250)))].into();
        let others = Sample {
            at: at + ms(1000),
            busy,
            own,
        }
        .others_since(&first);
        assert!((others[&0] - 0.6).abs() < 1e-9);
        assert_eq!(others[&1], 0.0);
        let soon = Sample {
            at: at + ms(10),
            busy: HashMap::new(),
            own: HashMap::new(),
        };
        assert!(soon.others_since(&first).is_empty());
    }
}
