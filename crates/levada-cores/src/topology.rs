// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core topology: online and allowed cores, hardware threads of one physical core, shared caches.

use crate::cpu_set::CoreSet;
use crate::machine::{Kernel, Machine};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    pub id: u32,
    /// The hardware threads of the same physical core, including this one.
    pub siblings: CoreSet,
    /// The cores that share the last-level cache, including this one.
    pub cache: CoreSet,
    /// Size of the last-level cache, in KiB.
    pub cache_kib: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub online: CoreSet,
    /// The cores that this process may use.
    pub allowed: CoreSet,
    pub cores: Vec<Core>,
}

impl Topology {
    pub fn of<K: Kernel>(machine: &Machine<K>) -> Topology {
        let root = machine.sys.join("devices/system/cpu");
        let allowed = machine.kernel.affinity(0).unwrap_or_default();
        let online = machine.online();
        let cores = online.iter().map(|id| {
            let folder = root.join(format!("cpu{id}"));
            let (cache, cache_kib) = last_cache(machine, &folder, id);
            let siblings = folder.join("topology/thread_siblings_list");
            Core {
                id,
                siblings: list(machine, &siblings).unwrap_or_else(|| CoreSet::one(id)),
                cache,
                cache_kib,
            }
        });
        Topology {
            cores: cores.collect(),
            online,
            allowed,
        }
    }

    pub fn core(&self, id: u32) -> Option<&Core> {
        self.cores.iter().find(|c| c.id == id)
    }

    /// Hardware threads outside the set that share a physical core with it: their work slows the
    /// set.
    pub fn other_threads(&self, set: &CoreSet) -> CoreSet {
        let of = |id| {
            self.core(id)
                .map(|c| c.siblings.clone())
                .unwrap_or_default()
        };
        let all = set
            .iter()
            .fold(CoreSet::default(), |all, id| all.or(&of(id)));
        all.without(set).and(&self.online)
    }
}

fn list<K: Kernel>(machine: &Machine<K>, path: &Path) -> Option<CoreSet> {
    let set: CoreSet = machine.read(path)?.parse().ok()?;
    Some(set).filter(|s| !s.is_empty())
}

fn last_cache<K: Kernel>(machine: &Machine<K>, folder: &Path, id: u32) -> (CoreSet, u64) {
    let mut last = (0, CoreSet::one(id), 0);
    for index in 0.. {
        let cache = folder.join(format!("cache/index{index}"));
        let Some(level) = machine.read(&cache.join("level")) else {
            break;
        };
        let level: u32 = level.trim().parse().unwrap_or(0);
        let kind = machine.read(&cache.join("type")).unwrap_or_default();
        let size = machine.read(&cache.join("size")).unwrap_or_default();
        let shared = list(machine, &cache.join("shared_cpu_list"));
        if level > last.0 && kind.trim() != "Instruction" {
            let kib = size.trim().trim_end_matches('K').parse().unwrap_or(0);
            last = (level, shared.unwrap_or_else(|| CoreSet::one(id)), kib);
        }
    }
    (last.1, last.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::TestMachine;

    #[test]
    fn siblings_and_caches_are_found() {
        let fake = TestMachine::new("0-3");
        fake.sys(
            "devices/system/cpu/cpu1/topology/thread_siblings_list",
            "1,3\n",
        );
        fake.sys(
            "devices/system/cpu/cpu3/topology/thread_siblings_list",
            "1,3\n",
        );
        for (index, level, kind, size, shared) in [
            (0, "1", "Data", "32K", "1"),
            (1, "1", "Instruction", "32K", "1"),
            (2, "3", "Unified", "16384K", "0-1"),
        ] {
            let at = format!("devices/system/cpu/cpu1/cache/index{index}");
            fake.sys(&format!("{at}/level"), level);
            fake.sys(&format!("{at}/type"), kind);
            fake.sys(&format!("{at}/size"), size);
            fake.sys(&format!("{at}/shared_cpu_list"), shared);
        }
        let topology = Topology::of(&fake.machine);
        assert_eq!(topology.online.to_string(), "0-3");
        let core = topology.core(1).unwrap();
        assert_eq!(core.siblings.to_string(), "1,3");
        assert_eq!(
            (core.cache.to_string().as_str(), core.cache_kib),
            ("0-1", 16384)
        );
        assert_eq!(topology.other_threads(&CoreSet::one(3)).to_string(), "1");
        assert!(topology.other_threads(&"1,3".parse().unwrap()).is_empty());
        assert!(topology.other_threads(&CoreSet::one(0)).is_empty());
    }
}
