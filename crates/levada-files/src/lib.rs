// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Private folders and files: checks that only the current user and root can change or replace them. They hold code or
//! decide which code is loaded, such as the state folder of a host and the cache of compiled networks.
//!
//! Files are read only if they are regular, up to a size, without following a link (it could lead to any file of the
//! user), and without blocking (a pipe may never be written).

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links in a path, as in the kernel.
const LINKS_MAX: u32 = 40;

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_OTHERS: u32 = 0o002;
/// The sticky bit: in such a folder only the owner of a file can remove or rename it.
const STICKY: u32 = 0o1000;

fn user() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::geteuid() }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

/// Whether the owner of a folder or link may be one that can replace its content.
fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == user()
}

/// Checks that no other user can replace a file in this folder. `group` is trusted as well, and so is a group with the
/// number of the folder's owner: by convention that user is its only member.
fn check_on_the_way(path: &Path, found: &Metadata, group: Option<u32>) -> io::Result<()> {
    if !is_trusted(found.uid()) {
        let why = format!(
            "it belongs to user {}, which can replace the files in it",
            found.uid()
        );
        return Err(refused(path, &why));
    }
    let mode = found.mode();
    let gid = found.gid();
    let group = gid == 0 || gid == found.uid() || group == Some(gid);
    let others = mode & WRITABLE_BY_OTHERS != 0 || mode & WRITABLE_BY_GROUP != 0 && !group;
    if others && mode & STICKY == 0 {
        Err(refused(
            path,
            "other users can replace the files in it (chmod go-w forbids that)",
        ))
    } else {
        Ok(())
    }
}

/// Checks that only this user, root and `group` can change what `path` refers to: checks each folder and link on the
/// path, and the folder at its end.
pub fn check_way_to(path: &Path, group: Option<u32>) -> io::Result<()> {
    let real = way_to(path, group)?;
    check_on_the_way(&real, &fs::metadata(&real)?, group)
}

/// Checks each folder and link on a path, except its end, and returns the path without links.
fn way_to(path: &Path, group: Option<u32>) -> io::Result<PathBuf> {
    let mut rest: Vec<OsString> = parts(&std::path::absolute(path)?);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    check_on_the_way(&at, &fs::metadata(&at)?, group)?;
    while let Some(next) = rest.pop() {
        if next == ".." {
            at.pop();
            continue;
        }
        let there = at.join(&next);
        let found = fs::symlink_metadata(&there)?;
        if !found.is_symlink() {
            if !rest.is_empty() {
                check_on_the_way(&there, &found, group)?;
            }
            at = there;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(refused(path, "too many links"));
        }
        if !is_trusted(found.uid()) {
            let why = format!("a link of user {}, which can change it", found.uid());
            return Err(refused(&there, &why));
        }
        let to = fs::read_link(&there)?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        rest.extend(parts(&to));
    }
    Ok(at)
}

/// The components of a path, in reverse order.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|c| match c {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    names.collect()
}

/// Checks that a folder belongs to this user, and that no other user can change or replace it.
pub fn check_private_folder(path: &Path) -> io::Result<()> {
    let real = way_to(path, None)?;
    let found = fs::metadata(&real)?;
    if !found.is_dir() {
        return Err(refused(path, "it is not a folder"));
    }
    if found.uid() != user() {
        let why = format!("it belongs to user {}", found.uid());
        return Err(refused(path, &why));
    }
    check_is_private(path, &found)
}

/// Creates a private folder, with missing parents, and checks it, also if it existed.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_private_folder(path)
}

fn check_is_private(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.uid() != user() {
        let why = format!("it belongs to user {}", found.uid());
        return Err(refused(path, &why));
    }
    match found.mode() & (WRITABLE_BY_GROUP | WRITABLE_BY_OTHERS) {
        0 => Ok(()),
        _ => Err(refused(
            path,
            "others can write there, too; make it yours alone (chmod go-w)",
        )),
    }
}

/// Opens a file of a private folder with `options`. Fails if it is not a regular file that only this user can write.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a link, which is not followed"),
        // A pipe without a reader, a socket, a device without a driver.
        Some(libc::ENXIO | libc::ENODEV) => io::Error::other("it is not a regular file"),
        _ => e,
    })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let name = Path::new(path.file_name().unwrap_or(path.as_os_str()));
    check_is_private(name, &found)?;
    Ok(file)
}

/// The content of a private file. Fails if it is larger than `max_bytes`.
pub fn read_private(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_private(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let what = format!("it is larger than {max_bytes} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Creates a private file. Removes an existing file, link, pipe or socket of that name; fails if it is a folder.
pub fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    open_private(path, OpenOptions::new().write(true).create_new(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(done: io::Result<()>) -> String {
        done.unwrap_err().to_string()
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        make_private_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        for mode in [0o770, 0o702, 0o1777] {
            set_mode(&folder, mode);
            let said = why(make_private_folder(&folder));
            assert!(said.contains("others can write there"), "{mode:o}: {said}");
        }
        set_mode(&folder, 0o755);
        check_private_folder(&folder).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        assert!(check_private_folder(&folder.join("file")).is_err());
    }

    /// A user that can write in the parent folder could replace this folder.
    #[test]
    fn a_folder_in_one_that_others_can_write_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (above, folder) = (place.path().join("a"), place.path().join("a/b"));
        make_private_folder(&folder).unwrap();
        set_mode(&above, 0o777);
        let said = why(check_private_folder(&folder));
        assert!(said.contains("/a: other users can replace"), "{said}");
        // Sticky, like /tmp.
        set_mode(&above, 0o1777);
        check_private_folder(&folder).unwrap();
        set_mode(&above, 0o755);
        // Through a link, of which the target's path is checked.
        let link = place.path().join("link");
        symlink("a/../a/b", &link).unwrap();
        check_private_folder(&link).unwrap();
        set_mode(&above, 0o777);
        assert!(why(check_private_folder(&link)).contains("/a: other users"));
        symlink("round", place.path().join("round")).unwrap();
        let said = why(check_private_folder(&place.path().join("round")));
        assert!(said.contains("too many links"), "{said}");
    }

    #[test]
    fn files_of_others_are_refused() {
        if user() != 0 {
            // Only root can change the owner of a file, so use a folder of root.
            assert!(check_private_folder(Path::new("/usr")).is_err());
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (above, folder) = (place.path().join("a"), place.path().join("a/b"));
        make_private_folder(&folder).unwrap();
        fs::write(folder.join("file"), "text").unwrap();
        let give = |path: &Path, to| std::os::unix::fs::chown(path, Some(to), None).unwrap();
        give(&folder.join("file"), 65_000);
        let said = read_private(&folder.join("file"), 10).unwrap_err();
        assert!(said.to_string().contains("belongs to user 65000"), "{said}");
        give(&folder, 65_000);
        assert!(why(check_private_folder(&folder)).contains("belongs to user 65000"));
        give(&folder, 0);
        give(&above, 65_000);
        assert!(why(check_private_folder(&folder)).contains("/a: it belongs to user 65000"));
        give(&above, 0);
        symlink(&folder, place.path().join("link")).unwrap();
        std::os::unix::fs::lchown(place.path().join("link"), Some(65_000), None).unwrap();
        assert!(why(check_private_folder(&place.path().join("link"))).contains("a link of user"));
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), "text").unwrap();
        set_mode(&at("file"), 0o644);
        assert_eq!(read_private(&at("file"), 4).unwrap(), b"text");
        assert!(read_private(&at("file"), 3).is_err());
        symlink(at("file"), at("link")).unwrap();
        let pipe = std::ffi::CString::new(at("pipe").to_str().unwrap()).unwrap();
        // SAFETY: a terminated path.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        for name in ["link", "pipe", "socket", "folder", "zero"] {
            assert!(read_private(&at(name), 10).is_err(), "{name}");
            let mut append = OpenOptions::new();
            append.append(true).create(true);
            assert!(open_private(&at(name), &mut append).is_err(), "{name}");
        }
        assert!(read_private(Path::new("/dev/zero"), 10).is_err());
        set_mode(&at("file"), 0o666);
        assert!(read_private(&at("file"), 10).is_err());
        // An existing file is replaced, and the target of a link is unchanged.
        for name in ["link", "pipe", "socket", "file"] {
            drop(create_private(&at(name)).unwrap());
            assert_eq!(fs::symlink_metadata(at(name)).unwrap().mode(), 0o100_600);
        }
        assert!(create_private(&at("folder")).is_err());
    }
}
