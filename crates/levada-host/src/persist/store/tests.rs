// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::persist::store::files::write_request;
use crate::persist::store::files::{
    BatchChange, CHANGE, MAX_BYTES, named, request_file, unloading_file,
};
use crate::protocol::LoadRequest;

impl StateStore {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().unwrap().join(request_file(name))
    }
}

fn request() -> LoadRequest {
    LoadRequest {
        network: "x.xdf".to_string(),
        directory: "/tmp".into(),
        priority: -3,
        ..LoadRequest::default()
    }
}

/// The child reports the result late: meanwhile the application may be paused, unloading, or another one of its name.
#[test]
fn a_new_version_is_kept_as_it_is_in_the_place_of_its_own_old_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    let next = LoadRequest {
        network: "y.xdf".to_string(),
        ..request()
    };
    let kept = || {
        let kept = memory.read("one").unwrap();
        (kept.network, kept.paused)
    };
    memory.keep("one", 1, &request()).unwrap();
    memory.mark_unloading("one", 1).unwrap();
    memory.save_next("one", 1, &next, || true).unwrap();
    assert_eq!(kept(), ("y.xdf".to_string(), true));
    assert!(folder.path().join(unloading_file("one")).exists());
    memory.keep("one", 2, &request()).unwrap();
    memory.save_next("one", 1, &next, || true).unwrap();
    assert_eq!(kept(), ("x.xdf".to_string(), false));
    memory.forget("one", 2).unwrap();
    memory.save_next("one", 2, &next, || true).unwrap();
    assert!(memory.read("one").is_err());
}

#[test]
fn saved_requests_are_read_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let memory = StateStore::open(&path).unwrap();
    assert!(memory.unrestored().is_empty());
    memory.keep("one", 1, &request()).unwrap();
    memory.keep("two", 2, &request()).unwrap();
    memory.forget("two", 2).unwrap();
    std::fs::write(memory.file("bad"), "{").unwrap();
    std::fs::write(path.join(".half.new"), "{").unwrap();
    let other = StateStore::open(&path).unwrap_err();
    assert!(other.what.contains("another host"), "{other}");
    drop(memory);
    let memory = StateStore::open(&path).unwrap();
    assert_eq!(memory.unrestored(), ["bad", "one"]);
    assert!(memory.read("bad").is_err());
    let one = memory.read("one").unwrap();
    assert_eq!((one.name.as_deref(), one.priority), (Some("one"), -3));
    assert!(!path.join(".half.new").exists());
    assert!(StateStore::open(&memory.file("bad")).is_err());
    assert!(memory.forget_unrestored("bad").unwrap() && !memory.forget_unrestored("bad").unwrap());
}

/// Like a full disk: a file cannot be created, because a folder has its name.
#[test]
fn failed_saves_leave_the_previous_content() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    memory.keep("c", 2, &request()).unwrap();
    drop(memory);
    let memory = StateStore::open(folder.path()).unwrap();
    std::fs::create_dir(folder.path().join(".c.json.new")).unwrap();
    let other = LoadRequest {
        priority: 7,
        ..request()
    };
    assert!(memory.keep("c", 1, &other).is_err());
    let all = [("a", 2, &other), ("b", 3, &other), ("c", 4, &other)];
    assert!(memory.save_all(&all).is_err());
    assert_eq!(memory.unrestored(), ["a", "c"]);
    for name in memory.unrestored() {
        assert_eq!(memory.read(&name).unwrap().priority, -3);
    }
    assert!(!memory.file("b").exists() && !folder.path().join(CHANGE).exists());
}

/// Like a full or read-only disk: a folder stands where a file is to be written or removed.
#[test]
fn failed_saves_are_reported_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let other = LoadRequest {
        priority: 7,
        ..request()
    };
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("paused", 1, &request()).unwrap();
    memory.keep("gone", 2, &request()).unwrap();
    memory.keep("new", 3, &request()).unwrap();
    let in_the_way = [".paused.json.new", ".new.json.new", "gone.json"];
    std::fs::remove_file(at("gone.json")).unwrap();
    for name in in_the_way {
        std::fs::create_dir(at(name)).unwrap();
    }
    assert!(memory.set_paused("paused", || Some(true)).is_err());
    assert!(memory.save_version("new", 4, &other).is_err());
    assert!(memory.forget("gone", 2).is_err());
    // Also when its end is reported before.
    assert!(memory.forget("gone", 2).is_err());
    // Here it is known.
    assert!(memory.read("paused").unwrap().paused && memory.read("gone").is_err());
    assert_eq!(memory.read("new").unwrap().priority, 7);
    let still = memory.close().unwrap_err();
    assert_eq!(still.kind, Kind::NotSaved);
    assert!(still.what.contains("gone.json"), "{still}");
    for name in in_the_way {
        std::fs::remove_dir(at(name)).unwrap();
    }
    // The previous host's file is there again, and is removed when this host ends.
    write_request(folder.path(), &named("gone", &request())).unwrap();
    memory.close().unwrap();
    drop(memory);
    let memory = StateStore::open(folder.path()).unwrap();
    assert_eq!(memory.unrestored(), ["new", "paused"]);
    assert!(memory.read("paused").unwrap().paused);
    assert_eq!(memory.read("new").unwrap().priority, 7);
}

/// What is not found then has not been removed; and in another folder at its path nothing is changed.
#[test]
fn a_folder_that_is_away_is_told_and_changed_when_it_is_back() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("state"), place.path().join("away"));
    let memory = StateStore::open(&folder).unwrap();
    let names = ["gone", "paused", "over", "both", "replaced"];
    for (name, number) in names.iter().zip(1..) {
        memory.keep(name, number, &request()).unwrap();
    }
    std::fs::rename(&folder, &away).unwrap();
    assert!(memory.mark_unloading("gone", 1).is_err());
    for replaced in [false, true] {
        if replaced {
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("gone.json"), "another's").unwrap();
        }
        // Each time as long as it is away.
        assert!(memory.forget("gone", 1).is_err());
        assert!(memory.set_paused("paused", || Some(true)).is_err());
        memory.forget_ended("over", 3);
        assert!(memory.forget_all(&[("both", 4), ("over", 3)]).is_err());
        assert!(memory.keep("new", 9, &request()).is_err());
        assert_eq!(memory.close().unwrap_err().kind, Kind::NotSaved);
    }
    let names_in = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    assert_eq!(names_in(&folder), ["gone.json"]);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&away, &folder).unwrap();
    // What was paused is known by now, though its file could not be read.
    let paused = memory.read("paused").unwrap();
    assert_eq!((paused.paused, paused.priority), (true, -3));
    memory.close().unwrap();
    drop(memory);
    let memory = StateStore::open(&folder).unwrap();
    assert_eq!(memory.unrestored(), ["paused", "replaced"]);
    assert!(memory.read("paused").unwrap().paused);
    assert!(!memory.read("replaced").unwrap().paused);
}

/// That its file is damaged, or was removed by another program, is told of each change, and keeps no other from being
/// saved.
#[test]
fn a_pause_that_cannot_be_written_is_told_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        memory.keep(name, number, &request()).unwrap();
    }
    let whole = std::fs::read(memory.file("a")).unwrap();
    std::fs::write(memory.file("a"), "{").unwrap();
    std::fs::remove_file(memory.file("b")).unwrap();
    for _ in 0..2 {
        assert!(memory.set_paused("a", || Some(true)).is_err());
        assert!(memory.set_paused("b", || Some(true)).is_err());
    }
    let in_the_way = folder.path().join(".c.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    for _ in 0..2 {
        assert!(memory.set_paused("c", || Some(true)).is_err());
    }
    std::fs::remove_dir(&in_the_way).unwrap();
    std::fs::write(memory.file("a"), whole).unwrap();
    let left = memory.close().unwrap_err();
    assert!(left.what.contains("as it is: b.json: "), "{left}");
    drop(memory);
    let memory = StateStore::open(folder.path()).unwrap();
    assert_eq!(memory.unrestored(), ["a", "c"]);
    assert!(memory.read("a").unwrap().paused && memory.read("c").unwrap().paused);
}

#[test]
fn failed_saves_are_repeated_with_a_later_change() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    memory.keep("b", 2, &request()).unwrap();
    let in_the_way = folder.path().join(".a.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(memory.set_paused("a", || Some(true)).is_err());
    std::fs::remove_dir(&in_the_way).unwrap();
    memory.set_paused("b", || Some(true)).unwrap();
    let text = std::fs::read_to_string(memory.file("a")).unwrap();
    assert!(text.contains("\"paused\": true"), "{text}");
    // What has ended meanwhile is not written again.
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(memory.set_paused("a", || Some(false)).is_err());
    memory.forget("a", 1).unwrap();
    std::fs::remove_dir(&in_the_way).unwrap();
    memory.close().unwrap();
    drop(memory);
    assert_eq!(StateStore::open(folder.path()).unwrap().unrestored(), ["b"]);
}

#[test]
fn a_folder_or_file_that_others_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    drop(StateStore::open(&state).unwrap());
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
    };
    set(&state, 0o770);
    let refused = StateStore::open(&state).unwrap_err();
    assert!(refused.what.contains("others can write there"), "{refused}");
    set(&state, 0o700);
    set(folder.path(), 0o777);
    let refused = StateStore::open(&state).unwrap_err();
    assert!(
        refused.what.contains("other users can replace"),
        "{refused}"
    );
    set(folder.path(), 0o700);
    let memory = StateStore::open(&state).unwrap();
    for name in ["good", "open", "link", "pipe", "large"] {
        memory.keep(name, 1, &request()).unwrap();
    }
    drop(memory);
    set(&state.join("open.json"), 0o666);
    std::fs::remove_file(state.join("link.json")).unwrap();
    std::os::unix::fs::symlink("good.json", state.join("link.json")).unwrap();
    std::fs::remove_file(state.join("pipe.json")).unwrap();
    let pipe = std::ffi::CString::new(state.join("pipe.json").to_str().unwrap()).unwrap();
    // SAFETY: a terminated path.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let large = File::options().write(true).open(state.join("large.json"));
    large.unwrap().set_len(MAX_BYTES + 1).unwrap();
    std::fs::write(state.join("\x1b[31m.json"), "{}").unwrap();
    let memory = StateStore::open(&state).unwrap();
    assert_eq!(
        memory.unrestored(),
        ["good", "large", "link", "open", "pipe"]
    );
    assert_eq!(memory.foreign(), ["\x1b[31m.json"]);
    for (name, why) in [
        ("open", "others can write there"),
        ("link", "a link"),
        ("pipe", "not a regular file"),
        ("large", "larger than"),
    ] {
        let said = memory.read(name).unwrap_err();
        assert!(said.contains(why), "{name}: {said}");
    }
    assert!(memory.read("good").is_ok());
    drop(memory);
    for name in [".journal", ".lock", ".change"] {
        let _ = std::fs::remove_file(state.join(name));
        std::os::unix::fs::symlink("good.json", state.join(name)).unwrap();
        let refused = StateStore::open(&state).unwrap_err();
        assert!(refused.what.contains(name), "{refused}");
        assert!(refused.what.contains("a link"), "{refused}");
        std::fs::remove_file(state.join(name)).unwrap();
    }
}

#[test]
fn a_crasher_is_quarantined_until_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let again = || StateStore::open(folder.path()).unwrap();
    let memory = again();
    memory.keep("a", 1, &request()).unwrap();
    memory.keep("b", 2, &request()).unwrap();
    memory.journal().record_start("b");
    drop(memory);
    let is_held = |memory: &StateStore| {
        let out = memory.unrestored_reasons();
        assert!(out.len() == 1 && out[0].0 == "b", "{out:?}");
        assert!(out[0].1.contains("just begun"), "{out:?}");
    };
    is_held(&again());
    // As long as it is not loaded.
    let memory = again();
    is_held(&memory);
    assert!(memory.claim_restored("b", 3));
    memory.return_unrestored("b", 3);
    is_held(&memory);
    assert!(memory.claim_restored("b", 4));
    memory.release_quarantine("b").unwrap();
    drop(memory);
    let memory = again();
    assert!(memory.unrestored_reasons().is_empty() && memory.unrestored() == ["a", "b"]);
    memory.set_unrestored_reason("a", "no file");
    assert_eq!(
        memory.unrestored_reasons(),
        [("a".to_string(), "no file".to_string())]
    );
}

/// A host may be killed between any two of its calls: then all of what was loaded together is stored, or none of it.
#[test]
fn several_are_kept_and_forgotten_together() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("a{n:02}")).collect();
    let memory = StateStore::open(folder.path()).unwrap();
    let request = request();
    let all: Vec<_> = names.iter().map(|n| (n.as_str(), 1, &request)).collect();
    memory.save_all(&all).unwrap();
    let numbered: Vec<_> = names.iter().map(|n| (n.as_str(), 1)).collect();
    memory.forget_all(&numbered[..19]).unwrap();
    drop(memory);
    assert_eq!(
        StateStore::open(folder.path()).unwrap().unrestored(),
        ["a19"]
    );
    // During either change.
    for (kept, then) in [(true, &names[..]), (false, &names[..10])] {
        let others: Vec<String> = names[10..].to_vec();
        let change = BatchChange {
            keep: all[10..]
                .iter()
                .filter(|_| kept)
                .map(|a| named(a.0, a.2))
                .collect(),
            forget: others.into_iter().filter(|_| !kept).collect(),
        };
        for name in &names[..10] {
            write_request(folder.path(), &named(name, &request)).unwrap();
        }
        let text = serde_json::to_vec(&change).unwrap();
        write_whole(folder.path(), CHANGE, &text).unwrap();
        assert_eq!(StateStore::open(folder.path()).unwrap().unrestored(), then);
        assert!(!folder.path().join(CHANGE).exists());
    }
    // A damaged file is reported, and stays.
    std::fs::write(folder.path().join(CHANGE), "{").unwrap();
    let damaged = StateStore::open(folder.path()).unwrap_err();
    assert!(damaged.what.contains(CHANGE), "{damaged}");
    std::fs::remove_file(folder.path().join(CHANGE)).unwrap();
    assert_eq!(
        StateStore::open(folder.path()).unwrap().unrestored().len(),
        10
    );
}

/// An ended application may be forgotten late, but not a later one of its name.
#[test]
fn a_later_one_of_the_name_is_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    memory.keep("a", 2, &request()).unwrap();
    memory.forget("a", 1).unwrap();
    memory.forget_ended("a", 1);
    assert!(memory.read("a").is_ok());
    memory.forget_ended("a", 2);
    assert!(memory.read("a").is_err());
}

/// Between the end of an old version and the start of the new one, one of them is stored at any time.
#[test]
fn a_replaced_application_is_stored_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    let replaces = memory.start_replacing("a", &request());
    memory.forget_ended("a", 1);
    assert!(memory.read("a").is_ok());
    memory.keep("a", 2, &request()).unwrap();
    drop(replaces);
    assert!(memory.read("a").is_ok());
    // It ends, and no new version comes.
    let replaces = memory.start_replacing("a", &request());
    memory.forget_ended("a", 2);
    assert!(memory.read("a").is_ok());
    drop(replaces);
    assert!(memory.read("a").is_err());
    // Nor has the new version taken over, which is discarded.
    memory.keep("a", 2, &request()).unwrap();
    let replaces = memory.start_replacing("a", &request());
    memory.forget_ended("a", 2);
    memory.forget_ended("a", 3);
    drop(replaces);
    assert!(memory.read("a").is_err());
    // Both have ended.
    memory.keep("a", 3, &request()).unwrap();
    let replaces = memory.start_replacing("a", &request());
    memory.forget_ended("a", 3);
    memory.keep("a", 4, &request()).unwrap();
    memory.forget_ended("a", 4);
    drop(replaces);
    assert!(memory.read("a").is_err());
}

/// Neither version has completed its output when the host is killed.
#[test]
fn what_a_killed_replacement_has_half_written_goes() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let writes = |name: &str| LoadRequest {
        output: Some(folder.path().join(name).display().to_string()),
        ..request()
    };
    let half = |name: &str| folder.path().join(format!("{name}.part-{}-0", dead.id()));
    let memory = StateStore::open(&state).unwrap();
    memory.keep("a", 1, &writes("old")).unwrap();
    drop(memory.start_replacing("a", &writes("new")));
    assert!(!state.join("a.replacing").exists());
    std::mem::forget(memory.start_replacing("a", &writes("new")));
    drop(memory);
    for name in ["old", "new", "other"] {
        std::fs::write(half(name), "").unwrap();
    }
    let memory = StateStore::open(&state).unwrap();
    let start = std::time::Instant::now();
    while half("old").exists() || half("new").exists() {
        assert!(start.elapsed().as_secs() < 300, "they are there still");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(half("other").exists() && !state.join("a.replacing").exists());
    assert_eq!(memory.unrestored(), ["a"]);
}

/// An application that the host stops at its own end has not ended by itself.
#[test]
fn what_is_stopped_since_the_host_ends_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    memory.keep("b", 2, &request()).unwrap();
    let replaces = memory.start_replacing("b", &request());
    memory.close().unwrap();
    memory.forget_ended("a", 1);
    memory.forget_ended("b", 2);
    drop(replaces);
    drop(memory);
    assert_eq!(
        StateStore::open(folder.path()).unwrap().unrestored(),
        ["a", "b"]
    );
}

#[test]
fn a_pause_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    memory.keep("a", 1, &request()).unwrap();
    memory.set_paused("a", || Some(true)).unwrap();
    memory.set_paused("a", || None).unwrap();
    memory.set_paused("unknown", || Some(true)).unwrap();
    let kept = memory.read("a").unwrap();
    assert_eq!((kept.paused, kept.priority), (true, -3));
    memory.set_paused("a", || Some(false)).unwrap();
    assert!(!memory.read("a").unwrap().paused);
    assert!(memory.read("unknown").is_err());
}

#[test]
fn an_unloading_application_is_forgotten_by_the_next_host() {
    let folder = tempfile::tempdir().unwrap();
    let again = || StateStore::open(folder.path()).unwrap();
    let memory = again();
    for (number, name) in ["goes", "stays", "other", "reloaded", "went"]
        .iter()
        .enumerate()
    {
        memory.keep(name, number as u64, &request()).unwrap();
        memory.mark_unloading(name, number as u64).unwrap();
    }
    memory.clear_unloading("stays", 1);
    // No application is mistaken for an earlier one of its name.
    memory.clear_unloading("other", 9);
    memory.keep("reloaded", 10, &request()).unwrap();
    memory.mark_unloading("reloaded", 3).unwrap();
    memory.forget("went", 4).unwrap();
    // An application that is being unloaded may have crashed the host.
    memory.journal().record_start("goes");
    memory.journal().record_start("stays");
    // Its partial output is removed with it.
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let half = folder.path().join(format!("out.part-{}-0", dead.id()));
    std::fs::write(&half, "").unwrap();
    let mut writes = request();
    writes.output = Some(folder.path().join("out").display().to_string());
    memory.keep("writes", 11, &writes).unwrap();
    memory.mark_unloading("writes", 11).unwrap();
    drop(memory);
    let memory = again();
    let start = std::time::Instant::now();
    while half.exists() {
        assert!(start.elapsed().as_secs() < 300, "it is there still");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(memory.unloaded(), ["goes", "other", "writes"]);
    assert!(memory.suspects() == ["stays"] && memory.unrestored_reasons().is_empty());
    assert_eq!(memory.unrestored(), ["reloaded", "stays"]);
    drop(memory);
    assert!(again().unloaded().is_empty());
}

/// While some read, others write: no temporary file is taken for one of a dead host.
#[test]
fn queries_do_not_disturb_writes() {
    let folder = tempfile::tempdir().unwrap();
    let memory = StateStore::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..200).for_each(|_| drop(memory.unrestored())));
        for n in 0..40 {
            memory.keep("a", n, &request()).unwrap();
        }
    });
    // An application that was not restored is left as it was.
    drop(memory);
    let memory = StateStore::open(folder.path()).unwrap();
    assert!(memory.claim_restored("a", 7) && !memory.claim_restored("b", 8));
    assert!(memory.unrestored().is_empty());
    memory.return_unrestored("a", 7);
    memory.forget("a", 7).unwrap();
    assert!(memory.unrestored() == ["a"] && memory.read("a").is_ok());
}

/// A disk may be slow.
#[test]
fn queries_do_not_wait_for_writes() {
    let folder = tempfile::tempdir().unwrap();
    drop(StateStore::open(folder.path()).map(|m| m.keep("left", 1, &request()).unwrap()));
    let memory = StateStore::open(folder.path()).unwrap();
    let writes = memory.lock_changes();
    let (left, out) = (memory.unrestored(), memory.unrestored_reasons());
    memory.set_unrestored_reason("left", "no reason");
    let why = memory.unrestored_reason("left").flatten();
    assert!(!memory.try_forget_ended("a", 2));
    drop(writes);
    assert!(left == ["left"] && out.is_empty());
    assert_eq!(why.as_deref(), Some("no reason"));
    memory.keep("a", 2, &request()).unwrap();
    assert!(memory.try_forget_ended("a", 2) && memory.read("a").is_err());
}

/// A folder of another format is refused, and nothing in it is changed.
#[test]
fn a_folder_of_another_version_is_refused() {
    let of_0_1 = [
        ("a.json", "{\"network\": \"p.Top\", \"share\": 0.5}"),
        ("a.held", "why"),
        (".journal", "host 0 3 1 x\n"),
    ];
    let of_another = [(".version", "3\n")];
    for (files, owner) in [
        (&of_0_1[..1], "of Levada 0.1"),
        (&of_0_1[1..2], "of Levada 0.1"),
        (&of_0_1[2..], "of Levada 0.1"),
        (&of_0_1, "of Levada 0.1"),
        (&of_another, "of another version"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let refused = StateStore::open(folder.path()).unwrap_err();
        assert!(refused.what.contains(owner), "{refused:?}");
        assert!(refused.help.unwrap().starts_with("remove it and load"));
        for (name, text) in files {
            let now = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(now, *text);
        }
        let all = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(all, files.len());
    }
    // Without applications there is nothing to misunderstand.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".lock"), "").unwrap();
    drop(StateStore::open(folder.path()).unwrap());
    let version = std::fs::read_to_string(folder.path().join(".version")).unwrap();
    assert_eq!(version, "2\n");
    StateStore::open(folder.path()).unwrap();
}
