// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver of the C compiler: its cache and its errors.

mod back_support;

use back_support::{Folder, alone};
use levada_cal::compile::{CompileError, Options, clean_cache, compile};
use std::fs;

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

#[test]
fn what_a_killed_process_left_in_the_cache_goes() {
    let cache = Folder::new();
    // No process has a number beyond the kernel's largest.
    let (dead, live) = (
        cache.0.join("tmp-4194305-0"),
        cache.0.join(format!("tmp-{}-99", std::process::id())),
    );
    for folder in [&dead, &live] {
        fs::create_dir_all(folder.join("include")).unwrap();
    }
    compile(&alone(PLAIN), &options(&cache)).unwrap();
    assert!(!dead.exists() && live.exists());
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
