// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of behaviour that CAL does not specify and programs rely on.

use crate::common::Place;

const TOP: &str = "src/p/Top.cal";

#[test]
fn the_count_of_a_shift_is_taken_modulo_the_width() {
    let place = Place::new(&[(
        TOP,
        "package p;
actor Top () ==> :
  uint x := 0xF0000001;
  int y := -256;
  uint(size=64) z := 0xF000000000000001;
  int n := 0;
  uint RIGHT = 0xF0000001 >> 36;
  uint(size=64) LEFT = 1 << 68;
  function right(uint a, int k) --> uint : a >> k end
  action ==> guard n < 3
  var
    int k := if n = 0 then 4 else if n = 1 then 36 else -28 end end,
    int m := if n = 0 then 4 else if n = 1 then 68 else -60 end end
  do
    n := n + 1;
    println(\"\" + right(x, k) + \" \" + (y >> k) + \" \" + (z >> m) + \" \" + (z << m) + \" \"
      + RIGHT + \" \" + LEFT);
  end
end
",
    )]);
    let row = "251658240 -16 1080863910568919040 16 251658240 16\n";
    for more in ["--no-fuse", "--unchecked"] {
        let run = place.run(&["run", TOP, more]);
        assert_eq!(run.succeeds().out, row.repeat(3));
    }
}
