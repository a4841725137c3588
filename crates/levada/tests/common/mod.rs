// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A temporary folder with sources and a cache for each test, and functions that run the command in it.
#![allow(dead_code)]

pub mod busy;
pub mod chance;
pub mod host;
pub mod screen;
pub mod shield;

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub struct Place {
    dir: tempfile::TempDir,
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Says why a test, or a part of one, is not run here: also where the harness keeps what tests print.
pub fn skipped(what: &str, why: &str) {
    use std::io::Write;
    let line = format!("skipped {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Does the runtime follow a C program here to where a call of the system, or of a library, returns to its own code?
pub fn sees_returns(what: &str) -> bool {
    let sees = cfg!(target_arch = "x86_64");
    if !sees {
        skipped(what, "it is not seen here where a call returns");
    }
    sees
}

impl Run {
    pub fn new(output: Output) -> Run {
        Run {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It failed with this status and said all of `parts` on the error output, and in one message.
    pub fn refuses(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in {self:#?}");
        }
        assert!(!self.err.contains("panicked"), "{self:#?}");
    }

    pub fn succeeds(&self) -> &Run {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    pub fn json(&self) -> serde_json::Value {
        let last = self.out.lines().last().unwrap_or("");
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }
}

/// A host that was killed leaves them.
impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        let user = unsafe { libc::geteuid() };
        let _ = std::fs::remove_file(format!("/dev/shm/levada-{user}.0/{}", self.leases()));
    }
}

impl Place {
    pub fn new(files: &[(&str, &str)]) -> Place {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
        };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    /// The name of the leases of this test's processes only.
    fn leases(&self) -> String {
        let name = self.dir.path().file_name().unwrap().to_string_lossy();
        format!("test-{}", name.trim_start_matches('.'))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Names in a folder, sorted.
    pub fn list(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(name))
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("XDG_CACHE_HOME", shared_cache())
            .env("NO_COLOR", "1")
            .env("LEVADA_LEASES", self.leases())
            .stdin(Stdio::null());
        command
    }

    /// Runs the command to its end; nothing here may take longer than two minutes.
    pub fn run(&self, args: &[&str]) -> Run {
        let mut child = self
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let read = |mut from: Box<dyn std::io::Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = from.read_to_end(&mut bytes);
                bytes
            })
        };
        let (out, err) = (read(Box::new(stdout)), read(Box::new(stderr)));
        let start = Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() > Duration::from_secs(120) => {
                    let threads = what_it_does(child.id());
                    child.kill().unwrap();
                    panic!("levada {args:?} does not end:\n{threads}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Run::new(Output {
            status,
            stdout: out.join().unwrap(),
            stderr: err.join().unwrap(),
        })
    }
}

/// Copies a program that is then started. A process of its own copies it: a file that this one has open for writing
/// may be inherited by the child that another test forks at that moment, and a file that is open for writing cannot
/// be executed.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp")
        .args([from.as_ref(), to.as_ref()])
        .status();
    assert!(copied.unwrap().success());
}

/// Writes a script that is then started, in the same way.
pub fn write_script(path: impl AsRef<Path>, text: &str) {
    let written = Command::new("sh")
        .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""])
        .arg(path.as_ref())
        .arg(text)
        .status();
    assert!(written.unwrap().success());
}

/// The threads of a process that hangs: their names, where in the system they wait, and where there is
/// a debugger, how they came there.
fn what_it_does(pid: u32) -> String {
    let of = |task: &Path, name| {
        let text = std::fs::read_to_string(task.join(name)).unwrap_or_default();
        text.trim().to_string()
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut told: String = tasks
        .flatten()
        .map(|t| t.path())
        .map(|t| {
            let (name, wait) = (of(&t, "comm"), of(&t, "wchan"));
            format!("  {name}: {wait} {}\n", of(&t, "syscall"))
        })
        .collect();
    let stacks = Command::new("gdb")
        .args(["-p", &pid.to_string(), "-batch", "-nx"])
        .args(["-ex", "thread apply all backtrace 30"])
        .stdin(Stdio::null())
        .output();
    if let Ok(stacks) = stacks {
        told += &String::from_utf8_lossy(&stacks.stdout);
    }
    told
}

/// Compiled networks are kept between tests, apart from the user's.
fn shared_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// An instance: its name, class and integer parameters.
pub type Instance<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// A network `p.Top` of instances (name, class, parameters) and connections `a.Out -> b.In`.
pub fn network(instances: &[Instance], wires: &[(&str, &str)]) -> String {
    let mut text = String::from("<?xml version=\"1.0\"?>\n<XDF name=\"Top\">\n");
    for (id, class, params) in instances {
        text += &format!("<Instance id=\"{id}\"><Class name=\"{class}\"/>");
        for (name, value) in *params {
            text += &format!(
                "<Parameter name=\"{name}\"><Expr kind=\"Literal\" literal-kind=\"Integer\" \
                 value=\"{value}\"/></Parameter>"
            );
        }
        text += "</Instance>\n";
    }
    for (from, to) in wires {
        let ((a, b), (c, d)) = (from.split_once('.').unwrap(), to.split_once('.').unwrap());
        text +=
            &format!("<Connection src=\"{a}\" src-port=\"{b}\" dst=\"{c}\" dst-port=\"{d}\"/>\n");
    }
    text + "</XDF>\n"
}

pub const SOURCE: (&str, &str) = (
    "src/p/Source.cal",
    "package p;\n\nactor Source (int n) ==> int Out :\n  int i := 0;\n  action ==> Out:[i]\n  \
     guard i < n\n  do\n    i := i + 1;\n  end\nend\n",
);

pub const PRINT: (&str, &str) = (
    "src/p/Print.cal",
    "package p;\n\nactor Print () int In ==> :\n  action In:[x] ==>\n  do\n    println(x);\n  \
     end\nend\n",
);

/// Starts a program with pipes for its standard streams; also its input, and the lines that it prints.
pub fn spawn_piped(command: &mut Command) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, input, lines)
}

/// Gives the data of a block before its sum, which is wanted first.
pub const BLOCKS: (&str, &str) = (
    "src/p/Blocks.cal",
    "package p;
actor Blocks (int blocks) ==> int Data, int Sum :
  int block := 0;
  int i := 0;
  int total := 0;
  data: action ==> Data:[block + i] guard block < blocks and i < 10 do total := total + block + i; i := i + 1; end
  sum: action ==> Sum:[total] guard block < blocks and i = 10 do i := 0; block := block + 1; end
end
",
);
pub const PARTS: (&str, &str) = (
    "src/p/Parts.cal",
    "package p;
actor Parts (int printed) int Data, int Sum ==> :
  int left := 0;
  int total := 0;
  int n := 0;
  sum: action Sum:[s] ==> guard left = 0 do total := s; left := 10; end
  data: action Data:[x] ==>
  guard
    left > 0
  do
    left := left - 1;
    if n < printed then
      println(x + \" of \" + total);
      n := n + 1;
    end
  end
end
",
);

/// `blocks` of ten elements each, printed; the channel of their data has this capacity, and needs ten.
pub fn blocks(blocks: &str, capacity: u32) -> Place {
    let place = Place::new(&[BLOCKS, PARTS]);
    let text = network(
        &[
            ("blocks", "p.Blocks", &[("blocks", blocks)]),
            ("parts", "p.Parts", &[("printed", "50")]),
        ],
        &[("blocks.Data", "parts.Data"), ("blocks.Sum", "parts.Sum")],
    );
    let size = format!(
        "dst-port=\"Data\"><Attribute kind=\"Value\" name=\"bufferSize\"><Expr kind=\"Literal\" \
         literal-kind=\"Integer\" value=\"{capacity}\"/></Attribute></Connection>"
    );
    let sized = text.replacen("dst-port=\"Data\"/>", &size, 1);
    assert_ne!(sized, text);
    place.write("src/p/Top.xdf", &sized);
    place
}

/// Numbers from 1 to 3, printed.
pub fn numbers() -> Place {
    let place = Place::new(&[SOURCE, PRINT]);
    place.write(
        "src/p/Top.xdf",
        &network(
            &[
                ("source", "p.Source", &[("n", "3")]),
                ("print", "p.Print", &[]),
            ],
            &[("source.Out", "print.In")],
        ),
    );
    place
}

/// Has some of the standard streams closed when it begins, a bit each.
pub fn without(command: &mut Command, closed: u8) {
    let close = move || {
        for stream in 0..=2 {
            if closed >> stream & 1 != 0 {
                // SAFETY: the child's own, and nothing of ours is there yet.
                unsafe { libc::close(stream) };
            }
        }
        Ok(())
    };
    // SAFETY: a call of the system.
    unsafe { command.pre_exec(close) };
}
