// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Headers and library for translated programs. They are part of this executable and are written into the cache
//! once.

use crate::common::output::{Failure, failure_with};
use levada_cal::{compile, headers};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The runtime as a static library: the build that is also linked into this executable.
pub const LIBRARY: &[u8] = include_bytes!(env!("LEVADA_STATIC_LIBRARY"));

/// A folder with `include` and `lib/liblevada.a`.
pub fn folder() -> Result<PathBuf, Failure> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder.clone());
    }
    let mut hash = DefaultHasher::new();
    headers::FILES.hash(&mut hash);
    LIBRARY.hash(&mut hash);
    let cache = compile::cache_dir();
    let folder = cache.join(format!("c-{:016x}", hash.finish()));
    if !folder.join("lib/liblevada.a").is_file() {
        let made = (|| {
            compile::make_private(&cache).map_err(|e| std::io::Error::other(e.to_string()))?;
            let partial = cache.join(format!("tmp-c-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&partial);
            std::fs::create_dir_all(partial.join("lib"))?;
            headers::write(&partial.join("include"))?;
            std::fs::write(partial.join("lib/liblevada.a"), LIBRARY)?;
            match std::fs::rename(&partial, &folder) {
                Ok(()) => Ok(()),
                // Another process has created it meanwhile.
                Err(_) if folder.join("lib/liblevada.a").is_file() => {
                    std::fs::remove_dir_all(&partial)
                }
                Err(e) => Err(e),
            }
        })();
        if let Err(why) = made {
            return failure_with(
                format!("cannot write the headers to {}: {why}", folder.display()),
                "set LEVADA_CACHE to a folder of yours that has room",
            );
        }
    }
    Ok(FOLDER.get_or_init(|| folder).clone())
}
