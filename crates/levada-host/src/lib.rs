// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: many applications in one process, on one runtime, under one map.
//!
//! A [`Host`] owns a runtime, and a thread that watches: it takes samples of all applications, lets the
//! mapper place all their actors as one graph, and notices what has ended. `levada run` is a host with
//! one application. [`events`] tells what happens in it; [`api`] speaks of it over a socket, and [`client`]
//! to it.

mod admission;
mod admitting;
pub mod api;
mod asks;
mod beside;
pub mod client;
mod control;
mod cores;
mod deadline;
mod emptied;
pub mod events;
pub mod files;
pub mod forked;
mod graph;
mod halves;
mod host;
mod hosted;
mod journal;
mod judged;
mod keep;
pub mod last_words;
mod lately;
mod lineage;
mod load;
mod lock;
mod mapping;
mod measured;
mod next;
mod outcome;
mod own_pace;
mod pace;
pub mod placement;
mod process;
mod refusal;
mod replace;
mod resting;
mod seating;
mod seats;
mod started;
mod starved;
pub mod state;
mod stdio;
mod stop;
mod stuck;
mod table;
pub mod text_file;
mod told;
mod traffic;
mod units;
mod watch;
pub mod weights;

pub use admission::{Admission, Promise, Verdict};
pub use events::{Event, Events, What};
pub use host::{Host, HostOptions};
pub use hosted::{Hosted, Seen, State};
pub use journal::signal_name;
pub use keep::Limits;
pub use load::{Load, check_name};
pub use outcome::{Ended, Outcome, action_of};
pub use process::{has_ended, is_stopped, peer};
pub use refusal::{Kind, Refusal};
pub use started::remember;
