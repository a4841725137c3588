// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who says itself how fast it goes, such as by a clock that it asks: another run of it goes on so, too. Where a limit held
//! it, or it may have waited for who writes what it reads, or reads what it writes, that says nothing of another run.

use crate::app::Hosted;
use std::path::Path;

/// The cores that it takes, of itself.
pub fn own_pace(hosted: &Hosted) -> Option<f64> {
    let limited = hosted.limits.rate.is_some() || hosted.limits.share.is_some();
    let waits = ["in", "out"].iter().any(|name| {
        let files = hosted.option(name);
        files.is_some_and(|files| !files.split(',').all(is_never_waited_for))
    });
    hosted.paced().filter(|_| !limited && !waits)
}

/// Files and folders; neither pipes, nor devices, but for the one that takes everything.
fn is_never_waited_for(file: &str) -> bool {
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
        assert!(is_never_waited_for(here.to_str().unwrap()));
        assert!(is_never_waited_for(env!("CARGO_MANIFEST_DIR")));
        assert!(is_never_waited_for("/dev/null"));
        for other in ["/dev/zero", "/dev/ptmx", "", "is/not/there"] {
            assert!(!is_never_waited_for(other), "{other}");
        }
    }
}
