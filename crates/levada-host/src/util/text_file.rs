// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a text file of limited size.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Maximum size: no placement, description or manifest is larger, and a device such as /dev/zero has no end.
pub const LARGEST: u64 = 16 << 20;

/// The text of a file, without the byte order mark that some editors write.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!(
            "there is more in it than {} MiB, which is no such text",
            LARGEST >> 20
        );
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|e| Error::new(ErrorKind::InvalidData, e.utf8_error()))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
}

/// The same for regular files only: reading a pipe or a terminal might block forever.
pub fn read_regular(path: &Path) -> Result<String> {
    if std::fs::metadata(path)?.is_file() {
        read(path)
    } else {
        Err(Error::new(
            ErrorKind::InvalidInput,
            "it is no file that holds a text",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_files_and_binary_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        std::fs::write(&path, "\u{feff}[a]\n").unwrap();
        assert_eq!(read(&path).unwrap(), "[a]\n");
        assert_eq!(read_regular(&path).unwrap(), "[a]\n");
        std::fs::write(&path, b"a\xff").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("utf-8"));
        let zero = Path::new("/dev/zero");
        assert!(read(zero).unwrap_err().to_string().contains("16 MiB"));
        assert!(
            read_regular(zero)
                .unwrap_err()
                .to_string()
                .contains("no file")
        );
        assert!(read_regular(place.path()).is_err());
        assert!(read(&place.path().join("none")).is_err());
    }
}
