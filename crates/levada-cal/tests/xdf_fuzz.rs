// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fuzzing of the XDF parser: seeded mutations of a network that uses every element, and malicious XML. It must
//! quickly return a network or printable diagnostics for any input.

use levada_cal::diag::{Diagnostics, Sources, render};
use levada_cal::xdf::read::{Xdf, read_text};
use std::time::{Duration, Instant};

const SEED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<XDF name="Seed">
    <Package><QID><ID id="a"/><ID id="b"/></QID></Package>
    <Decl kind="Param" name="N"><Type name="int"><Entry kind="Expr" name="size">
        <Expr kind="Literal" literal-kind="Integer" value="13"/></Entry></Type></Decl>
    <Decl kind="Variable" name="SIZE"><Type name="int"/>
        <Expr kind="BinOpSeq"><Expr kind="Var" name="N"/><Op name="*"/>
            <Expr kind="UnaryOp"><Op name="-"/><Expr kind="Literal" literal-kind="Real" value="0.5"/></Expr>
            <Op name="+"/><Expr kind="Literal" literal-kind="Boolean" value="true"/></Expr></Decl>
    <Port kind="Input" name="In"><Type name="List"><Entry kind="Type" name="type"><Type name="uint"/></Entry>
        <Entry kind="Expr" name="size"><Expr kind="Literal" literal-kind="Integer" value="4"/></Entry></Type></Port>
    <Port kind="Output" name="Out"><Type name="String"/></Port>
    <Instance id="one"><Class name="a.b.One"/>
        <Parameter name="p">
            <Expr kind="List"><Expr kind="Literal" literal-kind="String" value="x&amp;y"/></Expr></Parameter>
        <Attribute kind="Flag" name="native"/></Instance>
    <Connection dst="one" dst-port="In" src="" src-port="In"/>
    <Connection dst="" dst-port="Out" src="one" src-port="Out">
        <Attribute kind="Value" name="bufferSize"><Expr kind="Var" name="SIZE"/></Attribute></Connection>
</XDF>
"#;

/// Reads `text` and shows what was found.
fn read(text: &str) -> (Option<Xdf>, String) {
    let mut sources = Sources::new();
    let mut diags = Diagnostics::new();
    let file = sources.add("fuzz.xdf", text);
    let xdf = read_text(text, file, "fuzz", &mut diags);
    assert!(
        xdf.is_some() || diags.has_errors(),
        "nothing read and nothing said of {text:?}"
    );
    (xdf, render(&sources, &diags, false))
}

/// xorshift64*: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n.max(1)
    }
}

#[test]
fn the_seed_reads_without_complaint() {
    let (xdf, said) = read(SEED);
    let xdf = xdf.unwrap();
    assert_eq!(said, "");
    assert_eq!(xdf.name.text, "Seed");
    assert_eq!(xdf.package.as_deref(), Some("a.b"));
    assert_eq!(
        (xdf.params.len(), xdf.variables.len(), xdf.instances.len()),
        (1, 1, 1)
    );
    assert_eq!(
        (xdf.inputs.len(), xdf.outputs.len(), xdf.connections.len()),
        (1, 1, 2)
    );
}

#[test]
fn mutations_never_break_the_reader() {
    let pieces = [
        "<",
        ">",
        "/>",
        "</",
        "\"",
        "&",
        "&#x0;",
        "&lt;",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "xmlns=",
        "<!DOCTYPE x [<!ENTITY a \"b\">]>",
        "<Expr kind=\"List\">",
        "</Expr>",
        "kind=\"Literal\"",
        "value=\"99999999999999999999\"",
        "name=\"\"",
        "é",
        "\u{1F600}",
        "\0",
        "\r\n",
        "<Instance/>",
        "<Connection/>",
        "size",
        "--9",
        "1e999",
    ];
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let other = number("LEVADA_SEED")
        .unwrap_or(0)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = Random(0x5eed_1e7a_da00_0001 ^ other);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..4000 * number("LEVADA_FUZZ").unwrap_or(1) {
        let mut text: Vec<char> = SEED.chars().collect();
        for _ in 0..1 + random.below(6) {
            let at = random.below(text.len());
            let end = (at + random.below(40)).min(text.len());
            match random.below(5) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece = pieces[random.below(pieces.len())];
                    text.splice(at..at, piece.chars());
                }
                2 => {
                    let copy: Vec<char> = text[at..end].to_vec();
                    let to = random.below(text.len());
                    text.splice(to..to, copy);
                }
                3 => {
                    let len = text.len();
                    text.swap(at, random.below(len));
                }
                // Cutting the end off leaves little to read: seldom.
                _ if random.below(8) == 0 => text.truncate(at.max(1)),
                _ => text[at] = 'x',
            }
            if text.is_empty() {
                text.push(' ');
            }
        }
        let text: String = text.into_iter().collect();
        match read(&text).0 {
            Some(_) => accepted += 1,
            None => refused += 1,
        }
    }
    // Both kinds must come up, or the mutations are no test.
    assert!(refused > 100 && accepted > 100, "{refused} {accepted}");
}

/// What is said of `text`, which must be refused within a few seconds.
fn refused(text: &str) -> String {
    let start = Instant::now();
    let (_, said) = read(text);
    assert!(start.elapsed() < Duration::from_secs(300));
    assert!(said.contains("error"), "{said}");
    said
}

#[test]
fn empty_and_foreign_files_are_named_so() {
    assert!(refused("").contains("the file is empty"));
    assert!(refused(" \n\t ").contains("the file is empty"));
    assert!(refused("actor A() ==> : end").contains("malformed XML"));
    assert!(refused("<html/>").contains("this is <html>, not a network"));
    assert!(refused("<XDF name=\"a\">").contains("malformed XML"));
    assert!(refused("<XDF name=\"a\"><Instance id=\"x\"></XDF>").contains("malformed XML"));
}

#[test]
fn entity_bombs_are_not_expanded() {
    let mut text = String::from("<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\">");
    for (from, to) in ('a'..'y').zip('b'..'z') {
        text += &format!("<!ENTITY {to} \"&{from};&{from};&{from};&{from};&{from};&{from};\">");
    }
    text += "]><XDF name=\"&y;\"/>";
    assert!(refused(&text).contains("no document type declaration"));
}

#[test]
fn deep_nesting_is_refused() {
    for element in [
        "<Expr kind=\"List\">",
        "<Expr kind=\"UnaryOp\"><Op name=\"-\"/>",
    ] {
        let deep = format!(
            "<XDF name=\"a\"><Decl kind=\"Variable\" name=\"v\">{}",
            element.repeat(20_000)
        );
        let closed = deep + &"</Expr>".repeat(20_000) + "</Decl></XDF>";
        assert!(refused(&closed).contains("nested more than"));
    }
    let types = "<Type name=\"List\"><Entry kind=\"Type\" name=\"type\">".repeat(20_000);
    let text = format!("<XDF name=\"a\"><Port kind=\"Input\" name=\"p\">{types}</XDF>");
    assert!(refused(&text).contains("malformed XML"));
    refused(&"<a>".repeat(200_000));
}

#[test]
fn huge_files_are_read_or_refused_in_time() {
    let sum = "<Op name=\"+\"/><Expr kind=\"Var\" name=\"n\"/>".repeat(50_000);
    let text = format!(
        "<XDF name=\"a\"><Decl kind=\"Variable\" name=\"v\"><Expr kind=\"BinOpSeq\">\
         <Expr kind=\"Var\" name=\"n\"/>{sum}</Expr></Decl></XDF>"
    );
    assert!(refused(&text).contains("more than 1000 operands"));
    let many = "<Instance id=\"i\"><Class name=\"C\"/></Instance>".repeat(50_000);
    let (xdf, _) = read(&format!("<XDF name=\"a\">{many}</XDF>"));
    assert_eq!(xdf.unwrap().instances.len(), 50_000);
    let attributes: String = (0..5_000).map(|i| format!(" a{i}=\"\"")).collect();
    let (xdf, _) = read(&format!("<XDF name=\"a\"{attributes}/>"));
    assert!(xdf.is_some());
    let spaces = " ".repeat(100_000);
    read(&format!(
        "<XDF name{spaces}={spaces}\"a\"><Instance id{spaces}=\"\"/></XDF>"
    ));
}
