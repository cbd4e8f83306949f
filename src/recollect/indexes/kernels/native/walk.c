/* Postings: from occurrences to the shares of each document.
 *
 * Terms are processed one at a time. The sums of documents are collected in scratch memory, which is all zeros between
 * questions; only documents that were touched are visited again.
 */

#include "walk.h"

const char *rc_sources(void) { return RC_SOURCES; }

int rc_checked(void) {
#ifdef RC_CHECKED
    return 1;
#else
    return 0;
#endif
}

rc_scratch *rc_scratch_new(void) { return calloc(1, sizeof(rc_scratch)); }

static void empty(rc_scratch *scratch) {
    free(scratch->sums);
    free(scratch->near);
    free(scratch->reach);
    free(scratch->touched);
    free(scratch->masses);
    free(scratch->session_sums);
    free(scratch->met);
    free(scratch->wanted);
    free(scratch->is_wanted);
    free(scratch->session_bounds);
    free(scratch->bounded_sessions);
    free(scratch->bounds);
    free(scratch->bounded);
    free(scratch->inside);
    free(scratch->done);
    free(scratch->candidates);
    memset(scratch, 0, sizeof(*scratch));
}

void rc_scratch_free(rc_scratch *scratch) {
    empty(scratch);
    free(scratch);
}

void rc_release(rc_found *found) {
    free(found->at);
    memset(found, 0, sizeof(*found));
}

int walk_fit(rc_scratch *scratch, const rc_table *table) {
    int64_t documents = table->count, sessions = table->session_lengths.count;
    if (documents <= scratch->documents && sessions <= scratch->sessions) {
        return 0;
    }
    documents += documents / 4 + 64;
    sessions += sessions / 4 + 64;
    empty(scratch);
    scratch->sums = calloc((size_t)documents, sizeof(sum));
    scratch->near = calloc((size_t)documents, sizeof(int32_t));
    scratch->reach = calloc((size_t)documents, sizeof(int32_t));
    scratch->touched = calloc((size_t)documents, sizeof(int32_t));
    scratch->masses = calloc((size_t)sessions, sizeof(int64_t));
    scratch->session_sums = calloc((size_t)sessions, sizeof(int64_t));
    scratch->met = calloc((size_t)sessions * 3, sizeof(int32_t));
    scratch->wanted = calloc((size_t)sessions, sizeof(int32_t));
    scratch->is_wanted = calloc((size_t)sessions, 1);
    scratch->session_bounds = calloc((size_t)sessions, sizeof(double));
    scratch->bounded_sessions = calloc((size_t)sessions, sizeof(int32_t));
    if (!scratch->sums || !scratch->near || !scratch->reach || !scratch->touched || !scratch->masses ||
        !scratch->session_sums || !scratch->met || !scratch->wanted || !scratch->is_wanted ||
        !scratch->session_bounds || !scratch->bounded_sessions) {
        empty(scratch);
        return RC_NO_MEMORY;
    }
    scratch->documents = documents;
    scratch->sessions = sessions;
    return 0;
}

int walk_fit_blocks(rc_scratch *scratch, const rc_layout *layout) {
    int64_t blocks = layout->starts.count - 1;
    if (blocks <= scratch->blocks) {
        return 0;
    }
    blocks += blocks / 4 + 64;
    free(scratch->bounds);
    free(scratch->bounded);
    free(scratch->inside);
    free(scratch->done);
    free(scratch->candidates);
    scratch->blocks = 0;
    scratch->bounds = calloc((size_t)blocks, sizeof(double));
    scratch->bounded = calloc((size_t)blocks, sizeof(int32_t));
    scratch->inside = calloc((size_t)blocks, 1);
    scratch->done = calloc((size_t)blocks, 1);
    /* Twice: those of standing records are ordered by themselves. */
    scratch->candidates = calloc((size_t)blocks * 2, sizeof(rc_candidate));
    if (!scratch->bounds || !scratch->bounded || !scratch->inside || !scratch->done || !scratch->candidates) {
        empty(scratch);
        return RC_NO_MEMORY;
    }
    scratch->blocks = blocks;
    return 0;
}

/* Add the count of a term in a turn to the mass of its session. */
static inline void add_to_session(walk *of, int64_t session, int64_t times) {
    if (of->scratch->masses[session] == 0) {
        of->scratch->met[of->met++] = (int32_t)session;
    }
    of->scratch->masses[session] += times;
}

void plain_begin(const walk *of, plain_shares *shares, int64_t weight, int64_t occurrences) {
    shares->weight = weight;
    shares->known = occurrences > SHORT;
    for (int64_t length = 0; shares->known && length < SHORT; length++) {
        int64_t pivot = PIVOT_CONSTANT + (length << BITS) * PIVOT_SLOPE / 10000;
        shares->once[length] = (int32_t)share_of(weight, ONE, pivot, of->weights->whole, of->by_whole);
    }
}

/* Add the occurrences of a term in a part of the base, none of whose documents is a turn. */
static void add_plain(walk *of, rc_span span, const plain_shares *shares, bool like) {
    const rc_table *table = of->table;
    rc_shorts lengths = of->postings->lengths;
    for (int64_t at = span.begin; at < span.end;) {
        int64_t number = document_of(AT(span.column, at)), begin = at, share;
        /* With the flag for a further occurrence a length is above all short ones. */
        int64_t length = AT(lengths, at);
        if (shares->known && length < SHORT) {
            at++;
            share = shares->once[length];
        } else {
            at = past(span.column, at, span.end);
            length &= LONGEST;
            length = length == LONGEST ? AT(table->length, number) : length;
            int64_t pivot = PIVOT_CONSTANT + (length << BITS) * PIVOT_SLOPE / 10000;
            share = share_of(shares->weight, least_of(at - begin, MOST_COUNT) << BITS, pivot, of->weights->whole,
                             of->by_whole);
        }
        if (share > 0 && !(table->some_dead && !AT(table->alive, number))) {
            touch(of, number);
            sum *to = sum_of(of, number);
            *(like ? &to->trigram : &to->words) += (int32_t)share;
        }
    }
}

/* Add the occurrences of a term in a part of a column. */
static void add_span(walk *of, rc_span span, const plain_shares *shares, bool like) {
    const rc_table *table = of->table;
    int64_t at = span.begin;
    while (at < span.end) {
        int64_t number = document_of(AT(span.column, at)), begin = at;
        at = past(span.column, at, span.end);
        if (table->some_dead && !AT(table->alive, number)) {
            continue;
        }
        int64_t times = least_of(at - begin, MOST_COUNT);
        int64_t session = table->has_turns ? AT(table->session, number) : NONE;
        if (session == NONE) {
            /* Not a turn: no other document lends to it, so its mass is its own and its share is final. */
            if (!is_wanted(of->part, number)) {
                continue;
            }
            int64_t length = AT(table->length, number);
            int64_t share = times == 1 && shares->known && length < SHORT
                                ? shares->once[length]
                                : share_of(shares->weight, times << BITS, pivot_of(number, table), of->weights->whole,
                                           of->by_whole);
            if (share > 0) {
                touch(of, number);
                sum *to = sum_of(of, number);
                *(like ? &to->trigram : &to->words) += (int32_t)share;
            }
            continue;
        }
        if (of->weights->live_tokens && !of->part) {
            add_to_session(of, session, times);
        }
        add_turn(of, number, times);
    }
}

/* Add the occurrences of a term that are needed. */
static void add_term(walk *of, int64_t term, int64_t weight, bool like) {
    rc_span base = span_of(of->postings, term, false), tail = span_of(of->postings, term, true);
    plain_shares own;
    const plain_shares *shares = of->plain ? &of->plain[term] : &own;
    if (!of->plain) {
        plain_begin(of, &own, weight, base.end - base.begin + tail.end - tail.begin);
    }
    if (!of->part) {
        if (of->table->has_turns) {
            add_span(of, base, shares, like);
        } else {
            add_plain(of, base, shares, like);
        }
        add_span(of, tail, shares, like);
        return;
    }
    rc_ints ranges = of->ranges;
    int64_t end = base.end;
    for (int64_t range = 0; range < ranges.count && base.begin < end; range += 2) {
        base.begin = next_from(base.column, base.begin, end, first_of(AT(ranges, range)));
        base.end = next_from(base.column, base.begin, end, first_of(AT(ranges, range + 1)));
        add_span(of, base, shares, like);
        base.begin = base.end;
    }
    if (of->part->with_tail) {
        add_span(of, tail, shares, like);
    }
}

/* Turn the masses of a term into shares of the turns that it reaches. */
static void settle(walk *of, int64_t weight, bool like) {
    rc_scratch *scratch = of->scratch;
    for (int64_t place = 0; place < of->reached; place++) {
        int64_t number = scratch->reach[place];
        sum *to = sum_of(of, number);
        int64_t mass = to->mass, own = to->own;
        if (!is_wanted(of->part, number)) {  /* it only lends to others, and not all that it gets is known */
            to->mass = to->own = 0;
            continue;
        }
        int64_t share = share_of(weight, mass, pivot_of(number, of->table), of->weights->whole, of->by_whole);
        to->mass = to->own = 0;
        if (share > 0) {
            touch(of, number);
            if (own) {  /* rare: most are reached only by what others lend */
                int64_t kept = share * own / mass;
                *(like ? &to->trigram : &to->words) += (int32_t)kept;
                share -= kept;
            }
            to->context += (int32_t)share;
        }
    }
    of->reached = 0;
}

/* Add the share of a term that has this count in a session. */
static inline void add_session_share(walk *of, int64_t session, int64_t weight, int64_t count) {
    rc_scratch *scratch = of->scratch;
    int64_t share = session_share(weight, count, AT(of->table->session_pivots, session), of->weights->whole);
    if (scratch->session_sums[session] == 0 && share > 0) {
        scratch->met[of->sessions++] = (int32_t)session;
    }
    scratch->session_sums[session] += share;
}

/* Turn the masses of a term into shares of the sessions that have it. */
static void settle_sessions(walk *of, int64_t weight) {
    int64_t end = of->met;
    for (int64_t place = of->met = of->sessions; place < end; place++) {
        int64_t session = of->scratch->met[place], count = of->scratch->masses[session];
        of->scratch->masses[session] = 0;
        add_session_share(of, session, weight, count);
    }
    of->met = of->sessions;
}

/* Return the count of a term in a session of the base, of which all turns are taken for live.
 *
 * `at` is where the session before was found: most of them ascend.
 */
static inline int64_t count_in_session(const rc_summary *summary, int64_t session, int64_t *at) {
    rc_numbers sessions = summary->sessions;
    int64_t low = *at, step = 1;
    if (low >= sessions.count || AT(sessions, low) > session) {
        low = 0;
    }
    while (low + step < sessions.count && AT(sessions, low + step) < session) {
        low += step;
        step *= 2;
    }
    int64_t high = least_of(low + step, sessions.count);
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (AT(sessions, middle) < session) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *at = low;
    return low < sessions.count && AT(sessions, low) == session ? AT(summary->times, low) : 0;
}

/* Add the shares of a term in the sessions of the wanted documents: what the base has, what the tail adds to it, less
   what is dead. */
static void add_sessions(walk *of, int64_t term) {
    const rc_table *table = of->table;
    rc_scratch *scratch = of->scratch;
    int64_t weight = AT(of->weights->sessions, term);
    rc_span base = span_of(of->postings, term, false), tail = span_of(of->postings, term, true);
    /* `met` has room for the sessions with a share and for those that change. */
    int64_t changed = scratch->sessions;
    of->met = changed;
    for (int64_t at = tail.begin; at < tail.end;) {
        int64_t number = document_of(AT(tail.column, at)), begin = at;
        at = past(tail.column, at, tail.end);
        int64_t session = AT(table->session, number);
        if (session != NONE && scratch->is_wanted[session] && AT(table->alive, number)) {
            add_to_session(of, session, least_of(at - begin, MOST_COUNT));
        }
    }
    for (int64_t at = 0; at < of->part->dead.count && base.begin < base.end; at++) {
        int64_t number = AT(of->part->dead, at), session = AT(table->session, number);
        if (session != NONE && scratch->is_wanted[session]) {
            int64_t begin = next_from(base.column, base.begin, base.end, first_of(number));
            base.begin = next_from(base.column, begin, base.end, first_of(number + 1));
            if (base.begin > begin) {
                add_to_session(of, session, -least_of(base.begin - begin, MOST_COUNT));
            }
        }
    }
    int64_t found = 0;
    for (int64_t at = 0; at < of->wanted; at++) {
        int64_t session = scratch->wanted[at];
        int64_t count = count_in_session(of->part->summaries[term], session, &found) + scratch->masses[session];
        if (count > 0) {
            add_session_share(of, session, weight, count);
        }
    }
    for (int64_t place = changed; place < of->met; place++) {
        scratch->masses[scratch->met[place]] = 0;
    }
    of->met = of->sessions;
}

/* Add the shares of a title term to the documents that have it. */
static void add_title(walk *of, int64_t term, int64_t of_term, bool in_tail) {
    const rc_table *table = of->table;
    rc_span span = span_of(of->postings, term, in_tail), text = span_of(of->postings, of_term, in_tail);
    int64_t weight = AT(of->weights->terms, term) * TOP;
    for (int64_t at = span.begin; at < span.end; at++) {
        int64_t number = document_of(AT(span.column, at));
        if (!is_wanted(of->part, number) || (table->some_dead && !AT(table->alive, number))) {
            continue;
        }
        int64_t times = count_in(text.column, text.begin, text.end, number);
        int64_t share = title_share(weight, times, pivot_of(number, table), of->weights->whole, of->by_whole);
        if (share > 0) {
            touch(of, number);
            sum_of(of, number)->title += (int32_t)share;
        }
    }
}

static inline void want(walk *of, int64_t session) {
    if (session != NONE && !of->scratch->is_wanted[session]) {
        of->scratch->is_wanted[session] = true;
        of->scratch->wanted[of->wanted++] = (int32_t)session;
    }
}

static inline void add_range(walk *of, int64_t begin, int64_t end) {
    rc_ints *ranges = &of->ranges;
    if (ranges->count && begin <= ranges->at[ranges->count - 1]) {
        ranges->at[ranges->count - 1] = most_of(end, ranges->at[ranges->count - 1]);
    } else {
        ranges->at[ranges->count++] = begin;
        ranges->at[ranges->count++] = end;
    }
}

/* Find the ranges of documents and the sessions of a part. Returns 0 or RC_NO_MEMORY. */
static int prepare(walk *of) {
    const rc_part *part = of->part;
    const rc_layout *layout = part->layout;
    int64_t lender = 0, size = (int64_t)1 << layout->bits;
    of->ranges.at = malloc((size_t)(part->inside.count + part->lenders.count + 1) * 2 * sizeof(int64_t));
    if (!of->ranges.at) {
        return RC_NO_MEMORY;
    }
    int64_t blocks = part->inside.count;
    for (int64_t block = next_set(part->inside, 0); block < blocks; block = next_set(part->inside, block + 1)) {
        int64_t begin = most_of(block * size - STEPS, 0), end = least_of((block + 1) * size + STEPS, layout->documents);
        for (; lender < part->lenders.count && AT(part->lenders, lender) < begin; lender++) {
            add_range(of, AT(part->lenders, lender), AT(part->lenders, lender) + 1);
        }
        add_range(of, begin, end);
        for (int64_t at = AT(layout->starts, block); at < AT(layout->starts, block + 1); at++) {
            want(of, AT(layout->sessions, at));
        }
    }
    for (; lender < part->lenders.count; lender++) {
        add_range(of, AT(part->lenders, lender), AT(part->lenders, lender) + 1);
    }
    for (int64_t at = 0; part->with_tail && at < part->tail_sessions.count; at++) {
        want(of, AT(part->tail_sessions, at));
    }
    return 0;
}

/* Return whether the time is over. The clock is read for every fourth term or pair. */
static inline bool walk_is_late(walk *of, int64_t at) {
    if ((at & 3) == 0 && is_late(of->postings->until)) {
        of->late = true;
    }
    return of->late;
}

/* Add the shares of all terms to the sums. */
static void gather(walk *of) {
    int64_t terms = of->weights->terms.count, titles = of->weights->title_of.count;
    for (int64_t term = 0; term < terms - titles; term++) {
        int64_t weight = AT(of->weights->terms, term) * TOP;
        bool like = AT(of->weights->like, term);
        if (walk_is_late(of, term)) {
            return;
        }
        add_term(of, term, weight, like);
        settle(of, weight, like);
        if (!of->part) {
            settle_sessions(of, AT(of->weights->sessions, term));
        } else if (of->weights->live_tokens) {
            add_sessions(of, term);
        }
    }
    for (int64_t title = 0; title < titles; title++) {
        int64_t term = terms - titles + title, of_term = AT(of->weights->title_of, title);
        add_title(of, term, of_term, false);
        add_title(of, term, of_term, true);
    }
}

/* Add the share of a pair of terms to the documents in which the first is one or two positions before the second. */
static void add_pair(walk *of, rc_span first, rc_span second, int64_t share) {
    int64_t one = first.begin, other = second.begin, given_to = NONE;
    while (one < first.end && other < second.end) {
        int64_t gap = AT(second.column, other) - AT(first.column, one);
        if (gap <= 0) {
            other++;
        } else if (gap > 2) {
            one++;
        } else {
            int64_t number = document_of(AT(first.column, one));
            one++;
            if (number != given_to && has_share(sum_of(of, number))) {
                given_to = number;
                of->scratch->near[number - of->first] += (int32_t)share;
            }
        }
    }
}

/* Add the shares of all pairs. */
static void add_pairs(walk *of) {
    for (int64_t pair = 0; pair < of->weights->pairs.count; pair += 3) {
        int64_t first = AT(of->weights->pairs, pair), second = AT(of->weights->pairs, pair + 1);
        int64_t share = AT(of->weights->pairs, pair + 2);
        if (walk_is_late(of, pair / 3)) {
            return;
        }
        rc_span one = span_of(of->postings, first, false), other = span_of(of->postings, second, false);
        if (!of->part) {
            add_pair(of, one, other, share);
        } else {
            int64_t end = one.end, other_end = other.end;
            for (int64_t range = 0; range < of->ranges.count; range += 2) {
                int64_t begin = first_of(AT(of->ranges, range)), limit = first_of(AT(of->ranges, range + 1));
                one.begin = next_from(one.column, one.begin, end, begin);
                one.end = next_from(one.column, one.begin, end, limit);
                other.begin = next_from(other.column, other.begin, other_end, begin);
                other.end = next_from(other.column, other.begin, other_end, limit);
                add_pair(of, one, other, share);
                one.begin = one.end;
                other.begin = other.end;
            }
        }
        if (!of->part || of->part->with_tail) {
            add_pair(of, span_of(of->postings, first, true), span_of(of->postings, second, true), share);
        }
    }
}

int walk_begin(walk *of, const rc_postings *postings, const rc_table *table, const rc_weights *weights,
               const rc_part *part, rc_scratch *scratch) {
    walk begun = {postings, table, weights, part, scratch, 1.0 / (double)weights->whole, 0, 0, 0, 0, 0, {NULL, 0}, 0, NULL, false};
    *of = begun;
    return walk_fit(scratch, table) || (part && prepare(of)) ? RC_NO_MEMORY : 0;
}

int walk_all(walk *of, rc_ints forced) {
    gather(of);
    if (!of->late) {
        add_pairs(of);
    }
    if (of->late) {
        return RC_LATE;
    }
    for (int64_t place = 0; place < forced.count; place++) {
        if (is_wanted(of->part, AT(forced, place))) {
            touch(of, AT(forced, place));
        }
    }
    return 0;
}

rc_row walk_take(walk *of, int64_t number) {
    int64_t session = of->table->has_turns ? AT(of->table->session, number) : NONE;
    rc_scratch *scratch = of->scratch;
    sum *from = sum_of(of, number);
    rc_row row = {number, from->words, from->trigram, from->context,
                  session == NONE ? 0 : scratch->session_sums[session], scratch->near[number - of->first], from->title};
    memset(from, 0, sizeof(*from));
    scratch->near[number - of->first] = 0;
    return row;
}

void walk_end(walk *of) {
    rc_scratch *scratch = of->scratch;
    for (int64_t place = 0; place < of->sessions; place++) {
        scratch->session_sums[scratch->met[place]] = 0;
    }
    for (int64_t place = 0; place < of->wanted; place++) {
        scratch->is_wanted[scratch->wanted[place]] = false;
    }
    free(of->ranges.at);
}

int rc_reach(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints forced,
             rc_scratch *scratch, rc_found *found) {
    walk of;
    if (walk_begin(&of, postings, table, weights, NULL, scratch)) {
        return RC_NO_MEMORY;
    }
    if (walk_all(&of, forced)) {
        walk_end(&of);
        return RC_LATE;
    }
    found->count = of.touched;
    found->at = malloc((size_t)(of.touched + 1) * sizeof(rc_row));
    for (int64_t place = 0; place < of.touched; place++) {
        rc_row row = walk_take(&of, scratch->touched[place]);
        if (found->at) {
            found->at[place] = row;
        }
    }
    walk_end(&of);
    return found->at ? 0 : RC_NO_MEMORY;
}
