// SPDX-License-Identifier: Apache-2.0 OR MIT

pub(crate) mod enforce;
pub(crate) mod rate;
pub(crate) mod self_paced;
