// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of string concatenation: for natives, in variables, through channels, and in comparisons.

use crate::common::Place;

const SAYS: &str = "package p;
actor Says (String name) ==> String Out :
  @native procedure say(int i, String a, String b) end
  @native function length(String a) --> int end
  function doubled(String s) --> String : s + s end
  function numbered(int x) --> String : if x > 1 then \"many \" + x else \"one\" end end
  procedure tell(String s) begin println(s); end
  int n := 0;
  float f := 1.5;
  uint(size=64) big := 0xffffffffffffffff;
  List(type: String, size=2) last;
  action ==> Out:[\"<\" + name + n + \">\", last[1]]
  guard n < 20, length(\"abc\" + n) >= 4, name + n != \"a12\"
  var String s = doubled(\"x\" + n)
  do
    last[n mod 2] := s + \"!\" + last[(n + 1) mod 2];
    if n < 2 then
      say(n, \"n \" + n + \", \" + (n = 1) + \";\", \" %d \" + f + \" \" + big + -n + last[n]);
      say(length(\"ab\" + n + \"c\" + length(\"xy\" + n)), \"plain\", \"\" + s);
      tell(\"told \" + numbered(n + 1));
    else
      last[0] := \"\";
      last[1] := \"again \" + n mod 3;
    end
    n := n + 1;
  end
end
";

const SAY: &str = "#include <stdint.h>
#include <stdio.h>
#include <string.h>
void say(int32_t i, const char *a, const char *b);
int32_t length(const char *a);
void say(int32_t i, const char *a, const char *b) { printf(\"%d: %s%s\\n\", i, a, b); }
int32_t length(const char *a) { return (int32_t)strlen(a); }
";

const HEARS: &str = "package p;
actor Hears () String In ==> :
  action In:[a, b] ==> do println(\"heard \" + a + \" and \" + b); end
end
";

const TOP: &str = "<XDF name=\"Top\">
<Instance id=\"says\"><Class name=\"p.Says\"/><Parameter name=\"name\">
<Expr kind=\"Literal\" literal-kind=\"String\" value=\"a\"/></Parameter></Instance>
<Instance id=\"hears\"><Class name=\"p.Hears\"/></Instance>
<Connection src=\"says\" src-port=\"Out\" dst=\"hears\" dst-port=\"In\"/>
</XDF>
";

#[test]
fn strings_are_put_together() {
    let place = Place::new(&[
        ("src/p/Says.cal", SAYS),
        ("src/p/Hears.cal", HEARS),
        ("src/p/Top.xdf", TOP),
        ("natives/say.c", SAY),
    ]);
    let said = "0: n 0, false; %d 1.500000 184467440737095516150x0x0!
5: plainx0x0
told one
1: n 1, true; %d 1.500000 18446744073709551615-1x1x1!x0x0!
5: plainx1x1
told many 2
";
    let mut heard: Vec<_> = (2..12)
        .map(|n| format!("heard <a{}> and again {}", n + 1, n % 3))
        .collect();
    heard.splice(
        0..0,
        [
            "heard <a1> and ".to_string(),
            "heard <a2> and x1x1!x0x0!".to_string(),
        ],
    );
    for workers in ["1", "2"] {
        let run = place.run(&["run", "src/p/Top.xdf", "--workers", workers]);
        let out = &run.succeeds().out;
        let is_heard = |row: &&str| row.starts_with("heard");
        let others: Vec<_> = out.lines().filter(|row| !is_heard(row)).collect();
        assert_eq!(others, said.lines().collect::<Vec<_>>());
        assert_eq!(out.lines().filter(is_heard).collect::<Vec<_>>(), heard);
    }
}

/// Many, each of which stays what it is.
#[test]
fn concatenated_strings_keep_their_contents() {
    let text = "package p;
actor Top () ==> :
  List(type: String, size=5000) kept;
  uint n := 0;
  uint good := 0;
  action ==>
  guard n < 5000
  do
    kept[n] := \"number \" + n mod 1500;
    n := n + 1;
  end
  action ==>
  guard n = 5000
  do
    foreach int i in 0 .. 4999 do
      if kept[i] = \"number \" + i mod 1500 then good := good + 1; end
    end
    println(\"good \" + good);
    n := n + 1;
  end
end
";
    let place = Place::new(&[("src/p/Top.cal", text)]);
    let run = place.run(&["run", "src/p/Top.cal"]);
    assert_eq!(run.succeeds().out, "good 5000\n");
}

/// A string that was never set is empty.
#[test]
fn strings_begin_empty() {
    let text = "package p;
actor Gives () ==> String Out :
  List(type: String, size=3) state;
  List(type: String, size=3) begun := [\"x\"];
  int n := 0;
  action ==> Out:[l] repeat 3
  guard n < 2
  var List(type: String, size=3) l, List(type: String, size=2) m
  do
    if n = 1 then l[1] := \"set\"; m[0] := \"m\"; end
    n := n + 1;
    println(state[n] + \"/\" + begun[0] + \"/\" + begun[n] + \"/\" + m[0] + m[1] + \"/\");
  end
end
";
    let takes = "package p;
actor Takes () String In ==> :
  action In:[a] repeat 3 ==> do println(\"<\" + a[0] + a[1] + a[2] + \">\"); end
end
";
    let top = TOP
        .replace("p.Says", "p.Gives")
        .replace("p.Hears", "p.Takes");
    let parameter = top.find("<Parameter").unwrap()..top.find("</Instance>").unwrap();
    let top = top.replace(&top[parameter], "").replace("Hears", "Takes");
    let place = Place::new(&[
        ("src/p/Gives.cal", text),
        ("src/p/Takes.cal", takes),
        ("src/p/Top.xdf", &top),
    ]);
    let run = place.run(&["run", "src/p/Top.xdf", "--workers", "1"]);
    assert_eq!(run.succeeds().out, "/x///\n/x//m/\n<>\n<set>\n");
}
