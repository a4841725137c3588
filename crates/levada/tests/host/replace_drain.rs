// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of new versions of networks with full channels that differ from the new version's: sources are held until
//! all elements have been consumed, however slow the consumer is, and the new version starts with the next element.

use crate::common;
use crate::common::Place;
use crate::common::host::{Host, pipe, sources};
use serde_json::Value;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// All connections have this capacity.
const CAPACITY: u64 = 512;
/// A pipe has room for two of them.
const PAGE: u64 = 4096;

/// `Old`: numbers from 1 on go two ways, and on where both bring the same, else as 0. `New` has one actor instead of
/// those, after which they are negative. Between that and `write` there is `slow`, or with `quick` nothing.
fn versions(quick: bool) -> Place {
    let place = sources();
    for (class, body) in [
        (
            "Pass",
            "int In ==> int Out :\n  action In:[x] ==> Out:[x] end",
        ),
        (
            "Mark",
            "int In ==> int Out :\n  action In:[x] ==> Out:[-x] end",
        ),
        (
            "Join",
            "int One, int Other ==> int Out :\n  action One:[x], Other:[y] ==> Out:[if x = y then x else 0 end] end",
        ),
        (
            "Slow",
            "int In ==> int Out :\n  @native function slow(int x) --> int end\n  \
             action In:[x] ==> Out:[slow(x)] end",
        ),
    ] {
        let text = format!("package p;\nactor {class} () {body}\nend\n");
        place.write(&format!("src/p/{class}.cal"), &text);
    }
    place.write(
        "natives/slow.c",
        "#include <stdint.h>\nint32_t slow(int32_t x);\nint32_t slow(int32_t x) {\n  volatile double sum = 0;\n  \
         for (int i = 0; i < 20000; i++) sum += i;\n  return x;\n}\n",
    );
    let none = &[][..];
    let source = ("source", "p.Source", &[("n", "2000000000")][..]);
    let last = if quick { "write.In" } else { "slow.In" };
    let mut ends = vec![source, ("write", "p.Write", none)];
    let mut wires = Vec::new();
    if !quick {
        ends.push(("slow", "p.Slow", none));
        wires.push(("slow.Out", "write.In"));
    }
    let ways = ["first", "left", "right"].map(|name| (name, "p.Pass", none));
    let old = [&ends[..], &ways[..], &[("join", "p.Join", none)]].concat();
    let through = [
        ("source.Out", "first.In"),
        ("first.Out", "left.In"),
        ("first.Out", "right.In"),
        ("left.Out", "join.One"),
        ("right.Out", "join.Other"),
        ("join.Out", last),
    ];
    let new = [&ends[..], &[("mark", "p.Mark", none)]].concat();
    let marked = [("source.Out", "mark.In"), ("mark.Out", last)];
    for (name, actors, more) in [("Old", &old, &through[..]), ("New", &new, &marked[..])] {
        let text = common::network(actors, &[&wires[..], more].concat());
        let text = sized(&text.replace("\"Top\"", &format!("\"{name}\"")));
        place.write(&format!("src/p/{name}.xdf"), &text);
    }
    place
}

fn sized(text: &str) -> String {
    let size = format!(
        "><Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Literal\" literal-kind=\"Integer\" \
         value=\"{CAPACITY}\"/></Attribute></Connection>"
    );
    let line = |line: &str| {
        if line.starts_with("<Connection") {
            line.replacen("/>", &size, 1) + "\n"
        } else {
            format!("{line}\n")
        }
    };
    text.lines().map(line).collect()
}

fn load(host: &Host, out: &str) {
    let args = ["load", "src/p/Old.xdf", "--name", "a", "--no-fuse", "--out"];
    host.run(&[&args[..], &[out]].concat()).succeeds();
}

/// Waits until the source waits for room, as all do before the slowest; how many it has put by then.
fn until_full(host: &Host) -> u64 {
    let of = |c: &Value, end: &str, actor: &str| c[end].as_str().unwrap().starts_with(actor);
    let full = |c: &Value| of(c, "to", "write") || c["fill"].as_u64() > Some(CAPACITY / 2);
    let start = Instant::now();
    loop {
        let seen = host.json(&["show", "a"]);
        let channels = seen["channel"].as_array().unwrap();
        if channels.iter().all(full) {
            let first = channels.iter().find(|c| of(c, "from", "source"));
            return first.unwrap()["put"].as_u64().unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{seen}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn replace(host: &Host) {
    let args = [
        "replace",
        "a",
        "src/p/New.xdf",
        "--no-fuse",
        "--timeout",
        "90",
    ];
    host.run(&args).succeeds();
    host.until("a", |a| a["firings"].as_u64() > Some(100));
}

/// All numbers from 1 on, each once and in their order: by the old version those that its source had put, which are
/// `put` at the least, and by the new one the others.
fn are_whole(text: &str, put: u64) {
    let numbers: Vec<i64> = text.lines().map(|l| l.parse().unwrap()).collect();
    let good = |(i, x): (usize, &i64)| x.unsigned_abs() == i as u64 + 1;
    let wrong = numbers.iter().enumerate().position(|x| !good(x));
    assert!(wrong.is_none(), "{:?}", &numbers[wrong.unwrap()..]);
    let old = numbers.partition_point(|x| *x > 0);
    assert!(numbers[old..].iter().all(|x| *x < 0));
    assert!(old as u64 >= put && old < numbers.len(), "{old} of {put}");
}

#[test]
fn all_that_is_on_its_way_comes_out_first() {
    let host = Host::begin_in(versions(false));
    load(&host, "out.txt");
    let put = until_full(&host);
    replace(&host);
    host.run(&["unload", "a", "--timeout", "90"]).succeeds();
    let text = std::fs::read_to_string(host.place.path("out.txt")).unwrap();
    are_whole(&text, put);
}

/// Between two reads nothing fires, and all the same something comes out.
#[test]
fn a_slow_reader_is_waited_for() {
    let place = versions(true);
    let path = pipe(&place, "out.fifo");
    let ends = std::fs::File::options().read(true).write(true).open(&path);
    let ends = ends.unwrap();
    // SAFETY: no pointers.
    unsafe { libc::fcntl(ends.as_raw_fd(), libc::F_SETPIPE_SZ, 2 * PAGE as i32) };
    let slowly = AtomicBool::new(true);
    let (text, put) = std::thread::scope(|scope| {
        let reads = scope.spawn(|| read(&path, &slowly));
        // Where this fails it goes first, and what is read ends with it.
        let host = Host::begin_in(place);
        load(&host, "out.fifo");
        let put = until_full(&host);
        replace(&host);
        // Until the application has opened it, this is what keeps it from its end.
        drop(ends);
        slowly.store(false, Ordering::Relaxed);
        host.run(&["unload", "a", "--timeout", "90"]).succeeds();
        (reads.join().unwrap(), put)
    });
    are_whole(&text, put);
}

/// A page at a time.
fn read(path: &Path, slowly: &AtomicBool) -> String {
    let mut pipe = std::fs::File::open(path).unwrap();
    let mut all = Vec::new();
    while pipe.by_ref().take(PAGE).read_to_end(&mut all).unwrap() > 0 {
        if slowly.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(60));
        }
    }
    String::from_utf8(all).unwrap()
}
