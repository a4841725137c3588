// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada unit`: machines that outlive the command, images up to their exit status, and errors.

#[path = "../common/mod.rs"]
mod common;

use common::{Run, skipped};
use serde_json::Value;
use std::cell::OnceCell;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A kind of machine, and raw programs for it.
struct Kind {
    option: &'static str,
    /// ELF's number for its processor.
    machine: u8,
    seven: &'static [u8],
    illegal: &'static [u8],
    loops: &'static [u8],
}

const NATIVE: Kind = Kind {
    option: "--native",
    machine: 62,
    seven: b"\xb8\x07\0\0\0\xc3",
    illegal: b"\x0f\x0b",
    loops: b"\xeb\xfe",
};
const QEMU: Kind = Kind {
    option: "--qemu",
    machine: 243,
    seven: b"\x13\x05\x70\0\x67\x80\0\0",
    illegal: b"\0\0\0\0",
    loops: b"\x6f\0\0\0",
};
/// csrci mstatus, 8; wfi; j .-4: it waits with interrupts off, and no stop interrupts it.
const MASKS: &[u8] = b"\x73\x70\x04\x30\x73\0\x50\x10\x6f\xf0\xdf\xff";

const QEMU32: Kind = Kind {
    option: "--qemu32",
    ..QEMU
};

/// Behind a window in /dev/mem, or what is taken for it; the processor is the native machine's.
const BOARD: Kind = Kind {
    option: "--uio=mem@0+0x800000",
    ..NATIVE
};

/// A loader with the file `mem` as its window; it stays when hosts come and go. Only its board rings its
/// doorbell, each millisecond.
struct Board {
    loader: Child,
    wire: UnixStream,
}

impl Board {
    fn start(dev: &Path) -> Option<Board> {
        let lib = Path::new(env!("LEVADA_STATIC_LIBRARY")).parent().unwrap();
        let loader = lib.join("levada/native/levada-native-loader");
        if !loader.exists() {
            return None;
        }
        std::fs::create_dir_all(dev).unwrap();
        let path = dev.join("mem");
        let memory = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        memory.set_len(8 << 20).unwrap();
        let (wire, far) = UnixStream::pair().unwrap();
        // The loader inherits these two; another process that is started now would inherit them too, which does no
        // harm.
        for fd in [memory.as_raw_fd(), far.as_raw_fd()] {
            // SAFETY: both are open.
            unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
        }
        let words = [memory.as_raw_fd(), far.as_raw_fd()].map(|fd| fd.to_string());
        let loader = Command::new(loader).args(words).spawn().unwrap();
        let mut rings = wire.try_clone().unwrap();
        std::thread::spawn(move || {
            while rings.write_all(b"!").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut rung = wire.try_clone().unwrap();
        std::thread::spawn(move || while rung.read(&mut [0; 64]).is_ok_and(|n| n > 0) {});
        Some(Board { loader, wire })
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.loader.kill();
        let _ = self.loader.wait();
        let _ = self.wire.shutdown(Shutdown::Both);
    }
}

/// A folder for units, which are stopped with it, and before the board that they may have.
struct Units(tempfile::TempDir, OnceCell<Option<Board>>);

impl Units {
    fn new() -> Units {
        Units(tempfile::tempdir().unwrap(), OnceCell::new())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
        command
            .arg("unit")
            .args(words)
            .env("LEVADA_UNITS", self.0.path().join("units"))
            .env("LEVADA_DEV", self.0.path().join("dev"))
            .env("NO_COLOR", "1")
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Run {
        Run::new(self.command(words).output().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn list(&self) -> Vec<Value> {
        let listed = self.run(&["list", "--json"]);
        listed.succeeds().json()["units"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Boots a unit `u` of that kind, with these programs in its folder; false if this system has none.
    fn boot(&self, kind: &Kind) -> bool {
        for (name, bytes) in [
            ("seven", kind.seven),
            ("illegal", kind.illegal),
            ("loops", kind.loops),
        ] {
            self.file(name, bytes);
        }
        if kind.option == BOARD.option {
            let board = self
                .1
                .get_or_init(|| Board::start(&self.0.path().join("dev")));
            if board.is_none() {
                skipped(
                    kind.option,
                    "the machine that is a process is not there for this processor",
                );
                return false;
            }
        }
        let booted = self.run(&["boot", "u", kind.option]);
        if booted.code == Some(1) && booted.err.contains("is not there") {
            skipped(kind.option, booted.err.trim());
            return false;
        }
        booted.succeeds();
        true
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        let names = Command::new(env!("CARGO_BIN_EXE_levada"))
            .args(["unit", "list", "--json", "--dir"])
            .arg(self.0.path().join("units"))
            .output()
            .unwrap();
        let listed: Value = serde_json::from_slice(&names.stdout).unwrap_or_default();
        for unit in listed["units"].as_array().into_iter().flatten() {
            self.run(&["stop", unit["name"].as_str().unwrap()]);
        }
    }
}

fn kill(process: &Value) {
    let process = process.as_i64().unwrap().to_string();
    let killed = Command::new("kill")
        .args(["-9", &process])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Whether a process has ended, even if it has not been reaped.
fn is_gone(process: &Value) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Err(_) => true,
        Ok(stat) => stat[stat.rfind(')').unwrap()..].starts_with(") Z"),
    }
}

fn images_run_to_their_status(kind: &Kind) {
    let units = Units::new();
    if !units.boot(kind) {
        return;
    }
    let listed = units.list();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["state"], "idle");
    units
        .run(&["boot", "u", kind.option])
        .refuses(5, &["there is a unit u already"]);
    units
        .run(&["run", "u"])
        .refuses(125, &["no image has been loaded", "levada unit load u"]);
    units.run(&["load", "u", "seven"]).succeeds();
    for _ in 0..5 {
        let run = units.run(&["run", "u"]);
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(7), "returned 7\n"),
            "{run:?}"
        );
    }
    let run = units.run(&["run", "u", "--json"]);
    assert_eq!(run.json()["status"], 7);
    units.run(&["load", "u", "illegal"]).succeeds();
    units
        .run(&["run", "u"])
        .refuses(125, &["unit u: ", "an illegal instruction"]);
    // A bad image leaves the one before.
    units.file("empty", b"");
    units.file("cut", b"\x7fELF\x02\x01");
    let mut amid = b"\x7fELF\x02\x01\x01".to_vec();
    amid.resize(100, 0);
    for (at, byte) in [(16, 2), (18, kind.machine), (32, 64), (54, 56), (56, 2)] {
        amid[at] = byte;
    }
    if !kind.option.contains("32") {
        units.file("amid", &amid);
        units.run(&["load", "u", "amid"]).refuses(
            1,
            &["the image is cut off: its table of parts is not there"],
        );
    }
    units
        .run(&["load", "u", "none"])
        .refuses(1, &["none cannot be opened"]);
    units
        .run(&["load", "u", "empty"])
        .refuses(1, &["the image is empty"]);
    units
        .run(&["load", "u", "cut"])
        .refuses(1, &["the image is cut off"]);
    units
        .run(&["run", "u"])
        .refuses(125, &["an illegal instruction"]);
    units.run(&["load", "u", "loops"]).succeeds();
    units
        .run(&["run", "u", "--timeout", "0.2"])
        .refuses(125, &["unit u: its timeout has expired"]);
    units.run(&["load", "u", "seven"]).succeeds();
    assert_eq!(units.run(&["run", "u"]).code, Some(7));
    let log = units.run(&["log", "u"]);
    for line in [
        "booted",
        "loaded",
        "has returned 7",
        "an illegal instruction",
        "not loaded",
        "is stopped",
    ] {
        assert!(log.out.contains(line), "no {line:?} in {log:?}");
    }
    units.run(&["stop", "u"]).succeeds();
    assert!(is_gone(&listed[0]["machine"]));
    // It has answered; its end is its next step.
    while !is_gone(&listed[0]["agent"]) {}
    assert!(units.list().is_empty());
    units
        .run(&["stop", "u"])
        .refuses(4, &["there is no unit u"]);
    assert!(
        units
            .run(&["log", "u"])
            .succeeds()
            .out
            .ends_with("stopped\n")
    );
    // The name is free again.
    assert!(units.boot(kind));
}

#[test]
fn images_run_to_their_status_natively() {
    images_run_to_their_status(&NATIVE);
}

#[test]
fn images_run_to_their_status_on_a_board() {
    images_run_to_their_status(&BOARD);
}

#[test]
fn images_run_to_their_status_on_qemu() {
    images_run_to_their_status(&QEMU);
}

/// The limit of its command is kept, and the unit goes on: its machine is ended, and another one booted.
#[test]
fn a_program_that_masks_interrupts_is_ended_in_time() {
    let units = Units::new();
    if !units.boot(&QEMU) {
        return;
    }
    units.file("masks", MASKS);
    let machine = units.list()[0]["machine"].clone();
    units.run(&["load", "u", "masks"]).succeeds();
    units
        .run(&["run", "u", "--timeout", "0.2"])
        .refuses(125, &["unit u: its timeout has expired"]);
    // It answers when it has booted another machine.
    units.run(&["load", "u", "seven"]).succeeds();
    assert_ne!(units.list()[0]["machine"], machine);
    assert_eq!(units.run(&["run", "u"]).code, Some(7));
}

#[test]
fn images_run_to_their_status_on_qemu_of_32_bits() {
    images_run_to_their_status(&QEMU32);
}

fn what_is_killed_is_said(kind: &Kind) {
    let units = Units::new();
    if !units.boot(kind) {
        return;
    }
    units.run(&["load", "u", "loops"]).succeeds();
    // The machine, while a command waits for its program.
    let running = units
        .command(&["run", "u"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while units.list()[0]["state"] != "running" {}
    units
        .run(&["run", "u"])
        .refuses(125, &["unit u: a program runs there already"]);
    kill(&units.list()[0]["machine"]);
    let run = Run::new(running.wait_with_output().unwrap());
    run.refuses(125, &["unit u: the machine has ended"]);
    assert_eq!(units.list()[0]["state"], "dead");
    units.run(&["run", "u"]).refuses(
        125,
        &["unit u: the machine has ended", "levada unit stop u"],
    );
    units.run(&["stop", "u"]).succeeds();

    // The agent.
    assert!(units.boot(kind));
    let unit = units.list()[0].clone();
    kill(&unit["agent"]);
    while !is_gone(&unit["agent"]) {}
    units
        .run(&["run", "u"])
        .refuses(125, &["the agent of unit u was killed", "boot it again"]);
    while !is_gone(&unit["machine"]) {}
    units
        .run(&["run", "u"])
        .refuses(125, &["there is no unit u"]);
    assert!(units.boot(kind));
    assert_eq!(units.list()[0]["state"], "idle");
}

#[test]
fn killed_unit_is_reported_natively() {
    what_is_killed_is_said(&NATIVE);
}

#[test]
fn killed_unit_is_reported_on_a_board() {
    what_is_killed_is_said(&BOARD);
}

#[test]
fn killed_unit_is_reported_on_qemu() {
    what_is_killed_is_said(&QEMU);
}

#[test]
fn an_interrupted_command_leaves_no_program() {
    let units = Units::new();
    if !units.boot(&NATIVE) {
        return;
    }
    units.run(&["load", "u", "loops"]).succeeds();
    let mut running = units.command(&["run", "u"]).spawn().unwrap();
    while units.list()[0]["state"] != "running" {}
    running.kill().unwrap();
    running.wait().unwrap();
    while units.list()[0]["state"] != "idle" {}
    units.run(&["load", "u", "seven"]).succeeds();
    assert_eq!(units.run(&["run", "u"]).code, Some(7));
}

/// A stopped daemon blocks no command for ever.
#[test]
fn an_agent_that_does_not_answer_is_said() {
    let units = Units::new();
    if !units.boot(&NATIVE) {
        return;
    }
    let agent = units.list()[0]["agent"].as_i64().unwrap() as i32;
    // SAFETY: a process of ours.
    assert_eq!(unsafe { libc::kill(agent, libc::SIGSTOP) }, 0);
    assert_eq!(units.list()[0]["state"], "does not answer");
    units.run(&["stop", "u"]).succeeds();
    assert!(units.list().is_empty());
    assert!(units.boot(&NATIVE));
}

#[test]
fn units_that_cannot_boot_are_reported() {
    let units = Units::new();
    assert!(units.list().is_empty());
    units
        .run(&["run", "u"])
        .refuses(125, &["there is no unit u", "levada unit boot"]);
    units
        .run(&["log", "u"])
        .refuses(4, &["there is no unit u, and was none"]);
    units
        .run(&["boot", "../u", "--native"])
        .refuses(2, &["letters, digits"]);
    units
        .run(&["boot", "u"])
        .refuses(2, &["--qemu|--qemu32|--native|--uio <DEVICE>"]);
    for (option, said) in [
        ("--uio=nothing", "there is no UIO device nothing"),
        ("--uio=mem@7+1", "write mem@ADDRESS+SIZE"),
        ("--uio=mem@0+0x800000", "dev/mem is not there"),
        ("--remoteproc=remoteproc0", "say where the window is"),
    ] {
        units.run(&["boot", "u", option]).refuses(1, &[said]);
    }
    units
        .run(&["boot", "u", "--uio", "uio0:image.elf"])
        .refuses(2, &["a device name has no colon"]);
    let mut command = units.command(&["boot", "u", "--native"]);
    let run = Run::new(
        command
            .env("LEVADA_NATIVE_LOADER", "/nowhere")
            .output()
            .unwrap(),
    );
    run.refuses(1, &["the loader /nowhere is not there"]);
    let mut command = units.command(&["boot", "u", "--native", "--json"]);
    let run = Run::new(
        command
            .env("LEVADA_NATIVE_LOADER", "/bin/false")
            .output()
            .unwrap(),
    );
    run.refuses(1, &["the board has ended", "the loader /bin/false"]);
    assert_eq!(run.json()["outcome"], "refused");
    assert!(units.list().is_empty());
}

/// A program that serves, as the guide says that one is linked; none, where it cannot be.
fn serving_image(units: &Units) -> Option<PathBuf> {
    let lib = Path::new(env!("LEVADA_STATIC_LIBRARY")).parent().unwrap();
    let (far, include) = (lib.join("levada/native"), lib.join("../include"));
    if !far.join("liblevada-remote.a").exists() {
        skipped(
            "native",
            "the machine that is a process is not there for this processor",
        );
        return None;
    }
    let source = units.file(
        "serves.c",
        br#"#include <levada/srpc.h>
#include <levada/process.h>
#include <string.h>
static uint32_t calls;
static lvd_status twice(lvd_call_frame *f) {
  uint32_t x;
  if (f->argument_size != 4) return LVD_E_ARGUMENT;
  memcpy(&x, f->argument, 4);
  x *= 2;
  memcpy(f->result, &x, 4);
  f->result_size = 4;
  calls++;
  return LVD_OK;
}
LVD_PROCEDURE(twice)
static lvd_status counted(lvd_call_frame *f) {
  memcpy(f->result, &calls, 4);
  f->result_size = 4;
  return LVD_OK;
}
LVD_PROCEDURE(counted)
static void negate(void) {
  stream_create(1);
  stream_create(2);
  for (int x; stream_get(1, x) == LVD_OK;) {
    stream_pop(1);
    stream_put(2, -x);
    stream_push(2);
  }
}
PB_PROCEDURE(negate)
static lvd_status spoils(lvd_call_frame *f) {
  const lvd_stream_options o = {.name = "spoilt", .elem_size = 4, .threshold = 1};
  lvd_stream *s;
  int one = 1;
  (void)f;
  if (lvd_stream_open(lvd_unit_parent(), &o, &s) != LVD_OK) return LVD_E_STATE;
  lvd_stream_put(s, &one, 4);
  lvd_stream_push(s);
  lvd_stream_close_sender(s, LVD_E_CORRUPT);
  lvd_stream_destroy(s);
  return LVD_OK;
}
LVD_PROCEDURE(spoils)
static lvd_status wild(lvd_call_frame *f) {
  (void)f;
  *(volatile uint32_t *)(uintptr_t)0x40000000000 = 1;
  return LVD_OK;
}
LVD_PROCEDURE(wild)
static lvd_status hangs(lvd_call_frame *f) {
  for (;;) __asm__ volatile("" : : "r"(f) : "memory");
}
LVD_PROCEDURE(hangs)
"#,
    );
    let image = units.0.path().join("serves.elf");
    let made = Command::new("cc")
        .args([
            "-std=c17",
            "-O2",
            "-ffreestanding",
            "-fPIE",
            "-fcf-protection=none",
        ])
        .args([
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-nostdlib",
            "-static",
        ])
        .args([
            "-no-pie",
            "-Wl,--build-id=none",
            "-Wl,-n",
            "-Wl,-z,noexecstack",
            "-Wl,-z,norelro",
        ])
        .args(["-Wl,--no-relax", "-I"])
        .arg(include)
        .arg("-T")
        .arg(far.join("program.ld"))
        .arg(source)
        .arg("-Wl,--whole-archive")
        .arg(far.join("liblevada-remote.a"))
        .args(["-Wl,--no-whole-archive", "-lgcc", "-o"])
        .arg(&image)
        .status()
        .unwrap();
    assert!(made.success());
    Some(image)
}

#[test]
fn procedures_are_called_natively() {
    procedures_are_called(&NATIVE);
}

#[test]
fn procedures_are_called_on_a_board() {
    procedures_are_called(&BOARD);
}

fn procedures_are_called(kind: &Kind) {
    let units = Units::new();
    let Some(image) = serving_image(&units) else {
        return;
    };
    if !units.boot(kind) {
        return;
    }
    let run = |words: &[&str]| units.run(&[&["run", "u"], words].concat());
    units
        .run(&["load", "u", image.to_str().unwrap()])
        .succeeds();
    run(&[]).refuses(
        125,
        &["does not end by itself", "levada unit run u PROCEDURE"],
    );
    // It stays there from call to call.
    for x in [21, 4] {
        let twice = run(&["twice", &format!("u32:{x}"), "--result", "u32"]);
        assert_eq!(twice.succeeds().out.trim(), (2 * x).to_string());
    }
    assert_eq!(
        run(&["twice", "hex:01000000"]).succeeds().out.trim(),
        "02000000"
    );
    let counted = run(&["counted", "--result", "u32", "--json"]);
    assert_eq!(counted.succeeds().json()["result"][0], 3);
    assert_eq!(units.list()[0]["state"], "serving");

    // Streams from and to files, and what the command itself is given.
    let numbers: Vec<u8> = (1..=1000i32).flat_map(i32::to_le_bytes).collect();
    let negated: Vec<u8> = (1..=1000i32).flat_map(|x| (-x).to_le_bytes()).collect();
    units.file("in.raw", &numbers);
    let told = run(&[
        "negate",
        "--in",
        "1:4=in.raw",
        "--out",
        "2:4=out.raw",
        "--json",
    ]);
    assert_eq!(
        told.succeeds().json()["elements"],
        serde_json::json!([1000, 1000])
    );
    assert_eq!(
        std::fs::read(units.0.path().join("out.raw")).unwrap(),
        negated
    );
    let mut piped = units
        .command(&["run", "u", "negate", "--in", "1:4=-", "--out", "2:4=-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut piped.stdin.take().unwrap(), &numbers).unwrap();
    let piped = piped.wait_with_output().unwrap();
    assert!(piped.status.success() && piped.stdout == negated);

    // What is wrong is said, and the unit goes on.
    run(&["nobody_knows_it"]).refuses(1, &["nobody_knows_it"]);
    run(&["twice"]).refuses(1, &["twice"]);
    run(&["twice", "7"]).refuses(1, &["what is the argument 7"]);
    run(&["twice", "u32:1", "--result", "u64"]).refuses(1, &["4 bytes"]);
    run(&["negate", "--in", "1:4=/nowhere/at/all"]).refuses(1, &["/nowhere/at/all"]);
    units.file("part.raw", &numbers[..6]);
    run(&["negate", "--in", "1:4=part.raw", "--out", "2:4=out.raw"])
        .refuses(1, &["within an element"]);
    run(&["negate", "--in", "1:4=/", "--out", "2:4=out.raw"]).refuses(1, &["Is a directory"]);
    run(&["negate", "--in", "1:4=in.raw", "--out", "2:4=/dev/full"])
        .refuses(1, &["No space left on device"]);
    // A stream that its procedure has ended by an error is not all that was to come.
    run(&["spoils", "--out", "spoilt:4=out.raw"]).refuses(1, &["stream spoilt"]);
    run(&["negate", "--in", "1:4"]).refuses(1, &["what is the stream"]);
    units.file("empty.raw", &[]);
    let empty = run(&[
        "negate",
        "--in",
        "1:4=empty.raw",
        "--out",
        "2:4=out.raw",
        "--json",
    ]);
    assert_eq!(
        empty.succeeds().json()["elements"],
        serde_json::json!([0, 0])
    );
    // A stream that the procedure has with elements of another size, or not at all, is no other call's.
    let right = ["negate", "--in", "1:4=in.raw", "--out", "2:4=out.raw"];
    for (what, streams) in [
        (1, ["--in", "1:8=in.raw", "--out", "2:4=out.raw"]),
        (2, ["--in", "1:4=in.raw", "--out", "2:2=out.raw"]),
        (9, ["--in", "1:4=in.raw", "--out", "9:4=out.raw"]),
    ] {
        let wrong = [&["negate"], &streams[..], &["--timeout", "20"]].concat();
        let said = format!("stream {what}: the procedure has returned and not used it");
        run(&wrong).refuses(1, &[&said]);
        run(&right).succeeds();
        let out = std::fs::read(units.0.path().join("out.raw")).unwrap();
        assert_eq!(out, negated, "{what}");
    }
    run(&["wild"]).refuses(1, &["a store to where no memory is"]);
    run(&["hangs", "--timeout", "0.2"]).refuses(1, &["its timeout has expired"]);
    assert_eq!(
        run(&["twice", "u32:3", "--result", "u32"])
            .succeeds()
            .out
            .trim(),
        "6"
    );

    // The output is unchanged: nothing of it is lost, and a reader that goes away ends only its call.
    let negate = ["run", "u", "negate", "--in", "1:4=in.raw", "--out", "2:4=-"];
    units.file("in.raw", &[1, 0, 0, 0]);
    let kept = units.file("kept", b"kept ");
    let file = File::options().append(true).open(&kept).unwrap();
    let done = units.command(&negate).stdout(file).status().unwrap();
    assert!(done.success());
    assert_eq!(std::fs::read(&kept).unwrap(), b"kept \xff\xff\xff\xff");
    let (one, mut other) = UnixStream::pair().unwrap();
    let done = units
        .command(&negate)
        .stdout(std::os::fd::OwnedFd::from(one))
        .status()
        .unwrap();
    assert!(done.success());
    let mut bytes = Vec::new();
    other.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [0xff; 4]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = units.command(&negate).stdout(writer).output().unwrap();
    Run::new(done).refuses(1, &["negate: stream 2: Broken pipe"]);
    assert!(units.command(&negate).status().unwrap().success());
    let wrong = [
        "run",
        "v",
        "negate",
        "--in",
        "1:4=in.raw",
        "--out",
        "2:4=kept",
    ];
    units.run(&wrong).refuses(4, &["there is no unit v"]);
    assert!(std::fs::read(&kept).unwrap().starts_with(b"kept "));
    // It has no writer: opening it blocks the command, but not the daemon.
    let fifo = units.0.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    units
        .run(&["load", "u", "fifo"])
        .refuses(1, &["fifo is no file"]);
    let mut waits = units
        .command(&["run", "u", "negate", "--in", "1:4=fifo"])
        .spawn()
        .unwrap();
    assert_ne!(units.list()[0]["state"], "does not answer");
    waits.kill().unwrap();
    waits.wait().unwrap();

    // And back to programs that are run to their end.
    units.run(&["load", "u", "seven"]).succeeds();
    assert_eq!(run(&[]).code, Some(7));
    run(&["twice", "u32:3"]).refuses(1, &["levada unit run u"]);
    assert_eq!(run(&[]).code, Some(7));
}
