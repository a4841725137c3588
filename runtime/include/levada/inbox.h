/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Inbox: a bounded multi-producer single-consumer queue with priority levels.
 *
 * Entries are slots of a table. A sender claims a slot (or owns one permanently, as entities do),
 * fills in its payload, and posts its number with ONE compare-and-swap; the receiver takes all
 * posts of a level with one exchange, oldest first. A sender that dies before its compare-and-swap
 * has posted nothing and blocks no other sender; after it, the message is complete. A slot of a
 * dead owner is found by the owner's number and freed. The table bounds the queue.
 *
 * It contains indices only, no pointers, so it works in private or shared memory. Where other
 * processes write the memory too, the receiver uses an lvd_receiver, which keeps what it has taken
 * in private memory: each number is read once, validated, and not read again. A sender reads
 * nothing that could misdirect it.
 *
 * Guarantees
 *   I1  What a sender wrote before a post is visible to the receiver that takes the slot.
 *   I2  Of two posts at one level that are ordered (by one sender or otherwise), the first is
 *       taken first.
 *   I3  A receiver that has announced its sleep is woken by the next post.
 *   I4  A freed slot is claimed by one sender, which sees all that was done to it before.
 *   I5  Whatever the shared part holds, an lvd_receiver returns slots of the table only, each
 *       at most once until it is given back, and each of its calls terminates. After it reads
 *       a value that the protocol cannot produce it is corrupt, and returns no more slots.
 *   I6  The posts of a dead sender are taken; the slots that it had claimed and not posted are
 *       free after lvd_receiver_reap.
 *
 * Memory order pairs
 *   link: cas_release head          -> newest: exchange_acquire head                   I1
 *   post: head, fence, load waiting <> prepare_sleep: waiting, fence, load heads            I3
 *   free: store_release owner       -> claim: cas_acquire owner                        I4
 * (Posts form one release sequence: taking the newest synchronises with all older ones.)
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
  lvd_a32 next;  /* number + 1 of the next older post; 0: none */
} lvd_slot;

/* Distance in bytes between two slots: larger if each slot's payload follows it in the same cache
 * lines. To be defined before this header, equally for all users of the table. */
#ifndef LVD_SLOT_STRIDE
#define LVD_SLOT_STRIDE sizeof(lvd_slot)
#endif
static inline lvd_slot *lvd_slot_at(lvd_slot *slot, uint32_t n) {
  return (lvd_slot *)(void *)((unsigned char *)slot + (size_t)n * LVD_SLOT_STRIDE);
}

/* Alignment in bytes of the head of a level: a cache line if the receiver does not poll for more
 * after taking posts, so that the line stays with the senders. To be defined before this header. */
#ifndef LVD_INBOX_ALIGN
#define LVD_INBOX_ALIGN 4
#endif
typedef struct lvd_inbox_head {
  LVD_ALIGNED(LVD_INBOX_ALIGN) lvd_a32 newest; /* number + 1 of the newest post */
} lvd_inbox_head;

typedef struct lvd_inbox {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_inbox_head head[LVD_INBOX_LEVELS];
  /* The word on which the receiver sleeps. Not 0: it sleeps or is about to: a new even number for
   * each sleep, odd once a sender has rung. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 waiting;
  uint32_t sleeps; /* sleep counter, receiver only */
} lvd_inbox;

static inline void lvd_inbox_init(lvd_inbox *in) {
  for (uint32_t i = 0; i < LVD_INBOX_LEVELS; i++) lvd_store_relaxed_u32(&in->head[i].newest, 0);
  lvd_store_relaxed_u32(&in->waiting, 0);
  in->sleeps = 0;
}

/* Claims a free slot of `slots`, searching from `hint`; returns its number, or `slots` if all are
 * in use. `owner` must not be 0. */
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

/* True if the receiver sleeps or is about to, and the caller, which has left work for it, must wake
 * it as after a post. The word changes before the wake-up, so that a receiver that has not yet
 * entered the kernel does not sleep; it becomes 0 only after the wake-up (lvd_inbox_ack_wake), so
 * that if a sender dies in between, the next one wakes the receiver. */
static inline bool lvd_inbox_needs_wake(lvd_inbox *in, uint32_t *sleep) {
  lvd_fence_seq_cst();
  uint32_t seen = lvd_load_relaxed_u32(&in->waiting);
  *sleep = seen | 1;
  if (!seen) return false;
  if (seen != *sleep) lvd_cas_relaxed_u32(&in->waiting, &seen, *sleep);
  return true;
}

/* Links slot `n` in at `level` (the highest is taken first), without the fence and the check of
 * `waiting`: for receivers that sleep on another word, where the caller makes both. `head` is the
 * caller's guess of the level's head: loading it first would transfer the cache line twice while
 * the receiver polls it. */
static inline void lvd_inbox_link_behind(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level,
                                         uint32_t head) {
  do lvd_store_relaxed_u32(&lvd_slot_at(slot, n)->next, head);
  while (!lvd_cas_release_u32(&in->head[level].newest, &head, n + 1));
}
static inline void lvd_inbox_link(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level) {
  lvd_inbox_link_behind(in, slot, n, level, lvd_load_relaxed_u32(&in->head[level].newest));
}

/* Posts slot `n` at `level`. True: the receiver sleeps, and the caller must wake it on `waiting`,
 * then call lvd_inbox_ack_wake with *sleep. */
static inline bool lvd_inbox_post(lvd_inbox *in, lvd_slot *slot, uint32_t n, uint32_t level,
                                  uint32_t *sleep) {
  lvd_inbox_link(in, slot, n, level);
  return lvd_inbox_needs_wake(in, sleep);
}

/* Acknowledges that the receiver was woken from sleep `sleep`, so that later senders need not wake
 * it. If a sender dies before this, the only effect is one more wake-up. */
static inline void lvd_inbox_ack_wake(lvd_inbox *in, uint32_t sleep) {
  lvd_cas_relaxed_u32(&in->waiting, &sleep, 0);
}

/* Is anything posted? A hint; lvd_inbox_prepare_sleep makes it definite. */
static inline bool lvd_inbox_pending(const lvd_inbox *in) {
  uint32_t any = 0;
  for (uint32_t i = 0; i < LVD_INBOX_LEVELS; i++) any |= lvd_load_relaxed_u32(&in->head[i].newest);
  return any != 0;
}

/* Takes the posts at `level`: returns number + 1 of the newest, linked by `next` to the oldest; 0:
 * none. */
static inline uint32_t lvd_inbox_newest(lvd_inbox *in, uint32_t level) {
  if (lvd_load_relaxed_u32(&in->head[level].newest) == 0) return 0;
  return lvd_exchange_acquire_u32(&in->head[level].newest, 0);
}

/* Takes all posts at `level`: returns number + 1 of the oldest, linked by `next` to the newest; 0:
 * none. Receiver only, and only in memory without untrusted writers. */
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

/* Prepares to sleep. Not 0: nothing is pending; sleep while `waiting` has this value. 0: a post
 * has arrived; do not sleep. Call lvd_inbox_cancel_sleep afterwards. Receiver only. */
static inline uint32_t lvd_inbox_prepare_sleep(lvd_inbox *in) {
  /* Read once, since other processes may write it. */
  uint32_t sleep = (*(const volatile uint32_t *)&in->sleeps & ~1u) + 2;
  if (sleep == 0) sleep = 2;
  in->sleeps = sleep;
  lvd_store_relaxed_u32(&in->waiting, sleep);
  lvd_fence_seq_cst();
  if (!lvd_inbox_pending(in)) return sleep;
  lvd_store_relaxed_u32(&in->waiting, 0);
  return 0;
}
static inline void lvd_inbox_cancel_sleep(lvd_inbox *in) { lvd_store_relaxed_u32(&in->waiting, 0); }

/* ------------------------------------------------------------------------------------------ */
/* Receiver for memory with untrusted writers                                                 */
/* ------------------------------------------------------------------------------------------ */

#define LVD_SLOT_NOT_HELD UINT32_MAX

/* What a receiver has taken and not given back, in its private memory. */
typedef struct lvd_receiver {
  lvd_inbox *inbox;
  lvd_slot *slot;
  uint32_t slots;
  /* per slot: LVD_SLOT_NOT_HELD, or the next newer post (number + 1; 0: none) */
  uint32_t *next;
  uint32_t oldest[LVD_INBOX_LEVELS], newest[LVD_INBOX_LEVELS]; /* number + 1; 0: none */
  uint32_t ready; /* slots taken and not yet returned */
  bool corrupt;
} lvd_receiver;

/* `next`: private memory for `slots` numbers; slots < 2^31. The caller owns it. */
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

/* Moves the posts at `level` to the receiver's own list. */
LVD_NOINLINE void lvd_receiver_take_level(lvd_receiver *r, uint32_t level) {
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

/* Takes all posts; returns how many slots are ready. */
static inline uint32_t lvd_receiver_take(lvd_receiver *r) {
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0 && !r->corrupt;)
    if (lvd_load_relaxed_u32(&r->inbox->head[level].newest)) lvd_receiver_take_level(r, level);
  return r->ready;
}

/* Returns the next ready slot, highest level first, oldest first; `slots`: none. The receiver owns
 * it until lvd_receiver_give_back. */
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
/* Like lvd_receiver_next, after taking all new posts. */
static inline uint32_t lvd_receiver_get(lvd_receiver *r) {
  lvd_receiver_take(r);
  return lvd_receiver_next(r);
}
/* Frees a slot that has been read, so that it can be claimed again. */
static inline void lvd_receiver_give_back(lvd_receiver *r, uint32_t n) {
  r->next[n] = LVD_SLOT_NOT_HELD;
  lvd_slot_free(r->slot, n);
}

/* Frees the slots that the dead sender `owner` had claimed and not posted; the caller must have
 * established that it is dead. Returns how many. */
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
