// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of std.stdio.SourceCamera and std.image, as applications for Orcc use them: with complete pictures, an
//! incomplete one at the end, none, two files, and no output.

use crate::common::Place;

/// Pictures of 3 by 2.
const CAMERA: &str = "package p;
actor Camera () ==> uint(size=8) R, uint(size=8) G, uint(size=8) B :
  @native procedure source_camera_init(int width, int height) end
  @native procedure readCameraFrame(uint(size=8) r[6], uint(size=8) g[6], uint(size=8) b[6]) end
  uint(size=8) r[6];
  uint(size=8) g[6];
  uint(size=8) b[6];
  initialize ==> do source_camera_init(3, 2); end
  action ==> R:[r] repeat 6, G:[g] repeat 6, B:[b] repeat 6 do readCameraFrame(r, g, b); end
end
";

const COLOURS: &str = "package p;
actor Show () uint(size=8) R, uint(size=8) G, uint(size=8) B ==> :
  @native procedure initDisplayRGB(uint width, uint height) end
  @native procedure displayRGB(uint width, uint height, uint(size=8) r[6], uint(size=8) g[6],
    uint(size=8) b[6], int clicked[2]) end
  int clicked[2];
  initialize ==> do initDisplayRGB(3, 2); end
  action R:[r] repeat 6, G:[g] repeat 6, B:[b] repeat 6 ==> do
    displayRGB(3, 2, r, g, b, clicked);
    if clicked[0] != -1 or clicked[1] != -1 then println(\"a click\"); end
  end
end
";

const GREY: &str = "package p;
actor Show () uint(size=8) R, uint(size=8) G, uint(size=8) B ==> :
  @native procedure initDisplayGray(uint width, uint height) end
  @native procedure displayGray(uint width, uint height, uint(size=8) g[6], int clicked[2]) end
  int clicked[2];
  initialize ==> do initDisplayGray(3, 2); end
  action R:[r] repeat 6, G:[g] repeat 6, B:[b] repeat 6 ==> do
    displayGray(3, 2, g, clicked);
    if clicked[0] != -1 or clicked[1] != -1 then println(\"a click\"); end
  end
end
";

const TOP: &str = r#"<XDF name="Top">
  <Instance id="c"><Class name="p.Camera"/></Instance>
  <Instance id="s"><Class name="p.Show"/></Instance>
  <Connection src="c" src-port="R" dst="s" dst-port="R"/>
  <Connection src="c" src-port="G" dst="s" dst-port="G"/>
  <Connection src="c" src-port="B" dst="s" dst-port="B"/>
</XDF>
"#;

fn place(show: &str) -> Place {
    Place::new(&[
        ("src/p/Camera.cal", CAMERA),
        ("src/p/Show.cal", show),
        ("src/p/Top.xdf", TOP),
    ])
}

/// White, black, red, green, blue and grey.
const PIXELS: [[u8; 3]; 6] = [
    [255, 255, 255],
    [0, 0, 0],
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [100, 100, 100],
];

fn bytes(place: &Place, file: &str) -> Vec<u8> {
    std::fs::read(place.path(file)).unwrap()
}

#[test]
fn pictures_come_with_their_colours() {
    let place = place(COLOURS);
    let two = [PIXELS.concat(), vec![0; 18]].concat();
    std::fs::write(place.path("in.rgb"), two).unwrap();
    let run = place.run(&["run", "src/p/Top.xdf", "--in", "in.rgb", "--out", "out.yuv"]);
    assert_eq!(run.succeeds().out, "");
    // What ITU-R BT.601 says of these six.
    let first = [
        [235, 16, 82, 144, 41, 102],
        [128, 128, 90, 54, 240, 128],
        [128, 128, 240, 34, 110, 128],
    ];
    let second = [[16; 6], [128; 6], [128; 6]];
    assert_eq!(bytes(&place, "out.yuv"), [first, second].concat().concat());
    place
        .run(&["run", "src/p/Top.xdf", "--in", "in.rgb", "--out", "out.y4m"])
        .succeeds();
    assert!(
        bytes(&place, "out.y4m").starts_with(b"YUV4MPEG2 W3 H2 F25:1 Ip A1:1 C444\nFRAME\n\xeb")
    );
    // Where nothing is to be shown, all goes as well.
    place
        .run(&["run", "src/p/Top.xdf", "--in", "in.rgb"])
        .succeeds();
}

#[test]
fn pictures_of_several_files_become_grey() {
    let place = place(GREY);
    let all: Vec<u8> = (0..54).collect();
    std::fs::write(place.path("a"), &all[..30]).unwrap();
    std::fs::write(place.path("b"), &all[30..]).unwrap();
    let run = place.run(&["run", "src/p/Top.xdf", "--in", "a,b", "--out", "out.yuv"]);
    assert_eq!(run.succeeds().out, "");
    let greens: Vec<u8> = all.iter().copied().skip(1).step_by(3).collect();
    assert_eq!(bytes(&place, "out.yuv"), greens);
}

#[test]
fn a_part_of_a_picture_is_none() {
    let place = place(GREY);
    std::fs::write(place.path("in.rgb"), [7; 25]).unwrap();
    place
        .run(&["run", "src/p/Top.xdf", "--in", "in.rgb"])
        .refuses(1, &["within a picture", "18 bytes", "the last 7"]);
    std::fs::write(place.path("in.rgb"), []).unwrap();
    place
        .run(&["run", "src/p/Top.xdf", "--in", "in.rgb"])
        .succeeds();
    place.run(&["run", "src/p/Top.xdf"]).refuses(1, &["--in"]);
}
