/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Attributes of a node before it is initialized. Also compiled for nodes without an operating
 * system. */
#include "attributes.h"

#include <stdbool.h>
#include <string.h>

void mcapi_node_init_attributes(mcapi_node_attributes_t *mcapi_node_attributes,
                                mcapi_status_t *mcapi_status) {
  if (mcapi_node_attributes)
    *mcapi_node_attributes = (mcapi_node_attributes_t){.type = MCAPI_NODE_ATTR_TYPE_REGULAR,
                                                       .transport = LVD_MCAPI_NODE_ATTR_TRANSPORT,
                                                       .group = LVD_MCAPI_NO_GROUP};
  if (mcapi_status) *mcapi_status = mcapi_node_attributes ? MCAPI_SUCCESS : MCAPI_ERR_PARAMETER;
}

void mcapi_node_set_attribute(mcapi_node_attributes_t *mcapi_node_attributes,
                              mcapi_uint_t attribute_num, const void *attribute,
                              size_t attribute_size, mcapi_status_t *mcapi_status) {
  mcapi_status_t status = mc_node_attribute_error(attribute_num, attribute, attribute_size);
  if (!mcapi_node_attributes) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) {
    mcapi_uint_t value;
    memcpy(&value, attribute, sizeof value);
    bool transport = attribute_num == LVD_MCAPI_NODE_ATTR_TRANSPORT;
    bool group = attribute_num == LVD_MCAPI_NODE_ATTR_GROUP;
    bool good = transport ? value == LVD_MCAPI_TRANSPORT_SHM || value == LVD_MCAPI_TRANSPORT_PMQ
                          : group || value < MCAPI_NODE_ATTR_TYPE_END;
    if (!good)
      status = MCAPI_ERR_ATTR_VALUE;
    else if (transport)
      mcapi_node_attributes->transport = LVD_MCAPI_NODE_ATTR_TRANSPORT + value;
    else if (group)
      mcapi_node_attributes->group = value;
    else
      mcapi_node_attributes->type = value;
  }
  if (mcapi_status) *mcapi_status = status;
}
