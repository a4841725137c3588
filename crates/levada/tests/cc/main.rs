// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada cc` and `levada translate`: C programs with forks.

#[path = "../common/mod.rs"]
mod common;

mod cal_natives;
mod driver;
mod forms;
mod random_c;
mod source_text;
mod support;
