// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The paper's five programs with rayon: `join`, and its own iterators over ranges where it has them.
//! The leaves are the same object code as those of all contenders.
//!
//! `fork fib|sum|mm|scan|poly|help SIZE WORKERS`

use rayon::prelude::*;
use std::ffi::{CStr, c_char, c_int};

const LEAF_SUM: usize = 16384;
const LEAF_ROWS: usize = 8;
const LEAF_SCAN: usize = 32768;
const LEAF_POLY: usize = 64;

/// Of `c/fork_run.h`.
#[repr(C)]
struct Matrices {
    a: *const i32,
    b: *const i32,
    c: *mut i32,
    n: usize,
}

#[repr(C)]
struct Scanned {
    x: *const i32,
    out: *mut i32,
    n: usize,
    block: *mut i32,
}

#[repr(C)]
struct Polynomial {
    a: *const i64,
    out: *mut i64,
    n: usize,
}

#[repr(C)]
struct Helped {
    made: f64,
    begun: f64,
    done: c_int,
}

#[repr(C)]
struct Forked {
    fib: extern "C" fn(c_int) -> c_int,
    sum: extern "C" fn(*const i32, usize) -> i64,
    mm: extern "C" fn(&Matrices, usize, usize),
    scan: extern "C" fn(&Scanned, usize, usize, i32) -> i32,
    square: extern "C" fn(&Polynomial, usize, usize),
    help: extern "C" fn(*mut Helped),
}

unsafe extern "C" {
    fn sum_leaf(x: *const i32, n: usize) -> i64;
    fn mm_leaf(a: *const i32, b: *const i32, c: *mut i32, n: usize, from: usize, to: usize);
    fn scan_leaf(x: *const i32, out: *mut i32, n: usize, carry: i32) -> i32;
    fn poly_leaf(a: *const i64, out: *mut i64, n: usize, from: usize, to: usize);
    fn fork_run(k: &Forked, program: *const c_char, size: usize);
    fn fork_helped_begin(h: *mut Helped);
    fn fork_helped_wait(h: *mut Helped);
}

// SAFETY: what they point to outlives the calls, and no two of these write in the same place.
unsafe impl Sync for Matrices {}
unsafe impl Sync for Scanned {}
unsafe impl Sync for Polynomial {}

#[derive(Clone, Copy)]
struct Shared(*mut Helped);
// SAFETY: what both sides use of it is atomic.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl Shared {
    fn begin(self) {
        // SAFETY: it lives until both are done.
        unsafe { fork_helped_begin(self.0) }
    }
    fn wait(self) {
        // SAFETY: as above.
        unsafe { fork_helped_wait(self.0) }
    }
}

fn fib_of(n: c_int) -> c_int {
    if n < 2 {
        return n;
    }
    let (y, x) = rayon::join(|| fib_of(n - 2), || fib_of(n - 1));
    x + y
}

extern "C" fn fib(n: c_int) -> c_int {
    fib_of(n)
}

extern "C" fn sum(x: *const i32, n: usize) -> i64 {
    // SAFETY: there are n of them.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    x.par_chunks(LEAF_SUM)
        .map(|part| unsafe { sum_leaf(part.as_ptr(), part.len()) })
        .sum()
}

extern "C" fn mm(m: &Matrices, from: usize, to: usize) {
    (from / LEAF_ROWS..to.div_ceil(LEAF_ROWS))
        .into_par_iter()
        .for_each(|part| {
            let (first, end) = (part * LEAF_ROWS, ((part + 1) * LEAF_ROWS).min(to));
            // SAFETY: no other task has these rows.
            unsafe { mm_leaf(m.a, m.b, m.c, m.n, first, end) }
        });
}

impl Scanned {
    fn elements(&self, block: usize) -> usize {
        LEAF_SCAN.min(self.n - block * LEAF_SCAN)
    }
}

/// In two passes: rayon has no scan, and a join does not say which half ran.
fn add_up(s: &Scanned, from: usize, to: usize) -> i32 {
    if to - from == 1 {
        // SAFETY: no other task has this block.
        return unsafe {
            let sum = sum_leaf(s.x.add(from * LEAF_SCAN), s.elements(from)) as i32;
            *s.block.add(from) = sum;
            sum
        };
    }
    let middle = (from + to) / 2;
    let (left, right) = rayon::join(|| add_up(s, from, middle), || add_up(s, middle, to));
    left.wrapping_add(right)
}

fn scan_known(s: &Scanned, from: usize, to: usize, carry: i32) -> i32 {
    if to - from == 1 {
        let at = from * LEAF_SCAN;
        // SAFETY: no other task has this block.
        return unsafe { scan_leaf(s.x.add(at), s.out.add(at), s.elements(from), carry) };
    }
    let middle = (from + to) / 2;
    // SAFETY: the sums are there.
    let blocks = unsafe { std::slice::from_raw_parts(s.block.add(from), middle - from) };
    let before = blocks.iter().fold(carry, |sum, b| sum.wrapping_add(*b));
    let both = rayon::join(
        || scan_known(s, from, middle, carry),
        || scan_known(s, middle, to, before),
    );
    both.1
}

extern "C" fn scan(s: &Scanned, from: usize, to: usize, carry: i32) -> i32 {
    add_up(s, from, to);
    scan_known(s, from, to, carry)
}

extern "C" fn square(p: &Polynomial, from: usize, to: usize) {
    (from / LEAF_POLY..to.div_ceil(LEAF_POLY))
        .into_par_iter()
        .for_each(|part| {
            let (first, end) = (part * LEAF_POLY, ((part + 1) * LEAF_POLY).min(to));
            // SAFETY: no other task has these terms.
            unsafe { poly_leaf(p.a, p.out, p.n, first, end) }
        });
}

extern "C" fn help(h: *mut Helped) {
    let shared = Shared(h);
    rayon::join(move || shared.wait(), move || shared.begin());
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |i: usize| words.get(i).and_then(|w| w.parse::<usize>().ok());
    let (Some(program), Some(size), Some(workers)) = (words.get(1), number(2), number(3)) else {
        eprintln!("usage: fork fib|sum|mm|scan|poly|help SIZE WORKERS");
        std::process::exit(2);
    };
    let program = std::ffi::CString::new(program.as_str()).expect("no zero in a word");
    let program: &CStr = &program;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build();
    pool.expect("threads").install(|| {
        fib_of(20);
        let k = Forked {
            fib,
            sum,
            mm,
            scan,
            square,
            help,
        };
        // SAFETY: the program's name and the functions live long enough.
        unsafe { fork_run(&k, program.as_ptr(), size) }
    });
}
