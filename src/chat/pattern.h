/* chat/pattern.h - the little language in which formats.def says what a model writes: literal text and elements.
 *
 * An element is one byte that no marker contains. match.c owns what each of them reads; this header gives them names, for
 * the table as strings that stand between literals, for match.c as numbers. Alternatives are tried in order: where the
 * inside of OPT or MANY does not match, the pattern goes on behind it. */
#ifndef NIB_CHAT_PATTERN_H
#define NIB_CHAT_PATTERN_H

#include "nib.h"

enum {
    NIB_CHAT_W = 1,    /* white space, or none */
    NIB_CHAT_NAME,     /* the name of the function */
    NIB_CHAT_ID,       /* the id of the call */
    NIB_CHAT_FUNCID,   /* both: functions.NAME:INDEX */
    NIB_CHAT_KEY,      /* the name of a parameter */
    NIB_CHAT_VALUE,    /* its value: the text up to the literal that follows */
    NIB_CHAT_LINES,    /* the same, without the newline at either end that belongs to the format */
    NIB_CHAT_ARGS,     /* the arguments, a JSON object */
    /* 9 and 10 are tab and newline */
    NIB_CHAT_CALLS = 11, /* calls as JSON: {"name", "arguments"} or a list of these */
    NIB_CHAT_PAIRS,    /* the same as {NAME: arguments} */
    NIB_CHAT_BARE,     /* one call as JSON that no marker announces: at first sight of another key it is none */
    NIB_CHAT_TREE,     /* parameters as nested tags, up to the literal that follows */
    NIB_CHAT_GEMMA,    /* {key:value}, strings between <|"|> */
    NIB_CHAT_PYTHON,   /* [name(key=value), …] */
    NIB_CHAT_CODE,     /* name.call(key=value), or code for the tool python: all of the rest */
    NIB_CHAT_IS_TEXT,  /* the value that follows is a string */
    NIB_CHAT_IS_JSON,  /* … is JSON */
    NIB_CHAT_SKIP,     /* a little text, up to the literal that follows */
    NIB_CHAT_CALL,     /* what was read since the last one is a call, and stays one whatever follows */
    NIB_CHAT_THINK,    /* what follows is reasoning */
    NIB_CHAT_TEXT,     /* what follows is content */
    NIB_CHAT_MANY, NIB_CHAT_END_MANY, /* any number of times */
    NIB_CHAT_OPT, NIB_CHAT_END_OPT,   /* once or not */
    NIB_CHAT_STOP,     /* the end of the pattern */
    NIB_CHAT_N_ELEMENTS
};

#define NIB_CHAT_IS_ELEMENT(c) ((unsigned char)(c) < NIB_CHAT_N_ELEMENTS && (c) != '\t' && (c) != '\n')

/* Where a rule applies. */
enum {
    NIB_CHAT_AT_START = 1, /* before anything else of the answer */
    NIB_CHAT_AT_FRESH = 2, /* where content would begin: no text yet, or none behind the last marker */
    NIB_CHAT_IN_TEXT = 4,  /* anywhere in content, fresh or not */
    NIB_CHAT_IN_THINKING = 8,
    NIB_CHAT_AT_FRESH_THINKING = 16, /* where reasoning would begin */
};

typedef struct nib_chat_rule {
    unsigned where;
    const char *pattern; /* begins with a literal, unless it is for the start or fresh content only; NULL: no rule */
} nib_chat_rule;

#define NIB_CHAT_MAX_RULES 12
#define NIB_CHAT_MAX_STOPS 4

struct nib_chat_format_row {
    const char *name;
    nib_chat_rule rules[NIB_CHAT_MAX_RULES];
    const char *stops[NIB_CHAT_MAX_STOPS]; /* tokens that end a turn, whether or not the file counts them as such */
};

#endif
