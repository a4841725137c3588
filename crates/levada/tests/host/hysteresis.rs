// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests that steady applications stay in place next to other programs that leave little of the cores, alternately
//! of one and of the other, as do idle ones while others come and go; and that an application does not return to a
//! worker with a firing that does not end.

use crate::common::host::{Host, held_pipe, sources};
use crate::common::network;
use serde_json::Value;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const APPLICATIONS: usize = 6;
/// A source, a step that computes, a sink.
const ACTORS: usize = 3;
/// Of what only looks better where it is to go, nothing goes back and forth more often than that in [`LOOKED_AT`].
const EACH: usize = 3;
const LOOKED_AT: Duration = Duration::from_secs(20);

/// With threads that occupy the cores, compiling and loading in another test takes minutes.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn steps() -> Host {
    let place = sources();
    for i in 0..APPLICATIONS {
        let rounds = 1000 << i;
        let step = format!(
            "package p;\nactor Step{i} () int In ==> int Out :\n  action In:[y] ==> Out:[x] var int x := y do\n    \
             foreach int i in 1 .. {rounds} do x := (x * 75 + 74) mod 65537; end\n  end\nend\n"
        );
        place.write(&format!("src/p/Step{i}.cal"), &step);
        let text = network(
            &[
                ("source", "p.Source", &[("n", "2000000000")]),
                ("step", &format!("p.Step{i}"), &[]),
                ("write", "p.Write", &[]),
            ],
            &[("source.Out", "step.In"), ("step.Out", "write.In")],
        );
        let text = text.replace("\"Top\"", &format!("\"Steps{i}\""));
        place.write(&format!("src/p/Steps{i}.xdf"), &text);
    }
    Host::begin_in(place)
}

/// Compiles these beforehand: with programs that compute all the time it would take minutes.
fn compiled(host: &Host, which: Range<usize>) {
    for i in which {
        let network = format!("src/p/Steps{i}.xdf");
        let load = ["load", &network, "--name=first", "--no-fuse", "--paused"];
        host.run(&[&load[..], &["--out=/dev/null"]].concat())
            .succeeds();
        host.run(&["unload", "first", "--now"]).succeeds();
    }
}

/// Threads that compute, some all the time and some for a while and then not.
struct Others {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Others {
    fn begin() -> Others {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Others::of(6 * cores as u64, None)
    }

    /// Three on one core.
    fn on(cpu: usize) -> Others {
        Others::of(3, Some(cpu))
    }

    fn of(count: u64, cpu: Option<usize>) -> Others {
        let end = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|i| {
            let end = Arc::clone(&end);
            std::thread::spawn(move || {
                cpu.into_iter().for_each(keep_to);
                let mut round = i;
                while !end.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    round += 1;
                    let lasts = Duration::from_millis(100 + (round * 7919 + i * 104_729) % 900);
                    while start.elapsed() < lasts {
                        std::hint::spin_loop();
                    }
                    if i % 2 == 0 {
                        std::thread::sleep(lasts / 3);
                    }
                }
            })
        });
        Others {
            threads: threads.collect(),
            end,
        }
    }
}

/// This thread stays on that core.
fn keep_to(cpu: usize) {
    // SAFETY: this thread alone, and zero is a value of a set of cores.
    let kept = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    assert_eq!(kept, 0);
}

impl Drop for Others {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn moves(host: &Host) -> Vec<String> {
    let events = host.run(&["events"]).succeeds().out.clone();
    let moves = events.lines().filter(|l| l.contains(" moved "));
    moves.map(str::to_string).collect()
}

#[test]
fn steady_applications_stay_next_to_other_load() {
    let _alone = alone();
    let host = steps();
    compiled(&host, 0..APPLICATIONS);
    for i in 0..APPLICATIONS {
        let (network, name) = (format!("src/p/Steps{i}.xdf"), format!("k{i}"));
        let args = ["load", &network, "--name", &name, "--no-fuse"];
        host.run(&[&args[..], &["--out=/dev/null"]].concat())
            .succeeds();
    }
    // A compiler has the lowest priority, so these start now. The initial placement next to them is a guess.
    let _others = Others::begin();
    std::thread::sleep(Duration::from_secs(4));
    let before = moves(&host).len();
    let start = Instant::now();
    std::thread::sleep(LOOKED_AT);
    let (moved, took) = (moves(&host).len() - before, start.elapsed());
    println!("{moved} moves in {:.1} s", took.as_secs_f64());
    // Also where it takes long to be told of them.
    let longer = took.as_millis().div_ceil(LOOKED_AT.as_millis()) as usize;
    let most = APPLICATIONS * ACTORS * EACH * longer;
    assert!(moved <= most, "{moved} moves in {took:?}");
}

/// `Reads`: for each number that comes from --in `step` computes for a while.
fn reads(host: &Host) {
    host.place.write(
        "src/p/Reader.cal",
        "package p;\nimport levada.io.*;\nactor Reader () ==> int Out :\n  action ==> Out:[io_read_number()] \
         end\nend\n",
    );
    let text = network(
        &[
            ("read", "p.Reader", &[]),
            ("step", "p.Step3", &[]),
            ("write", "p.Write", &[]),
        ],
        &[("read.Out", "step.In"), ("step.Out", "write.In")],
    );
    let text = text.replace("\"Top\"", "\"Reads\"");
    host.place.write("src/p/Reads.xdf", &text);
}

#[test]
fn idle_applications_stay_where_they_are() {
    const IDLE: [&str; 4] = ["i0", "i1", "i2", "i3"];
    const BEGUN: usize = 2;
    const NUMBERS: u64 = 20_000;
    let _alone = alone();
    let host = steps();
    compiled(&host, 3..APPLICATIONS);
    reads(&host);
    let mut inputs: Vec<_> = IDLE
        .iter()
        .map(|name| held_pipe(&host.place, name))
        .collect();
    for name in IDLE {
        let load = ["load", "src/p/Reads.xdf", "--no-fuse", "--out=/dev/null"];
        host.run(&[&load[..], &["--name", name, "--in", name]].concat())
            .succeeds();
    }
    // Some do something, and then nothing: what they weigh is known. Others have never begun.
    for input in &mut inputs[..BEGUN] {
        input.write_all(&b"7 ".repeat(NUMBERS as usize)).unwrap();
    }
    for name in &IDLE[..BEGUN] {
        host.until(name, |a| a["firings"].as_u64() >= Some(3 * NUMBERS - 3));
    }
    std::thread::sleep(Duration::from_secs(3));
    let before = moves(&host).len();
    for round in 0..4 {
        for i in 3..APPLICATIONS {
            let (network, name) = (format!("src/p/Steps{i}.xdf"), format!("k{i}"));
            let args = ["load", &network, "--name", &name, "--no-fuse"];
            host.run(&[&args[..], &["--out=/dev/null"]].concat())
                .succeeds();
            std::thread::sleep(Duration::from_millis(700));
        }
        for i in 3..APPLICATIONS {
            let name = format!("k{}", 3 + (i + round) % (APPLICATIONS - 3));
            host.run(&["unload", &name, "--now"]).succeeds();
            std::thread::sleep(Duration::from_millis(700));
        }
    }
    let moves = moves(&host);
    let idle = |l: &&String| IDLE.iter().any(|name| l.contains(&format!(" {name}.")));
    let moved: Vec<&String> = moves[before..].iter().filter(idle).collect();
    assert_eq!(moved, Vec::<&String>::new());
    println!("{} moves of others", moves.len() - before);
}

/// `Mad`: computes without end when something has come.
fn mad(host: &Host) {
    host.place.write(
        "src/p/Mad.cal",
        "package p;\nactor Mad () int In ==> :\n  int s := 0;\n  action In:[x] ==> var int i := 1 do\n    \
         while i > 0 do i := (i mod 7) + 1; s := s + i; end\n  end\nend\n",
    );
    let text = network(
        &[
            ("source", "p.Source", &[("n", "2000000000")]),
            ("mad", "p.Mad", &[]),
        ],
        &[("source.Out", "mad.In")],
    );
    let text = text.replace("\"Top\"", "\"Endless\"");
    host.place.write("src/p/Endless.xdf", &text);
    host.run(&["load", "src/p/Endless.xdf", "--name=mad", "--no-fuse"])
        .succeeds();
}

/// The worker that the actor which does not end is on, and its core.
fn where_mad_is(host: &Host) -> (u64, usize) {
    let workers = host.json(&["map"]);
    let is_mad = |a: &Value| a["application"] == "mad" && a["actor"] == "mad";
    let has_it = |w: &&Value| w["actor"].as_array().unwrap().iter().any(is_mad);
    let found = workers.as_array().unwrap().iter().find(has_it).unwrap();
    let cpu = found["cpu"].as_u64().unwrap();
    (found["worker"].as_u64().unwrap(), cpu as usize)
}

/// For longer than any firing takes.
fn lasts(why: &str) -> bool {
    why.contains("mad has computed for ") && !why.contains("mad has computed for 0.")
}

/// What else is on that core makes it look as if the work there were done sooner elsewhere.
#[test]
fn no_application_returns_to_a_worker_with_an_endless_firing() {
    let _alone = alone();
    let host = steps();
    if host.json(&["map"]).as_array().unwrap().len() < 2 {
        println!("skipped: there is nowhere to go to with one core");
        return;
    }
    host.run(&[
        "load",
        "src/p/Steps3.xdf",
        "--no-fuse",
        "--cpus=0.1",
        "--out=/dev/null",
    ])
    .succeeds();
    mad(&host);
    let start = Instant::now();
    while !lasts(&host.run(&["why", "mad"]).out) {
        assert!(start.elapsed() < Duration::from_secs(300), "it ends");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (worker, cpu) = where_mad_is(&host);
    let _others = Others::on(cpu);
    let before = moves(&host).len();
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(where_mad_is(&host).0, worker);
    let moves = moves(&host);
    let there = format!("-> {worker}");
    let back = |l: &&String| l.ends_with(&there) || l.contains("mad.mad");
    let back: Vec<&String> = moves[before..].iter().filter(back).collect();
    assert_eq!(back, Vec::<&String>::new());
}
