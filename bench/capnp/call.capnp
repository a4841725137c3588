# SPDX-License-Identifier: Apache-2.0 OR MIT
@0xd1f0c4a9a7e3b215;
interface Adder {
  addOne @0 (value :UInt64) -> (value :UInt64);
}
