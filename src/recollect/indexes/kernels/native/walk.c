/* Postings: from occurrences to the shares of each document.
 *
 * Terms are processed one at a time. The sums of documents are collected in scratch memory, which is all zeros between
 * questions; only documents that were touched are visited again.
 */

#include "score.h"

/* The sums of a document: the mass of the current term, its own part, and the shares of the terms so far. */
typedef struct {
    int64_t mass, own;
    int32_t words, trigram, context, title;
} sum;

struct rc_scratch {
    int64_t documents, sessions;
    sum *sums;
    int32_t *near;                   /* the shares of pairs */
    int32_t *reach, *touched;        /* documents: those of the current term, and all */
    int64_t *masses, *session_sums;  /* of sessions: the mass of the current term, and the shares so far */
    int32_t *met;                    /* sessions with a share, then those of the current term */
    int32_t *wanted;                 /* the sessions of wanted documents */
    uint8_t *is_wanted;              /* whether each session is one of them */
};

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

/* Make room for a table. Returns 0, or RC_NO_MEMORY, and then there is no room for any. */
static int fit(rc_scratch *scratch, const rc_table *table) {
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
    if (!scratch->sums || !scratch->near || !scratch->reach || !scratch->touched || !scratch->masses ||
        !scratch->session_sums || !scratch->met || !scratch->wanted || !scratch->is_wanted) {
        empty(scratch);
        return RC_NO_MEMORY;
    }
    scratch->documents = documents;
    scratch->sessions = sessions;
    return 0;
}

static inline bool has_share(const sum *of) { return of->words || of->trigram || of->title || of->context; }

/* A question while it is processed. */
typedef struct {
    const rc_postings *postings;
    const rc_table *table;
    const rc_weights *weights;
    const rc_part *part;  /* NULL: all documents */
    rc_scratch *scratch;
    double by_whole;
    int64_t touched;   /* number of documents in `scratch->touched` */
    int64_t sessions;  /* number of sessions in `scratch->met` with a share */
    int64_t reached;   /* number of documents in `scratch->reach` */
    int64_t met;       /* end of the sessions of the current term in `scratch->met` */
    int64_t wanted;    /* number of sessions in `scratch->wanted` */
    rc_ints ranges;    /* begins and ends of the documents of the base that are wanted or lend to wanted ones */
} walk;

/* Return whether the shares of a document are wanted. */
static inline bool is_wanted(const rc_part *part, int64_t number) {
    return !part || (number < part->layout->documents ? AT(part->inside, number >> part->layout->bits) : part->with_tail);
}

static inline void touch(walk *of, int64_t number) {
    if (!has_share(&of->scratch->sums[number])) {
        of->scratch->touched[of->touched++] = (int32_t)number;
    }
}

static inline void add_mass(walk *of, int64_t number, int64_t mass) {
    sum *to = &of->scratch->sums[number];
    if (to->mass == 0) {
        of->scratch->reach[of->reached++] = (int32_t)number;
        PREFETCH(&AT(of->table->pivots, number));
    }
    to->mass += mass;
}

/* Add the mass of a turn to itself and to the turns around it. */
static inline void add_turn(walk *of, int64_t number, int64_t times) {
    const rc_table *table = of->table;
    add_mass(of, number, times << BITS);
    of->scratch->sums[number].own += times << BITS;
    int64_t lent = lent_by(times, AT(table->length, number));
    bool asks = AT(table->asks, number);
    int64_t there = AT(table->after, number);
    for (int step = 0; step < STEPS && is_turn_of(there, table); step++) {
        int64_t given = lent * lending_after(step, asks) / 10;
        if (given > 0) {
            add_mass(of, there, given);
        }
        there = AT(table->after, there);
    }
    there = AT(table->before, number);
    for (int step = 0; step < STEPS && is_turn_of(there, table); step++) {
        int64_t given = lent * lending_before(step) / 10;
        if (given > 0) {
            add_mass(of, there, given);
        }
        there = AT(table->before, there);
    }
}

/* Add the count of a term in a turn to the mass of its session. */
static inline void add_to_session(walk *of, int64_t session, int64_t times) {
    if (of->scratch->masses[session] == 0) {
        of->scratch->met[of->met++] = (int32_t)session;
    }
    of->scratch->masses[session] += times;
}

/* Add the occurrences of a term in a part of a column. */
static void add_span(walk *of, rc_span span, int64_t weight, bool like) {
    const rc_table *table = of->table;
    rc_scratch *scratch = of->scratch;
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
            int64_t share =
                share_of(weight, times << BITS, pivot_of(number, table), of->weights->whole, of->by_whole);
            if (share > 0) {
                touch(of, number);
                *(like ? &scratch->sums[number].trigram : &scratch->sums[number].words) += (int32_t)share;
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
    if (!of->part) {
        add_span(of, base, weight, like);
        add_span(of, tail, weight, like);
        return;
    }
    rc_ints ranges = of->ranges;
    int64_t end = base.end;
    for (int64_t range = 0; range < ranges.count && base.begin < end; range += 2) {
        base.begin = next_from(base.column, base.begin, end, first_of(AT(ranges, range)));
        base.end = next_from(base.column, base.begin, end, first_of(AT(ranges, range + 1)));
        add_span(of, base, weight, like);
        base.begin = base.end;
    }
    if (of->part->with_tail) {
        add_span(of, tail, weight, like);
    }
}

/* Turn the masses of a term into shares of the turns that it reaches. */
static void settle(walk *of, int64_t weight, bool like) {
    rc_scratch *scratch = of->scratch;
    for (int64_t place = 0; place < of->reached; place++) {
        int64_t number = scratch->reach[place];
        sum *to = &scratch->sums[number];
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
        if (session != NONE && AT(table->alive, number)) {
            add_to_session(of, session, least_of(at - begin, MOST_COUNT));
        }
    }
    for (int64_t at = 0; at < of->part->dead.count && base.begin < base.end; at++) {
        int64_t number = AT(of->part->dead, at), session = AT(table->session, number);
        int64_t times = session == NONE ? 0 : count_in(base.column, base.begin, base.end, number);
        if (times) {
            add_to_session(of, session, -times);
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
            of->scratch->sums[number].title += (int32_t)share;
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
    for (int64_t block = 0; block < part->inside.count; block++) {
        if (!AT(part->inside, block)) {
            continue;
        }
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

/* Add the shares of all terms to the sums. */
static void gather(walk *of) {
    int64_t terms = of->weights->terms.count, titles = of->weights->title_of.count;
    for (int64_t term = 0; term < terms - titles; term++) {
        int64_t weight = AT(of->weights->terms, term) * TOP;
        bool like = AT(of->weights->like, term);
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
            if (number != given_to && has_share(&of->scratch->sums[number])) {
                given_to = number;
                of->scratch->near[number] += (int32_t)share;
            }
        }
    }
}

/* Add the shares of all pairs. */
static void add_pairs(walk *of) {
    for (int64_t pair = 0; pair < of->weights->pairs.count; pair += 3) {
        int64_t first = AT(of->weights->pairs, pair), second = AT(of->weights->pairs, pair + 1);
        int64_t share = AT(of->weights->pairs, pair + 2);
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

int rc_reach(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_numbers forced,
             const rc_part *part, rc_scratch *scratch, rc_found *found) {
    if (fit(scratch, table)) {
        return RC_NO_MEMORY;
    }
    walk of = {postings, table, weights, part, scratch, 1.0 / (double)weights->whole, 0, 0, 0, 0, 0, {NULL, 0}};
    if (part && prepare(&of)) {
        return RC_NO_MEMORY;
    }
    gather(&of);
    add_pairs(&of);
    for (int64_t place = 0; place < forced.count; place++) {
        touch(&of, AT(forced, place));
    }
    found->count = of.touched;
    found->at = malloc((size_t)(of.touched + 1) * sizeof(rc_row));
    for (int64_t place = 0; place < of.touched; place++) {
        int64_t number = scratch->touched[place];
        int64_t session = table->has_turns ? AT(table->session, number) : NONE;
        sum *from = &scratch->sums[number];
        if (found->at) {
            rc_row row = {number, from->words, from->trigram, from->context,
                          session == NONE ? 0 : scratch->session_sums[session], scratch->near[number], from->title};
            found->at[place] = row;
        }
        memset(from, 0, sizeof(*from));
        scratch->near[number] = 0;
    }
    for (int64_t place = 0; place < of.sessions; place++) {
        scratch->session_sums[scratch->met[place]] = 0;
    }
    for (int64_t place = 0; place < of.wanted; place++) {
        scratch->is_wanted[scratch->wanted[place]] = false;
    }
    free(of.ranges.at);
    return found->at ? 0 : RC_NO_MEMORY;
}

int64_t rc_summarize(rc_ints occurrences, const rc_table *table, int32_t is_title, int64_t block_bits,
                     rc_scratch *scratch, rc_shorts most, rc_numbers counts, rc_flags reached) {
    if (fit(scratch, table)) {
        return RC_NO_MEMORY;
    }
    int64_t least = (int64_t)1 << RATIO_BITS;
    walk of = {NULL, table, NULL, NULL, scratch, 0, 0, 0, 0, 0, 0, {NULL, 0}};
    for (int64_t at = 0; at < occurrences.count;) {
        int64_t number = document_of(AT(occurrences, at)), begin = at;
        at = past(occurrences, at, occurrences.count);
        int64_t times = least_of(at - begin, MOST_COUNT), session = AT(table->session, number);
        if (is_title) {
            add_mass(&of, number, TITLE_MASS);
        } else if (session == NONE) {
            add_mass(&of, number, times << BITS);
        } else {
            AT(counts, session) += (int32_t)times;
            add_turn(&of, number, times);
        }
    }
    for (int64_t place = 0; place < of.reached; place++) {
        int64_t number = scratch->reach[place], mass = scratch->sums[number].mass;
        int64_t below = mass + pivot_of(number, table);
        int64_t ratio = quotient(mass << RATIO_BITS, below, 1.0 / (double)below);
        scratch->sums[number].mass = scratch->sums[number].own = 0;
        least = least_of(least, ratio);
        AT(most, number >> block_bits) = (uint16_t)most_of(AT(most, number >> block_bits), ratio + 1);
        AT(reached, number) = true;
    }
    return least;
}

int rc_tally(const rc_postings *postings, const rc_table *table, rc_ints out) {
    int32_t *stamps = calloc((size_t)table->session_lengths.count + 1, sizeof(int32_t));
    if (!stamps) {
        return RC_NO_MEMORY;
    }
    for (int64_t term = 0; term < postings->spans.count / 4; term++) {
        for (int in_tail = 0; in_tail < 2; in_tail++) {
            rc_span span = span_of(postings, term, in_tail);
            for (int64_t at = span.begin; at < span.end;) {
                int64_t number = document_of(AT(span.column, at)), begin = at;
                at = past(span.column, at, span.end);
                if (!AT(table->alive, number)) {
                    continue;
                }
                AT(out, 3 * term) += 1;
                AT(out, 3 * term + 1) += least_of(at - begin, MOST_COUNT);
                int64_t session = AT(table->session, number);
                if (session != NONE && stamps[session] != term + 1) {
                    stamps[session] = (int32_t)term + 1;
                    AT(out, 3 * term + 2) += 1;
                }
            }
        }
    }
    free(stamps);
    return 0;
}

void rc_matched(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
                rc_ints factors, rc_flags reached, rc_ints shares, rc_ints own, rc_flags lent, rc_ints around,
                rc_flags lends) {
    int64_t terms = weights->terms.count, plain = terms - weights->title_of.count;
    double by_whole = 1.0 / (double)weights->whole;
    for (int64_t hit = 0; hit < hits.count; hit++) {
        int64_t number = AT(hits, hit), factor = AT(factors, hit), pivot = pivot_of(number, table);
        int64_t at = AT(table->before, number);
        for (int step = 0; step < 2 * STEPS; step++) {
            if (step == STEPS) {
                at = AT(table->after, number);
            }
            at = is_turn_of(at, table) ? at : NONE;
            AT(around, 2 * STEPS * hit + step) = at;
            if (at != NONE) {
                at = step < STEPS ? AT(table->before, at) : AT(table->after, at);
            }
        }
        for (int64_t term = 0; term < terms; term++) {
            int64_t place = terms * hit + term, times = count_of(postings, term, number);
            int64_t weight = AT(weights->terms, term) * TOP;
            if (term >= plain) {
                if (times) {
                    times = count_of(postings, AT(weights->title_of, term - plain), number);
                    int64_t share = title_share(weight, times, pivot, weights->whole, by_whole);
                    AT(reached, place) = share > 0;
                    AT(shares, place) = share * factor >> BITS;
                }
                continue;
            }
            int64_t its_own = times << BITS, mass = its_own;
            for (int step = 0; step < 2 * STEPS; step++) {
                int64_t there = AT(around, 2 * STEPS * hit + step);
                int64_t of_turn = there == NONE ? 0 : count_of(postings, term, there);
                if (of_turn) {
                    AT(lends, 2 * STEPS * place + step) = true;
                    int64_t lending = step < STEPS ? lending_after(step, AT(table->asks, there))
                                                   : lending_before(step - STEPS);
                    mass += lent_by(of_turn, AT(table->length, there)) * lending / 10;
                }
            }
            if (mass == 0) {
                continue;
            }
            int64_t share = share_of(weight, mass, pivot, weights->whole, by_whole);
            AT(reached, place) = share > 0;
            share = share * factor >> BITS;
            AT(shares, place) = share;
            AT(own, place) = share * its_own / mass;
            AT(lent, place) = mass > its_own;
        }
    }
}
