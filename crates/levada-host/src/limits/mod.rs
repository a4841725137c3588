// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of applications: enforcement, and measured rates.

pub(crate) mod enforce;
pub(crate) mod rate;
pub(crate) mod self_paced;
