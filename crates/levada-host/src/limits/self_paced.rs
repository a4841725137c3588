// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU demand of a self-timed application, for example one that reads a clock; reusable for later runs. None if a
//! limit was in force, or if its input or output may block.

use crate::app::HostedApp;
use std::path::Path;

/// CPU demand in cores.
pub fn self_paced_demand(hosted: &HostedApp) -> Option<f64> {
    let limited = hosted.limits.rate.is_some() || hosted.limits.cpus.is_some();
    let waits = ["in", "out"].iter().any(|name| {
        let files = hosted.option(name);
        files.is_some_and(|files| !files.split(',').all(never_blocks))
    });
    hosted.paced_demand().filter(|_| !limited && !waits)
}

/// Files, folders and /dev/null; not pipes or other devices.
fn never_blocks(file: &str) -> bool {
    let kind = Path::new(file).metadata();
    file == "/dev/null" || kind.is_ok_and(|kind| kind.is_file() || kind.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_never_waited_for() {
        let file = file!();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(file);
        assert!(never_blocks(here.to_str().unwrap()));
        assert!(never_blocks(env!("CARGO_MANIFEST_DIR")));
        assert!(never_blocks("/dev/null"));
        for other in ["/dev/zero", "/dev/ptmx", "", "is/not/there"] {
            assert!(!never_blocks(other), "{other}");
        }
    }
}
