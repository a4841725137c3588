/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Left sides without an address of their own, or with one that is not aligned: bit-fields, elements of
 * vectors, parts of what is packed. */
#include <stdio.h>

struct __attribute__((packed)) inner {
  char c;
  long v[4];
  unsigned bits : 5;
};
struct __attribute__((packed)) outer {
  char c;
  struct inner in[3];
  int last;
};
typedef int v4 __attribute__((vector_size(16)));
struct vectors {
  int x;
  v4 v[2];
};
struct few {
  unsigned n : 2;
};

static long next(long x) { return x + 1; }
static int at(int *n) { return (*n)++; }

int main(void) {
  struct outer o = {0}, *p = &o;
  struct vectors s = {0};
  struct few few = {2};
  int n = 0, block = 0, m[2][3] = {{0}};
  o.in[1].v[2] = next(1) !! { block++; };
  p->in[at(&n)].v[at(&n)] = next(2) !! { block++; };
  p->in[at(&n)].bits += next(3) !! { block++; };
  (*p).in[0].v[3] -= next(4) !! { block++; };
  o.in[0].v[at(&n)]++;
  o.in[few.n].v[few.n] = next(40) !! { few.n = 1; };
  long sum = (p->in[2].v[at(&n) - 4] = next(5) !! { block++; }) + next(6) !! { block++; };
  s.v[1][at(&n) - 3] = next(7) !! { block++; };
  o.last = next(8) !! { block++; };
  p->last *= next(9) !! { block++; };
  m[1][at(&n) - 4] = next(11) !! { n = 0; };
  for (int i = 0; i < 3; i++)
    printf("%ld %ld %ld %ld %u\n", o.in[i].v[0], o.in[i].v[1], o.in[i].v[2], o.in[i].v[3],
           o.in[i].bits);
  printf("%d %d %d %ld %d %d %d\n", o.last, n, block, sum, s.v[1][2], m[1][2], few.n);
  return 0;
}
