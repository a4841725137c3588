// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steady applications beside other programs that leave little of the cores, now more of the one and now of the other, stay
//! where they are.

mod common;

use common::host::{Host, sources};
use common::network;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const APPLICATIONS: usize = 6;
/// A source, a step that computes, a sink.
const ACTORS: usize = 3;
/// Of what only looks better where it is to go, nothing goes back and forth more often than that in [`LOOKED_AT`].
const EACH: usize = 3;
const LOOKED_AT: Duration = Duration::from_secs(20);

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

/// Threads that compute, some all the time and some for a while and then not.
struct Others {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Others {
    fn begin() -> Others {
        let end = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = (0..6 * cores as u64).map(|i| {
            let end = Arc::clone(&end);
            std::thread::spawn(move || {
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

impl Drop for Others {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn moves(host: &Host) -> usize {
    let events = host.run(&["events"]).succeeds().out.clone();
    events.lines().filter(|l| l.contains(" moved ")).count()
}

#[test]
fn what_is_steady_stays_where_it_is_beside_others() {
    let host = steps();
    for i in 0..APPLICATIONS {
        let (network, name) = (format!("src/p/Steps{i}.xdf"), format!("k{i}"));
        let args = ["load", &network, "--name", &name, "--no-fuse"];
        host.run(&[&args[..], &["--out=/dev/null"]].concat())
            .succeeds();
    }
    // A compiler lets all others go first, so these come now. Where applications begin beside them is a guess.
    let _others = Others::begin();
    std::thread::sleep(Duration::from_secs(4));
    let before = moves(&host);
    let start = Instant::now();
    std::thread::sleep(LOOKED_AT);
    let (moved, took) = (moves(&host) - before, start.elapsed());
    println!("{moved} moves in {:.1} s", took.as_secs_f64());
    // Also where it takes long to be told of them.
    let longer = took.as_millis().div_ceil(LOOKED_AT.as_millis()) as usize;
    let most = APPLICATIONS * ACTORS * EACH * longer;
    assert!(moved <= most, "{moved} moves in {took:?}");
}
