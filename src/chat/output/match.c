/* chat/output/match.c - the elements of pattern.h, each as a function that reads as far as the bytes go.
 *
 * Ordered choice with a way back: OPT and MANY note where they began; a mismatch inside goes back there and on behind
 * the group, unless a call was accepted since. What was read is never given back to the search for markers further than
 * the element that failed furthest, so that time is linear in the text whatever it holds. */
#include "chat/output/match.h"

#include "base/mem.h"

#include <string.h>

enum { MAX_NAME = 256, MAX_KEY = 1024, MAX_PARAMS = 4096, MAX_SKIP = 256, MAX_DEPTH = 64 };

typedef enum outcome { MORE, DONE, FAIL, NOMEM, ARGS, ONE } outcome; /* ARGS, ONE: to be told of, in the middle of an element */

typedef struct reader {
    nib_chat_match *m;
    const char *ptr; /* byte at offset `from` */
    size_t from, to;
    bool is_end;
} reader;

void nib_chat_match_begin(nib_chat_match *m, const char *ip, size_t start, size_t pos) {
    *m = (nib_chat_match){.ip = ip,
                          .pos = pos,
                          .start = start,
                          .opened = pos,
                          .accepted = start,
                          .furthest = pos,
                          .limit = m->limit,
                          .streams = m->streams,
                          .element_pos = pos,
                          .scan = pos,
                          .params = m->params,
                          .params_capacity = m->params_capacity};
}

void nib_chat_match_free(nib_chat_match *m) {
    nib_free(m->params);
}

void nib_chat_match_accept(nib_chat_match *m) {
    m->accepted = m->furthest = m->pos;
    m->got = (nib_chat_captures){.n_params = 0};
    m->is_committed = m->ran_out = false;
}

void nib_chat_match_commit(nib_chat_match *m) {
    m->is_committed = true;
    m->committed = m->pos;
}

void nib_chat_match_decline(nib_chat_match *m) {
    m->track.has_arguments = m->track.in_arguments = false;
    m->arguments = (nib_chat_range){0, 0};
}

void nib_chat_match_refuse(nib_chat_match *m) {
    m->furthest = m->pos;
    m->n_choices = 0;
    m->ip = NULL;
}

static char at(const reader *r, size_t pos) {
    return r->ptr[pos - r->from];
}

/* ---- runs of characters */

static bool is_name_char(char c) {
    return (unsigned char)c > ' ' && c != 0x7F && !strchr("<>[]{}()\"'`,\\;=", c);
}

static bool is_key_char(char c) {
    return (unsigned char)c >= ' ' && c != '<' && c != '>' && c != '"';
}

static outcome read_run(const reader *r, bool (*is_in)(char), size_t max, nib_chat_range *out) {
    nib_chat_match *m = r->m;
    while (m->pos < r->to && is_in(at(r, m->pos)) && m->pos - m->element_pos < max) m->pos++;
    if (m->pos == r->to && !r->is_end) return MORE;
    *out = (nib_chat_range){m->element_pos, m->pos};
    return m->pos > m->element_pos && (m->pos == r->to || !is_in(at(r, m->pos))) ? DONE : FAIL;
}

static outcome read_blanks(const reader *r) {
    nib_chat_match *m = r->m;
    while (m->pos < r->to && nib_chat_is_blank(at(r, m->pos))) m->pos++;
    return m->pos == r->to && !r->is_end ? MORE : DONE;
}

/* A closing marker belongs to the call before it: no group was entered since that one was accepted. */
static bool is_closing(const nib_chat_match *m) {
    return m->accepted > m->start && (m->n_choices == 0 || m->choices[m->n_choices - 1].pos < m->accepted);
}

static outcome read_literal(const reader *r) {
    nib_chat_match *m = r->m;
    const char *p = m->ip + (m->pos - m->element_pos);
    for (; *p && !NIB_CHAT_IS_ELEMENT(*p); p++, m->pos++) {
        if (m->pos == r->to) return r->is_end ? FAIL : MORE;
        if (at(r, m->pos) != *p) return FAIL;
    }
    m->ip = p;
    if (is_closing(m)) m->accepted = m->furthest = m->pos;
    return DONE;
}

/* functions.NAME:INDEX, or a name alone */
static outcome read_funcid(const reader *r) {
    nib_chat_match *m = r->m;
    static const char prefix[] = "functions.";
    outcome result = read_run(r, is_name_char, MAX_NAME, &m->got.id);
    if (result != DONE) return result;
    m->got.name = m->got.id;
    if (m->got.id.to - m->got.id.from > sizeof prefix &&
        memcmp(r->ptr + (m->got.id.from - r->from), prefix, sizeof prefix - 1) == 0)
        m->got.name.from += sizeof prefix - 1;
    size_t end = m->got.name.to;
    while (end > m->got.name.from && at(r, end - 1) >= '0' && at(r, end - 1) <= '9') end--;
    if (end < m->got.name.to && end > m->got.name.from + 1 && at(r, end - 1) == ':') m->got.name.to = end - 1;
    else m->got.id = (nib_chat_range){0, 0};
    return DONE;
}

/* ---- up to the literal that follows */

static size_t literal_len(const char *p) {
    size_t n = 0;
    while (p[n] && !NIB_CHAT_IS_ELEMENT(p[n])) n++;
    return n;
}

/* Stands before that literal, which *end tells, when it is found. */
static outcome read_until(const reader *r, size_t max, size_t *end) {
    nib_chat_match *m = r->m;
    const char *literal = m->ip + 1;
    size_t len = literal_len(literal);
    while (r->to - m->scan >= len) {
        const char *p = memchr(r->ptr + (m->scan - r->from), *literal, r->to - m->scan - len + 1);
        if (!p) {
            m->scan = r->to - len + 1;
            break;
        }
        m->scan = r->from + (size_t)(p - r->ptr);
        if (m->scan - m->element_pos > max) return FAIL;
        if (memcmp(p, literal, len) == 0) {
            *end = m->scan;
            m->pos = m->scan;
            return DONE;
        }
        m->scan++;
    }
    if (m->scan - m->element_pos > max) return FAIL;
    if (!r->is_end) return MORE;
    m->pos = r->to;
    return FAIL;
}

static outcome read_skip(const reader *r) {
    size_t end;
    outcome result = read_until(r, MAX_SKIP, &end);
    if (result == FAIL) r->m->pos = r->m->element_pos;
    return result;
}

static bool push_param(nib_chat_match *m, nib_chat_range key) {
    if (!nib_grow(&m->params, &m->params_capacity, m->got.n_params + 1, sizeof *m->params)) return false;
    m->params[m->got.n_params++] = (nib_chat_param){.key = key, .value = {m->pos, m->pos}, .kind = 0};
    return true;
}

static outcome read_key(const reader *r) {
    nib_chat_range key;
    outcome result = read_run(r, is_key_char, MAX_KEY, &key);
    if (result == DONE && r->m->got.n_params == MAX_PARAMS) return FAIL;
    if (result == DONE && !push_param(r->m, key)) return NOMEM;
    r->m->kind = 0;
    return result;
}

static outcome read_value(const reader *r, bool is_lines) {
    nib_chat_match *m = r->m;
    nib_chat_range value = {m->element_pos, 0};
    outcome result = read_until(r, SIZE_MAX, &value.to);
    if (result != DONE) return result;
    if (is_lines && value.to > value.from && at(r, value.from) == '\n') value.from++;
    if (is_lines && value.to > value.from && at(r, value.to - 1) == '\n') value.to--;
    if (m->got.n_params == 0) return FAIL;
    m->params[m->got.n_params - 1].value = value;
    m->params[m->got.n_params - 1].kind = m->kind;
    return DONE;
}

static outcome end_payload(nib_chat_match *m, size_t end) {
    m->got.payload = (nib_chat_range){m->element_pos, end};
    m->got.payload_kind = (uint8_t)*m->ip;
    return DONE;
}

static outcome read_tree(const reader *r) {
    size_t end;
    outcome result = read_until(r, SIZE_MAX, &end);
    return result == DONE ? end_payload(r->m, end) : result;
}

/* ---- JSON */

/* Keys by which a call begins; a JSON text that begins with another is an answer, and must not wait for its end. */
static bool is_call_key(nib_str key) {
    static const char *const keys[] = {"name", "type", "function", "parameters", "arguments", "id"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == key.len && memcmp(keys[i], key.ptr, key.len) == 0) return true;
    return false;
}

/* Byte by byte up to the end of the first key: depth counts the quotes, scan tells the first. */
static outcome read_first_key(const reader *r) {
    nib_chat_match *m = r->m;
    size_t used;
    while (m->depth < 2) {
        if (m->pos == r->to) return r->is_end ? FAIL : MORE;
        if (m->pos - m->element_pos > MAX_NAME) return FAIL;
        char c = at(r, m->pos);
        if (nib_chat_json_read(&m->json, &c, 1, &used) != NIB_CHAT_JSON_MORE) return FAIL;
        if (c == '"' && m->depth++ == 0) m->scan = m->pos + 1;
        m->pos++;
    }
    return is_call_key((nib_str){r->ptr + (m->scan - r->from), m->pos - 1 - m->scan}) ? DONE : FAIL;
}

/* Calls as JSON, told of one by one. */
static outcome read_calls(const reader *r) {
    nib_chat_match *m = r->m;
    nib_chat_track *t = &m->track;
    while (!t->is_done && m->pos < r->to) {
        switch (nib_chat_track_byte(t, at(r, m->pos), m->pos, r->ptr, r->from)) {
        case NIB_CHAT_TRACK_BAD: return FAIL;
        case NIB_CHAT_TRACK_MORE: break;
        case NIB_CHAT_TRACK_ARGUMENTS: m->arguments = t->arguments; return m->pos++, ARGS;
        case NIB_CHAT_TRACK_CALL: m->arguments = t->arguments; return m->pos++, ONE;
        }
        m->arguments.to = t->arguments.to;
        m->pos++;
    }
    if (t->is_done) return end_payload(m, m->pos);
    return r->is_end ? FAIL : MORE;
}

static outcome read_json(const reader *r, bool takes_list, bool is_bare) {
    nib_chat_match *m = r->m;
    bool is_one_by_one = m->streams && *m->ip != NIB_CHAT_ARGS && *m->ip != NIB_CHAT_PAIRS, begins = !m->is_inside;
    size_t used;
    if (m->pos == r->to && !(is_one_by_one && m->track.is_done)) return r->is_end ? FAIL : MORE;
    if (begins) m->json = (nib_chat_json){0};
    if (begins && at(r, m->pos) != '{' && (!takes_list || at(r, m->pos) != '[')) return FAIL;
    m->is_inside = true;
    if (begins) m->track = (nib_chat_track){.is_done = false};
    if (begins && m->streams && *m->ip == NIB_CHAT_ARGS) {
        m->arguments = (nib_chat_range){m->pos, 0};
        return ARGS;
    }
    if (is_bare && m->depth < 2) {
        outcome result = read_first_key(r);
        if (result != DONE) return result;
        if (is_one_by_one) m->pos = m->element_pos; /* once more */
    }
    if (is_one_by_one) return read_calls(r);
    nib_chat_json_result result = nib_chat_json_read(&m->json, r->ptr + (m->pos - r->from), r->to - m->pos, &used);
    m->pos += used;
    if (result == NIB_CHAT_JSON_BAD) return FAIL;
    if (result == NIB_CHAT_JSON_MORE) return r->is_end ? FAIL : MORE;
    m->arguments.to = m->pos;
    return end_payload(m, m->pos);
}

/* ---- Gemma's and Python's brackets: where they end; gemma.c and python.c read what is between */

static bool step_bracket(nib_chat_match *m, char c) {
    if (c == '{' || c == '[' || c == '(') return ++m->depth <= MAX_DEPTH;
    if (c == '}' || c == ']' || c == ')') m->depth--;
    return true;
}

static outcome read_gemma(const reader *r) {
    static const char mark[] = "<|\"|>";
    nib_chat_match *m = r->m;
    for (; m->pos < r->to; m->pos++) {
        char c = at(r, m->pos);
        if (!m->is_inside && c != '{') return FAIL;
        m->is_inside = true;
        if (c == '<') {
            size_t n = r->to - m->pos < sizeof mark - 1 ? r->to - m->pos : sizeof mark - 1;
            bool fits = memcmp(r->ptr + (m->pos - r->from), mark, n) == 0;
            if (fits && n < sizeof mark - 1 && !r->is_end) return MORE;
            if (fits && n == sizeof mark - 1) {
                m->quote = !m->quote;
                m->pos += n - 1;
            } else if (!m->quote) {
                return FAIL;
            }
        } else if (!m->quote) {
            if (!step_bracket(m, c)) return FAIL;
            if (m->depth == 0) return m->pos++, end_payload(m, m->pos);
        }
    }
    return r->is_end ? FAIL : MORE;
}

/* The place in "[ name(": before the bracket, before the name, inside it. Then brackets are counted from there. */
enum { PY_START, PY_BLANK, PY_NAME, PY_BODY };

static bool step_python_head(nib_chat_match *m, char c) {
    if (m->kind == PY_START) {
        m->kind = PY_BLANK;
        return c == '[' && step_bracket(m, c);
    }
    if (m->kind == PY_BLANK && nib_chat_is_blank(c)) return true;
    if (m->kind == PY_NAME && c == '(') {
        m->kind = PY_BODY;
        return step_bracket(m, c);
    }
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool is_inner = is_letter || c == '.' || c == '-' || (c >= '0' && c <= '9');
    if (m->kind == PY_BLANK ? !is_letter : !is_inner) return false;
    m->kind = PY_NAME;
    return true;
}

static outcome read_python(const reader *r) {
    nib_chat_match *m = r->m;
    if (!m->is_inside) m->kind = PY_START;
    m->is_inside = true;
    for (; m->pos < r->to; m->pos++) {
        char c = at(r, m->pos);
        if (m->quote) {
            if (c == m->quote && !m->is_escaped) m->quote = 0;
            m->is_escaped = c == '\\' && !m->is_escaped;
            continue;
        }
        if (m->kind != PY_BODY) {
            if (!step_python_head(m, c)) return FAIL;
            continue;
        }
        if (c == '"' || c == '\'') m->quote = c;
        if (!step_bracket(m, c)) return FAIL;
        if (m->depth == 0) return m->pos++, end_payload(m, m->pos);
    }
    return r->is_end ? FAIL : MORE;
}

static outcome read_code(const reader *r) {
    r->m->pos = r->to;
    return r->is_end ? end_payload(r->m, r->to) : MORE;
}

/* ---- the pattern */

static const char *group_end(const char *open) {
    const char *p = open + 1;
    for (int depth = 1; *p; p++) {
        if (*p == NIB_CHAT_OPT || *p == NIB_CHAT_MANY) depth++;
        else if ((*p == NIB_CHAT_END_OPT || *p == NIB_CHAT_END_MANY) && --depth == 0) return p;
    }
    return p;
}

static outcome enter(nib_chat_match *m) {
    if (m->n_choices == NIB_CHAT_MAX_CHOICES) return FAIL;
    m->choices[m->n_choices++] = (nib_chat_choice){m->ip, m->pos, m->got};
    m->ip++;
    return DONE;
}

static void leave(nib_chat_match *m) {
    const nib_chat_choice *choice = &m->choices[--m->n_choices];
    bool is_again = *choice->ip == NIB_CHAT_MANY && m->pos > choice->pos;
    m->ip = is_again ? choice->ip : m->ip + 1;
}

/* Back to the last group that may be left out; false: there is none. */
static bool go_back(nib_chat_match *m) {
    if (m->n_choices == 0 || m->choices[m->n_choices - 1].pos < m->accepted) return false;
    if (m->is_committed && m->choices[m->n_choices - 1].pos < m->committed) return false;
    const nib_chat_choice *choice = &m->choices[--m->n_choices];
    m->pos = choice->pos;
    m->got = choice->got;
    m->ip = group_end(choice->ip) + 1;
    return true;
}

static outcome read_element(const reader *r) {
    nib_chat_match *m = r->m;
    switch (*m->ip) {
    case NIB_CHAT_W: return read_blanks(r);
    case NIB_CHAT_NAME: return read_run(r, is_name_char, MAX_NAME, &m->got.name);
    case NIB_CHAT_ID: return read_run(r, is_name_char, MAX_NAME, &m->got.id);
    case NIB_CHAT_FUNCID: return read_funcid(r);
    case NIB_CHAT_KEY: return read_key(r);
    case NIB_CHAT_VALUE: return read_value(r, false);
    case NIB_CHAT_LINES: return read_value(r, true);
    case NIB_CHAT_ARGS: return read_json(r, false, false);
    case NIB_CHAT_CALLS:
    case NIB_CHAT_PAIRS: return read_json(r, true, false);
    case NIB_CHAT_BARE: return read_json(r, false, true);
    case NIB_CHAT_TREE: return read_tree(r);
    case NIB_CHAT_GEMMA: return read_gemma(r);
    case NIB_CHAT_PYTHON: return read_python(r);
    case NIB_CHAT_CODE: return read_code(r);
    case NIB_CHAT_SKIP: return read_skip(r);
    case NIB_CHAT_IS_TEXT:
    case NIB_CHAT_IS_JSON: m->kind = (uint8_t)*m->ip; return DONE;
    case NIB_CHAT_THINK:
    case NIB_CHAT_TEXT: m->effect = (uint8_t)*m->ip; return DONE;
    default: return FAIL;
    }
}

/* One element or literal. */
static outcome step(const reader *r) {
    nib_chat_match *m = r->m;
    if (!NIB_CHAT_IS_ELEMENT(*m->ip)) return read_literal(r);
    if (*m->ip == NIB_CHAT_MANY || *m->ip == NIB_CHAT_OPT) return enter(m);
    if (*m->ip == NIB_CHAT_END_MANY || *m->ip == NIB_CHAT_END_OPT) return leave(m), DONE;
    outcome result = read_element(r);
    if (result == DONE) m->ip++;
    return result;
}

/* Where a search for markers may go on after the element failed: a literal or a short run that did not fit may be text
 * of its own, a value that was read in vain may not. */
static size_t resume_at(const nib_chat_match *m) {
    return NIB_CHAT_IS_ELEMENT(*m->ip) ? m->pos : m->element_pos;
}

static nib_chat_match_result fail(nib_chat_match *m, const nib_chat_window *w, bool is_over) {
    if (is_over) return NIB_CHAT_MATCH_LIMIT;
    if (m->accepted == m->start || m->is_committed) return NIB_CHAT_MATCH_FAIL;
    if (m->ran_out) m->furthest = w->to;
    else if (nib_chat_trim(nib_chat_text_of(w, (nib_chat_range){m->accepted, m->furthest})).len) return NIB_CHAT_MATCH_FAIL;
    m->pos = m->furthest; /* only a closing marker is missing behind the last call, or its end */
    return NIB_CHAT_MATCH_END;
}

/* The bytes that may be read: up to the limit behind the opening, or behind the last call. */
static reader reader_of(nib_chat_match *m, const nib_chat_window *w, bool is_end, bool *is_over) {
    size_t from = m->accepted > m->start ? m->accepted : m->opened;
    *is_over = w->to - from > m->limit;
    return (reader){m, w->ptr, w->from, *is_over ? from + m->limit : w->to, is_end && !*is_over};
}

static void begin_element(nib_chat_match *m) {
    m->element_pos = m->scan = m->pos;
    m->is_inside = false;
    m->depth = 0;
    m->quote = 0;
    m->is_escaped = false;
}

nib_chat_match_result nib_chat_match_run(nib_chat_match *m, const nib_chat_window *w, bool is_end) {
    bool is_over;
    for (; m->ip && *m->ip && *m->ip != NIB_CHAT_STOP; begin_element(m)) {
        if (*m->ip == NIB_CHAT_CALL) {
            m->ip++;
            return NIB_CHAT_MATCH_CALL;
        }
        reader r = reader_of(m, w, is_end, &is_over);
        outcome result = step(&r);
        if (result == DONE) continue;
        if (result == NOMEM) return NIB_CHAT_MATCH_NOMEM;
        if (result == ARGS || result == ONE) return result == ARGS ? NIB_CHAT_MATCH_ARGS : NIB_CHAT_MATCH_ONE;
        if (result == MORE && !is_over) return NIB_CHAT_MATCH_MORE;
        size_t resume = result == MORE ? r.to : resume_at(m);
        if (resume > m->furthest) m->furthest = resume;
        m->ran_out |= r.is_end && m->pos == r.to;
        if (result == MORE || !go_back(m)) return fail(m, w, result == MORE);
    }
    return m->ip ? NIB_CHAT_MATCH_END : fail(m, w, false);
}
