/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names of the status codes. Also compiled for nodes without an operating system. */
#include <mcapi.h>

#include <string.h>

#define NAME(status) [status] = #status
static const char *const names[] = {NAME(MCAPI_SUCCESS),
                                    NAME(MCAPI_PENDING),
                                    NAME(MCAPI_TIMEOUT),
                                    NAME(MCAPI_ERR_PARAMETER),
                                    NAME(MCAPI_ERR_DOMAIN_INVALID),
                                    NAME(MCAPI_ERR_NODE_INVALID),
                                    NAME(MCAPI_ERR_NODE_INITFAILED),
                                    NAME(MCAPI_ERR_NODE_INITIALIZED),
                                    NAME(MCAPI_ERR_NODE_NOTINIT),
                                    NAME(MCAPI_ERR_NODE_FINALFAILED),
                                    NAME(MCAPI_ERR_PORT_INVALID),
                                    NAME(MCAPI_ERR_ENDP_INVALID),
                                    NAME(MCAPI_ERR_ENDP_EXISTS),
                                    NAME(MCAPI_ERR_ENDP_GET_LIMIT),
                                    NAME(MCAPI_ERR_ENDP_DELETED),
                                    NAME(MCAPI_ERR_ENDP_NOTOWNER),
                                    NAME(MCAPI_ERR_ENDP_REMOTE),
                                    NAME(MCAPI_ERR_ENDP_NOPORTS),
                                    NAME(MCAPI_ERR_ENDP_LIMIT),
                                    NAME(MCAPI_ERR_ATTR_INCOMPATIBLE),
                                    NAME(MCAPI_ERR_ATTR_SIZE),
                                    NAME(MCAPI_ERR_ATTR_NUM),
                                    NAME(MCAPI_ERR_ATTR_VALUE),
                                    NAME(MCAPI_ERR_ATTR_NOTSUPPORTED),
                                    NAME(MCAPI_ERR_ATTR_READONLY),
                                    NAME(MCAPI_ERR_MSG_SIZE),
                                    NAME(MCAPI_ERR_MSG_TRUNCATED),
                                    NAME(MCAPI_ERR_CHAN_OPEN),
                                    NAME(MCAPI_ERR_CHAN_TYPE),
                                    NAME(MCAPI_ERR_CHAN_DIRECTION),
                                    NAME(MCAPI_ERR_CHAN_CONNECTED),
                                    NAME(MCAPI_ERR_CHAN_OPENPENDING),
                                    NAME(MCAPI_ERR_CHAN_CLOSEPENDING),
                                    NAME(MCAPI_ERR_CHAN_NOTOPEN),
                                    NAME(MCAPI_ERR_CHAN_INVALID),
                                    NAME(MCAPI_ERR_PKT_SIZE),
                                    NAME(MCAPI_ERR_SCL_SIZE),
                                    NAME(MCAPI_ERR_TRANSMISSION),
                                    NAME(MCAPI_ERR_PRIORITY),
                                    NAME(MCAPI_ERR_BUF_INVALID),
                                    NAME(MCAPI_ERR_MEM_LIMIT),
                                    NAME(MCAPI_ERR_REQUEST_INVALID),
                                    NAME(MCAPI_ERR_REQUEST_LIMIT),
                                    NAME(MCAPI_ERR_REQUEST_CANCELLED),
                                    NAME(MCAPI_ERR_WAIT_PENDING),
                                    NAME(MCAPI_ERR_GENERAL)};

char *mcapi_display_status(mcapi_status_t status, char *status_message, size_t size) {
  if (!status_message || size == 0) return NULL;
  if (status == 0 || status >= MCAPI_STATUSCODE_END || !names[status]) return NULL;
  size_t length = strlen(names[status]), n = length < size ? length : size - 1;
  memcpy(status_message, names[status], n);
  status_message[n] = 0;
  return status_message;
}

void mcapi_set_debug_level(int d) { (void)d; }
