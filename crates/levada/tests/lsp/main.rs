// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of `levada lsp` by the protocol that editors use.

#[path = "../common/mod.rs"]
mod common;

use common::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const UNIT: &str = "package p;
unit Bits :
  int WIDTH = 12;
  function low (uint(size=16) v) --> uint(size=WIDTH) : v & 0xFFF end
  @native procedure shout (int v) end
end
";

const ACTOR: &str = "package p;
import p.Bits.*;
actor A () int In ==> int(size=16) Out :
  int total := 0;

  work.add: action In:[x] ==> Out:[total]
  do
    total := total + low(x);
    shout(total);
  end

  work.rest: action ==>
  guard total > WIDTH
  do
    total := 0;
  end

  schedule fsm go :
    go (work.add) --> stay;
    stay (work) --> go;
  end
  priority work.add > work.rest; end
end
";

const SINK: &str = "package p;
actor B () int(size=16) In ==> :
  action In:[x] ==> do println(p.Bits.low(x)); end
end
";

const NETWORK: &str = r#"<XDF name="Top">
  <Port kind="Input" name="In"><Type name="int"/></Port>
  <Instance id="a"><Class name="p.A"/></Instance>
  <Instance id="b"><Class name="p.B"/></Instance>
  <Connection src="" src-port="In" dst="a" dst-port="In"/>
  <Connection src="a" src-port="Out" dst="b" dst-port="In"/>
</XDF>
"#;

struct Editor {
    place: Place,
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<Value>,
    /// What came while something else was waited for.
    kept: Vec<Value>,
    next: i64,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn message(from: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", n)) => length = n.parse().unwrap(),
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

impl Editor {
    fn silent() -> Editor {
        let place = Place::new(&[
            ("src/p/Bits.cal", UNIT),
            ("src/p/A.cal", ACTOR),
            ("src/p/B.cal", SINK),
            ("src/p/Top.xdf", NETWORK),
        ]);
        let mut child = place
            .command(&["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (sender, said) = channel();
        std::thread::spawn(move || {
            while let Some(value) = message(&mut out) {
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Editor {
            place,
            input: child.stdin.take(),
            child,
            said,
            kept: Vec::new(),
            next: 0,
        }
    }

    fn new() -> Editor {
        let mut editor = Editor::silent();
        let root = editor.uri("");
        let said = editor.ask("initialize", json!({"capabilities": {}, "rootUri": root}));
        assert_eq!(said["capabilities"]["hoverProvider"], true);
        assert_eq!(
            said["capabilities"]["renameProvider"]["prepareProvider"],
            true
        );
        editor.tell("initialized", json!({}));
        editor
    }

    fn raw(&mut self, body: &str) {
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.raw(&body.to_string());
    }

    /// The next message for which `wanted` holds.
    fn hear(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(i) = self.kept.iter().position(&wanted) {
            return self.kept.remove(i);
        }
        loop {
            match self.said.recv_timeout(Duration::from_secs(60)) {
                Ok(value) if wanted(&value) => return value,
                Ok(value) => self.kept.push(value),
                Err(e) => panic!("no {what}: {e}; only {:?}", self.kept),
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.raw(&body.to_string());
        self.hear(method, |v| v["id"] == id && v.get("method").is_none())
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn uri(&self, file: &str) -> String {
        let path = self.place.path(file).canonicalize().unwrap();
        format!("file://{}", path.display())
    }

    fn open(&mut self, file: &str, text: &str) {
        let uri = self.uri(file);
        let item = json!({"uri": uri, "languageId": "cal", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": item}));
    }

    fn change(&mut self, file: &str, text: &str) {
        let uri = self.uri(file);
        self.tell(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]}),
        );
    }

    /// What is next said to be wrong with a file.
    fn wrong(&mut self, file: &str) -> Vec<Value> {
        let uri = self.uri(file);
        let said = self.hear("diagnostics", |v| {
            v["method"] == "textDocument/publishDiagnostics" && v["params"]["uri"] == *uri
        });
        said["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// Where `part` begins in the text of a file, `plus` letters on.
    fn at(&self, file: &str, part: &str, plus: usize) -> Value {
        let text = std::fs::read_to_string(self.place.path(file)).unwrap();
        let offset = text.find(part).unwrap_or_else(|| panic!("no {part:?}")) + plus;
        let before = &text[..offset];
        let line = before.matches('\n').count();
        let character = before.len() - before.rfind('\n').map_or(0, |i| i + 1);
        json!({
            "textDocument": {"uri": self.uri(file)},
            "position": {"line": line, "character": character},
        })
    }

    /// `FILE:LINE:COLUMN` (from 1) of where a name is declared.
    fn declared(&mut self, file: &str, part: &str, plus: usize) -> Vec<String> {
        let at = self.at(file, part, plus);
        let found = self.ask("textDocument/definition", at);
        let found = found.as_array().cloned().unwrap_or_default();
        let shown = found.iter().map(|l| {
            let start = &l["range"]["start"];
            let file = l["uri"].as_str().unwrap().rsplit('/').next().unwrap();
            let (line, column) = (start["line"].as_u64(), start["character"].as_u64());
            format!("{file}:{}:{}", line.unwrap() + 1, column.unwrap() + 1)
        });
        shown.collect()
    }

    fn hover(&mut self, file: &str, part: &str, plus: usize) -> String {
        let at = self.at(file, part, plus);
        let said = self.ask("textDocument/hover", at);
        said["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn rename(&mut self, file: &str, part: &str, plus: usize, new: &str) -> Value {
        let mut at = self.at(file, part, plus);
        at["newName"] = new.into();
        self.request("textDocument/rename", at)
    }

    /// Renames on disk: the edits applied to the files; what `levada check` says then.
    fn renamed(&mut self, file: &str, part: &str, plus: usize, new: &str) -> Vec<String> {
        let answer = self.rename(file, part, plus, new);
        let changes = answer["result"]["changes"].as_object();
        let changes = changes.unwrap_or_else(|| panic!("{answer}")).clone();
        let mut files = Vec::new();
        for (uri, edits) in changes {
            let path = uri.strip_prefix("file://").unwrap();
            let mut lines: Vec<String> = std::fs::read_to_string(path)
                .unwrap()
                .split('\n')
                .map(str::to_owned)
                .collect();
            for edit in edits.as_array().unwrap().iter().rev() {
                let number =
                    |end: &str, what: &str| edit["range"][end][what].as_u64().unwrap() as usize;
                let line = &mut lines[number("start", "line")];
                line.replace_range(
                    number("start", "character")..number("end", "character"),
                    edit["newText"].as_str().unwrap(),
                );
            }
            std::fs::write(path, lines.join("\n")).unwrap();
            files.push(path.rsplit('/').next().unwrap().to_owned());
        }
        self.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
        let check = self.place.run(&["check", "src"]);
        assert!(check.succeeds().out.contains(" 0 errors"), "{check:#?}");
        files.sort();
        files
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.place.path(file)).unwrap()
    }

    fn ends(mut self, code: i32) {
        self.input = None;
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn diagnostics_appear_and_disappear() {
    let mut editor = Editor::new();
    editor.open("src/p/A.cal", ACTOR);
    assert_eq!(editor.wrong("src/p/A.cal"), Vec::<Value>::new());
    // As one types: nothing on disk has changed.
    editor.change("src/p/A.cal", &ACTOR.replace("+ low(x)", "+ lo(x"));
    let wrong = editor.wrong("src/p/A.cal");
    assert!(wrong.iter().any(|w| w["severity"] == 1), "{wrong:?}");
    editor.change("src/p/A.cal", &ACTOR.replace("low(x)", "lou(x)"));
    let wrong = editor.wrong("src/p/A.cal");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(
        wrong[0]["range"]["start"],
        json!({"line": 7, "character": 21})
    );
    assert_eq!(
        wrong[0]["range"]["end"],
        json!({"line": 7, "character": 24})
    );
    assert!(
        wrong[0]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean `low`?")
    );
    editor.change("src/p/A.cal", ACTOR);
    assert_eq!(editor.wrong("src/p/A.cal"), Vec::<Value>::new());

    // A change of one file is seen in another, before it is saved.
    editor.open(
        "src/p/Bits.cal",
        &UNIT.replace("function low", "function high"),
    );
    let wrong = editor.wrong("src/p/A.cal");
    assert!(
        wrong[0]["message"]
            .as_str()
            .unwrap()
            .contains("no function `low`")
    );
    let uri = editor.uri("src/p/Bits.cal");
    editor.tell(
        "textDocument/didClose",
        json!({"textDocument": {"uri": uri}}),
    );
    assert_eq!(editor.wrong("src/p/A.cal"), Vec::<Value>::new());

    // Networks, too.
    editor.open(
        "src/p/Top.xdf",
        &NETWORK.replace("dst-port=\"In\"/>\n</XDF>", "dst-port=\"Out\"/>\n</XDF>"),
    );
    let wrong = editor.wrong("src/p/Top.xdf");
    assert!(
        wrong
            .iter()
            .any(|w| w["message"].as_str().unwrap().contains("no input port Out")),
        "{wrong:?}"
    );
    editor.change("src/p/Top.xdf", "<XDF name=\"Top\"><Instance");
    assert!(!editor.wrong("src/p/Top.xdf").is_empty());
    editor.change("src/p/Top.xdf", NETWORK);
    assert_eq!(editor.wrong("src/p/Top.xdf"), Vec::<Value>::new());
}

/// A file of two megabytes in one line, with two hundred thousand mistakes, and one of another kind at its end.
#[test]
fn a_file_of_nothing_but_mistakes_does_not_occupy_the_editor() {
    let mut editor = Editor::new();
    let text = format!(
        "package p;\nactor A () ==> : {}int y := q; end\n",
        "int x := 1; ".repeat(200_000)
    );
    editor.open("src/p/A.cal", &text);
    let wrong = editor.wrong("src/p/A.cal");
    assert!((2..1000).contains(&wrong.len()), "{}", wrong.len());
    let about = |text| move |w: &&Value| w["message"].as_str().unwrap().contains(text);
    assert!(wrong.iter().filter(about("`x`")).count() > 1);
    assert_eq!(wrong.iter().filter(about("`q`")).count(), 1);
}

#[test]
fn names_lead_to_where_they_are_declared() {
    let mut editor = Editor::new();
    let mut goes = |file: &str, part: &str, plus: usize, wanted: &[&str]| {
        assert_eq!(editor.declared(file, part, plus), wanted, "{part}");
    };
    let a = "src/p/A.cal";
    goes(a, "total + low", 1, &["A.cal:4:7"]);
    goes(a, "low(x)", 3, &["Bits.cal:4:12"]);
    goes(a, "low(x)", 4, &["A.cal:6:24"]);
    goes(a, "WIDTH", 0, &["Bits.cal:3:7"]);
    goes(a, "shout", 0, &["Bits.cal:5:21"]);
    goes(a, "Out:[total]", 0, &["A.cal:3:36"]);
    goes(a, "import p.Bits", 9, &["Bits.cal:2:6"]);
    goes(a, "work.add > work.rest", 12, &["A.cal:12:3"]);
    goes(a, "(work) -->", 2, &["A.cal:6:3", "A.cal:12:3"]);
    goes(a, "--> stay", 4, &["A.cal:20:5"]);
    goes("src/p/B.cal", "p.Bits.low", 7, &["Bits.cal:4:12"]);
    goes("src/p/B.cal", "p.Bits.low", 3, &["Bits.cal:2:6"]);
    goes("src/p/Top.xdf", "\"p.A\"", 1, &["A.cal:3:7"]);
    goes(
        "src/p/Top.xdf",
        "src=\"a\" src-port=\"Out\"",
        19,
        &["A.cal:3:36"],
    );
    goes("src/p/Top.xdf", "dst=\"b\"", 5, &["Top.xdf:4:17"]);
    goes("src/p/Top.xdf", "src-port=\"In\"", 10, &["Top.xdf:2:28"]);
    goes(a, "do\n", 1, &[]);

    // What comes with the compiler is shown, too.
    let text =
        "package p;\nimport levada.io.*;\nactor C () ==> :\n  action ==> do flush(); end\nend\n";
    editor.place.write("src/p/C.cal", text);
    let found = editor.declared("src/p/C.cal", "levada.io", 8);
    assert!(found[0].starts_with("io.cal:"), "{found:?}");
}

#[test]
fn hovering_tells_types_and_widths() {
    let mut editor = Editor::new();
    // While the rest of the text is broken.
    let broken = ACTOR.replace("total := 0;\n  end", "total := 0; if\n  end");
    editor.place.write("src/p/A.cal", &broken);
    let mut says = |part: &str, plus: usize, wanted: &[&str]| {
        let said = editor.hover("src/p/A.cal", part, plus);
        for wanted in wanted {
            assert!(said.contains(wanted), "{part}: no {wanted:?} in {said}");
        }
    };
    says(
        "+ low(x)",
        0,
        &[
            "**type** `int(size=33)`",
            "computed in `int(size=64)`",
            "one bit more",
            "becomes `int`",
        ],
    );
    says(
        "low(x)",
        0,
        &["`low(uint(size=16) v) --> uint(size=12)`: a function"],
    );
    says("total + ", 0, &["`int total`: a state variable"]);
    says("WIDTH", 0, &["a constant, 12"]);
    says("shout", 0, &["`shout(int v)`: a native procedure"]);
    says("Out:[total]", 1, &["`int(size=16) Out`: an output port"]);
    says("x] ==> Out", 0, &["`int x`"]);
    assert_eq!(editor.hover("src/p/A.cal", "actor A", 0), "");
    let said = editor.hover("src/p/Top.xdf", "src=\"a\" src-port=\"Out\"", 19);
    assert!(said.contains("a port of `p.A`"), "{said}");
}

#[test]
fn renaming_changes_all_places_and_nothing_else() {
    let mut editor = Editor::new();
    let a = "src/p/A.cal";
    // A local name, a state variable.
    assert_eq!(editor.renamed(a, "low(x)", 4, "fresh"), ["A.cal"]);
    assert!(editor.text(a).contains("In:[fresh]") && editor.text(a).contains("low(fresh)"));
    assert_eq!(editor.renamed(a, "total", 5, "all"), ["A.cal"]);
    assert!(!editor.text(a).contains("total"));
    // A function of a unit, from a use in another file.
    let files = editor.renamed("src/p/B.cal", "Bits.low", 6, "lowest");
    assert_eq!(files, ["A.cal", "B.cal", "Bits.cal"]);
    assert_eq!(
        editor.renamed("src/p/Bits.cal", "WIDTH", 0, "BITS"),
        ["A.cal", "Bits.cal"]
    );
    // A port, with the networks that connect it; the network's own port has the same name.
    assert_eq!(
        editor.renamed(a, "int In", 4, "Numbers"),
        ["A.cal", "Top.xdf"]
    );
    let network = editor.text("src/p/Top.xdf");
    assert!(
        network.contains(r#"src-port="In" dst="a" dst-port="Numbers""#),
        "{network}"
    );
    assert!(network.contains(r#"dst="b" dst-port="In""#), "{network}");
    assert_eq!(
        editor.renamed("src/p/Top.xdf", "\"a\"", 1, "first"),
        ["Top.xdf"]
    );
    // A part of tags, and a state.
    assert_eq!(editor.renamed(a, "work.add:", 0, "job"), ["A.cal"]);
    let text = editor.text(a);
    assert!(
        text.contains("(job) --> go") && text.contains("job.add > job.rest"),
        "{text}"
    );
    assert_eq!(editor.renamed(a, "job.rest", 4, "pause"), ["A.cal"]);
    assert_eq!(editor.renamed(a, "stay;", 0, "wait"), ["A.cal"]);
    assert!(editor.text(a).contains("wait (job) --> go;"));

    let at = editor.at(a, "fresh", 0);
    let said = editor.ask("textDocument/prepareRename", at.clone());
    assert_eq!(
        said["end"]["character"].as_u64().unwrap() - said["start"]["character"].as_u64().unwrap(),
        5
    );
    let mut at = at;
    at["context"] = json!({"includeDeclaration": true});
    assert_eq!(
        editor
            .ask("textDocument/references", at)
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn names_that_cannot_be_are_refused() {
    let mut editor = Editor::new();
    let mut refuses = |file: &str, part: &str, plus: usize, new: &str, why: &str| {
        let answer = editor.rename(file, part, plus, new);
        let said = answer["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(said.contains(why), "{part} to {new}: {answer}");
    };
    let a = "src/p/A.cal";
    refuses(a, "total", 0, "end", "no name of the language");
    refuses(a, "total", 0, "a b", "no name of the language");
    // It would hide the function's, or be hidden by the action's.
    refuses(a, "low(x)", 4, "total", "already");
    refuses(a, "total", 0, "x", "already");
    refuses(a, "total", 0, "WIDTH", "already");
    refuses("src/p/Bits.cal", "low (", 0, "WIDTH", "is a variable");
    refuses("src/p/Bits.cal", "low (", 0, "total", "`total`");
    refuses(a, "work.add", 6, "rest", "already");
    refuses(a, "stay", 1, "go", "already");
    refuses(a, "actor A", 6, "Z", "rename the file");
    refuses(a, "shout", 0, "cry", "C function");
    refuses(a, "do\n", 1, "x", "no name stands here");
}

/// Where a file has errors some places may not be known: none is better than not all.
#[test]
fn a_rename_that_would_be_incomplete_is_refused() {
    let mut editor = Editor::new();
    let a = "src/p/A.cal";
    let refused = |editor: &mut Editor, part: &str| {
        let answer = editor.rename(a, part, 0, "fresh");
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        said.to_owned()
    };
    // A use behind a fault of syntax, in another file.
    let broken = SINK.replace("do println(p.Bits.low(x));", "do ) ( p.Bits.low(x;");
    editor.place.write("src/p/B.cal", &broken);
    let said = refused(&mut editor, "low(x)");
    assert!(said.contains("B.cal:3: `low` is not"), "{said}");
    // What the errors do not touch can be renamed.
    let answer = editor.rename(a, "total", 0, "fresh");
    assert!(answer.get("error").is_none(), "{answer}");
    editor.place.write("src/p/B.cal", SINK);
    // The same for a name of the file itself.
    let broken = ACTOR.replace("guard total > WIDTH", "guard ) ( total > WIDTH");
    assert_ne!(broken, ACTOR);
    editor.place.write(a, &broken);
    editor.tell("workspace/didChangeWatchedFiles", json!({"changes": []}));
    let said = refused(&mut editor, "total");
    assert!(said.contains("A.cal:"), "{said}");
}

#[test]
fn a_function_without_a_name_takes_none_from_others() {
    let mut editor = Editor::new();
    let unit = UNIT.replace(
        "unit Bits :",
        "unit Bits :\n  function (int v) --> int : v end",
    );
    editor.place.write("src/p/Bits.cal", &unit);
    editor
        .place
        .write("src/p/B.cal", &SINK.replace("p.Bits.low(x)", "p.Bits.(x)"));
    let said = editor.hover("src/p/Bits.cal", "WIDTH = 12", 0);
    assert!(said.contains("WIDTH"), "{said}");
    let said = editor.hover("src/p/B.cal", "In ==>", 0);
    assert!(said.contains("input port"), "{said}");
    let said = editor.hover("src/p/B.cal", "x]", 0);
    assert!(said.contains(" x`"), "{said}");
}

#[test]
fn messages_that_are_wrong_are_answered() {
    let mut editor = Editor::silent();
    let answer = editor.request("textDocument/hover", json!({}));
    assert_eq!(answer["error"]["code"], -32002);
    editor.raw("{ this is no JSON");
    let answer = editor.hear("an answer", |v| v["error"]["code"] == -32700);
    assert_eq!(answer["id"], Value::Null);
    editor.raw("{\"jsonrpc\": \"2.0\"}");
    editor.hear("an answer", |v| v["error"]["code"] == -32700);
    editor.ask("initialize", json!({"capabilities": {}}));
    let answer = editor.request("textDocument/hover", json!({"textDocument": 3}));
    assert_eq!(answer["error"]["code"], -32602);
    let answer = editor.request("textDocument/everything", json!({}));
    assert_eq!(answer["error"]["code"], -32601);
    let gone = json!({"textDocument": {"uri": "file:///nowhere/X.cal"}, "position": {"line": 0, "character": 0}});
    let answer = editor.request("textDocument/hover", gone);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("X.cal"),
        "{answer}"
    );
    let odd =
        json!({"textDocument": {"uri": "untitled:1"}, "position": {"line": 0, "character": 0}});
    assert!(editor.request("textDocument/hover", odd)["error"].is_object());
    // Nothing of it has stopped the server; places that are not there are none.
    let mut at = editor.at("src/p/A.cal", "total", 0);
    at["position"] = json!({"line": 9999, "character": 9999});
    assert_eq!(editor.ask("textDocument/hover", at), Value::Null);
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    let answer = editor.request("textDocument/hover", json!({}));
    assert_eq!(answer["error"]["code"], -32600);
    editor.tell("exit", Value::Null);
    editor.ends(0);
}

#[test]
fn server_exit_status_says_how_the_editor_ended_it() {
    // The editor goes without a word; it says goodbye too early; it talks nonsense.
    Editor::new().ends(1);
    let mut early = Editor::new();
    early.tell("exit", Value::Null);
    early.ends(1);
    let mut nonsense = Editor::new();
    nonsense
        .input
        .as_mut()
        .unwrap()
        .write_all(b"hello\r\n\r\n")
        .unwrap();
    nonsense.ends(1);
}
