/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Checks of a node's attributes. Needs no operating system. */
#ifndef LVD_MCAPI_ATTRIBUTES_H
#define LVD_MCAPI_ATTRIBUTES_H

#include <levada/mcapi_ext.h>

/* MCAPI_SUCCESS, or why the attribute cannot be read or written so. */
static inline mcapi_status_t mc_node_attribute_error(mcapi_uint_t number, const void *attribute,
                                                     size_t size) {
  if (!attribute) return MCAPI_ERR_PARAMETER;
  if (number >= MCAPI_NODE_ATTR_END && number != LVD_MCAPI_NODE_ATTR_TRANSPORT &&
      number != LVD_MCAPI_NODE_ATTR_GROUP)
    return MCAPI_ERR_ATTR_NUM;
  return size == sizeof(mcapi_node_attr_type_t) ? MCAPI_SUCCESS : MCAPI_ERR_ATTR_SIZE;
}

#endif
