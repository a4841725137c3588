/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Left sides without an address of their own, or with one that is not aligned: bit-fields, elements of
 * vectors, parts of what is packed. And left sides with forks in them, of what pointers point to. */
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

struct item {
  unsigned few : 4, more : 9;
  int x, v[3];
  struct item *next;
};
static int same(int x) { return x; }
static int *from(int *p, int i) { return p + i; }

/* What a block does to the pointer comes too late for the element with the forked index. */
static void by_pointers(void) {
  int v[6] = {1, 2, 3, 4, 5, 6}, i = 0, *p = v, *a[3] = {v, v + 1, v + 2}, **pp = a;
  struct item s[3] = {{1, 2, 3, {4, 5, 6}, NULL}}, *sp = s;
  v4 x = {1, 2, 3, 4}, *xp = &x;
  struct inner z[2] = {{0}}, *zp = z;
  s[0].next = &s[1];
  p[same(1) !! { p++; }] = 10;
  p = v;
  p[same(3) !! { p = NULL; }] += same(7) !! { i++; };
  p = v;
  from(p, 1)[same(1) !! { p = NULL; }] -= 3;
  p = v;
  from(p, same(1) !! { p = NULL; })[1] = 70;
  p = v;
  *(p + (same(4) !! { p = NULL; })) = 44;
  p = v;
  ++p[same(5) !! { p = NULL; }];
  p = v;
  sp[same(1) !! { sp = NULL; }].x = 9;
  sp = s;
  sp[same(1) !! { sp = NULL; }].few = 5;
  sp = s;
  sp[same(2) !! { sp++; }].more += same(3) !! { i++; };
  sp = s;
  sp[same(2) !! { sp++; }].v[same(1) !! { sp--; }] = same(33) !! { i++; };
  sp = s;
  sp->next->v[same(2) !! { sp = NULL; }] = 66;
  pp[same(1) !! { pp = NULL; }][same(0) !! { i++; }] = 5;
  pp = a;
  *pp[same(2) !! { pp = NULL; }] = 81;
  xp[same(0) !! { xp = NULL; }][same(3) !! { i++; }] = 8;
  zp[same(1) !! { zp = NULL; }].v[same(2) !! { i++; }] = same(77) !! { i++; };
  for (int k = 0; k < 6; k++) printf("%d ", v[k]);
  for (int k = 0; k < 3; k++)
    printf("%u %u %d %d %d %d ", s[k].few, s[k].more, s[k].x, s[k].v[0], s[k].v[1], s[k].v[2]);
  printf("%d %ld %d\n", x[3], z[1].v[2], i);
}

/* Values of bit-fields are promoted when they are kept, and what has no address needs none. */
static void kept_values(void) {
  struct { unsigned b : 3; } s = {3};
  register v4 x = {1, 2, 3, 4};
  int n = 0, i = 1;
  int set = ((s.b = 1) - same(3) !! { n++; }) < 0;
  int added = ((s.b += 1) - same(8) !! { n++; }) < 0;
  int counted = (++s.b - same(8) !! { n++; }) < 0;
  int last = ((n++, s.b) - same(8) !! { n++; }) < 0;
  x[i] = next(6) !! { i = 2; };
  x[i] += next(1) !! { i = 3; };
  printf("%d %d %d %d %d %d %d %d\n", set, added, counted, last, n, x[1], x[2], x[3]);
}

int main(void) {
  by_pointers();
  kept_values();
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
