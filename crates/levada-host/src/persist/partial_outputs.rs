// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Partial outputs of killed processes. An output is `NAME.part-PROCESS-N` until it is complete, and is renamed
//! then (`files.h` of the natives). The next writer of the same name removes what was left; this module does it for
//! applications that do not run again.

use crate::protocol::LoadRequest;
use crate::util::process::has_ended;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The process of an isolated application ends within this time after its host.
const DYING_TIMEOUT: Duration = Duration::from_secs(5);

/// The output file of an application that was loaded by this request, if it is a regular file.
pub fn output_of(request: &LoadRequest) -> Option<PathBuf> {
    let name = request.output.as_deref().filter(|name| *name != "-")?;
    output(request.directory.join(name))
}

/// The file behind this path, if it is a regular file or does not exist.
pub fn output(path: PathBuf) -> Option<PathBuf> {
    // A symbolic link is kept, and its target is written.
    let path = path.canonicalize().unwrap_or(path);
    let special = path.metadata().is_ok_and(|m| !m.is_file());
    (!special).then_some(path)
}

/// Removes partial outputs of dead processes; returns whether there are some of other processes.
pub fn remove(output: &Path) -> bool {
    let (Some(folder), Some(name)) = (output.parent(), output.file_name()) else {
        return false;
    };
    let mut others = false;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let end = found.as_bytes().strip_prefix(name.as_bytes());
        let Some(process) = end.and_then(process_of) else {
            continue;
        };
        if abandoned(&entry.path(), process) {
            drop(std::fs::remove_file(entry.path()))
        } else {
            others = true
        }
    }
    others
}

/// The same for several, on a thread: some processes may be about to end, and a folder may answer slowly.
pub fn remove_all_soon(mut outputs: Vec<PathBuf>) {
    if outputs.is_empty() {
        return;
    }
    let until_gone = move || {
        let start = Instant::now();
        outputs.retain(|output| remove(output));
        while !outputs.is_empty() && start.elapsed() < DYING_TIMEOUT {
            std::thread::sleep(Duration::from_millis(20));
            outputs.retain(|output| remove(output));
        }
    };
    // If no thread can be started, they stay, which does no harm.
    let _ = std::thread::Builder::new()
        .name("partial-cleanup".into())
        .spawn(until_gone);
}

/// The process in `.part-PROCESS-N`.
fn process_of(end: &[u8]) -> Option<i32> {
    let end = std::str::from_utf8(end).ok()?;
    let (process, n) = end.strip_prefix(".part-")?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(process) || !digits(n) {
        return None;
    }
    process.parse().ok().filter(|p| *p > 0)
}

/// Whether its process is gone. The number of a process in another container means nothing here, but that process
/// holds the file's lock.
fn abandoned(file: &Path, process: i32) -> bool {
    let open = || {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        File::options().read(true).custom_flags(flags).open(file)
    };
    has_ended(process) && open().is_ok_and(|f| f.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_have_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let alive = std::process::id();
        let write = |name: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, "half").unwrap();
            path
        };
        let kept = [
            write("out".into()),
            write(format!("out.part-{dead}-0x")),
            write(format!("out.part-99999999999-{dead}")),
            write(format!("ut.part-{dead}-0")),
            write(format!("out.part-+{dead}-0")),
        ];
        let (one, two) = (
            write(format!("out.part-{dead}-0")),
            write(format!("out.part-{dead}-7")),
        );
        let held = write(format!("out.part-{dead}-8"));
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        let living = write(format!("out.part-{alive}-0"));
        assert!(remove(&folder.path().join("out")));
        assert!(!one.exists() && !two.exists());
        assert!(
            kept.iter()
                .chain([&held, &living])
                .all(|path| path.exists())
        );
        drop(lock);
        std::fs::remove_file(living).unwrap();
        remove_all_soon(vec![folder.path().join("out")]);
        let start = Instant::now();
        while held.exists() {
            assert!(start.elapsed().as_secs() < 300, "it is there still");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn only_a_file_has_halves() {
        let request = |output: &str| LoadRequest {
            directory: "/dev".into(),
            output: Some(output.into()),
            ..LoadRequest::default()
        };
        assert_eq!(output_of(&LoadRequest::default()), None);
        for special in ["-", "null", "/dev"] {
            assert_eq!(output_of(&request(special)), None);
        }
        let there = output_of(&request("/nowhere/out"));
        assert_eq!(there.as_deref(), Some(Path::new("/nowhere/out")));
    }
}
