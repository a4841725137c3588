/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCA: types and constants shared by the interfaces of the Multicore Association. Included by
 * <mcapi.h>. C and C++. */
#ifndef MCA_H
#define MCA_H

#include <stddef.h>
#include <stdint.h> /* programs rely on it */

typedef int mca_int_t;
typedef signed char mca_int8_t;
typedef short mca_int16_t;
typedef int mca_int32_t;
typedef long long mca_int64_t;
typedef unsigned int mca_uint_t;
typedef unsigned char mca_uint8_t;
typedef unsigned short mca_uint16_t;
typedef unsigned int mca_uint32_t;
typedef unsigned long long mca_uint64_t;
typedef unsigned char mca_boolean_t;
typedef unsigned int mca_domain_t;
typedef unsigned int mca_node_t;
typedef unsigned int mca_status_t;
typedef unsigned int mca_timeout_t;

#define MCA_TRUE                 1
#define MCA_FALSE                0
#define MCA_NULL                 0
#define MCA_INFINITE             (~0u)
#define MCA_RETURN_VALUE_INVALID (~0u)
#define MCA_NODE_INVALID         (~0u)
#define MCA_DOMAIN_INVALID       (~0u)

/* Direction of a parameter. A program may define its own. */
#ifndef MCA_IN
#define MCA_IN const
#endif
#ifndef MCA_OUT
#define MCA_OUT
#endif

#ifdef __GNUC__
#define MCA_DECL_ALIGNED __attribute__((aligned(32)))
#else
#define MCA_DECL_ALIGNED
#endif

/* Organizations with a range of attribute numbers. */
#define MCA_ORG_ID_PSI 0
#define MCA_ORG_ID_FSL 1
#define MCA_ORG_ID_MGC 2
#define MCA_ORG_ID_TBA 3

#endif
