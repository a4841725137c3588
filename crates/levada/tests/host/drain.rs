// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of sources that wait for silent input when their application drains or is replaced, with the natives of
//! applications for Orcc: with nothing of what they ask for available, a part of it, or more.

use crate::common;
use crate::common::Place;
use crate::common::host::{Host, held_pipe, sources};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

const NUMBERS: &str = "package p;\nimport levada.io.*;\nactor Numbers () ==> int Out :\n  int n := 0;\n  \
    action ==> Out:[10 * a + b] var int a, int b do a := io_read_number(); b := io_read_number(); n := n + 1; end\n\
    end\n";

/// Reads all before it begins, in an initializer or in its first firing.
const BEGINS: &str = "package p;\nimport std.stdio.Source.*;\nactor Begins () ==> int Out :\n  int size := 0;\n  \
    initialize ==> do source_init(); size := source_sizeOfFile(); end\n  \
    action ==> Out:[source_readByte()] end\nend\n";
const FIRES: &str = "package p;\nimport std.stdio.Source.*;\nactor Fires () ==> int Out :\n  \
    action ==> Out:[source_readByte()] end\nend\n";

/// Pictures of 2 by 1: what comes out is the greens.
const CAMERA: &str = "package p;\nactor Camera () ==> int Out :\n  \
    @native procedure source_camera_init(int width, int height) end\n  \
    @native procedure readCameraFrame(uint(size=8) r[2], uint(size=8) g[2], uint(size=8) b[2]) end\n  \
    uint(size=8) r[2]; uint(size=8) g[2]; uint(size=8) b[2];\n  \
    initialize ==> do source_camera_init(2, 1); end\n  \
    action ==> Out:[[g[0], g[1]]] repeat 2 do readCameraFrame(r, g, b); end\nend\n";

const TCP: &str = "package intf.net;\nunit Tcp :\n  @native function open(String address, String port) --> int end\n  \
    @native function readByte(int desc) --> int(size=8) end\nend\n";

/// Numbers that the actor of each of these gives, written to --out.
fn readers(all: &[(&str, &str)]) -> Place {
    let place = sources();
    for (name, text) in all {
        place.write(&format!("src/p/{name}.cal"), text);
        let text = common::network(
            &[
                ("read", &format!("p.{name}"), &[]),
                ("write", "p.Write", &[]),
            ],
            &[("read.Out", "write.In")],
        );
        let text = text.replace("\"Top\"", &format!("\"{name}Top\""));
        place.write(&format!("src/p/{name}Top.xdf"), &text);
    }
    place
}

fn load(host: &Host, class: &str, name: &str, out: &str, more: &[&str]) {
    let file = format!("src/p/{class}Top.xdf");
    let load = ["load", &file, "--name", name, "--in=in.fifo", "--out", out];
    host.run(&[&load[..], more].concat()).succeeds();
}

/// Its source has nothing to do but to wait for its input.
fn until_waiting(host: &Host, name: &str, firings: u64) {
    host.until(name, |a| a["firings"].as_u64() >= Some(firings));
    let waits = || {
        host.run(&["why", name])
            .succeeds()
            .out
            .contains("waits in the native")
    };
    while !waits() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn drains(host: &Host, name: &str, out: &str, written: &str) {
    let ended = host.json(&["unload", name, "--timeout", "60"]);
    assert_eq!(ended["outcome"], "done", "{name}: {ended}");
    let text = std::fs::read_to_string(host.place.path(out)).unwrap_or_default();
    assert_eq!(text, written, "{name}");
}

#[test]
fn a_source_that_waits_for_input_drains() {
    let place = readers(&[
        ("Numbers", NUMBERS),
        ("Begins", BEGINS),
        ("Fires", FIRES),
        ("Camera", CAMERA),
    ]);
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    let cases: [(&str, &[u8], u64, &str); 8] = [
        ("Numbers", b"", 0, ""),
        ("Numbers", b"1 2\n3 4\n", 4, "12\n34\n"),
        ("Begins", b"", 0, ""),
        ("Begins", b"ab", 0, ""),
        ("Fires", b"", 0, ""),
        ("Fires", b"ab", 0, ""),
        ("Camera", b"", 0, ""),
        ("Camera", b"rgbrgbrg", 3, "103\n103\n"),
    ];
    for (i, (class, given, firings, written)) in cases.into_iter().enumerate() {
        for isolated in [false, true] {
            let (name, out) = (format!("a{i}{isolated}"), format!("out{i}{isolated}.txt"));
            let more: &[&str] = if isolated { &["--isolate"] } else { &[] };
            load(&host, class, &name, &out, more);
            input.write_all(given).unwrap();
            until_waiting(&host, &name, firings);
            drains(&host, &name, &out, written);
        }
    }
}

/// What the old version has of a picture, or of its input, the new one has.
#[test]
fn a_new_version_has_what_has_come_of_it() {
    let place = readers(&[("Fires", FIRES), ("Camera", CAMERA)]);
    let mut input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    load(&host, "Camera", "camera", "camera.txt", &[]);
    for (given, firings) in [(&b"1a23b"[..], 0), (b"4rg", 1), (b"bRGB", 1)] {
        input.write_all(given).unwrap();
        until_waiting(&host, "camera", firings);
        host.run(&["replace", "camera", "src/p/CameraTop.xdf"])
            .succeeds();
    }
    until_waiting(&host, "camera", 0);
    drains(&host, "camera", "camera.txt", "97\n98\n103\n71\n");

    load(&host, "Fires", "all", "all.txt", &[]);
    for given in [&b"a"[..], b"bc"] {
        input.write_all(given).unwrap();
        until_waiting(&host, "all", 0);
        host.run(&["replace", "all", "src/p/FiresTop.xdf"])
            .succeeds();
    }
    until_waiting(&host, "all", 0);
    drop(input);
    host.until("all", |a| a["state"] == "ended");
    let text = std::fs::read_to_string(host.place.path("all.txt")).unwrap();
    assert_eq!(text, "97\n98\n99\n");
}

/// From a socket, and while no peer has connected yet.
#[test]
fn a_source_that_waits_at_a_socket_drains() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = free.local_addr().unwrap().port();
    drop(free);
    let reader = |name: &str, address: &str, port: u16| {
        format!(
            "package p;\nimport intf.net.Tcp.*;\nactor {name} () ==> int Out :\n  int desc := -1;\n  \
             initialize ==> do desc := open(\"{address}\", \"{port}\"); end\n  \
             action ==> Out:[readByte(desc)] end\nend\n"
        )
    };
    let place = readers(&[
        ("Called", &reader("Called", "127.0.0.1", port)),
        ("Listens", &reader("Listens", "", unused)),
    ]);
    place.write("src/intf/net/Tcp.cal", TCP);
    let _input = held_pipe(&place, "in.fifo");
    let host = Host::begin_in(place);
    load(&host, "Called", "called", "called.txt", &[]);
    let mut stream = listener.accept().unwrap().0;
    stream.write_all(b"ab").unwrap();
    until_waiting(&host, "called", 4);
    drains(&host, "called", "called.txt", "97\n98\n");

    load(&host, "Listens", "listens", "listens.txt", &[]);
    until_waiting(&host, "listens", 0);
    drains(&host, "listens", "listens.txt", "");
    // The listener is closed.
    assert!(TcpStream::connect(("127.0.0.1", unused)).is_err());
}
