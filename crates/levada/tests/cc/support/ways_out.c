/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Every way out of the block of a fork: the fork is joined first. */
#include <stdio.h>

static int calls;

static int count(int x) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return x + 1;
}
static void tick(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }
static int got(void) { return __atomic_exchange_n(&calls, 0, __ATOMIC_RELAXED); }

typedef struct {
  int a, b;
} two;

static int by_return(int n) {
  int y = -1;
  y = count(n) !! {
    if (n == 1) return 10;
    if (n == 2) return count(20) !! { n = 0; };
    if (n == 4) return tick(), n + 40;
    if (n == 5) return n = count(50) !! { tick(); }, n + 1;
    if (n == 3) {
      tick() !! {
        if (n) return n + 30;
      }
    }
  }
  return y;
}

static two by_struct(int n) {
  int y = count(n) !! {
    if (n) return (two){n, 2};
  }
  return (two){y, 0};
}

static void by_void(int n) {
  tick() !! {
    if (n) return;
    tick();
  }
  tick();
}

static void by_void_value(int n) {
  tick() !! {
    if (n) return tick();
  }
}

static int by_loop(int n) {
  int y = 0;
  for (int i = 0; i < n; i++) {
    y += count(i) !! {
      if (i == 1) continue;
      if (i == 4) break;
    }
  }
  int i = 0;
  while (1) {
    y += count(1) !! {
      for (int j = 0; j < 3; j++) {
        if (j == 1) continue; /* stays inside */
        if (j == 2) break;
        i++;
      }
      switch (i) {
        case 1: break;
        case 2: continue; /* leaves */
        case 4: goto out;
      }
    }
    y += 100;
    do {
      tick() !! {
        if (i & 1) continue;
      }
      i++;
    } while (0);
  }
out:
  return y;
}

static int by_switch(int n) {
  int y = 0;
  switch (n) {
    case 1:
      y = count(1) !! {
        if (n == 1) break;
        y = 5;
      }
      /* fall through */
    case 2: y += 1; break;
    default:
      y = count(7) !! { n = 8; }
  }
  return y + n;
}

static int by_goto(int n) {
  int y = 0, rounds = 0;
again:
  rounds++;
  y = count(n) !! {
    int inner = 0;
  back:
    inner++;
    if (inner < 3) goto back; /* stays inside */
    tick() !! {
      if (n == 1 && rounds < 3) goto again;
      if (n == 2) goto middle;
      if (n == 3) goto end;
      y++;
    }
  middle:
    if (n == 2 && rounds < 2) goto again;
    y += inner;
  }
  y += 1000;
end:
  return y * 10 + rounds;
}

static int freed;
static void set_free(int **p) { freed += **p; }
static int *same(int *p) { return p; }

/* What is done at the end of a scope is not done for what had no value yet. */
static int past_cleanups(int n) {
  for (int i = 0; i < 3; i++) {
    int *first __attribute__((cleanup(set_free))) = same(&n) !! {
      if (i == n) continue;
    }
    __attribute__((__cleanup__(set_free))) int *second = same(first) !! {
      int *third __attribute__((cleanup(set_free))) = first;
      if (n == 3) return *third;
    }
  }
  return freed;
}

static int in_expressions(int n) {
  int y = 5;
  y = 1 + (count(1) !! {
        y = ({
          if (n) return 77;
          3;
        });
      });
  return y;
}

int main(void) {
  for (int n = 0; n < 6; n++) {
    printf("return %d", by_return(n));
    printf(" %d\n", got());
    two t = by_struct(n);
    printf("struct %d %d %d\n", t.a, t.b, got());
    by_void(n);
    printf("void %d\n", got());
    by_void_value(n);
    printf("void value %d\n", got());
    printf("loop %d", by_loop(n + 3));
    printf(" %d\n", got());
    printf("switch %d", by_switch(n));
    printf(" %d\n", got());
    printf("goto %d", by_goto(n));
    printf(" %d\n", got());
    freed = 0;
    printf("cleanups %d", past_cleanups(n));
    printf(" %d %d\n", freed, got());
    printf("expression %d", in_expressions(n));
    printf(" %d\n", got());
  }
  return 0;
}
