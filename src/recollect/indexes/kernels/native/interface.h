/* What Python sees of the kernels: cffi reads this file, so it has no directives of the preprocessor.
 *
 * Arrays come with their number of elements, so that a checked build can test every index (`slices.h`). Their contents
 * are those of the NumPy arrays of the same names; `kernels.types` describes them.
 */

typedef struct { uint8_t *at; int64_t count; } rc_flags;
typedef struct { int8_t *at; int64_t count; } rc_bytes;
typedef struct { uint8_t *at; int64_t count; } rc_octets;
typedef struct { uint16_t *at; int64_t count; } rc_shorts;
typedef struct { int16_t *at; int64_t count; } rc_components;
typedef struct { int32_t *at; int64_t count; } rc_numbers;
typedef struct { uint32_t *at; int64_t count; } rc_places;
typedef struct { int64_t *at; int64_t count; } rc_ints;

/* The documents (`documents.table.Table`). `pivots` is filled in by the kernels: K of a document, 0 if not computed. */
typedef struct {
    int64_t count;
    int32_t some_dead, has_turns;
    rc_flags alive, asks;
    rc_numbers length, before, after, session, weight, speaker;
    rc_bytes offers, standing;
    rc_ints session_lengths, session_pivots, micros, pivots;
} rc_table;

/* The occurrences of terms (`words.postings.Postings`); `spans` has four elements for each term. */
typedef struct {
    rc_ints base, tail, spans;
    rc_shorts lengths;     /* of the occurrences in `base` */
    const int64_t *until;  /* when work on them must end (`clock.h`); NULL: never */
} rc_postings;

/* The weights of terms (`types.Weights`); `pairs` has three elements for each pair. */
typedef struct {
    rc_ints terms, sessions, title_of, pairs;
    rc_flags like;
    int64_t whole, live_sessions, live_tokens;
} rc_weights;

/* The subject of a question (`types.About`). */
typedef struct {
    int64_t speaker, favour, kinds;
} rc_about;

/* What the base has of a term, if all of its documents are live (`types.Summary`). */
typedef struct {
    rc_numbers blocks, sessions, times, reached;
    rc_shorts most;
    rc_octets bits;
} rc_summary;

/* The blocks of the base, and the sessions of the documents of each (`types.Layout`). */
typedef struct {
    int64_t documents, bits;
    rc_ints starts, sessions;
} rc_layout;

/* The documents whose shares are wanted: those of some blocks, and of the tail. `lenders` are documents of the base that
   lend to wanted ones and are not next to their blocks, ascending. */
typedef struct {
    const rc_layout *layout;
    rc_flags inside;
    rc_ints lenders, dead, tail_sessions;
    int32_t with_tail;
    const rc_summary *const *summaries;
} rc_part;

/* The base of an index (`blocks.Base`). */
typedef struct {
    const rc_layout *layout;
    rc_ints far_blocks, far_lenders, weights;
    rc_bytes offers;
} rc_blocks;

/* The differences between a table and its base (`blocks.Changes`). */
typedef struct {
    rc_flags blocks;
    rc_ints dead, lenders, tail_sessions;
    int32_t any;
} rc_changes;

/* What is wanted of a search (`types.Wanted`); arrays without elements do not restrict it. `speakers` are the blocks with
   documents of the speaker, `most` and `least` bounds of the extra shares in each block, `greatest` one for all. Besides
   these, `near` has the share of meaning of each document, and `close` the documents in which it is above 0, ascending. */
typedef struct {
    const rc_summary *const *summaries;
    rc_flags speakers, among;
    rc_ints standing, most, least, forced, forced_shares, near, close;
    rc_octets kept;
    int64_t best_count, standing_count, greatest;
} rc_wanted;

/* A document and its shares, in the order of `types.RAW`. */
typedef struct {
    int64_t number, words, trigram, context, session, pair, title;
} rc_row;

/* A term in a hit (`types.MatchRow`); the turns that lend to it are those of `lenders` from `begin` to `end`. */
typedef struct {
    int64_t hit, term, share, own, title, begin, end;
} rc_match;

/* Rows that the kernels allocate; `rc_release` frees them. */
typedef struct {
    rc_row *at;
    int64_t count, room;
} rc_found;

/* The best rows so far of SDRs: a heap with the lowest on top. */
typedef struct {
    rc_ints numbers, values, hamming;
} rc_best_rows;

/* The rows of SDRs (`facets.sdr.index.types.Rows`). */
typedef struct {
    rc_ints numbers, offsets;
    rc_shorts bits;
    rc_flags alive;
} rc_rows;

/* SDRs with an index of their bits (`facets.sdr.index.types.Base`); `flags` has `sizes.count` elements for each common bit. */
typedef struct {
    rc_rows rows;
    rc_shorts sizes;
    rc_places postings;
    rc_ints starts, common;
    rc_bytes flags;
} rc_base;

/* The bits of a question and the numbers of the formula (`facets.sdr.index.types.Query`). */
typedef struct {
    rc_ints bits, factors;
    rc_numbers weights;
    int64_t penalty, inverse, shift, add, least;
} rc_query;

/* The working memory of one question: all zeros while it is not in use. */
typedef struct rc_scratch rc_scratch;

/* What these functions return if memory ran out, or if the time was over, after which the working memory must not be used
   again; otherwise it is 0, or what their descriptions say. */
enum { RC_NO_MEMORY = -1, RC_LATE = -2 };

/* Whether this is a build that checks every index. */
int rc_checked(void);
/* The fingerprint of the sources (`sources.fingerprint`). */
const char *rc_sources(void);

rc_scratch *rc_scratch_new(void);
void rc_scratch_free(rc_scratch *scratch);
void rc_release(rc_found *found);

int rc_tally(const rc_postings *postings, const rc_table *table, rc_ints out);
int rc_reach(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints forced,
             rc_scratch *scratch, rc_found *found);
/* The last three arrays begin as zeros; it returns the least ratio. */
int64_t rc_summarize(rc_ints occurrences, const rc_table *table, int32_t is_title, int64_t block_bits,
                     rc_scratch *scratch, rc_shorts most, rc_numbers counts, rc_flags reached);
/* Returns the number of documents that are reached and may be hits. */
int64_t rc_search(const rc_postings *postings, const rc_table *table, const rc_weights *weights, const rc_about *about,
                  const rc_blocks *base, const rc_changes *changes, const rc_wanted *wanted, rc_scratch *scratch,
                  rc_found *found);
/* The last three arrays have a row for each hit and a column for each term without title terms, and begin as zeros. */
int rc_matched(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
               rc_ints shares, rc_ints own, rc_ints titles);
/* Returns the number of rows, each a `rc_match`: of each hit by descending share, then by ascending rank of the term.
   `rows` and `lenders` have room for each hit and term. */
int64_t rc_explained(const rc_postings *postings, const rc_table *table, const rc_weights *weights, rc_ints hits,
                     rc_ints factors, rc_ints ranks, rc_ints rows, rc_ints lenders);

void rc_weigh(rc_ints numbers, rc_ints shares, rc_ints dates, const rc_table *table, const rc_about *about,
              rc_ints totals);
/* Both return the number of places. */
int64_t rc_best(rc_ints totals, rc_ints numbers, rc_ints micros, int64_t wanted, rc_ints places);
int64_t rc_best_of(rc_ints numbers, rc_ints shares, rc_ints dates, const rc_table *table, const rc_about *about,
                   int64_t wanted, rc_ints places, rc_ints totals);

void rc_products(rc_components matrix, rc_components vector, rc_ints out);
/* Returns the number of `places` in `rows` whose products are computed. `estimates` has an element for each row of the
   matrix, `counts` one for each estimate that is possible, all 0. */
int64_t rc_nearest(rc_components matrix, rc_components vector, rc_ints signs, rc_numbers positive, rc_ints planes,
                   rc_ints rows, int64_t wanted, rc_numbers estimates, rc_ints counts, rc_ints places, rc_ints products);
/* Returns the number of documents in `near`, or RC_NO_MEMORY. `shares` has an element for each document, all 0. */
int64_t rc_lend(const rc_table *table, rc_ints numbers, rc_ints above, int64_t unit, int64_t parts, rc_ints shares,
                rc_ints near, rc_ints context);

/* Returns the number of rows found. */
int64_t rc_best_sdrs(const rc_base *base, const rc_rows *tail, const rc_query *query, rc_numbers sums,
                     rc_best_rows *best);

/* The sums of a frame of a WAL (`wal_sums.c`), both in one number, from those of the frame before: of the first 8 bytes of
   its header and of its page, whose words have the highest byte first or last. */
uint64_t rc_frame_sums(const char *head, const char *page, int64_t bytes, uint64_t sums, int highest_first);

/* Locks that last (`shm_locks.c`). The first returns whether there are such locks, and what replaces five calls of the
   system that SQLite makes: open, close, fcntl, mmap and munmap. The second returns 0 or RC_NO_MEMORY, the third whether
   SQLite has the file open with such locks. */
int rc_replace_calls(const uintptr_t *calls, uintptr_t *replacing);
int rc_register_index(const char *path);
int rc_has_lasting_locks(const char *path);
