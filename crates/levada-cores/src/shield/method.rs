// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways to hold a shield.

/// The ways to hold a shield, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A cgroup of version 2 that is a partition.
    Partition,
    /// Two cpusets of version 1.
    Cpusets,
    /// Masks of all threads, watched.
    Affinity,
    /// The same for the user's own processes only.
    Own,
}

impl Method {
    pub const ALL: [Method; 4] = [
        Method::Partition,
        Method::Cpusets,
        Method::Affinity,
        Method::Own,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Method::Partition => "partition",
            Method::Cpusets => "cpusets",
            Method::Affinity => "affinity",
            Method::Own => "own",
        }
    }

    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|r| r.name() == name)
    }

    /// What holds the shield, in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Method::Partition => "a partition (cgroup version 2)",
            Method::Cpusets => "a pair of cpusets (cgroup version 1)",
            Method::Affinity => "affinities, watched",
            Method::Own => "affinities of your own processes only, watched",
        }
    }

    /// Whether somebody must look again and again.
    pub fn is_watched(self) -> bool {
        matches!(self, Method::Affinity | Method::Own)
    }
}
