// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways to hold a shield.

/// The ways to hold a shield, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// A cgroup of version 2 that is a partition.
    Partition,
    /// Two cpusets of version 1.
    Cpusets,
    /// Masks of all threads, watched.
    Affinity,
    /// The same for the user's own processes only.
    Own,
}

impl Rung {
    pub const ALL: [Rung; 4] = [Rung::Partition, Rung::Cpusets, Rung::Affinity, Rung::Own];

    pub fn name(self) -> &'static str {
        match self {
            Rung::Partition => "partition",
            Rung::Cpusets => "cpusets",
            Rung::Affinity => "affinity",
            Rung::Own => "own",
        }
    }

    pub fn from_name(name: &str) -> Option<Rung> {
        Rung::ALL.into_iter().find(|r| r.name() == name)
    }

    /// What holds the shield, in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Rung::Partition => "a partition (cgroup version 2)",
            Rung::Cpusets => "a pair of cpusets (cgroup version 1)",
            Rung::Affinity => "affinities, watched",
            Rung::Own => "affinities of your own processes only, watched",
        }
    }

    /// Whether somebody must look again and again.
    pub fn is_watched(self) -> bool {
        matches!(self, Rung::Affinity | Rung::Own)
    }
}
