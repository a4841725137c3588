// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unconsumed elements: what an application that is done has left in its channels, and why.

use levada_sys::{ActorShape, ChannelCounters, Counters};
use levada_text::plural;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Maximum number of channels that are kept of an application.
pub const CHANNELS_MAX: usize = 64;

/// Elements that were left in a channel at the end, for one of its consumers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct UnconsumedChannel {
    /// The producer; empty: the program outside of the network.
    pub from: String,
    pub from_port: String,
    /// The consumer; empty likewise.
    pub to: String,
    pub to_port: String,
    pub elements: u64,
    /// What the consumer waits for, or that it takes no more.
    pub reason: String,
}

impl fmt::Display for UnconsumedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elements, channel) = (self.elements_text(), self.channel_text());
        write!(f, "{elements} in {channel}: {}", self.reason)
    }
}

impl UnconsumedChannel {
    /// The channels with elements that were put and not taken, and what their consumers wait for. Elements for a
    /// consumer that has ended are dropped from the channel, and count as well.
    pub fn find<'a>(
        actors: &'a [ActorShape],
        counters: &'a Counters,
    ) -> impl Iterator<Item = UnconsumedChannel> + 'a {
        let channels = &counters.channels;
        let nonempty = channels.iter().filter(|c| c.put > c.got);
        nonempty.map(|c| UnconsumedChannel::of(actors, channels, c))
    }

    fn of(
        actors: &[ActorShape],
        channels: &[ChannelCounters],
        c: &ChannelCounters,
    ) -> UnconsumedChannel {
        let (from, from_port) = c.producer(actors).unwrap_or_default();
        let (to, to_port) = c.consumer(actors).unwrap_or_default();
        let missing = |c: &&ChannelCounters| c.awaited > c.fill;
        let of_consumer = || channels.iter().filter(|o| o.to.actor == c.to.actor);
        let own = of_consumer()
            .filter(missing)
            .find(|o| o.to.port == c.to.port);
        let reason = match (own, of_consumer().find(missing)) {
            (Some(own), _) => format!("{to} waits for {} there", own.awaited),
            (None, Some(other)) => format!(
                "{to} waits for {} on its input {}, which has {}",
                plural(other.awaited as usize, "element"),
                other.consumer(actors).unwrap_or_default().1,
                other.fill
            ),
            (None, None) if to.is_empty() => "it takes no more".to_string(),
            (None, None) => format!("{to} takes no more"),
        };
        UnconsumedChannel {
            from: from.into(),
            from_port: from_port.into(),
            to: to.into(),
            to_port: to_port.into(),
            elements: c.put - c.got,
            reason,
        }
    }

    fn elements_text(&self) -> String {
        plural(self.elements as usize, "element")
    }

    fn channel_text(&self) -> String {
        let end = |actor: &str, port: &str| match actor {
            "" => "(the program)".to_string(),
            actor => format!("{actor}.{port}"),
        };
        let from = end(&self.from, &self.from_port);
        format!("{from} -> {}", end(&self.to, &self.to_port))
    }
}

/// What an application that is done has left in its channels. The JSON types have the same two fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Unconsumed {
    /// The first [`CHANNELS_MAX`] channels with unconsumed elements.
    #[serde(rename = "unconsumed", default)]
    pub channels: Vec<UnconsumedChannel>,
    /// Number of further channels with such elements.
    #[serde(rename = "unconsumed_omitted", default)]
    pub omitted: usize,
}

impl Unconsumed {
    pub fn of(actors: &[ActorShape], counters: &Counters) -> Unconsumed {
        let mut all = UnconsumedChannel::find(actors, counters);
        Unconsumed {
            channels: all.by_ref().take(CHANNELS_MAX).collect(),
            omitted: all.count(),
        }
    }
}

/// Cuts a list from another process to [`CHANNELS_MAX`] channels.
pub(crate) fn cut(channels: &mut Vec<UnconsumedChannel>, omitted: &mut usize) {
    let excess = channels.len().saturating_sub(CHANNELS_MAX);
    channels.truncate(CHANNELS_MAX);
    *omitted = omitted.saturating_add(excess);
}

/// In one sentence, with the first channel; none if nothing was left over.
pub fn text(channels: &[UnconsumedChannel], omitted: usize) -> Option<String> {
    let (first, others) = channels.split_first()?;
    let more = match others.len().saturating_add(omitted) {
        0 => String::new(),
        more => format!(", and more in {}", plural(more, "other channel")),
    };
    let verb = if first.elements == 1 { "was" } else { "were" };
    let (elements, channel) = (first.elements_text(), first.channel_text());
    let reason = &first.reason;
    Some(format!(
        "{elements} {verb} left over in {channel} ({reason}){more}"
    ))
}

/// A line for each channel, and one for the number of others.
pub fn lines(channels: &[UnconsumedChannel], omitted: usize) -> Vec<String> {
    let mut lines: Vec<String> = channels.iter().map(UnconsumedChannel::to_string).collect();
    if omitted > 0 {
        lines.push(format!("and more in {}", plural(omitted, "other channel")));
    }
    lines
}

/// For JSON, which has no number of omitted channels if there are none.
pub(crate) fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, inputs: &[&str], outputs: &[&str]) -> ActorShape {
        let owned = |ports: &[&str]| ports.iter().map(|p| p.to_string()).collect();
        ActorShape {
            name: name.into(),
            class: "p.Class".into(),
            inputs: owned(inputs),
            outputs: owned(outputs),
        }
    }

    fn shapes() -> Vec<ActorShape> {
        vec![shape("a", &[], &["Out"]), shape("b", &["In", "By"], &[])]
    }

    /// A channel to an input of actor 1, in which `left` of 10 elements were left, and which awaits more.
    fn channel(input: u32, left: u64, awaited: u32) -> ChannelCounters {
        let mut channel = ChannelCounters {
            put: 10,
            got: 10 - left,
            fill: left as u32,
            awaited,
            ..ChannelCounters::default()
        };
        (channel.to.actor, channel.to.port) = (1, input);
        channel
    }

    fn unconsumed(channels: Vec<ChannelCounters>) -> Unconsumed {
        let counters = Counters {
            channels,
            ..Counters::default()
        };
        Unconsumed::of(&shapes(), &counters)
    }

    #[test]
    fn the_reason_is_what_the_consumer_waits_for() {
        for (channels, line) in [
            (
                vec![channel(0, 3, 4)],
                "3 elements in a.Out -> b.In: b waits for 4 there",
            ),
            (
                vec![channel(0, 1, 0), channel(1, 0, 2)],
                "1 element in a.Out -> b.In: b waits for 2 elements on its input By, which has 0",
            ),
            (
                vec![channel(0, 2, 0)],
                "2 elements in a.Out -> b.In: b takes no more",
            ),
        ] {
            assert_eq!(lines(&unconsumed(channels).channels, 0), [line]);
        }
        let mut outside = channel(0, 2, 0);
        outside.to.actor = u32::MAX;
        let unconsumed = unconsumed(vec![outside]);
        assert_eq!(
            lines(&unconsumed.channels, 0),
            ["2 elements in a.Out -> (the program): it takes no more"]
        );
        assert_eq!(unconsumed.channels[0].to, "");
    }

    #[test]
    fn empty_report_if_nothing_is_unconsumed() {
        let none = unconsumed(vec![channel(0, 0, 4)]);
        assert_eq!(none, Unconsumed::default());
        assert!(lines(&none.channels, 0).is_empty());
        assert_eq!(text(&none.channels, 0), None);
    }

    #[test]
    fn a_long_list_is_cut_and_says_how_many_channels_are_omitted() {
        let left = "1 element was left over in a.Out -> b.In (b waits for 4 there)";
        for (count, kept, more) in [
            (1, 1, ""),
            (2, 2, ", and more in 1 other channel"),
            (
                CHANNELS_MAX,
                CHANNELS_MAX,
                ", and more in 63 other channels",
            ),
            (
                CHANNELS_MAX + 9,
                CHANNELS_MAX,
                ", and more in 72 other channels",
            ),
        ] {
            let Unconsumed { channels, omitted } = unconsumed(vec![channel(0, 1, 4); count]);
            assert_eq!((channels.len(), omitted), (kept, count - kept));
            assert_eq!(text(&channels, omitted), Some(format!("{left}{more}")));
        }
        let all = unconsumed(vec![channel(0, 1, 4); CHANNELS_MAX + 9]);
        let lines = lines(&all.channels, all.omitted);
        assert_eq!(lines.len(), CHANNELS_MAX + 1);
        assert_eq!(lines[CHANNELS_MAX], "and more in 9 other channels");
        // What another process reports is cut, too.
        for (mut omitted, then) in [(9, 9 + 2 * CHANNELS_MAX), (usize::MAX, usize::MAX)] {
            let mut reported = [&all.channels[..]; 3].concat();
            cut(&mut reported, &mut omitted);
            assert_eq!((reported.len(), omitted), (CHANNELS_MAX, then));
        }
    }
}
