// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada run --play` with a viewer of the test.

use crate::common;
use crate::common::{Place, Run};

/// Shows three pictures of 4 by 2.
const SHOWER: (&str, &str) = (
    "src/p/Shower.cal",
    "package p;
import std.video.Display.*;
actor Shower () ==> :
  uint(size=8) y[8];
  uint(size=8) c[2];
  int shown := 0;
  action ==>
  guard shown < 3
  do
    foreach int i in 0 .. 7 do y[i] := 65 + shown; end
    c[0] := 48; c[1] := 49;
    displayYUV_displayPicture(y, c, c, 4, 2);
    println(\"shown\");
    shown := shown + 1;
  end
end
",
);

const MUTE: (&str, &str) = (
    "src/p/Mute.cal",
    "package p;
actor Mute () ==> :
  bool told := false;
  action ==> guard not told do told := true; println(\"told\"); end
end
",
);

fn place(viewers: &[(&str, &str)]) -> Place {
    let place = Place::new(&[SHOWER, MUTE]);
    for (name, script) in viewers {
        std::fs::create_dir_all(place.path("bin")).unwrap();
        let file = place.path(&format!("bin/{name}"));
        common::write_script(file, &format!("#!/bin/sh\n{script}\n"));
    }
    place
}

/// Only the test's own viewers are found, and what a script and a C compiler need.
fn play(place: &Place, args: &[&str]) -> Run {
    let tools = place.path("tools");
    std::fs::create_dir_all(&tools).unwrap();
    for tool in ["cc", "as", "ld", "cat", "head", "sh"] {
        let found = ["/usr/bin", "/bin"].map(|f| std::path::Path::new(f).join(tool));
        let found = found.into_iter().find(|f| f.exists()).unwrap();
        let _ = std::os::unix::fs::symlink(found, tools.join(tool));
    }
    let path = std::env::join_paths([place.path("bin"), tools]).unwrap();
    let mut command = place.command(&[&["run"], args].concat());
    Run::new(command.env("PATH", path).output().unwrap())
}

const VIDEO: &str = "YUV4MPEG2 W4 H2 F25:1 Ip A1:1 C420jpeg\nFRAME\nAAAAAAAA0101FRAME\n\
                     BBBBBBBB0101FRAME\nCCCCCCCC0101";

#[test]
fn a_viewer_shows_what_the_network_writes() {
    let saves = "echo \"$0 $*\" > words\ncat > seen";
    for name in ["ffplay", "mpv"] {
        let place = place(&[(name, saves)]);
        let run = play(&place, &["src/p/Shower.cal", "--play"]);
        // What the network prints is no part of the video.
        assert_eq!(run.succeeds().out, "shown\nshown\nshown\n");
        let read = |name| std::fs::read_to_string(place.path(name)).unwrap();
        assert_eq!(read("seen"), VIDEO);
        let words = read("words");
        assert!(words.contains(name) && words.contains("p.Shower") && words.contains(" -"));
    }
}

#[test]
fn a_window_may_be_closed_and_a_viewer_may_fail() {
    let closed = place(&[("ffplay", "head -c 60 > seen")]);
    play(&closed, &["src/p/Shower.cal", "--play"]).succeeds();
    let failing = place(&[("mpv", "echo no screen >&2\nexit 3")]);
    let run = play(&failing, &["src/p/Shower.cal", "--play"]);
    run.refuses(1, &["--play: mpv fails", "no screen", "--out FILE.y4m"]);
}

#[test]
fn without_a_viewer_or_pictures_nothing_is_played() {
    let none = place(&[]);
    play(&none, &["src/p/Shower.cal", "--play"]).refuses(1, &["no viewer", "install ffplay"]);
    let mute = place(&[("ffplay", "cat > seen")]);
    play(&mute, &["src/p/Mute.cal", "--play"]).refuses(1, &["nothing in this network writes"]);
    assert!(!mute.exists("seen"));
    play(&mute, &["src/p/Shower.cal", "--play", "--out", "x.y4m"]).refuses(2, &["--play"]);
}
