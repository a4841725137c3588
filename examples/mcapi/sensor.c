/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The sensor: waits for an order, then sends blocks of samples as packets, and the peak of each block as
 * a scalar. */
#include "shared.h"

/* One period of a triangle, louder with each block. */
static int32_t measure(int16_t *sample, uint32_t block) {
  int32_t peak = 0;
  for (int i = 0; i < SAMPLES; i++) {
    int32_t ramp = i < SAMPLES / 2 ? i - SAMPLES / 4 : 3 * SAMPLES / 4 - i;
    sample[i] = (int16_t)(ramp * (int32_t)(block + 1));
    if (abs(sample[i]) > peak) peak = abs(sample[i]);
  }
  return peak;
}

int main(int argc, char **argv) {
  mcapi_status_t status;
  mcapi_request_t request;
  begin(argc, argv, SENSOR);

  /* A message: any node can send it to an endpoint that has been created; it arrives as a whole. */
  order order;
  size_t size;
  mcapi_endpoint_t orders = mcapi_endpoint_create(ORDERS, &status);
  must(status, "create");
  mcapi_msg_recv(orders, &order, sizeof order, &size, &status);
  must(status, "receive the order");

  /* Two channels: either side may connect them; each opens its own end. */
  mcapi_endpoint_t blocks = mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
  mcapi_endpoint_t peaks = mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
  must(status, "create");
  mcapi_pktchan_send_hndl_t packets;
  mcapi_sclchan_send_hndl_t scalars;
  mcapi_pktchan_connect_i(blocks, order.blocks, &request, &status);
  must_end(&request, status, "connect packets");
  mcapi_sclchan_connect_i(peaks, order.peaks, &request, &status);
  must_end(&request, status, "connect scalars");
  mcapi_pktchan_send_open_i(&packets, blocks, &request, &status);
  must_end(&request, status, "open packets");
  mcapi_sclchan_send_open_i(&scalars, peaks, &request, &status);
  must_end(&request, status, "open scalars");

  for (uint32_t block = 0; block < order.count; block++) {
    int16_t sample[SAMPLES];
    int32_t peak = measure(sample, block);
    mcapi_pktchan_send(packets, sample, sizeof sample, &status);
    must(status, "send a block");
    mcapi_sclchan_send_uint32(scalars, (uint32_t)peak, &status);
    must(status, "send a peak");
  }

  /* What was sent before an end is closed still arrives. */
  mcapi_pktchan_send_close_i(packets, &request, &status);
  must_end(&request, status, "close packets");
  mcapi_sclchan_send_close_i(scalars, &request, &status);
  must_end(&request, status, "close scalars");
  static const char done[] = "that was all";
  mcapi_msg_send(orders, order.answers, done, sizeof done, MCAPI_MAX_PRIORITY, &status);
  must(status, "answer");
  mcapi_finalize(&status);
  must(status, "finalize");
  return 0;
}
