// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of errors of commands: the code in JSON, the exit status, and the HTTP status of each.

use crate::common::Run;
use crate::common::host::{Host, TOP};
use serde_json::Value;

/// What a command that fails says with --json, and its status.
pub fn code(run: &Run) -> (Option<i32>, Value) {
    (run.code, run.json()["code"].clone())
}

#[test]
fn errors_have_codes_and_exit_statuses() {
    let host = Host::begin();
    host.many("a");
    let fails = |args: &[&str]| code(&host.run(&[args, &["--json"]].concat()));
    let none = host.place.run(&["list", "--json", "--socket", "none.sock"]);
    assert_eq!(code(&none), (Some(10), "no_host".into()));
    let wrong = host.place.run(&["pause", "--json"]);
    assert_eq!(code(&wrong), (Some(2), "usage".into()));
    for (args, status, name) in [
        (&["show", "b"][..], 4, "not_found"),
        (&["move", "a", "none", "0"], 4, "not_found"),
        (&["load", TOP, "--name=a", "--out=x"], 5, "conflict"),
        (&["load", TOP, "--name=..", "--out=x"], 3, "invalid"),
        (&["load", TOP, "--memory=1K", "--out=x"], 6, "limit"),
        (&["load", "none.xdf"], 1, "failed"),
    ] {
        assert_eq!(fails(args), (Some(status), name.into()), "{args:?}");
    }
    for (path, status, name) in [
        ("/applications/b", "404", "not_found"),
        ("/x", "404", "not_found"),
    ] {
        let said = host.get(path);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        assert!(said.contains(&format!("\"code\":\"{name}\"")), "{said}");
    }
    let said = host.post("/applications", "{\"x\": 1}");
    assert!(said.contains("\"code\":\"invalid\""), "{said}");
    // A host that is stopped is told to be.
    // SAFETY: the child has not been waited for.
    let kill = |signal| unsafe { libc::kill(host.child.id() as i32, signal) };
    kill(libc::SIGSTOP);
    let silent = host.run(&["list", "--timeout=0.3"]);
    kill(libc::SIGCONT);
    let stopped = format!("its process {} is stopped", host.child.id());
    silent.refuses(8, &["has not answered within", &stopped, "kill -CONT"]);
    // The names that there are, wherever they run.
    let args = ["load", TOP, "--name=apart", "--isolate", "--out=y"];
    host.run(&args).succeeds();
    host.run(&["show", "b"]).refuses(4, &["there are a, apart"]);
    host.run(&["load", TOP, "--name=-x", "--out=x"])
        .refuses(3, &["begin with a letter, a digit or an underscore"]);
}
