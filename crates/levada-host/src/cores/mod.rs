// SPDX-License-Identifier: Apache-2.0 OR MIT

pub(crate) mod other_load;
pub(crate) mod reserve;
