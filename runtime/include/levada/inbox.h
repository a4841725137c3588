/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Inbox: a bounded many-to-one queue with priorities.
 *
 * What is queued are slots of a table: a sender claims a slot (or owns one for good, as entities
 * do), fills what belongs to it, and posts its number with ONE compare-and-swap; the receiver takes
 * all that was posted at a level with one exchange, oldest first. A sender that dies before its
 * compare-and-swap has posted nothing and holds nobody up; after it, the message is whole. A slot
 * that died with its owner is found by the owner's number and freed. Bounded by the table.
 *
 * Indices only, no pointers: private memory or shared. Where others write the memory too, the receiver
 * takes through an lvd_receiver, which keeps what it has taken to itself: a number is read once,
 * checked, and never read again. A sender reads nothing that could lead it astray.
 *
 * Guarantees
 *   I1  What a sender wrote before a post is visible to the receiver that takes the slot.
 *   I2  Of two posts at one level, of one sender or ordered otherwise, the first is taken first.
 *   I3  A receiver that has announced its sleep is woken by the next post.
 *   I4  A freed slot is claimed by one sender, who sees what was done to it before it was freed.
 *   I5  Whatever the shared part holds, an lvd_receiver hands out slots of the table only, each once
 *       until it is given back, and no call of it goes on without end. One that reads what the
 *       protocol cannot have written is corrupt from then on, and hands out nothing more.
 *   I6  Of a sender that is dead what it posted is taken, and the slots that it had claimed and not
 *       posted are free after lvd_receiver_reap.
 *
 * Pairs of orders
 *   link: cas_release head          -> newest: exchange_acquire head                   I1
 *   post: head, fence, load waiting <> announce: waiting, fence, load heads            I3
 *   free: store_release owner       -> claim: cas_acquire owner                        I4
 * (Posts form one release sequence: taking the newest synchronises with all below it.)
 *
 * Freestanding; C17 and C++17. */
#ifndef LVD_INBOX_H
#define LVD_INBOX_H

#include <levada/atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_INBOX_LEVELS 8u

typedef struct lvd_slot {
  lvd_a32 owner; /* 0: free */
  lvd_a32 next;  /* number + 1 of the next older one; 0: none */
} lvd_slot;

/* From one slot to the next: more, where what belongs to a slot lies behind it in the same lines, for
 * all who use the table. Defined before this header. */
#ifndef LVD_SLOT_STRIDE
#define LVD_SLOT_STRIDE sizeof(lvd_slot)
#endif
static inline lvd_slot *lvd_slot_at(lvd_slot *slot, uint32_t n) {
  return (lvd_slot *)(void *)((unsigned char *)slot + (size_t)n * LVD_SLOT_STRIDE);
}

/* What the head of a level is aligned to: a line, where a receiver that has taken something over does not
 * look for more of it, so that the line stays with those who post. Defined before this header. */
#ifndef LVD_INBOX_ALIGN
#define LVD_INBOX_ALIGN 4
#endif
typedef struct lvd_inbox_head {
  LVD_ALIGNED(LVD_INBOX_ALIGN) lvd_a32 newest; /* number + 1 of the newest post */
} lvd_inbox_head;

typedef struct lvd_inbox {
  LVD_ALIGNED(LVD_LINE) lvd_inbox_head head[LVD_INBOX_LEVELS];
  LVD_ALIGNED(LVD_LINE)
  lvd_a32 waiting; /* not 0: the receiver sleeps, or is about to; this word is
                                            what it sleeps on; a new even number for each
                                            sleep, odd when a sender has rung */
  uint32_t sleeps; /* the receiver's own count */
} lvd_inbox;

static inline void lvd_inbox_init(lvd_inbox *in) {
  for (uint32_t i = 0; i < LVD_INBOX_LEVELS; i++) lvd_store_relaxed_u32(&in->head[i].newest, 0);
  lvd_store_relaxed_u32(&in->waiting, 0);
  in->sleeps = 0;
}

/* Claims a free slot of `slots`, looking from `hint` on; returns its number, or `slots` when all
 * are taken. `owner` is not 0. */
static inline uint32_t lvd_slot_claim(lvd_slot *slot, uint32_t slots, uint32_t hint,
                                      uint32_t owner) {
  uint32_t n = hint < slots ? hint : hint % slots;
  for (uint32_t i = 0; i < slots; i++) {
    uint32_t expected = 0;
    if (lvd_load_relaxed_u32(&lvd_slot_at(slot, n)->owner) == 0 &&
        lvd_cas_acquire_u32(&lvd_slot_at(slot, n)->owner, &expected, owner))
      return n;
    if (++n == slots) n = 0;
  }
  return slots;
}
static inline void lvd_slot_free(lvd_slot *slot, uint32_t n) {
  lvd_store_release_u32(&lvd_slot_at(slot, n)->owner, 0);
}

/* After something was left for the receiver: does it sleep, or is it about to? Then the caller must
 * wake it, as after a post. The word changes before the wake, so that a receiver that has not
 * reached the kernel yet does not sleep there; it becomes 0 only after the wake (lvd_inbox_woken),
 * so that a sender that dies between the two leaves it to the next one. */
static inline bool lvd_inbox_asleep(lvd_inbox *in, uint32_t *sleep) {
  lvd_fence_seq_cst();
  uint32_t seen = lvd_load_relaxed_u32(&in->waiting);
  *sleep = seen | 1;
  if (!seen) return false;
  if (seen != *sleep) lvd_cas_relaxed_u32(&in->waiting, &seen, *sleep);
  return true;
}

/* Links slot `n` in at `level` (the highest is taken first). For those whose receiver sleeps on
 * something else, and who make the fence and look there. `head` is what is posted there as far as the
 * caller knows; it may guess: to ask first brings the line twice where the receiver is looking. */
static inline void lvd_inbox_link_behind(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level,
                                         uint32_t head) {
  do lvd_store_relaxed_u32(&lvd_slot_at(slot, n)->next, head);
  while (!lvd_cas_release_u32(&in->head[level].newest, &head, n + 1));
}
static inline void lvd_inbox_link(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level) {
  lvd_inbox_link_behind(in, slot, n, level, lvd_load_relaxed_u32(&in->head[level].newest));
}

/* Posts slot `n` at `level`. True: the receiver sleeps, and the caller must wake it: wake `waiting`,
 * then lvd_inbox_woken with *sleep. */
static inline bool lvd_inbox_post(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level,
                                  uint32_t *sleep) {
  lvd_inbox_link(in, slot, n, level);
  return lvd_inbox_asleep(in, sleep);
}

/* The receiver has been woken from sleep number `sleep`: later senders need not do it again. A
 * sender that dies before this leaves the others to wake once more, no more. */
static inline void lvd_inbox_woken(lvd_inbox *in, uint32_t sleep) {
  lvd_cas_relaxed_u32(&in->waiting, &sleep, 0);
}

/* Is anything posted? A guess, made certain by lvd_inbox_announce. */
static inline bool lvd_inbox_pending(const lvd_inbox *in) {
  uint32_t any = 0;
  for (uint32_t i = 0; i < LVD_INBOX_LEVELS; i++) any |= lvd_load_relaxed_u32(&in->head[i].newest);
  return any != 0;
}

/* Takes the posts at `level` away: the number + 1 of the newest, which leads by `next` to the oldest;
 * 0: there are none. */
static inline uint32_t lvd_inbox_newest(lvd_inbox *in, uint32_t level) {
  if (lvd_load_relaxed_u32(&in->head[level].newest) == 0) return 0;
  return lvd_exchange_acquire_u32(&in->head[level].newest, 0);
}

/* Takes everything posted at `level`, in memory that nobody else writes at will: the number + 1 of
 * the oldest, which leads by `next` to the newest; 0 if there was nothing. Receiver only. */
static inline uint32_t lvd_inbox_take(lvd_inbox *in, lvd_slot *slot, uint32_t level) {
  uint32_t newest = lvd_inbox_newest(in, level), oldest = 0;
  while (newest) {
    uint32_t older = lvd_load_relaxed_u32(&lvd_slot_at(slot, newest - 1)->next);
    lvd_store_relaxed_u32(&lvd_slot_at(slot, newest - 1)->next, oldest);
    oldest = newest;
    newest = older;
  }
  return oldest;
}

/* The receiver is about to sleep. Not 0: nothing is pending, sleep while `waiting` has this value.
 * 0: something came; do not sleep. Receiver only; afterwards lvd_inbox_awake. */
static inline uint32_t lvd_inbox_announce(lvd_inbox *in) {
  /* Read once, since others may write it. */
  uint32_t sleep = (*(const volatile uint32_t *)&in->sleeps & ~1u) + 2;
  if (sleep == 0) sleep = 2;
  in->sleeps = sleep;
  lvd_store_relaxed_u32(&in->waiting, sleep);
  lvd_fence_seq_cst();
  if (!lvd_inbox_pending(in)) return sleep;
  lvd_store_relaxed_u32(&in->waiting, 0);
  return 0;
}
static inline void lvd_inbox_awake(lvd_inbox *in) { lvd_store_relaxed_u32(&in->waiting, 0); }

/* ------------------------------------------------------------------------------------------ */
/* A receiver among others who may write anything                                              */
/* ------------------------------------------------------------------------------------------ */

#define LVD_SLOT_NOT_HELD UINT32_MAX

/* What a receiver has taken and not given back, in memory of its own. */
typedef struct lvd_receiver {
  lvd_inbox *inbox;
  lvd_slot *slot;
  uint32_t slots;
  uint32_t
      *next; /* for each slot: LVD_SLOT_NOT_HELD, or what was posted after it (number + 1; 0) */
  uint32_t oldest[LVD_INBOX_LEVELS], newest[LVD_INBOX_LEVELS]; /* number + 1; 0: none */
  uint32_t ready;                                              /* taken, and not handed out */
  bool corrupt;
} lvd_receiver;

/* `next`: memory for `slots` numbers, below 2^31 of them; of this program alone. */
static inline void lvd_receiver_init(lvd_receiver *r, lvd_inbox *in, lvd_slot *slot, uint32_t slots,
                                     uint32_t *next) {
  r->inbox = in;
  r->slot = slot;
  r->slots = slots;
  r->next = next;
  for (uint32_t i = 0; i < slots; i++) next[i] = LVD_SLOT_NOT_HELD;
  for (uint32_t i = 0; i < LVD_INBOX_LEVELS; i++) r->oldest[i] = r->newest[i] = 0;
  r->ready = 0;
  r->corrupt = false;
}

/* Takes what was posted at `level` over into the receiver's own list. */
LVD_APART void lvd_receiver_take_level(lvd_receiver *r, uint32_t level) {
  uint32_t newest = lvd_inbox_newest(r->inbox, level), oldest = 0, count = 0;
  if (!newest) return;
  for (uint32_t n = newest; n; count++) {
    if (n > r->slots || r->next[n - 1] != LVD_SLOT_NOT_HELD) {
      r->corrupt = true;
      r->ready = 0;
      return;
    }
    r->next[n - 1] = oldest;
    oldest = n;
    n = lvd_load_relaxed_u32(&lvd_slot_at(r->slot, n - 1)->next);
  }
  if (r->newest[level])
    r->next[r->newest[level] - 1] = oldest;
  else
    r->oldest[level] = oldest;
  r->newest[level] = newest;
  r->ready += count;
}

/* Takes over all that was posted; how many slots there are to get. */
static inline uint32_t lvd_receiver_take(lvd_receiver *r) {
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0 && !r->corrupt;)
    if (lvd_load_relaxed_u32(&r->inbox->head[level].newest)) lvd_receiver_take_level(r, level);
  return r->ready;
}

/* Of what has been taken over, the next slot to be read, the most urgent and of those the oldest;
 * `slots`: there is none. It is the receiver's until it gives it back. */
static inline uint32_t lvd_receiver_next(lvd_receiver *r) {
  if (r->ready == 0) return r->slots;
  uint32_t level = LVD_INBOX_LEVELS - 1;
  while (!r->oldest[level]) level--;
  uint32_t n = r->oldest[level] - 1;
  r->oldest[level] = r->next[n];
  if (!r->oldest[level]) r->newest[level] = 0;
  r->next[n] = 0;
  r->ready--;
  return n;
}
/* The same of all that was posted. */
static inline uint32_t lvd_receiver_get(lvd_receiver *r) {
  lvd_receiver_take(r);
  return lvd_receiver_next(r);
}
/* It is read: it may be claimed again. */
static inline void lvd_receiver_give_back(lvd_receiver *r, uint32_t n) {
  r->next[n] = LVD_SLOT_NOT_HELD;
  lvd_slot_free(r->slot, n);
}

/* The sender that claimed as `owner` is dead, and whoever calls has seen that it is: frees what it
 * had claimed and not posted. How many slots that were. */
static inline uint32_t lvd_receiver_reap(lvd_receiver *r, uint32_t owner) {
  uint32_t freed = 0;
  lvd_receiver_take(r);
  for (uint32_t n = 0; n < r->slots && !r->corrupt; n++) {
    if (r->next[n] != LVD_SLOT_NOT_HELD) continue;
    if (lvd_load_relaxed_u32(&lvd_slot_at(r->slot, n)->owner) != owner) continue;
    lvd_slot_free(r->slot, n);
    freed++;
  }
  return freed;
}

#ifdef __cplusplus
}
#endif
#endif
