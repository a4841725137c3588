/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The station: orders blocks from the sensor, which may start later, and prints what comes. */
#include "shared.h"

#include <string.h>

enum { BLOCKS = 5 };

int main(int argc, char **argv) {
  mcapi_status_t status;
  mcapi_request_t request;
  mcapi_domain_t domain;
  begin(argc, argv, STATION);
  domain = mcapi_domain_id_get(&status);

  order order = {.count = BLOCKS};
  order.answers = mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
  order.blocks = mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
  order.peaks = mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
  must(status, "create");

  /* Waits until the sensor is there. */
  mcapi_endpoint_t sensor =
      mcapi_endpoint_get(domain, SENSOR, ORDERS, MCAPI_TIMEOUT_INFINITE, &status);
  must(status, "find the sensor");
  mcapi_msg_send(order.answers, sensor, &order, sizeof order, 1, &status);
  must(status, "order");

  /* Done when the sensor has connected the channels and opened its ends. */
  mcapi_pktchan_recv_hndl_t packets;
  mcapi_sclchan_recv_hndl_t scalars;
  mcapi_pktchan_recv_open_i(&packets, order.blocks, &request, &status);
  must_end(&request, status, "open packets");
  mcapi_sclchan_recv_open_i(&scalars, order.peaks, &request, &status);
  must_end(&request, status, "open scalars");

  for (int block = 0; block < BLOCKS; block++) {
    /* A packet is read where it lies, and given back. */
    void *buffer;
    size_t size;
    mcapi_pktchan_recv(packets, &buffer, &size, &status);
    must(status, "receive a block");
    long sum = 0;
    int16_t sample;
    for (size_t i = 0; i < size; i += sizeof sample) {
      memcpy(&sample, (const char *)buffer + i, sizeof sample);
      sum += labs(sample);
    }
    mcapi_pktchan_release(buffer, &status);
    must(status, "release a block");
    mcapi_uint32_t peak = mcapi_sclchan_recv_uint32(scalars, &status);
    must(status, "receive a peak");
    printf("block %d: %zu samples, mean %ld, peak %u\n", block, size / sizeof sample,
           sum / (long)(size / sizeof sample), peak);
  }

  char answer[32];
  size_t size;
  mcapi_msg_recv(order.answers, answer, sizeof answer, &size, &status);
  must(status, "receive the answer");
  printf("the sensor says: %s\n", answer);
  mcapi_finalize(&status); /* closes what is open */
  must(status, "finalize");
  return 0;
}
