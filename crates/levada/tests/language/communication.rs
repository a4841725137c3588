// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the natives for intf.net.Tcp, system.io.AccessFile and system.io.Console, as applications for Orcc use
//! them, and of those that write and compare bytes.

use crate::common::{Place, Run};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

/// The part that the tests need; such applications come with the complete unit.
const TCP: (&str, &str) = (
    "src/intf/net/Tcp.cal",
    "package intf.net;
unit Tcp :
  @native function open(String address, String port) --> int end
  @native function exists(int desc) --> bool end
  @native procedure close(int desc) end
  @native function isInputShutdown(int desc) --> bool end
  @native function readByte(int desc) --> int(size=8) end
  @native procedure writeByte(int desc, int(size=8) byte) end
end
",
);

const FILES: (&str, &str) = (
    "src/system/io/AccessFile.cal",
    "package system.io;
unit AccessFile :
  @native function openFile(String fileName) --> int end
  @native function closeFile(int desc) --> int end
  @native function readByte(int desc) --> uint(size=8) end
  @native procedure readBytes(int desc, uint(size=8) buf[4], int count) end
  @native procedure writeByte(int desc, int(size=8) v) end
  @native procedure writeBytes(int desc, uint(size=8) buf[4], int count) end
  @native function sizeOfFile(int desc) --> int end
  @native procedure seek(int desc, int pos) end
  @native function filePointer(int desc) --> uint end
end
",
);

const CONSOLE: (&str, &str) = (
    "src/system/io/Console.cal",
    "package system.io;
unit Console :
  @native function openConsole(String id) --> int end
  @native function closeConsole(int desc) --> int end
  @native function readInteger(int desc) --> int end
  @native function read(int desc) --> String end
  @native procedure write(int desc, String expr) end
end
",
);

/// Gives back each byte that comes, and one more than it; ends when the other side does.
fn echo(address: &str, port: u16) -> String {
    format!(
        "package p;
import intf.net.Tcp.*;
actor Echo () ==> :
  int desc := 0;
  initialize ==> do
    if not exists(desc) then desc := open(\"{address}\", \"{port}\"); end
  end
  action ==>
  guard exists(desc), not isInputShutdown(desc)
  var int(size=8) byte
  do
    byte := readByte(desc);
    writeByte(desc, byte);
    writeByte(desc, byte + 1);
  end
end
"
    )
}

fn talk(mut stream: TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    for (sent, expected) in [(b"a", b"ab"), (b"x", b"xy")] {
        stream.write_all(sent).unwrap();
        let mut got = [0; 2];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(&got, expected);
    }
}

#[test]
fn tcp_connects_and_is_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new(&[TCP, ("src/p/Echo.cal", &echo("127.0.0.1", port))]);
    let mut client = place.command(&["run", "src/p/Echo.cal"]).spawn().unwrap();
    talk(listener.accept().unwrap().0);
    assert!(client.wait().unwrap().success());

    // The port is free again: now the network waits for a connection there.
    drop(listener);
    place.write("src/p/Echo.cal", &echo("", port));
    let mut server = place.command(&["run", "src/p/Echo.cal"]).spawn().unwrap();
    let connected = (0..1200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    talk(connected.expect("a listener"));
    assert!(server.wait().unwrap().success());
}

/// Sends what comes on its input, and gives out what comes from the other side, whichever is first.
fn line(name: &str, address: &str, port: u16) -> (String, String) {
    let text = format!(
        "package p;
import intf.net.Tcp.*;
actor {name} () int(size=8) In ==> int(size=8) Out :
  int desc := -1;
  bool closed := false;
  make: action ==>
  guard not closed, not exists(desc)
  do
    desc := open(\"{address}\", \"{port}\");
  end
  receive: action ==> Out:[readByte(desc)]
  guard not isInputShutdown(desc)
  end
  send: action In:[byte] ==>
  do
    closed := byte = 0;
    if closed then close(desc); else writeByte(desc, byte); end
  end
  priority make > receive > send; end
end
"
    );
    (format!("src/p/{name}.cal"), text)
}

/// Says `first` numbers, then one more than each that comes; at the `last` it closes.
const TALKER: (&str, &str) = (
    "src/p/Talker.cal",
    "package p;
actor Talker (int first, int last) int(size=8) In ==> int(size=8) Out :
  int said := 0;
  say: action ==> Out:[said] guard said < first do said := said + 1; end
  answer: action In:[x] ==> Out:[if x < last then x + 1 else 0 end] do
    println(\"heard \" + x);
  end
end
",
);

fn talks(lines: &[(&str, i32)]) -> String {
    let mut xdf = "<XDF name=\"Top\">\n".to_string();
    for (line, first) in lines {
        let parameter = |name: &str, value: i32| {
            format!(
                "<Parameter name=\"{name}\"><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                 value=\"{value}\"/></Parameter>"
            )
        };
        xdf += &format!(
            "<Instance id=\"t{line}\"><Class name=\"p.Talker\"/>{}{}</Instance>
<Instance id=\"{line}\"><Class name=\"p.{line}\"/></Instance>
<Connection src=\"t{line}\" src-port=\"Out\" dst=\"{line}\" dst-port=\"In\"/>
<Connection src=\"{line}\" src-port=\"Out\" dst=\"t{line}\" dst-port=\"In\"/>\n",
            parameter("first", *first),
            parameter("last", 20)
        );
    }
    xdf + "</XDF>\n"
}

/// An actor has a guard that looks at a socket. An element lets it continue before anything comes at the
/// socket, and what comes there lets it continue when no element comes.
#[test]
fn a_guard_may_ask_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = line("Client", "127.0.0.1", port);
    let place = Place::new(&[
        TCP,
        TALKER,
        (&client.0, &client.1),
        ("src/p/Top.xdf", &talks(&[("Client", 2)])),
    ]);
    let mut command = place.command(&["run", "src/p/Top.xdf", "--no-progress"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    // It waits for a listener.
    std::thread::sleep(Duration::from_millis(300));
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut stream = listener.accept().unwrap().0;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut got = [0; 2];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, [1, 2]);
    for (sent, expected) in [(7, 8), (12, 13)] {
        // It is at rest by now, and has to be woken.
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(&[sent]).unwrap();
        stream.read_exact(&mut got[..1]).unwrap();
        assert_eq!(got[0], expected);
    }
    // The other side ends it.
    drop(stream);
    let run = Run::new(child.wait_with_output().unwrap());
    assert_eq!(run.succeeds().out, "heard 7\nheard 12\n");
}

/// Both sides in one application, on one worker and on two.
#[test]
fn two_sockets_of_one_application_talk() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (client, server) = (line("Client", "localhost", port), line("Server", "", port));
    let place = Place::new(&[
        TCP,
        TALKER,
        (&client.0, &client.1),
        (&server.0, &server.1),
        ("src/p/Top.xdf", &talks(&[("Client", 1), ("Server", 0)])),
    ]);
    for workers in ["1", "2"] {
        let run = place.run(&["run", "src/p/Top.xdf", "--workers", workers]);
        let mut heard: Vec<_> = run.succeeds().out.lines().map(str::to_string).collect();
        heard.sort_by_key(|row| row["heard ".len()..].parse::<i32>().unwrap());
        let expected: Vec<_> = (1..=20).map(|i| format!("heard {i}")).collect();
        assert_eq!(heard, expected);
    }
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let server = line("Server", "", taken.local_addr().unwrap().port());
    let top = talks(&[("Server", 0)]);
    let place = Place::new(&[TCP, TALKER, (&server.0, &server.1), ("src/p/Top.xdf", &top)]);
    place
        .run(&["run", "src/p/Top.xdf"])
        .refuses(1, &["to listen at port", "in use"]);
}

fn one_shot(imports: &str, vars: &str, body: &str) -> String {
    format!(
        "package p;
{imports}
actor Top () ==> :
  bool done := false;
{vars}
  action ==> guard not done do
    done := true;
{body}
  end
end
"
    )
}

fn top(unit: (&str, &str), text: &str) -> Place {
    Place::new(&[unit, ("src/p/Top.cal", text)])
}

#[test]
fn files_are_written_and_read_anywhere() {
    let text = one_shot(
        "import system.io.AccessFile.*;",
        "  int f; int unused; uint(size=8) b[4];",
        "    f := openFile(\"data.bin\");
    println(\"size \" + sizeOfFile(f));
    seek(f, 2);
    readBytes(f, b, 3);
    println(b[0] + \" \" + b[1] + \" \" + b[2] + \" at \" + filePointer(f));
    seek(f, 0);
    writeByte(f, 90);
    b[0] := 88; b[1] := 89;
    writeBytes(f, b, 2);
    println(\"then \" + readByte(f));
    unused := closeFile(f);",
    );
    let place = top(FILES, &text);
    place.write("data.bin", "abcdef");
    let run = place.run(&["run", "src/p/Top.cal"]);
    assert_eq!(run.succeeds().out, "size 6\n99 100 101 at 5\nthen 100\n");
    assert_eq!(
        std::fs::read_to_string(place.path("data.bin")).unwrap(),
        "ZXYdef"
    );
    place.write("src/p/Top.cal", &text.replace("data.bin", "none/data.bin"));
    place
        .run(&["run", "src/p/Top.cal"])
        .refuses(1, &["cannot open none/data.bin"]);
}

fn with_input(place: &Place, input: &str) -> Run {
    let mut command = place.command(&["run", "src/p/Top.cal", "--no-progress"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    Run::new(child.wait_with_output().unwrap())
}

#[test]
fn the_console_is_the_input_and_the_output() {
    let text = "package p;
import system.io.Console.*;
actor Top () ==> :
  int c := openConsole(\"x\");
  int sum := 0;
  action ==> do
    sum := sum + readInteger(c);
    write(c, \"so far \");
    write(c, read(c));
    if sum = -2 then write(c, \" and no more\"); end
    write(c, \"\\n\");
  end
end
";
    let place = top(CONSOLE, text);
    let run = with_input(&place, "3\none\n-5\ntwo\n");
    assert_eq!(run.succeeds().out, "so far one\nso far two and no more\n");
    with_input(&place, "three\n").refuses(1, &["\"three\" is not a whole number"]);
}

/// What an actor prints and what it writes comes in its order.
#[test]
fn the_console_and_lines_keep_their_order() {
    let body = "    foreach int i in 1 .. 300 do
      println(\"line \" + i);
      write(c, \"written \" + i + \"\\n\");
    end";
    let text = one_shot(
        "import system.io.Console.*;",
        "  int c := openConsole(\"x\");",
        body,
    );
    let expected: String = (1..=300)
        .map(|i| format!("line {i}\nwritten {i}\n"))
        .collect();
    let run = top(CONSOLE, &text).run(&["run", "src/p/Top.cal"]);
    assert_eq!(run.succeeds().out, expected);
}

#[test]
fn a_writer_writes_bytes() {
    let natives = "  @native procedure Writer_init() end
  @native procedure Writer_write(uint(size=8) byte) end
  @native procedure Writer_close() end";
    let body = "    Writer_init();
    foreach int i in 65 .. 70 do Writer_write(i); end
    Writer_close();";
    let place = Place::new(&[("src/p/Top.cal", &one_shot("", natives, body))]);
    place
        .run(&["run", "src/p/Top.cal", "--out", "letters"])
        .succeeds();
    assert_eq!(
        std::fs::read_to_string(place.path("letters")).unwrap(),
        "ABCDEF"
    );
    let piped = place.run(&["run", "src/p/Top.cal", "--out", "-"]);
    assert_eq!(piped.succeeds().out, "ABCDEF");
    // Without a name it is the output, too.
    let unnamed = place.run(&["run", "src/p/Top.cal"]);
    assert_eq!(unnamed.succeeds().out, "ABCDEF");
}

#[test]
fn bytes_are_compared_with_a_file() {
    let body = "    foreach int i in 0 .. 5 do b[i] := 65 + i; end
    compare_init();
    compare_NBytes(b, 6);
    compare_readByte(71);";
    let vars = "  uint(size=8) b[NB_TOKEN_TO_COMPARE];";
    let text = one_shot("import std.util.Compare.*;", vars, body);
    let place = Place::new(&[
        ("src/p/Top.cal", &text),
        ("good", "ABCDEFG"),
        ("bad", "ABCDEFH"),
    ]);
    let run = |file: &str| {
        let option = format!("compare={file}");
        place.run(&["run", "src/p/Top.cal", "--option", &option])
    };
    run("good").succeeds();
    run("bad").refuses(1, &["byte"]);
    run("none").refuses(1, &["none"]);
    // Where nothing is named, there is nothing to compare with.
    place.run(&["run", "src/p/Top.cal"]).succeeds();
}
