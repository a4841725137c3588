// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `levada check --explain`: what a name or expression at a given place is, its type, and the rule of the language
//! that gives it this type.

use crate::cli::{CheckArgs, Place};
use crate::common::output::{self, Failure, failure_with};
use crate::common::projects::Projects;
use crate::common::sources;
use levada_cal::check::note;
use levada_cal::diag::{Diagnostics, LineCol, Sources};
use levada_cal::index::{Given, Index, Typed};
use levada_cal::types::Ty;
use levada_cal::workspace::Workspace;
use levada_cal::xdf;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

pub fn explain(place: &Place, args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut files = BTreeSet::new();
    if !place.file.is_dir() {
        sources::gather(&place.file, sources::CAL_AND_XDF, &mut files)?;
    }
    let Some(file) = files.first() else {
        let shown = place.file.display();
        return failure_with(format!("{shown} is a folder"), "name a file in it");
    };
    let mut roots = Projects::default().roots(file)?;
    let found = xdf::locate_in(file, &roots).map_err(Failure::new)?;
    if !roots.contains(&found.root) {
        roots.insert(0, found.root);
    }
    roots.extend(args.path.iter().cloned());
    let full = file.canonicalize().unwrap_or_else(|_| file.clone());
    let mut workspace = Workspace::new(roots);
    workspace.index = Some(Index::default());
    let mut diags = Diagnostics::new();
    if full.extension().is_some_and(|e| e == "xdf") {
        xdf::check_xdf(&mut workspace, &full, &mut diags)
    } else {
        workspace.check_file(&full, &mut diags)
    }
    let index = workspace.index.take().unwrap_or_default();
    let sources = &workspace.sources;
    let at = LineCol {
        line: place.line,
        column: place.column,
    };
    let file = sources.find(&Sources::display_path(&full));
    let found = file.and_then(|file| Some((file, sources.offset(file, at)?)));
    let Some((file, offset)) = found else {
        output::diagnostics(sources, &diags);
        return failure_with(
            format!(
                "{} has no place {}:{}",
                place.file.display(),
                at.line,
                at.column
            ),
            "lines and columns count from 1; a column is a character",
        );
    };
    let typed = index.typed(file, offset);
    let names: Vec<_> = index
        .named(file, offset)
        .into_iter()
        .filter(|n| typed.is_none_or(|t| n.span.end - n.span.start <= t.span.end - t.span.start))
        .collect();
    if typed.is_none() && names.is_empty() {
        output::diagnostics(sources, &diags);
        return failure_with(
            format!(
                "no expression and no name stands at {}:{}",
                at.line, at.column
            ),
            "name the line and the column of its first letter, or of an operator",
        );
    }
    let given = typed.and_then(|t| index.given(t.span));
    let about: Vec<String> = names
        .iter()
        .map(|n| {
            let about = index.about(n.declared).unwrap_or(&n.about);
            let at = sources.line_col(n.declared);
            let path = &sources.file(n.declared.file).path;
            if n.declared == n.span {
                about.to_owned()
            } else {
                format!("{about}, declared at {path}:{}:{}", at.line, at.column)
            }
        })
        .collect();
    let text = |span: levada_cal::ir::Span| {
        let all = sources.file(span.file).text.clone();
        all.get(span.start as usize..span.end as usize)
            .unwrap_or_default()
            .to_owned()
    };
    if args.json {
        let expression = typed.map(|t| {
            json!({
                "text": text(t.span),
                "type": t.ty.to_string(),
                "computed_in": t.machine.to_string(),
                "value": t.value.as_ref().map(|v| note::shown(v, &t.machine)),
                "rule": t.rule,
                "becomes": given.map(|g| json!({"type": g.to.to_string(), "what": g.what})),
            })
        });
        output::line(&json!({"expression": expression, "names": about}).to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(typed) = typed {
        for line in expression(typed, given, &text(typed.span)) {
            output::line(&line)?;
        }
    }
    for line in about {
        output::line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn expression(typed: &Typed, given: Option<&Given>, text: &str) -> Vec<String> {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > 60 {
        text = text.chars().take(57).collect::<String>() + "...";
    }
    let mut lines = vec![text, format!("  type         {}", typed.ty)];
    if let Some(value) = &typed.value {
        lines.push(format!(
            "  value        {}, known when it is compiled",
            note::shown(value, &typed.machine)
        ));
    } else if typed.machine != typed.ty && typed.ty != Ty::Unknown {
        lines.push(format!("  computed in  {}", typed.machine));
    }
    lines.push(format!("  rule         {}", typed.rule));
    if let Some(given) = given {
        lines.push(format!(
            "  becomes      {}: {} has it",
            given.to, given.what
        ));
    }
    lines
}
