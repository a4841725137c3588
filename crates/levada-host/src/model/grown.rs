// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels that have grown: the application was deadlocked only because they were full.

use levada_sys::{ActorShape, Counters};
use levada_text::plural;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A channel that has grown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct GrownChannel {
    /// The producer and its output.
    pub from: String,
    pub from_port: String,
    /// The first consumer and its input.
    pub to: String,
    pub to_port: String,
    /// Its capacity at load, in elements.
    pub loaded_capacity: u32,
    /// Its capacity now: with this one from the start it would not have grown.
    pub capacity: u32,
}

impl GrownChannel {
    pub fn find(actors: &[ActorShape], counters: &Counters) -> Vec<GrownChannel> {
        let channels = &counters.channels;
        // There is a record for each consumer.
        let is_first = |i: usize| i == 0 || channels[i].from != channels[i - 1].from;
        let all = channels.iter().enumerate();
        let grown = all.filter(|(i, c)| c.capacity > c.loaded_capacity && is_first(*i));
        grown
            .map(|(_, c)| {
                let (from, from_port) = c.producer(actors).unwrap_or_default();
                let (to, to_port) = c.consumer(actors).unwrap_or_default();
                GrownChannel {
                    from: from.into(),
                    from_port: from_port.into(),
                    to: to.into(),
                    to_port: to_port.into(),
                    loaded_capacity: c.loaded_capacity,
                    capacity: c.capacity,
                }
            })
            .collect()
    }
}

impl fmt::Display for GrownChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{} -> {}.{} has grown from {} to {}",
            self.from,
            self.from_port,
            self.to,
            self.to_port,
            plural(self.loaded_capacity as usize, "element"),
            self.capacity
        )
    }
}

/// In one sentence, with the first channel; none if none has grown.
pub(crate) fn text(grown: &[GrownChannel]) -> Option<String> {
    let (first, others) = grown.split_first()?;
    Some(match others.len() {
        0 => first.to_string(),
        more => format!("{first}, and {}", plural(more, "other channel")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use levada_sys::ChannelCounters;

    #[test]
    fn each_channel_that_has_grown_is_named_once() {
        let shape = |name: &str, inputs: &[&str], outputs: &[&str]| ActorShape {
            name: name.into(),
            class: "p.Class".into(),
            inputs: inputs.iter().map(|p| p.to_string()).collect(),
            outputs: outputs.iter().map(|p| p.to_string()).collect(),
        };
        let actors = [shape("a", &[], &["X", "Y"]), shape("b", &["In", "By"], &[])];
        let channel = |port: u32, to_port: u32, capacity: u32| {
            let mut c = ChannelCounters {
                capacity,
                loaded_capacity: 3,
                ..ChannelCounters::default()
            };
            (c.from.port, c.to.actor, c.to.port) = (port, 1, to_port);
            c
        };
        let of = |channels: Vec<ChannelCounters>| {
            let counters = Counters {
                channels,
                ..Counters::default()
            };
            GrownChannel::find(&actors, &counters)
        };
        assert!(of(vec![channel(0, 0, 3)]).is_empty());
        assert_eq!(text(&[]), None);
        // A broadcast.
        let one = of(vec![channel(0, 0, 12), channel(0, 1, 12)]);
        let said = "a.X -> b.In has grown from 3 elements to 12";
        assert_eq!(text(&one).unwrap(), said);
        let two = of(vec![channel(0, 0, 12), channel(1, 1, 6)]);
        assert_eq!(text(&two).unwrap(), format!("{said}, and 1 other channel"));
    }
}
