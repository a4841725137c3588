// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of the channel (levada/channel.h), by its guarantees C1 to C4.

use crate::check::{Barrier, Check, check, spawn};
use crate::harness;
use crate::library::{Library, Owned};
use crate::shadow;
use loom::sync::atomic::{AtomicU32, Ordering};
use std::ffi::c_void;
use std::rc::Rc;

harness! {
    /// c/channel.c
    Calls {
        fn status_ended() -> u32;
        fn status_fault() -> u32;
        fn status_deadlock() -> u32;
        fn make(slots: u32, capacity: u32, consumers: u32, start: u32, fenced: u32) -> *mut c_void;
        fn free(m: *mut c_void);
        fn header(m: *mut c_void) -> *mut c_void;
        fn header_size(m: *mut c_void) -> usize;
        fn elements_at(m: *mut c_void) -> *mut c_void;
        fn elements_size(m: *mut c_void) -> usize;
        fn producer_handle(m: *mut c_void) -> *mut c_void;
        fn producer_handle_size() -> usize;
        fn consumer_handle(m: *mut c_void, i: u32) -> *mut c_void;
        fn consumer_handle_size() -> usize;
        fn producer_threshold(m: *mut c_void, n: u32);
        fn consumer_threshold(m: *mut c_void, i: u32, n: u32);
        fn room(m: *mut c_void, want: u32) -> u32;
        fn put(m: *mut c_void, v: u32);
        fn push(m: *mut c_void);
        fn flush(m: *mut c_void);
        fn end(m: *mut c_void, why: u32);
        fn consumers_closed(m: *mut c_void) -> u32;
        fn producer_sleeps(m: *mut c_void, want: u32) -> u32;
        fn producer_disarm(m: *mut c_void);
        fn elements(m: *mut c_void, i: u32, want: u32) -> u32;
        fn get(m: *mut c_void, i: u32) -> u32;
        fn pop(m: *mut c_void, i: u32);
        fn release(m: *mut c_void, i: u32);
        fn ended(m: *mut c_void, i: u32) -> u32;
        fn leave(m: *mut c_void, i: u32);
        fn consumer_sleeps(m: *mut c_void, i: u32, need: u32) -> u32;
        fn consumer_disarm(m: *mut c_void, i: u32);
    }
}

/// LVD_OK
const OK: u32 = 0;

/// A channel and its handles, freed with the last thread that uses it.
#[derive(Clone)]
struct Channel(Rc<Owned<Calls>>);

struct Shape {
    capacity: u32,
    consumers: u32,
    start: u32,
}

impl Shape {
    const fn of(capacity: u32) -> Shape {
        Shape {
            capacity,
            consumers: 1,
            start: 0,
        }
    }
}

impl Channel {
    /// Called first in an execution, which has `threads` threads.
    fn new(library: &Library, barrier: Barrier, threads: usize, shape: Shape) -> Channel {
        shadow::begin(threads, 1 + shape.consumers as usize, barrier);
        let c = Calls::of(library);
        let fenced = (barrier == Barrier::Fences) as u32;
        let slots = shape.capacity.next_power_of_two();
        let m = c.make(slots, shape.capacity, shape.consumers, shape.start, fenced);
        let channel = Channel(Owned::new(c, m, Calls::free));
        // Safety: both live as long as the channel.
        unsafe {
            shadow::region("channel", c.header(m), c.header_size(m));
            shadow::region("elements", c.elements_at(m), c.elements_size(m));
        }
        channel
    }

    fn c(&self) -> (Calls, *mut c_void) {
        (self.0.c, self.0.m)
    }

    fn thresholds(self, producer: u32, consumer: u32) -> Channel {
        let (c, m) = self.c();
        c.producer_threshold(m, producer);
        c.consumer_threshold(m, 0, consumer);
        self
    }

    // ---- the producer ----

    /// Puts a value and pushes; polls for room.
    fn push_polling(&self, v: u32) {
        let (c, m) = self.c();
        while c.room(m, 1) < 1 {
            loom::thread::yield_now();
        }
        c.put(m, v);
        c.push(m);
    }

    /// Sleeps for room, as a worker does it: flush, arm, settle, sleep.
    fn wait_room(&self, want: u32) {
        let (c, m) = self.c();
        while c.room(m, want) < want {
            c.flush(m);
            if c.producer_sleeps(m, want) != 0 {
                shadow::sleep(0);
            }
            c.producer_disarm(m);
        }
    }

    /// Puts where there is room for certain.
    fn put(&self, v: u32) {
        let (c, m) = self.c();
        assert!(c.room(m, 1) >= 1, "no room");
        c.put(m, v);
    }

    fn push(&self, v: u32) {
        let (c, m) = self.c();
        self.put(v);
        c.push(m);
    }

    fn flush(&self) {
        let (c, m) = self.c();
        c.flush(m);
    }

    fn end(&self, why: u32) {
        let (c, m) = self.c();
        c.end(m, why);
    }

    // ---- consumer `i` ----

    fn pop_polling(&self, i: u32) -> u32 {
        let (c, m) = self.c();
        while c.elements(m, i, 1) < 1 {
            loom::thread::yield_now();
        }
        let v = c.get(m, i);
        c.pop(m, i);
        v
    }

    /// Sleeps for elements, as a worker does it: release, arm, settle, sleep. Not OK: the stream has
    /// ended before there was one.
    fn wait_elements(&self, i: u32, need: u32) -> u32 {
        let (c, m) = self.c();
        loop {
            if c.elements(m, i, need) >= need {
                return OK;
            }
            let status = c.ended(m, i);
            if status != OK {
                return status;
            }
            c.release(m, i);
            if c.consumer_sleeps(m, i, need) != 0 {
                shadow::sleep(1 + i as usize);
            }
            c.consumer_disarm(m, i);
        }
    }

    fn get(&self, i: u32) -> u32 {
        let (c, m) = self.c();
        c.get(m, i)
    }

    fn pop(&self, i: u32) -> u32 {
        let (c, m) = self.c();
        let v = c.get(m, i);
        c.pop(m, i);
        v
    }

    fn watch_handles(&self) {
        let (c, m) = self.c();
        // Safety: they live as long as the channel.
        unsafe {
            let (p, size) = (c.producer_handle(m), c.producer_handle_size());
            shadow::region("producer", p, size);
            let (p, size) = (c.consumer_handle(m, 0), c.consumer_handle_size());
            shadow::region("consumer", p, size);
        }
    }
}

/// Both sides poll; `n` elements through a channel of `shape`.
fn polling(library: &Library, barrier: Barrier, shape: Shape, n: u32) {
    let channel = Channel::new(library, barrier, 2, shape);
    let other = channel.clone();
    let producer = spawn(move || {
        for v in 0..n {
            other.push_polling(100 + v);
        }
    });
    for v in 0..n {
        assert_eq!(channel.pop_polling(0), 100 + v, "an element's value");
    }
    producer.join().expect("the producer");
}

fn publish(library: &Library, barrier: Barrier) {
    polling(library, barrier, Shape::of(2), 2);
}
fn reuse(library: &Library, barrier: Barrier) {
    polling(library, barrier, Shape::of(1), 3);
}
fn reuse_two(library: &Library, barrier: Barrier) {
    polling(library, barrier, Shape::of(2), 4);
}
fn wrap(library: &Library, barrier: Barrier) {
    let shape = Shape {
        start: u32::MAX,
        ..Shape::of(2)
    };
    polling(library, barrier, shape, 3);
}

/// The consumer sleeps; the producer has room for all.
fn consumer_wakes(library: &Library, barrier: Barrier, start: u32, n: u32) {
    let shape = Shape {
        start,
        ..Shape::of(n)
    };
    let channel = Channel::new(library, barrier, 2, shape);
    let other = channel.clone();
    let producer = spawn(move || {
        for v in 0..n {
            other.push(v);
        }
    });
    for v in 0..n {
        assert_eq!(channel.wait_elements(0, 1), OK);
        assert_eq!(channel.pop(0), v, "an element's value");
    }
    producer.join().expect("the producer");
}
fn wake_one(library: &Library, barrier: Barrier) {
    consumer_wakes(library, barrier, 0, 1);
}
fn wake_two(library: &Library, barrier: Barrier) {
    consumer_wakes(library, barrier, 0, 2);
}
fn wake_wrap(library: &Library, barrier: Barrier) {
    consumer_wakes(library, barrier, u32::MAX, 2);
}

/// The consumer needs one element and has a threshold of two; the push that reaches it wakes.
fn threshold_reached(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2)).thresholds(1, 2);
    let other = channel.clone();
    let producer = spawn(move || {
        other.push(7);
        other.push(8);
    });
    assert_eq!(channel.wait_elements(0, 1), OK);
    assert_eq!(channel.get(0), 7);
    producer.join().expect("the producer");
}

/// Fewer than the threshold come, and the producer goes idle: the flush wakes. `late`: the flush
/// finds the element put and not yet pushed.
fn threshold_flushed(library: &Library, barrier: Barrier, late: bool) {
    let channel = Channel::new(library, barrier, 2, Shape::of(4)).thresholds(1, 3);
    let other = channel.clone();
    let producer = spawn(move || {
        if late {
            other.put(7);
        } else {
            other.push(7);
        }
        other.flush();
    });
    assert_eq!(channel.wait_elements(0, 1), OK);
    assert_eq!(channel.pop(0), 7);
    producer.join().expect("the producer");
}
fn flush_pushed(library: &Library, barrier: Barrier) {
    threshold_flushed(library, barrier, false);
}
fn flush_put(library: &Library, barrier: Barrier) {
    threshold_flushed(library, barrier, true);
}

/// The threshold is above what the channel holds: the full channel wakes.
fn threshold_capped(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(1)).thresholds(9, 9);
    both_sleep(channel, 2, true);
}

/// A consumer that asked for two, then only for one: the mark moved back.
fn mark_back(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2));
    let other = channel.clone();
    let producer = spawn(move || other.push(7));
    let (c, m) = channel.c();
    c.consumer_sleeps(m, 0, 2); // something else came meanwhile: it does not sleep
    c.consumer_disarm(m, 0);
    assert_eq!(channel.wait_elements(0, 1), OK);
    assert_eq!(channel.pop(0), 7);
    producer.join().expect("the producer");
}

/// The same of the producer.
fn room_mark_back(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2));
    channel.push(1);
    channel.push(2);
    let other = channel.clone();
    let consumer = spawn(move || {
        assert_eq!(other.wait_elements(0, 1), OK);
        assert_eq!(other.pop(0), 1);
    });
    let (c, m) = channel.c();
    c.producer_sleeps(m, 2);
    c.producer_disarm(m);
    channel.wait_room(1);
    channel.push(3);
    consumer.join().expect("the consumer");
}

/// The producer sleeps for room; the consumer pops (or releases what it got) and ends.
fn producer_wakes(library: &Library, barrier: Barrier, late: bool) {
    let channel = Channel::new(library, barrier, 2, Shape::of(1));
    channel.push(1);
    let other = channel.clone();
    let consumer = spawn(move || {
        let (c, m) = other.c();
        assert_eq!(c.elements(m, 0, 1), 1);
        assert_eq!(c.get(m, 0), 1);
        if late {
            c.release(m, 0);
        } else {
            c.pop(m, 0);
        }
    });
    channel.wait_room(1);
    channel.push(2);
    consumer.join().expect("the consumer");
}
fn room_pop(library: &Library, barrier: Barrier) {
    producer_wakes(library, barrier, false);
}
fn room_release(library: &Library, barrier: Barrier) {
    producer_wakes(library, barrier, true);
}

/// A producer with a threshold of two: one pop does not wake it, the consumer's release does.
fn room_threshold(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2)).thresholds(2, 1);
    channel.push(1);
    channel.push(2);
    let other = channel.clone();
    let consumer = spawn(move || {
        let (c, m) = other.c();
        assert_eq!(c.elements(m, 0, 1), 2);
        assert_eq!(other.pop(0), 1);
        c.release(m, 0);
    });
    channel.wait_room(1);
    channel.push(3);
    consumer.join().expect("the consumer");
}

/// Both sides sleep whenever they cannot go on; `n` elements. `keep`: the consumer gives no space
/// back before it parks.
fn both_sleep(channel: Channel, n: u32, keep: bool) {
    let other = channel.clone();
    let producer = spawn(move || {
        for v in 0..n {
            other.wait_room(1);
            if keep {
                other.put(v);
            } else {
                other.push(v);
            }
        }
        other.flush();
    });
    for v in 0..n {
        assert_eq!(channel.wait_elements(0, 1), OK);
        let got = if keep { channel.get(0) } else { channel.pop(0) };
        assert_eq!(got, v, "an element's value");
    }
    producer.join().expect("the producer");
}
fn both_one(library: &Library, barrier: Barrier) {
    both_sleep(Channel::new(library, barrier, 2, Shape::of(1)), 2, false);
}
fn both_two(library: &Library, barrier: Barrier) {
    let shape = Shape {
        start: u32::MAX - 1,
        ..Shape::of(2)
    };
    both_sleep(Channel::new(library, barrier, 2, shape), 3, false);
}
fn both_parking(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2)).thresholds(2, 2);
    both_sleep(channel, 3, true);
}

/// The stream ends after two elements, the second not pushed before; the consumer polls or sleeps.
fn end_after(library: &Library, barrier: Barrier, fault: bool, sleeps: bool) {
    let channel = Channel::new(library, barrier, 2, Shape::of(2));
    let (c, m) = channel.c();
    let (why, seen) = if fault {
        (c.status_fault(), c.status_fault())
    } else {
        (OK, c.status_ended())
    };
    let other = channel.clone();
    let producer = spawn(move || {
        other.push(1);
        other.put(2);
        other.end(why);
    });
    let mut got = vec![];
    let status = loop {
        let status = if sleeps {
            channel.wait_elements(0, 1)
        } else {
            c.ended(m, 0)
        };
        if status != OK {
            break status;
        }
        if c.elements(m, 0, 1) >= 1 {
            got.push(channel.pop(0));
        } else {
            loom::thread::yield_now();
        }
    };
    assert_eq!(got, [1, 2], "what was put before the end");
    assert_eq!(status, seen, "how it ended");
    producer.join().expect("the producer");
}
fn end_polling(library: &Library, barrier: Barrier) {
    end_after(library, barrier, false, false);
}
fn end_asleep(library: &Library, barrier: Barrier) {
    end_after(library, barrier, false, true);
}
fn error_asleep(library: &Library, barrier: Barrier) {
    end_after(library, barrier, true, true);
}

/// An end with nothing before it.
fn end_empty(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(1));
    let other = channel.clone();
    let producer = spawn(move || other.end(OK));
    assert_eq!(channel.wait_elements(0, 1), channel.0.c.status_ended());
    producer.join().expect("the producer");
}

/// Two consumers, each of which sees everything; all sleep.
fn broadcast(library: &Library, barrier: Barrier) {
    let shape = Shape {
        consumers: 2,
        ..Shape::of(1)
    };
    let channel = Channel::new(library, barrier, 3, shape);
    let consumers = [0, 1].map(|i| {
        let channel = channel.clone();
        spawn(move || {
            for v in 0..2 {
                assert_eq!(channel.wait_elements(i, 1), OK);
                assert_eq!(channel.pop(i), v, "an element's value");
            }
        })
    });
    for v in 0..2 {
        channel.wait_room(1);
        channel.push(v);
    }
    for consumer in consumers {
        consumer.join().expect("a consumer");
    }
}

/// The only consumer reads one element, does not pop it, and leaves: the producer is not held up,
/// writes over what was read, and learns that no consumer is left.
fn leave(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 2, Shape::of(1));
    channel.push(1);
    let other = channel.clone();
    let consumer = spawn(move || {
        let (c, m) = other.c();
        assert_eq!(c.elements(m, 0, 1), 1);
        assert_eq!(c.get(m, 0), 1);
        c.leave(m, 0);
    });
    channel.wait_room(1);
    channel.push(2);
    let (c, m) = channel.c();
    assert_eq!(c.consumers_closed(m), 1);
    consumer.join().expect("the consumer");
}

/// One of two consumers leaves without having read anything; the other gets everything.
fn leave_one(library: &Library, barrier: Barrier) {
    let shape = Shape {
        consumers: 2,
        ..Shape::of(1)
    };
    let channel = Channel::new(library, barrier, 3, shape);
    let (stays, leaves) = (channel.clone(), channel.clone());
    let first = spawn(move || {
        for v in 0..2 {
            assert_eq!(stays.wait_elements(0, 1), OK);
            assert_eq!(stays.pop(0), v);
        }
    });
    let second = spawn(move || {
        let (c, m) = leaves.c();
        c.leave(m, 1);
    });
    for v in 0..2 {
        channel.wait_room(1);
        channel.push(v);
    }
    first.join().expect("the one that stays");
    second.join().expect("the one that leaves");
}

/// The producer's handle goes to another thread, by release and acquire as the inboxes do it, while
/// the consumer sleeps and wakes.
fn producer_moves(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 3, Shape::of(1));
    channel.watch_handles();
    let hand = Rc::new(AtomicU32::new(0));
    let (first, second, given) = (channel.clone(), channel.clone(), hand.clone());
    let one = spawn(move || {
        first.push(0);
        given.store(1, Ordering::Release);
    });
    let two = spawn(move || {
        while hand.load(Ordering::Acquire) == 0 {
            loom::thread::yield_now();
        }
        second.wait_room(1);
        second.push(1);
    });
    for v in 0..2 {
        assert_eq!(channel.wait_elements(0, 1), OK);
        assert_eq!(channel.pop(0), v);
    }
    one.join().expect("the first worker");
    two.join().expect("the second worker");
}

/// A consumer arms on one worker, and sleeps and goes on on another, while the producer pushes.
fn consumer_moves(library: &Library, barrier: Barrier) {
    let channel = Channel::new(library, barrier, 3, Shape::of(1));
    channel.watch_handles();
    let hand = Rc::new(AtomicU32::new(0));
    let (first, second, given) = (channel.clone(), channel.clone(), hand.clone());
    let one = spawn(move || {
        assert_eq!(first.wait_elements(0, 1), OK);
        assert_eq!(first.get(0), 0);
        given.store(1, Ordering::Release);
    });
    let two = spawn(move || {
        while hand.load(Ordering::Acquire) == 0 {
            loom::thread::yield_now();
        }
        assert_eq!(second.wait_elements(0, 1), OK);
        assert_eq!(second.pop(0), 1);
    });
    for v in 0..2 {
        channel.wait_room(1);
        channel.push(v);
    }
    one.join().expect("the first worker");
    two.join().expect("the second worker");
}

const FENCES: Barrier = Barrier::Fences;
const CORES: Barrier = Barrier::Asymmetric;

#[rustfmt::skip] // a table
pub const CHECKS: &[Check] = &[
    check("publish", "C1", FENCES, None, 70, publish),
    check("reuse, capacity 1", "C1 C2", FENCES, None, 18748, reuse),
    check("reuse, capacity 2", "C1 C2", FENCES, Some(3), 3576, reuse_two),
    check("cursors pass 2^32", "C1 C2", FENCES, Some(3), 982, wrap),
    check("cursors pass 2^32, deep", "C1 C2", FENCES, None, 9854, wrap).soak(),
    check("consumer wakes", "C3", FENCES, None, 447, wake_one),
    check("consumer wakes", "C3", CORES, None, 1182, wake_one),
    check("consumer wakes twice", "C3", FENCES, Some(3), 4448, wake_two),
    check("consumer wakes twice", "C3", CORES, Some(2), 2233, wake_two),
    check("consumer wakes twice, deep", "C3", CORES, Some(3), 21187, wake_two).soak(),
    check("marks pass 2^32", "C3", FENCES, Some(3), 4448, wake_wrap),
    check("threshold reached", "C3", FENCES, Some(3), 497, threshold_reached),
    check("threshold reached", "C3", CORES, Some(3), 1064, threshold_reached),
    check("flush of pushed", "C3", FENCES, None, 2291, flush_pushed),
    check("flush of pushed", "C3", CORES, None, 11396, flush_pushed),
    check("flush of put", "C3", FENCES, None, 1130, flush_put),
    check("flush of put", "C3", CORES, None, 2943, flush_put),
    check("threshold capped", "C3", FENCES, Some(2), 1519, threshold_capped),
    check("threshold capped, deep", "C3", FENCES, Some(3), 19882, threshold_capped).soak(),
    check("mark moves back", "C3", FENCES, Some(3), 534, mark_back),
    check("mark moves back", "C3", CORES, Some(3), 1898, mark_back),
    check("producer wakes, pop", "C3", FENCES, None, 447, room_pop),
    check("producer wakes, pop", "C3", CORES, None, 1182, room_pop),
    check("producer wakes, release", "C3", FENCES, None, 447, room_release),
    check("producer wakes, release", "C3", CORES, None, 1182, room_release),
    check("producer's threshold", "C3", FENCES, Some(3), 460, room_threshold),
    check("producer's mark back", "C3", FENCES, Some(3), 478, room_mark_back),
    check("producer's mark back", "C3", CORES, Some(3), 1730, room_mark_back),
    check("both sleep, capacity 1", "C1-C3", FENCES, Some(2), 6049, both_one),
    check("both sleep, capacity 1", "C1-C3", CORES, Some(1), 220, both_one),
    check("both sleep, capacity 1, deep", "C1-C3", FENCES, Some(3), 127895, both_one).soak(),
    check("both sleep, capacity 1, deep", "C1-C3", CORES, Some(2), 33083, both_one).soak(),
    check("both sleep, capacity 2", "C1-C3", FENCES, Some(1), 654, both_two),
    check("both sleep, capacity 2, deep", "C1-C3", FENCES, Some(2), 33557, both_two).soak(),
    check("both park with thresholds", "C1-C3", FENCES, Some(2), 1880, both_parking),
    check("end, polling", "C4", FENCES, None, 702, end_polling),
    check("end, asleep", "C3 C4", FENCES, Some(3), 6628, end_asleep),
    check("end, asleep", "C3 C4", CORES, Some(2), 2276, end_asleep),
    check("end, asleep, deep", "C3 C4", CORES, Some(3), 22551, end_asleep).soak(),
    check("end of nothing", "C3 C4", FENCES, None, 965, end_empty),
    check("end of nothing", "C3 C4", CORES, None, 2067, end_empty),
    check("error, asleep", "C3 C4", FENCES, Some(2), 613, error_asleep),
    check("consumer leaves", "C2 C3", FENCES, None, 83, leave),
    check("consumer leaves", "C2 C3", CORES, None, 214, leave),
    check("one of two leaves", "C2 C3", FENCES, Some(1), 910, leave_one),
    check("one of two leaves, deep", "C2 C3", FENCES, Some(2), 34853, leave_one).soak(),
    check("two consumers", "C1-C3", FENCES, Some(1), 3440, broadcast),
    check("producer moves", "C1-C3", FENCES, Some(1), 476, producer_moves),
    check("producer moves, deep", "C1-C3", FENCES, Some(2), 21776, producer_moves).soak(),
    check("consumer moves", "C1-C3", FENCES, Some(1), 188, consumer_moves),
    check("consumer moves, deep", "C1-C3", FENCES, Some(2), 13089, consumer_moves).soak(),
    check("consumer moves", "C1-C3", CORES, Some(1), 446, consumer_moves),
];
