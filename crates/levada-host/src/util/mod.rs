// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that know nothing of applications.

pub mod at_fork;
pub(crate) mod c_stdio;
pub(crate) mod deadline;
pub mod fd_limit;
pub(crate) mod file_lock;
pub(crate) mod launch_env;
pub(crate) mod lock;
pub(crate) mod process;
pub mod text_file;
