// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The methods of holding a shield.

/// The methods, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A partition (cgroup version 2).
    Partition,
    /// Two cpusets (cgroup version 1).
    Cpusets,
    /// Affinity masks of all threads, with periodic sweeps.
    Affinity,
    /// The same, for the user's own processes only.
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
            Method::Partition => "cgroup-v2-partition",
            Method::Cpusets => "cpuset-v1",
            Method::Affinity => "affinity",
            Method::Own => "self",
        }
    }

    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|r| r.name() == name)
    }

    /// Description of the method in words.
    pub fn sentence(self) -> &'static str {
        match self {
            Method::Partition => "a partition (cgroup version 2)",
            Method::Cpusets => "a pair of cpusets (cgroup version 1)",
            Method::Affinity => "affinity masks, watched",
            Method::Own => "affinity masks of your own processes only, watched",
        }
    }

    /// Whether the method needs periodic sweeps.
    pub fn is_watched(self) -> bool {
        matches!(self, Method::Affinity | Method::Own)
    }
}
