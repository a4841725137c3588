// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels of the Rust world between two pinned threads: elements a second.
//!
//! `channel QUEUE SIZE GROUP CAPACITY COUNT`, QUEUE one of rtrb, array-queue, crossbeam-channel. rtrb
//! passes groups as chunks; the crossbeam crates have single elements only.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::time::Instant;

trait Element: Copy + Default + Send + 'static {
    fn make(i: u64) -> Self;
    fn value(self) -> u64;
}

impl Element for u32 {
    fn make(i: u64) -> Self {
        i as u32
    }
    fn value(self) -> u64 {
        self as u64
    }
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Wide([u64; 8]);

impl Element for Wide {
    fn make(i: u64) -> Self {
        Wide([i; 8])
    }
    fn value(self) -> u64 {
        self.0
            .iter()
            .fold(0u64, |sum, word| sum.wrapping_add(*word))
            / 8
    }
}

/// A few pauses between two looks, as every contender.
fn poll() {
    for _ in 0..16 {
        spin_loop();
    }
}

fn pin(index: usize) {
    // SAFETY: plain system calls on a set of our own; all zeros is an empty set.
    unsafe {
        let mut may: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&may), &mut may);
        let cpu = (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &may))
            .nth(index);
        let Some(cpu) = cpu else {
            fail("two cores are needed, and this program may not use two")
        };
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1)
}

/// Runs both sides, each on its core; the seconds until both have ended, and the consumer's sum.
fn pair(produce: impl FnOnce() + Send, consume: impl FnOnce() -> u64 + Send) -> (f64, u64) {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            pin(1);
            barrier.wait();
            consume()
        });
        let producer = scope.spawn(|| {
            pin(0);
            barrier.wait();
            let start = Instant::now();
            produce();
            start
        });
        let start = producer.join().expect("the producer ends");
        let sum = consumer.join().expect("the consumer ends");
        (start.elapsed().as_secs_f64(), sum)
    })
}

fn rtrb<T: Element>(group: usize, capacity: usize, count: u64) -> (f64, u64) {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(capacity);
    if group == 1 {
        return pair(
            move || {
                for i in 0..count {
                    while producer.push(T::make(i)).is_err() {
                        poll();
                    }
                }
            },
            move || {
                let mut sum = 0u64;
                for _ in 0..count {
                    sum += loop {
                        match consumer.pop() {
                            Ok(element) => break element.value(),
                            Err(_) => poll(),
                        }
                    };
                }
                sum
            },
        );
    }
    pair(
        move || {
            for i in (0..count).step_by(group) {
                let chunk = loop {
                    match producer.write_chunk_uninit(group) {
                        Ok(chunk) => break chunk,
                        Err(_) => poll(),
                    }
                };
                chunk.fill_from_iter((i..i + group as u64).map(T::make));
            }
        },
        move || {
            let mut sum = 0u64;
            for _ in (0..count).step_by(group) {
                let chunk = loop {
                    match consumer.read_chunk(group) {
                        Ok(chunk) => break chunk,
                        Err(_) => poll(),
                    }
                };
                let (first, second) = chunk.as_slices();
                sum += first.iter().map(|element| element.value()).sum::<u64>();
                sum += second.iter().map(|element| element.value()).sum::<u64>();
                chunk.commit_all();
            }
            sum
        },
    )
}

fn array_queue<T: Element>(_group: usize, capacity: usize, count: u64) -> (f64, u64) {
    let queue = crossbeam_queue::ArrayQueue::<T>::new(capacity);
    pair(
        || {
            for i in 0..count {
                while queue.push(T::make(i)).is_err() {
                    poll();
                }
            }
        },
        || {
            let mut sum = 0u64;
            for _ in 0..count {
                sum += loop {
                    match queue.pop() {
                        Some(element) => break element.value(),
                        None => poll(),
                    }
                };
            }
            sum
        },
    )
}

fn crossbeam_channel<T: Element>(_group: usize, capacity: usize, count: u64) -> (f64, u64) {
    let (sender, receiver) = crossbeam_channel::bounded::<T>(capacity);
    pair(
        move || {
            for i in 0..count {
                sender.send(T::make(i)).expect("the consumer lives");
            }
        },
        move || receiver.iter().map(Element::value).sum(),
    )
}

fn measure<T: Element>(queue: &str, group: usize, capacity: usize, count: u64) {
    let count = count / group as u64 * group as u64;
    let (took, sum) = match queue {
        "rtrb" => rtrb::<T>(group, capacity, count),
        "array-queue" => array_queue::<T>(group, capacity, count),
        "crossbeam-channel" => crossbeam_channel::<T>(group, capacity, count),
        _ => fail("QUEUE is rtrb, array-queue or crossbeam-channel"),
    };
    let expected = (0..count).map(|i| T::make(i).value()).sum::<u64>();
    if sum != expected {
        fail(&format!("wrong result: the sum is {sum}, not {expected}"));
    }
    println!("elements_per_s {}", count as f64 / took);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let numbers: Vec<u64> = arguments
        .iter()
        .skip(2)
        .filter_map(|a| a.parse().ok())
        .collect();
    let [size, group, capacity, count] = numbers[..] else {
        fail("usage: channel QUEUE SIZE GROUP CAPACITY COUNT")
    };
    match size {
        64 => measure::<Wide>(&arguments[1], group as usize, capacity as usize, count),
        _ => measure::<u32>(&arguments[1], group as usize, capacity as usize, count),
    }
}
