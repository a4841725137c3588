// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the units std.* that applications for Orcc use: source, display, comparison.

use crate::common;
use crate::common::{Place, network};

/// Gives the bytes of the input, as often as it is asked to.
const READER: (&str, &str) = (
    "src/p/Reader.cal",
    "package p;
import std.stdio.Source.*;
actor Reader () ==> uint(size=8) Out :
  uint sent := 0;
  initialize ==> do source_init(); end
  start: action ==>
  guard source_sizeOfFile() > 0, not source_isMaxLoopsReached()
  do sent := 0; end
  give: action ==> Out:[source_readByte()]
  guard sent < source_sizeOfFile()
  do sent := sent + 1; end
  done: action ==>
  do source_decrementNbLoops(); source_rewind(); end
  schedule fsm ready :
    ready (start) --> reading;
    reading (give) --> reading;
    reading (done) --> ready;
  end
  priority give > done; end
end
",
);

/// Has no end of its own.
const ENDLESS: (&str, &str) = (
    "src/p/Endless.cal",
    "package p;
import std.stdio.Source.*;
actor Endless () ==> uint(size=8) Out :
  initialize ==> do source_init(); end
  action ==> Out:[source_readByte()] end
end
",
);

/// Shows pictures of 4 by 2, and ends the application when it thinks that it should.
const SHOWER: (&str, &str) = (
    "src/p/Shower.cal",
    "package p;
import std.stdio.Source.*;
import std.video.Display.*;
actor Shower () uint(size=8) In ==> :
  uint(size=8) y[MAX_WIDTH * MAX_HEIGHT];
  uint(size=8) u[MAX_WIDTH * MAX_HEIGHT / 4];
  uint(size=8) v[MAX_WIDTH * MAX_HEIGHT / 4];
  int shown := 0;
  bool ended := false;
  initialize ==> do displayYUV_init(); compareYUV_init(); fpsPrintInit(); end
  action ==>
  guard not ended, source_isMaxLoopsReached() or shown = displayYUV_getNbFrames()
  do ended := true; source_exit(0); end
  show: action In:[p] repeat 12 ==>
  do
    foreach int i in 0 .. 7 do y[i] := p[i]; end
    foreach int i in 0 .. 1 do u[i] := p[8 + i]; v[i] := p[10 + i]; end
    if (displayYUV_getFlags() & DISP_ENABLE) != 0 then
      displayYUV_displayPicture(y, u, v, 4, 2);
    end
    compareYUV_comparePicture(y, u, v, 4, 2);
    fpsPrintNewPicDecoded();
    shown := shown + 1;
  end
end
",
);

const PICTURES: &str = "abcdefghIJKLmnopqrstUVWX0123456789+-";

fn place(reader: &str) -> Place {
    let place = Place::new(&[READER, ENDLESS, SHOWER]);
    place.write("in.bin", PICTURES);
    let top = network(
        &[("reader", reader, &[]), ("shower", "p.Shower", &[])],
        &[("reader.Out", "shower.In")],
    );
    place.write("src/p/Top.xdf", &top);
    place
}

fn run(place: &Place, more: &[&str]) -> common::Run {
    let mut args = vec!["run", "src/p/Top.xdf", "--in", "in.bin"];
    args.extend(more);
    place.run(&args)
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn the_end_of_the_input_lets_out_what_is_in_flight() {
    for reader in ["p.Reader", "p.Endless"] {
        let place = place(reader);
        for workers in ["1", "2"] {
            for _ in 0..10 {
                run(&place, &["--out", "out.yuv", "--workers", workers]).succeeds();
                assert_eq!(read(&place, "out.yuv"), PICTURES, "{reader}");
            }
        }
        run(&place, &["--out", "out.y4m", "--option", "rate=30"]).succeeds();
        let (a, b) = (&PICTURES[..12], &PICTURES[12..24]);
        let expected = format!(
            "YUV4MPEG2 W4 H2 F30:1 Ip A1:1 C420jpeg\nFRAME\n{a}FRAME\n{b}FRAME\n{}",
            &PICTURES[24..]
        );
        assert_eq!(read(&place, "out.y4m"), expected);
        let piped = run(&place, &["--out", "-"]);
        assert_eq!(piped.succeeds().out, expected.replace("F30:1", "F25:1"));
        // What is shown nowhere is counted.
        let counted = run(&place, &["--json"]);
        assert_eq!(counted.json()["progress"]["done"], 3, "{counted:?}");
    }
}

/// The input is read in once, by whichever of its readers comes first; the others wait for that.
#[test]
fn two_actors_may_read_one_input() {
    let place = Place::new(&[ENDLESS]);
    place.write(
        "src/p/Take.cal",
        "package p;\nactor Take () uint(size=8) In ==> :\n  action In:[x] ==> end\nend\n",
    );
    place.write("in.bin", &PICTURES.repeat(100_000));
    let top = network(
        &[
            ("a", "p.Endless", &[]),
            ("b", "p.Endless", &[]),
            ("c", "p.Take", &[]),
            ("d", "p.Take", &[]),
        ],
        &[("a.Out", "c.In"), ("b.Out", "d.In")],
    );
    place.write("src/p/Top.xdf", &top);
    for _ in 0..10 {
        run(&place, &["--workers", "2", "--no-fuse", "--no-balance"]).succeeds();
    }
}

/// An input without a single picture gives no output, and an actor waits for it.
#[test]
fn an_output_to_which_nothing_came_is_told() {
    let place = place("p.Endless");
    place.write("empty", "");
    let run = place.run(&["run", "src/p/Top.xdf", "--in", "empty", "--out", "none.y4m"]);
    assert!(
        run.succeeds()
            .err
            .contains("warning: nothing was written to none.y4m"),
        "{run:?}"
    );
    assert!(!place.exists("none.y4m"));
}

#[test]
fn the_input_is_given_as_often_as_it_is_asked_for() {
    let place = place("p.Reader");
    run(&place, &["--out", "out.yuv", "--option", "loops=3"]).succeeds();
    assert_eq!(read(&place, "out.yuv"), PICTURES.repeat(3));
    for bad in ["0", "many", "-1", ""] {
        let option = format!("loops={bad}");
        run(&place, &["--option", &option]).refuses(1, &["loops", "no whole number from 1 on"]);
    }
    place.write("in.bin", "");
    run(&place, &[]).succeeds();
}

#[test]
fn a_display_ends_the_application_after_so_many_pictures() {
    let place = place("p.Reader");
    // Longer than what the channel holds: the source is cut off.
    place.write("in.bin", &PICTURES.repeat(10000));
    run(&place, &["--out", "out.yuv", "--option", "frames=2"]).succeeds();
    assert_eq!(read(&place, "out.yuv"), PICTURES[..24]);
}

#[test]
fn pictures_are_compared() {
    let place = place("p.Reader");
    place.write("good.yuv", PICTURES);
    run(&place, &["--option", "compare=good.yuv"]).succeeds();
    place.write("bad.yuv", &PICTURES.replace('V', "v"));
    run(&place, &["--option", "compare=bad.yuv"]).refuses(
        1,
        &[
            "picture 2 differs from bad.yuv",
            "byte 21 is 86, and should be 118",
        ],
    );
    place.write("short.yuv", &PICTURES[..30]);
    run(&place, &["--option", "compare=short.yuv"])
        .refuses(1, &["short.yuv ends before picture 3 does"]);
    run(&place, &["--option", "compare=none.yuv"]).refuses(1, &["cannot open none.yuv"]);
}

#[test]
fn a_picture_of_no_size_is_not_compared() {
    let place = place("p.Reader");
    place.write("good.yuv", PICTURES);
    let text = SHOWER.1.replace(
        "comparePicture(y, u, v, 4, 2)",
        "comparePicture(y, u, v, -2, 3)",
    );
    place.write("src/p/Shower.cal", &text);
    run(&place, &["--option", "compare=good.yuv"])
        .refuses(1, &["a picture of -2x3 pixels cannot be compared"]);
}

/// Their natives are files compiled apart.
#[test]
fn two_units_write_to_one_output() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;
import std.audio.Audio.*;
import levada.io.*;
actor Top () ==> :
  uint n := 0;
  action ==> guard n < 3
  do
    audio_receive(65 + n);
    io_write_line(\"x\");
    n := n + 1;
  end
end
",
    )]);
    place
        .run(&["run", "src/p/Top.cal", "--out", "both.txt"])
        .succeeds();
    assert_eq!(read(&place, "both.txt"), "Ax\nBx\nCx\n");
}

#[test]
fn an_application_may_end_itself_as_failed() {
    let place = place("p.Reader");
    place.write(
        "src/p/Reader.cal",
        &READER.1.replace("source_rewind();", "source_exit(3);"),
    );
    run(&place, &[]).refuses(1, &["source_exit(3)"]);
    place.write(
        "src/p/Reader.cal",
        &READER.1.replace("source_rewind();", "source_exit(0);"),
    );
    run(&place, &["--out", "out.yuv"]).succeeds();
    assert_eq!(read(&place, "out.yuv"), PICTURES);
}

#[test]
fn a_native_of_the_users_own_takes_the_place_of_one_that_comes_along() {
    let place = place("p.Reader");
    place.write(
        "mine.c",
        "#include <stdint.h>\nuint8_t source_readByte(void) { return 'x'; }\n",
    );
    run(&place, &["--native", "mine.c", "--out", "out.yuv"]).succeeds();
    assert_eq!(read(&place, "out.yuv"), "x".repeat(PICTURES.len()));
}

#[test]
fn played_samples_become_a_wav_file() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;
import std.audio.Audio.*;
actor Top () ==> :
  uint n := 0;
  start: action ==> do audio_initAudioFormat(8000, 16, 2); end
  give: action ==> guard n < 5, not audio_bufferFull() do audio_receive(n); n := n + 1; end
  done: action ==> guard n = 5 do audio_play(); audio_close(); end
  schedule fsm first :
    first (start) --> playing;
    playing (give) --> playing;
    playing (done) --> last;
  end
end
",
    )]);
    place.run(&["run", "src/p/Top.cal"]).succeeds();
    let run = place.run(&["run", "src/p/Top.cal", "--out", "a.wav"]);
    run.succeeds();
    let wav = std::fs::read(place.path("a.wav")).unwrap();
    let known: Vec<u8> = [
        &b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x02\0"[..],
        &b"\x40\x1f\0\0\0\x7d\0\0\x04\0\x10\0data\xdb\xff\xff\xff"[..],
        &[0, 1, 2, 3, 4],
    ]
    .concat();
    assert_eq!(wav, known);
}

fn write_bytes(place: &Place, bytes: &[u8]) {
    std::fs::write(place.path("in.bin"), bytes).unwrap();
}

/// A unit of a stream: a start code, then these bytes.
fn unit(bytes: &[u8]) -> Vec<u8> {
    [&[0, 0, 1], bytes].concat()
}

#[test]
fn a_video_stream_is_followed_by_a_part_of_its_beginning() {
    let place = place("p.Reader");
    let shown = |stream: &[u8], more: &[&str]| {
        write_bytes(&place, stream);
        let mut args = vec!["--out", "out.yuv"];
        args.extend(more);
        run(&place, &args).succeeds();
        std::fs::read(place.path("out.yuv")).unwrap()
    };
    // MPEG-4: a sequence, two pictures. The first begins at 5 and ends at 19.
    let stream = [
        unit(&[0xb0, 1]),
        unit(b"\xb6abcdefghij"),
        unit(b"\xb6klmnopqr"),
        unit(b"\xb6t"),
    ]
    .concat();
    assert_eq!(stream.len(), 36);
    let again = [&stream[..], &stream[..12]].concat();
    assert_eq!(shown(&stream, &[]), again);
    assert_eq!(shown(&stream, &["--option", "tail=no"]), stream);
    let twice = [&stream[..], &again].concat();
    assert_eq!(shown(&stream, &["--option", "loops=2"]), twice);
    // AVC: parameters, a picture in two slices, one in one. HEVC: the same.
    let avc: [&[u8]; 4] = [
        b"\x67abc",
        b"\x65\x80abcdefgh",
        b"\x65\x40abcd",
        b"\x61\xc0ab",
    ];
    let hevc: [&[u8]; 4] = [
        b"\x40\x01bc",
        b"\x26\x01\x80bcdefgh",
        b"\x26\x01\x40bcd",
        b"\x02\x01\x80b",
    ];
    for units in [avc, hevc] {
        let stream = units.map(unit).concat();
        assert_eq!(stream.len(), 36);
        // As many as there are, although three times twelve bytes came.
        assert_eq!(shown(&stream, &[]), stream[..24]);
        assert_eq!(shown(&stream, &["--option", "tail=no"]), stream);
        let twice = [&stream[..], &stream[..12]].concat();
        assert_eq!(shown(&stream, &["--option", "loops=2"]), twice);
        let counted = run(&place, &["--json"]);
        assert_eq!(counted.json()["progress"]["done"], 2, "{counted:?}");
    }
    // These are none.
    for other in [
        &b"\0\0\x01\xffabcdefgh"[..],
        b"\x01\0\x01\xb0bcdefghi",
        b"\0\0\x01\xb0bcdefghi",
    ] {
        assert_eq!(shown(other, &[]), other);
    }
    run(&place, &["--option", "tail=yes"]).refuses(1, &["tail=yes"]);
}

/// What has been given only to push out what was before may be left lying.
#[test]
fn behind_the_end_of_a_video_stream_rest_is_no_deadlock() {
    let place = Place::new(&[
        READER,
        (
            "src/p/Swell.cal",
            "package p;
actor Swell () uint(size=8) In ==> uint(size=8) Out :
  action In:[b] ==> Out:[l] repeat 4096
  var List(type: uint(size=8), size=4096) l = [b : for int i in 0 .. 4095]
  end
end
",
        ),
        (
            "src/p/Sated.cal",
            "package p;
actor Sated () uint(size=8) Key, uint(size=8) In ==> :
  action Key:[k], In:[b] ==> end
end
",
        ),
    ]);
    let top = network(
        &[
            ("reader", "p.Reader", &[]),
            ("swell", "p.Swell", &[]),
            ("sated", "p.Sated", &[]),
        ],
        &[
            ("reader.Out", "swell.In"),
            ("reader.Out", "sated.Key"),
            ("swell.Out", "sated.In"),
        ],
    );
    place.write("src/p/Top.xdf", &top);
    write_bytes(&place, b"no video, but as many bytes");
    // With larger channels it would go on.
    let fixed = || run(&place, &["--fixed-buffers"]);
    fixed().refuses(1, &["nothing can move any more"]);
    write_bytes(&place, b"\0\0\x01\xb0b\0\0\x01\xb6abcdefghijkl");
    fixed().succeeds();
}

/// A decoder that is given a film in a container finds no picture in it.
#[test]
fn a_container_in_the_place_of_a_stream_is_told() {
    let place = Place::new(&[(
        "src/p/Top.cal",
        "package p;\nimport std.stdio.Source.*;\nimport std.video.Display.*;\nactor Top () ==> :\n  uint(size=8) \
         y[MAX_WIDTH * MAX_HEIGHT];\n  uint(size=8) c[MAX_WIDTH * MAX_HEIGHT / 4];\n  initialize ==> do \
         source_init(); displayYUV_init(); end\n  action ==> do displayYUV_displayPicture(y, c, c, 0, 0); \
         end\nend\n",
    )]);
    for (bytes, said) in [
        (&b"\0\0\0\x1cftypM4V "[..], "a file of MP4"),
        (b"\x1a\x45\xdf\xa3 12345678", "a file of Matroska"),
        (b"RIFF1234AVI LIST", "a file of AVI"),
        (b"\0\0\x01\xb0\x01\0\0\x01\xb5\x89\x13 ", "cannot be shown"),
    ] {
        std::fs::write(place.path("clip"), bytes).unwrap();
        let run = place.run(&["run", "src/p/Top.cal", "--in", "clip", "--out", "x.y4m"]);
        run.refuses(1, &["a picture of 0x0 pixels", said]);
        assert_eq!(run.err.contains("a file of"), said.starts_with("a file"));
    }
}
