// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the cache of `levada prepare` and `levada run`: an entry is used exactly while it is valid. Tried: sources,
//! natives and headers that change, and new ones that precede them on a search path; other options; another compiler;
//! another levada; damaged entries and objects.

use crate::common::host::{READ, TOP, held_pipe, sources};
use crate::common::screen::Screen;
use crate::common::{
    Instance, PRINT, Place, Run, copy_program, network, spawn_piped, write_script,
};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A network's sources, and a cache of their own.
struct Kept {
    place: Place,
    args: Vec<&'static str>,
    /// Variables of the environment.
    set: Vec<(&'static str, String)>,
}

/// Longer than the time in which a file that was written is not relied on.
const SETTLED: Duration = Duration::from_millis(200);

fn ends(folder: &Place, with: &str) -> Vec<PathBuf> {
    let names = folder.list("cache/levada");
    let of = names.iter().filter(|n| n.ends_with(with));
    of.map(|n| folder.path("cache/levada").join(n)).collect()
}

impl Kept {
    fn new(args: &[&'static str]) -> Kept {
        Kept {
            place: sources(),
            args: args.to_vec(),
            set: Vec::new(),
        }
    }

    fn command(&self, what: &str, more: &[&str]) -> Command {
        let mut args = vec![what];
        args.extend(&self.args);
        args.extend(more);
        let mut command = self.place.command(&args);
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        command.envs(self.set.iter().map(|(name, value)| (*name, value)));
        command
    }

    fn run(&self, more: &[&str]) -> Run {
        Run::new(self.command("prepare", more).output().unwrap())
    }

    /// The name of the network that `levada run` runs, and what that writes.
    fn runs(&self, more: &[&str]) -> (String, String) {
        let mut args = vec!["--json", "--out=written"];
        args.extend(more);
        let run = Run::new(self.command("run", &args).output().unwrap());
        let name = run.succeeds().json()["network"]
            .as_str()
            .unwrap()
            .to_string();
        let written = std::fs::read_to_string(self.place.path("written"));
        (name, written.unwrap())
    }

    fn name(&self) -> String {
        let said = self.run(&[]).succeeds().json();
        said["network"].as_str().unwrap().to_string()
    }

    fn object(&self) -> String {
        let said = self.run(&[]).succeeds().json();
        said["object"].as_str().unwrap().to_string()
    }

    /// Creates the entry and renames the network in it to "marked", so that a result from the cache can be
    /// recognised.
    fn mark(&self) {
        // What was written a moment ago is not relied on.
        std::thread::sleep(SETTLED);
        self.run(&[]).succeeds();
        self.mark_entry();
        assert_eq!(self.name(), "marked");
    }

    fn mark_entry(&self) {
        let entries = ends(&self.place, ".prepared");
        assert_eq!(entries.len(), 1, "{entries:?}");
        let text = std::fs::read_to_string(&entries[0]).unwrap();
        let mut answer: serde_json::Value =
            serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
        answer["network"] = "marked".into();
        let answer = answer.to_string();
        let hash: String = Sha256::digest(&answer)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        std::fs::write(&entries[0], format!("{hash}\n{answer}")).unwrap();
    }
}

#[test]
fn a_file_that_was_written_is_read_again() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    let object = kept.object();
    // The same text.
    let top = std::fs::read_to_string(kept.place.path(TOP)).unwrap();
    kept.place.write(TOP, &top);
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
    kept.mark();
    let write = "src/p/Write.cal";
    let text = std::fs::read_to_string(kept.place.path(write)).unwrap();
    kept.place
        .write(write, &text.replace("number(x)", "number(x + 1)"));
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
    kept.mark();
    std::fs::remove_file(kept.place.path(write)).unwrap();
    let refused = kept.run(&[]);
    refused.refuses(1, &["p.Write"]);
    kept.place.write(write, &text);
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
}

#[test]
fn a_new_file_before_one_that_was_found_is_noticed() {
    let kept = Kept::new(&["p.Top", "--path=first", "--path=src"]);
    std::fs::create_dir(kept.place.path("first")).unwrap();
    kept.mark();
    let object = kept.object();
    let text = std::fs::read_to_string(kept.place.path("src/p/Write.cal")).unwrap();
    let other = text.replace("number(x)", "number(x + 1)");
    kept.place.write("first/p/Write.cal", &other);
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
    kept.mark();
    std::fs::remove_file(kept.place.path("first/p/Write.cal")).unwrap();
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object);
    kept.mark();
    // Natives are taken from a folder that was not there.
    kept.place
        .write("natives/more.c", "int more_of_them(void) { return 1; }\n");
    assert_ne!(kept.name(), "marked");
    assert_ne!(kept.object(), object);
}

#[test]
fn what_is_damaged_in_the_cache_is_made_again() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    let entry = &ends(&kept.place, ".prepared")[0];
    let whole = std::fs::read(entry).unwrap();
    let mut other = whole.clone();
    let last = other.len() - 10;
    other[last] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &other, b"", b"\xff\n{}", b"[]"] {
        std::fs::write(entry, damaged).unwrap();
        assert_ne!(kept.name(), "marked");
        kept.mark();
    }
    let object = PathBuf::from(kept.object());
    let whole = std::fs::read(&object).unwrap();
    std::fs::write(&object, &whole[..whole.len() / 2]).unwrap();
    assert_ne!(kept.name(), "marked");
    assert_eq!(kept.object(), object.to_str().unwrap());
    assert_eq!(
        std::fs::metadata(&object).unwrap().len(),
        whole.len() as u64
    );
    kept.mark();
    std::fs::remove_file(&object).unwrap();
    assert_ne!(kept.name(), "marked");
    assert!(object.exists());
}

#[test]
fn what_is_given_is_looked_at_each_time() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    kept.run(&["--in=none"]).refuses(1, &["--in none"]);
    kept.run(&["--option=speed=2"])
        .refuses(1, &["nothing in this network asks for speed"]);
    kept.place.write("some", "");
    let said = kept.run(&["--in=some", "--out=a.txt"]);
    let json = said.succeeds().json();
    assert_eq!(json["network"], "marked");
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1));
    assert!(said.err.contains("nothing in this network reads it"));
    let whole = kept.place.path("a.txt");
    assert!(
        json["options"]
            .to_string()
            .contains(whole.to_str().unwrap())
    );
    // Another question has another answer.
    let other = kept.run(&["--random-buffer-sizes=7"]);
    assert_ne!(other.succeeds().json()["network"], "marked");
}

/// Warnings are said each time.
#[test]
fn warnings_are_repeated_from_the_cache() {
    let kept = Kept::new(&[TOP, "--out-of-bounds=clamp"]);
    let warned = "package p;\n@native actor Write () int In ==> : end\n";
    kept.place.write("src/p/Write.cal", warned);
    let first = kept.run(&[]);
    let said = first.succeeds().json();
    kept.mark();
    let again = kept.run(&[]);
    assert_eq!(again.err, first.err);
    assert!(first.err.contains("never fires"), "{first:#?}");
    assert_eq!(again.json()["diagnostics"], said["diagnostics"]);
}

/// Both commands use one entry, whichever of them has made it.
#[test]
fn a_run_uses_what_was_prepared() {
    let kept = Kept::new(&[TOP]);
    kept.mark();
    let numbers = "1\n2\n3\n".to_string();
    assert_eq!(kept.runs(&[]), ("marked".to_string(), numbers.clone()));
    std::fs::remove_file(&ends(&kept.place, ".prepared")[0]).unwrap();
    assert_eq!(kept.runs(&[]), ("p.Top".to_string(), numbers));
    kept.mark_entry();
    assert_eq!(kept.runs(&[]).0, "marked");
    assert_eq!(kept.name(), "marked");
}

#[test]
fn a_run_sees_each_source_that_changes() {
    let kept = Kept::new(&["p.Top", "--path=first", "--path=src"]);
    std::fs::create_dir(kept.place.path("first")).unwrap();
    let write = "src/p/Write.cal";
    let text = std::fs::read_to_string(kept.place.path(write)).unwrap();
    let plus = |n: u32| text.replace("number(x)", &format!("number(x + {n})"));
    kept.mark();
    kept.place.write(write, &plus(1));
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "2\n3\n4\n".into()));
    kept.mark();
    assert_eq!(kept.runs(&[]), ("marked".into(), "2\n3\n4\n".into()));
    // A new file that precedes it on the search path.
    kept.place.write("first/p/Write.cal", &plus(2));
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "3\n4\n5\n".into()));
    kept.mark();
    // A unit that it imports now.
    kept.place.write(
        "first/q/More.cal",
        "package q;\nunit More :\n  function more(int x) --> int : x + 3 end\nend\n",
    );
    let imports = text
        .replace("import levada", "import q.More.*;\nimport levada")
        .replace("number(x)", "number(more(x))");
    kept.place.write("first/p/Write.cal", &imports);
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "4\n5\n6\n".into()));
    kept.mark();
    let more = std::fs::read_to_string(kept.place.path("first/q/More.cal")).unwrap();
    kept.place
        .write("first/q/More.cal", &more.replace("x + 3", "x + 4"));
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "5\n6\n7\n".into()));
    // Another network of this name, in a file that precedes it.
    kept.mark();
    let top = std::fs::read_to_string(kept.place.path(TOP)).unwrap();
    let shorter = top.replace("value=\"3\"", "value=\"2\"");
    assert_ne!(top, shorter);
    kept.place.write("first/p/Top.xdf", &shorter);
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "5\n6\n".into()));
}

/// Options that change the code, another compiler, another levada.
#[test]
fn a_run_sees_other_options_and_tools() {
    let mut kept = Kept::new(&[TOP]);
    kept.mark();
    for other in [
        &["--unchecked"][..],
        &["--no-fuse"],
        &["--out-of-bounds=clamp"],
        &["--random-buffer-sizes=7"],
        &["--path=src"],
    ] {
        assert_eq!(kept.runs(other).0, "p.Top", "{other:?}");
    }
    // What says how it runs changes nothing.
    assert_eq!(kept.runs(&["--workers=1", "--spin=0"]).0, "marked");
    kept.set = vec![("CC", "cc -DOTHER".to_string())];
    assert_eq!(kept.runs(&[]).0, "p.Top");
    kept.set = vec![("CPATH", "include".to_string())];
    assert_eq!(kept.runs(&[]).0, "p.Top");
    // A new build of levada may have other headers, and another layout of what they declare.
    kept.set = Vec::new();
    assert_eq!(kept.runs(&[]).0, "marked");
    let levada = kept.place.path("levada");
    copy_program(env!("CARGO_BIN_EXE_levada"), &levada);
    let words = kept.command("run", &["--json", "--out=written"]);
    let mut command = Command::new(&levada);
    command
        .args(words.get_args())
        .current_dir(kept.place.path(""));
    for (name, value) in words.get_envs() {
        command.env(name, value.unwrap());
    }
    let run = Run::new(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(run.succeeds().json()["network"], "p.Top");
}

/// A compiler of the same name that precedes the other one in PATH.
#[test]
fn a_run_sees_another_compiler() {
    let mut kept = Kept::new(&[TOP]);
    let found = Command::new("sh").args(["-c", "command -v cc"]).output();
    let cc = String::from_utf8(found.unwrap().stdout).unwrap();
    let own = kept.place.path("own");
    std::fs::create_dir(&own).unwrap();
    let path = std::env::var("PATH").unwrap();
    kept.set = vec![("PATH", format!("{}:{path}", own.display()))];
    kept.mark();
    assert_eq!(kept.runs(&[]).0, "marked");
    std::os::unix::fs::symlink(cc.trim(), own.join("cc")).unwrap();
    assert_eq!(kept.runs(&[]).0, "p.Top");
}

/// Headers that only the compiler finds: their folder is named in CC.
#[test]
fn a_run_sees_each_header_that_changes() {
    let mut kept = Kept::new(&[TOP]);
    kept.set = vec![("CC", "cc -Ifirst -I second".to_string())];
    kept.place.write(
        "src/p/Write.cal",
        "package p;\nimport levada.io.*;\nactor Write () int In ==> :\n  @native function more(int x) --> int \
         end\n  action In:[x] ==> do io_write_number(more(x)); end\nend\n",
    );
    let native =
        "#include <stdint.h>\n#include <more.h>\nint32_t more(int32_t x) { return x + MORE; }\n";
    kept.place.write("natives/more.c", native);
    std::fs::create_dir(kept.place.path("first")).unwrap();
    kept.place.write("second/more.h", "#define MORE 1\n");
    kept.mark();
    assert_eq!(kept.runs(&[]), ("marked".into(), "2\n3\n4\n".into()));
    kept.place.write("second/more.h", "#define MORE 2\n");
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "3\n4\n5\n".into()));
    kept.mark();
    kept.place.write("first/more.h", "#define MORE 3\n");
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "4\n5\n6\n".into()));
    kept.mark();
    std::fs::remove_file(kept.place.path("first/more.h")).unwrap();
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "3\n4\n5\n".into()));
    // The object alone is not used either: without the entry, only its own list tells.
    kept.mark();
    kept.place.write("second/more.h", "#define MORE 4\n");
    std::thread::sleep(SETTLED);
    std::fs::remove_file(&ends(&kept.place, ".prepared")[0]).unwrap();
    assert_eq!(kept.runs(&[]), ("p.Top".into(), "5\n6\n7\n".into()));
}

/// A fault of a network from the cache is shown with its source line, as after a compilation; but not with a line that
/// was written since.
#[test]
fn a_fault_from_the_cache_has_its_source() {
    let kept = Kept::new(&[TOP]);
    kept.place.write("src/p/Read.cal", READ);
    kept.place.write(PRINT.0, PRINT.1);
    let instances: [Instance; 3] = [
        ("read", "p.Read", &[]),
        ("fail", "p.Fail", &[]),
        ("print", "p.Print", &[]),
    ];
    let wires = [("read.Out", "fail.In"), ("fail.Out", "print.In")];
    kept.place.write(TOP, &network(&instances, &wires));
    let fails = |name: &str, change: bool| {
        let (child, mut input, mut lines) = spawn_piped(&mut kept.command("run", &["--in=-"]));
        writeln!(input, "999").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "1000");
        if change {
            let fail = std::fs::read_to_string(kept.place.path("src/p/Fail.cal")).unwrap();
            kept.place
                .write("src/p/Fail.cal", &fail.replace("1000 / (1000", "7 / (1000"));
        }
        writeln!(input, "1000").unwrap();
        let run = Run::new(child.wait_with_output().unwrap());
        assert!(run.err.contains(&format!("{name} was stopped")), "{run:#?}");
        run
    };
    std::thread::sleep(SETTLED);
    let shown = "action In:[x] ==> Out:[1000 / (1000 - x)]";
    assert!(fails("p.Top", false).err.contains(shown));
    kept.mark_entry();
    let cached = fails("marked", false);
    assert!(cached.err.contains(shown), "{cached:#?}");
    let changed = fails("marked", true);
    changed.refuses(1, &["src/p/Fail.cal:3"]);
    assert!(!changed.err.contains("1000 - x"), "{changed:#?}");
}

/// Lets the last use of all files in the cache seem to be long ago.
fn age(place: &Place) {
    let long_ago = SystemTime::now() - Duration::from_secs(100_000);
    for name in place.list("cache/levada") {
        let file = File::open(place.path("cache/levada").join(name)).unwrap();
        file.set_modified(long_ago).unwrap();
    }
}

/// With a cache of no size at all, what runs is kept.
#[test]
fn the_object_of_a_network_that_runs_is_not_removed() {
    let mut kept = Kept::new(&[]);
    kept.set = vec![("LEVADA_CACHE_SIZE", "0".to_string())];
    kept.place.write("src/p/Read.cal", READ);
    kept.place.write(PRINT.0, PRINT.1);
    let instances: [Instance; 2] = [("read", "p.Read", &[]), ("print", "p.Print", &[])];
    let waits = network(&instances, &[("read.Out", "print.In")]);
    kept.place
        .write("src/p/Waits.xdf", &waits.replace("\"Top\"", "\"Waits\""));
    let (mut child, mut input, mut lines) =
        spawn_piped(&mut kept.command("run", &["src/p/Waits.xdf", "--in=-"]));
    writeln!(input, "7").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "7");
    let objects = || ends(&kept.place, ".so");
    let used = objects();
    assert_eq!(used.len(), 1);
    age(&kept.place);
    let other = |more: &[&str]| {
        let mut args = vec![TOP, "--out=written"];
        args.extend(more);
        let run = Run::new(kept.command("run", &args).output().unwrap());
        run.succeeds();
    };
    other(&[]);
    assert!(objects().contains(&used[0]) && objects().len() == 2);
    drop(input);
    assert!(child.wait().unwrap().success());
    age(&kept.place);
    other(&["--random-buffer-sizes=7"]);
    assert_eq!(objects().len(), 1);
    assert!(!objects().contains(&used[0]));
}

#[test]
fn a_wrong_size_of_the_cache_is_said() {
    let mut kept = Kept::new(&[TOP, "--out=written"]);
    kept.set = vec![("LEVADA_CACHE_SIZE", "much".to_string())];
    let run = Run::new(kept.command("run", &[]).output().unwrap());
    assert!(
        run.succeeds().err.contains("LEVADA_CACHE_SIZE=much"),
        "{run:#?}"
    );
    let mut doctor = kept.place.command(&["doctor"]);
    let said = Run::new(doctor.env("LEVADA_CACHE_SIZE", "much").output().unwrap());
    said.refuses(1, &[]);
    assert!(said.out.contains("LEVADA_CACHE_SIZE=much"), "{said:#?}");
}

/// A compiler that waits where a command line has this word, while the pipe `hold` exists: it writes the file `held`,
/// and continues when something is written to the pipe. The file `compiled` has a line for each C file.
fn holding_compiler(kept: &mut Kept, at: &str) -> File {
    let text = "#!/bin/sh\ncase \" $* \" in *' -c '*) echo >> compiled;; esac\n\
                case \" $* \" in *' WORD '*) if [ -e hold ]; then echo > held; read x < hold; fi;; esac\n\
                exec cc \"$@\"\n";
    let cc = kept.place.path("slow-cc");
    write_script(&cc, &text.replace("WORD", at));
    kept.set = vec![("CC", cc.to_str().unwrap().to_string())];
    held_pipe(&kept.place, "hold")
}

fn until_held(place: &Place) {
    let begin = Instant::now();
    while !place.exists("held") {
        assert!(begin.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_progress_of_compiling_is_shown_on_a_terminal() {
    for quiet in [None, Some("--quiet"), Some("--no-progress")] {
        let mut kept = Kept::new(&[TOP]);
        let mut hold = holding_compiler(&mut kept, "-c");
        let more: Vec<&str> = ["--out=written"].into_iter().chain(quiet).collect();
        let mut screen = Screen::begin(kept.command("run", &more));
        match quiet {
            None => screen.until("compiling, 0 of "),
            Some(_) => {
                until_held(&kept.place);
                // Longer than the time until the line would be shown.
                screen.rest(Duration::from_secs(1));
                assert!(!screen.text().contains("compiling"), "{}", screen.text());
            }
        }
        std::fs::remove_file(kept.place.path("hold")).unwrap();
        hold.write_all(b"go\ngo\ngo\ngo\n").unwrap();
        assert!(screen.ends(Duration::from_secs(120)).success());
    }
    // Nothing of it is written elsewhere.
    let kept = Kept::new(&[TOP, "--out=written"]);
    let run = Run::new(kept.command("run", &[]).output().unwrap());
    assert!(
        !run.succeeds().err.contains("compiling") && !run.err.contains('\r'),
        "{run:#?}"
    );
}

/// The C compiler is killed with levada when all but the last step is done: what was compiled is used by the next run.
#[test]
fn a_compilation_that_is_killed_loses_nothing() {
    let mut kept = Kept::new(&[TOP]);
    let hold = holding_compiler(&mut kept, "-shared");
    let mut command = kept.command("run", &["--out=written"]);
    command.process_group(0).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until_held(&kept.place);
    // SAFETY: a process group of this test's own; its leader has not been waited for.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    child.wait().unwrap();
    drop(hold);
    std::fs::remove_file(kept.place.path("hold")).unwrap();
    assert!(ends(&kept.place, ".so").is_empty());
    let compiled = || {
        std::fs::read_to_string(kept.place.path("compiled"))
            .unwrap()
            .len()
    };
    let before = compiled();
    assert!(before > 1);
    let left = || {
        kept.place
            .list("cache/levada")
            .into_iter()
            .filter(|n| n.starts_with("tmp-"))
    };
    assert_eq!(left().count(), 1);
    age(&kept.place);
    assert_eq!(kept.runs(&[]).1, "1\n2\n3\n");
    assert_eq!(compiled(), before);
    assert_eq!(left().count(), 0);
}
