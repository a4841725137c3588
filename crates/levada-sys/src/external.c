/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ports that a network leaves open: their channels have the program at the other end, and this
 * program has nothing to say there. Uses the inline half of the interface, which Rust cannot call. */
#include <levada/runtime.h>

void lvd_sys_close_external(lvd_app *app, const lvd_network *net);

void lvd_sys_close_external(lvd_app *app, const lvd_network *net) {
  for (uint32_t i = 0; i < net->channels; i++) {
    const lvd_channel_desc *channel = &net->channel[i];
    if (channel->from.actor == LVD_EXTERNAL) {
      lvd_producer *producer = lvd_app_producer(app, i);
      if (producer) lvd_producer_close(producer, LVD_OK);
    }
    for (uint32_t j = 0; j < channel->consumers; j++) {
      if (channel->to[j].actor != LVD_EXTERNAL) continue;
      lvd_consumer *consumer = lvd_app_consumer(app, i, j);
      if (consumer) lvd_consumer_close(consumer);
    }
  }
}
