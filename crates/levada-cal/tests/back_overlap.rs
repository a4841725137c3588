// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Both sides of a channel overlap: what a compiled actor has put or got is visible after half a channel or
//! LEVADA_PUBLISH_BYTES at the latest, however much it moves at a time, and from any position. Otherwise its peer on
//! another core, which has half of the channel to work with meanwhile, would wait.

mod back_support;

use back_support::{Folder, runtime};
use std::process::Command;

/// Calls what compiled actors call of ports, and says what the other side has not seen when it is called again.
const MAIN: &str = r#"
#include "prelude.h"

enum { PUBLISH = LEVADA_PUBLISH_BYTES / sizeof(uint32_t) };

static uint32_t most_unseen(uint32_t capacity, uint32_t rate, uint32_t begins, bool gets) {
  lvd_channel *ch = aligned_alloc(LVD_CACHE_LINE, lvd_channel_header_size(1));
  lvd_producer p;
  lvd_consumer c;
  uint32_t most = 0;
  lvd_channel_init(ch, malloc(4 * capacity), 4, capacity, capacity, 1, LVD_CHANNEL_MIRRORED);
  lvd_producer_attach(&p, ch, NULL, false);
  lvd_consumer_attach(&c, ch, 0, NULL, false);
  for (int round = 0; round < 100; round++) {
    /* The peer fills or empties all that it sees; for the first time only a part. */
    uint32_t peer = gets ? lvd_room(&p, capacity) : lvd_elements(&c, capacity), used = 0;
    if (!round && peer > begins) peer = begins;
    if (gets) lvd_put_done(&p, peer), lvd_push(&p);
    else lvd_get_done(&c, peer), lvd_pop(&c);
    for (int look = 0; look < 2; look++) {
      uint32_t n = gets ? levada_elements(&c, used, rate, PUBLISH)
                        : levada_room(&p, used, rate, PUBLISH);
      uint32_t unseen = (uint32_t)(gets ? c.got - c.popped : p.put - p.pushed);
      used = n / rate * rate;
      if (unseen + used > most) most = unseen + used;
    }
    if (gets) lvd_get_done(&c, used);
    else lvd_put_done(&p, used);
  }
  return most;
}

int main(void) {
  for (uint32_t capacity = 2; capacity <= 8 * PUBLISH; capacity *= 2)
    for (uint32_t rate = 1; rate <= 5 && rate <= capacity; rate++)
      for (uint32_t part = 0; part < 4; part++)
        for (int gets = 0; gets < 2; gets++) {
          uint32_t begins = capacity / 4 * part + part;
          uint32_t most = most_unseen(capacity, rate, begins > capacity ? capacity : begins, gets);
          uint32_t may = capacity / 2 < PUBLISH ? capacity / 2 : PUBLISH;
          if (may < rate) may = rate;
          if (most > may || most < rate)
            printf("%s %u of %u, at first %u: %u\n", gets ? "gets" : "puts", rate, capacity, begins, most);
        }
}
"#;

#[test]
fn others_see_what_was_put_or_got_after_half_a_channel_or_8_kib() {
    let folder = Folder::new();
    let (c, exe) = (folder.0.join("main.c"), folder.0.join("main"));
    std::fs::write(&c, MAIN).unwrap();
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/emit");
    let mut cc = Command::new("cc");
    cc.args(["-std=c17", "-O2", "-D_GNU_SOURCE", "-I", here, "-I"]);
    cc.arg(runtime().join("include"));
    cc.arg(&c).arg("-o").arg(&exe);
    assert!(cc.status().unwrap().success());
    let out = Command::new(exe).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "");
}
