/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Open ports of a network: one end of their channel belongs to the program that loads the network. The tools do not
 * use these ends and close them. In C, since the functions are inline and Rust cannot call them. */
#include <levada/runtime.h>

/* Closes all channel ends of `app`, an application of `net`, that no actor has. Call it before the start. */
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
