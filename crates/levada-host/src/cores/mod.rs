// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Core reservations, and the capacity that other processes leave.

pub(crate) mod other_load;
pub(crate) mod reserve;
