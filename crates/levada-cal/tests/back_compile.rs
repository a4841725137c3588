// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver of the C compiler: its cache and its errors.

mod back_support;

use back_support::{Folder, alone};
use levada_cal::compile::{CompileError, Options, cache_size, clean_cache, compile, prune_cache};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

const PLAIN: &str =
    "actor A () ==> : int n := 0; go: action ==> guard n < 3 do n := n + 1; end end";
const NATIVE: &str = "actor A () ==> :
  @native procedure beep(int n) end
  int n := 0;
  go: action ==> guard n < 3 do beep(n); n := n + 1; end
end";

fn options(cache: &Folder) -> Options {
    Options {
        cache: Some(cache.0.clone()),
        ..Options::default()
    }
}

#[test]
fn what_was_compiled_once_is_found_again() {
    let cache = Folder::new();
    let net = alone(PLAIN);
    let first = compile(&net, &options(&cache)).unwrap();
    assert!(!first.cached && first.object.is_file());
    let again = compile(&net, &options(&cache)).unwrap();
    assert!(again.cached);
    assert_eq!(first.object, again.object);
    // Other code, and other flags, are other objects.
    let other = compile(&alone(&PLAIN.replace('3', "4")), &options(&cache)).unwrap();
    assert!(!other.cached && other.object != first.object);
    let flags = vec!["-DX=1".to_string()];
    let flagged = compile(
        &net,
        &Options {
            flags,
            ..options(&cache)
        },
    )
    .unwrap();
    assert!(!flagged.cached && flagged.object != first.object);
    // Nothing but what has a final name is left.
    for e in fs::read_dir(&cache.0).unwrap() {
        let name = e.unwrap().file_name().into_string().unwrap();
        assert!(name.ends_with(".so") || name.ends_with(".o"), "{name}");
    }
    assert!(clean_cache(&cache.0).unwrap() > 0);
    assert!(!first.object.exists());
}

#[test]
fn a_damaged_object_is_made_again() {
    let (cache, net) = (Folder::new(), alone(PLAIN));
    let object = compile(&net, &options(&cache)).unwrap().object;
    let good = fs::read(&object).unwrap();
    let mut overwritten = good.clone();
    overwritten[good.len() / 2..][..64].fill(0xa5);
    let longer = [&good[..], b"more"].concat();
    // A crash cuts files, fills them with zeros, or leaves what was there before.
    for damaged in [
        &[][..],
        &good[..4096],
        &good[..good.len() - 1],
        &vec![0; good.len()],
        &overwritten,
        &longer,
    ] {
        fs::write(&object, damaged).unwrap();
        let again = compile(&net, &options(&cache)).unwrap();
        assert!(!again.cached && again.object == object);
        assert!(compile(&net, &options(&cache)).unwrap().cached);
    }
}

#[test]
fn processes_may_share_the_cache() {
    let (cache, net) = (Folder::new(), alone(PLAIN));
    std::thread::scope(|s| {
        let one = || compile(&net, &options(&cache)).unwrap().object;
        let all: Vec<_> = (0..4).map(|_| s.spawn(one)).collect();
        let objects: Vec<_> = all.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(objects.iter().all(|o| *o == objects[0] && o.is_file()));
    });
}

#[test]
fn natives_are_compiled_in() {
    let cache = Folder::new();
    let file = cache.0.join("beep.c");
    fs::write(
        &file,
        "#include <stdint.h>\nvoid beep(int32_t n) { (void)n; }\n",
    )
    .unwrap();
    let natives = vec![file.clone()];
    let net = alone(NATIVE);
    let made = compile(
        &net,
        &Options {
            natives,
            ..options(&cache)
        },
    )
    .unwrap();
    assert!(made.object.is_file());
    // A change of the file is seen.
    fs::write(
        &file,
        "#include <stdint.h>\nvoid beep(int32_t n) { (void)(n + 1); }\n",
    )
    .unwrap();
    let natives = vec![file];
    let again = compile(
        &net,
        &Options {
            natives,
            ..options(&cache)
        },
    )
    .unwrap();
    assert!(!again.cached);
}

#[test]
fn a_missing_native_is_named() {
    let cache = Folder::new();
    let e = compile(&alone(NATIVE), &options(&cache)).unwrap_err();
    let CompileError::Missing { natives } = &e else {
        panic!("{e}");
    };
    let names: Vec<_> = natives.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["beep"]);
    assert!(e.to_string().contains("beep") && e.to_string().contains("--native"));
}

#[test]
fn errors_in_a_native_file_are_its_own() {
    let cache = Folder::new();
    let file = cache.0.join("beep.c");
    fs::write(&file, "void beep(int n) {\n  nonsense\n}\n").unwrap();
    let natives = vec![file.clone()];
    let e = compile(
        &alone(NATIVE),
        &Options {
            natives,
            ..options(&cache)
        },
    )
    .unwrap_err();
    assert!(
        matches!(&e, CompileError::Native { path, .. } if *path == file),
        "{e}"
    );
    assert!(e.to_string().contains("beep.c:2"), "{e}");
    let natives = vec![cache.0.join("absent.c")];
    let e = compile(
        &alone(NATIVE),
        &Options {
            natives,
            ..options(&cache)
        },
    )
    .unwrap_err();
    assert!(matches!(e, CompileError::File { .. }));
}

#[test]
fn a_missing_compiler_is_named() {
    let cache = Folder::new();
    let cc = Some("no-such-compiler".to_string());
    let e = compile(
        &alone(PLAIN),
        &Options {
            cc,
            ..options(&cache)
        },
    )
    .unwrap_err();
    assert!(matches!(e, CompileError::NoCompiler { .. }));
    assert!(e.to_string().contains("no-such-compiler"));
}

#[test]
fn refused_code_is_our_fault_and_is_kept() {
    let cache = Folder::new();
    let flags = vec!["-Dself=1".to_string()];
    let e = compile(
        &alone(PLAIN),
        &Options {
            flags,
            ..options(&cache)
        },
    )
    .unwrap_err();
    let CompileError::Internal { file, .. } = &e else {
        panic!("{e}")
    };
    assert!(
        file.is_file() && e.to_string().contains("an error in Levada"),
        "{e}"
    );
}

/// Sets the time of the last use of all files of this name.
fn age(cache: &Folder, of: &Path, hours: u64) {
    let stem = of.file_stem().unwrap().to_str().unwrap();
    for entry in fs::read_dir(&cache.0).unwrap().flatten() {
        if entry.file_name().to_str().unwrap().starts_with(stem) {
            let used = SystemTime::now() - Duration::from_secs(hours * 3600);
            File::open(entry.path())
                .unwrap()
                .set_modified(used)
                .unwrap();
        }
    }
}

#[test]
fn what_a_killed_process_left_in_the_cache_goes() {
    let cache = Folder::new();
    // Numbers of processes say nothing: that of this one is that of another in a container.
    let own = std::process::id();
    let (dead, live, new) = (
        cache.0.join(format!("tmp-{own}-77")),
        cache.0.join("tmp-4194305-0"),
        cache.0.join("tmp-4194305-1"),
    );
    for folder in [&dead, &live, &new] {
        fs::create_dir_all(folder.join("include")).unwrap();
    }
    let lock = File::open(&live).unwrap();
    lock.lock().unwrap();
    age(&cache, &dead, 1);
    age(&cache, &live, 1);
    let object = compile(&alone(PLAIN), &options(&cache)).unwrap().object;
    assert!(!dead.exists() && live.exists() && new.exists());
    drop(lock);
    prune_cache(&cache.0, u64::MAX);
    assert!(!live.exists() && new.exists());
    // What was to become a file of this name.
    let partial = object.with_extension("measured-4194305");
    fs::write(&partial, "").unwrap();
    age(&cache, &object, 1);
    prune_cache(&cache.0, 0);
    assert!(!partial.exists() && !object.exists());
}

#[test]
fn the_least_recently_used_networks_are_removed() {
    let cache = Folder::new();
    let nets = ["3", "4", "5", "6"].map(|n| alone(&PLAIN.replace('3', n)));
    let made = |net| compile(net, &options(&cache)).unwrap();
    let all = nets.each_ref().map(|net| made(net).object);
    let there = || all.each_ref().map(|object| object.exists());
    let before = cache_size(&cache.0);
    // What belongs to a network goes with it, however old it is.
    let measured = all[1].with_extension("measured");
    fs::write(&measured, "").unwrap();
    age(&cache, &all[0], 2);
    age(&cache, &all[1], 4);
    age(&cache, &all[2], 3);
    // A file of the user's stays.
    fs::write(cache.0.join("notes.txt"), vec![0; 100_000]).unwrap();
    prune_cache(&cache.0, before);
    assert_eq!(there(), [true; 4]);
    prune_cache(&cache.0, before - 1);
    assert_eq!(there(), [true, false, true, true]);
    assert!(!measured.exists());
    // Its use counts, not its making.
    assert!(made(&nets[2]).cached);
    prune_cache(&cache.0, 0);
    assert_eq!(there(), [false, false, true, true]);
    // What was used a moment ago stays, whatever the limit.
    prune_cache(&cache.0, 0);
    assert_eq!(there(), [false, false, true, true]);
    assert!(cache.0.join("notes.txt").exists());
    // A compilation does the same.
    age(&cache, &all[3], 1);
    let limited = Options {
        cache_bytes: Some(0),
        ..options(&cache)
    };
    let last = compile(&alone(&PLAIN.replace('3', "7")), &limited).unwrap();
    assert_eq!(there(), [false, false, true, false]);
    assert!(last.object.exists());
    // What was removed is made again.
    assert!(!made(&nets[0]).cached && all[0].exists());
}

#[test]
fn what_is_locked_is_not_removed_from_the_cache() {
    let cache = Folder::new();
    let object = compile(&alone(PLAIN), &options(&cache)).unwrap().object;
    let (one, two) = (File::open(&object).unwrap(), File::open(&object).unwrap());
    one.lock_shared().unwrap();
    two.lock_shared().unwrap();
    for lock in [one, two] {
        age(&cache, &object, 100);
        prune_cache(&cache.0, 0);
        assert!(object.exists());
        drop(lock);
    }
    // Another process is removing files.
    let folder = File::open(&cache.0).unwrap();
    folder.lock().unwrap();
    prune_cache(&cache.0, 0);
    assert!(object.exists());
    drop(folder);
    prune_cache(&cache.0, 0);
    assert!(!object.exists());
}

/// Threads that compile, use and remove, next to one another.
#[test]
fn a_full_cache_may_be_shared() {
    let cache = Folder::new();
    let limited = Options {
        cache_bytes: Some(0),
        ..options(&cache)
    };
    let nets = ["3", "4"].map(|n| alone(&PLAIN.replace('3', n)));
    std::thread::scope(|s| {
        for first in 0..3 {
            let (cache, limited, nets) = (&cache, &limited, &nets);
            s.spawn(move || {
                for n in [first % 2, 0, 1] {
                    let object = compile(&nets[n], limited).unwrap().object;
                    // Others may remove it now.
                    if let Ok(file) = File::open(&object) {
                        let _ = file.set_modified(SystemTime::UNIX_EPOCH);
                    }
                    prune_cache(&cache.0, 0);
                }
            });
        }
    });
}

#[test]
fn a_cache_that_cannot_be_used_is_named() {
    let folder = Folder::new();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let cache = Some(file.join("cache"));
    let refused = compile(
        &alone(PLAIN),
        &Options {
            cache,
            ..Options::default()
        },
    )
    .unwrap_err();
    assert!(matches!(refused, CompileError::Cache { .. }), "{refused}");
    assert!(refused.to_string().contains("LEVADA_CACHE"));
}
