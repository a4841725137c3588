// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Orcc's mapping files: a `Configuration` with a `Partitioning`, in which each `Partition` lists
//! the instances of one processor.
//!
//! Partitions have names, not core numbers. They are ordered by the numbers in their names, or else
//! by their position in the file; the first is core 0.

use super::placement::NamedPlacement;
use crate::model::problem::Problem;
use roxmltree::Document;

pub fn read(text: &str) -> Result<NamedPlacement, Problem> {
    let document = Document::parse(text)
        .map_err(|e| Problem::new(format!("this is no XML: {e}"), "see the line"))?;
    let holds = "a mapping of Orcc's holds Partition elements, and in them Instance elements";
    let mut partitions = Vec::new();
    for node in document.descendants() {
        if !node.has_tag_name("Partition") {
            continue;
        }
        let id = node.attribute("id").unwrap_or("");
        let mut instances = Vec::new();
        for instance in node.children().filter(|n| n.has_tag_name("Instance")) {
            match instance.attribute("id").or(instance.attribute("name")) {
                Some(name) => instances.push(name.to_string()),
                None => {
                    let line = document.text_pos_at(instance.range().start).row;
                    return Err(Problem::new(
                        format!("line {line}: an Instance without an id"),
                        holds,
                    ));
                }
            }
        }
        let digits = id.trim_start_matches(|c: char| !c.is_ascii_digit());
        partitions.push((digits.parse::<u64>().ok(), instances));
    }
    if partitions.iter().all(|p| p.1.is_empty()) {
        return Err(Problem::new("no actor is mapped here", holds));
    }
    if partitions.iter().all(|p| p.0.is_some()) {
        partitions.sort_by_key(|p| p.0);
    }
    let cores = partitions.into_iter().enumerate();
    Ok(cores
        .flat_map(|(core, (_, names))| names.into_iter().map(move |n| (None, n, core as u32)))
        .collect())
}
