/* nib.h - the public interface of nib, an inference engine for GGUF language models.
 *
 * One loop: text -> token ids -> batch -> nib_decode -> logits -> sample -> id -> text, and the id goes back into the
 * next batch. Prefill and decode are the same call with a different number of tokens in the batch.
 *
 *     nib_gguf *file;        nib_gguf_open(&file, "model.gguf", NULL, &err);
 *     nib_tokenizer *tok;    nib_tokenizer_new(&tok, file, NULL, &err);
 *     nib_model *model;      nib_model_open(&model, file, NULL, &err);
 *     nib_context *ctx;      nib_context_new(&ctx, model, NULL, &err);
 *     nib_sampler *smp;      nib_sampler_new(&smp, NULL, nib_model_n_vocab(model), &err);
 *     ... see examples/generate.c for the whole loop.
 *
 * Rules that hold for every function:
 * - Errors are values. A function that can fail returns nib_status (0 is success) and fills *err when err is not NULL.
 *   The library never exits, aborts, prints or reads the environment. When a constructor fails, *out is NULL and there
 *   is nothing to free.
 * - _new/_free and _open/_close come in pairs; every _free and _close accepts NULL.
 * - Pointers that a getter returns are borrowed and live as long as the handle, unless its comment says otherwise.
 * - Strings carry their length and may hold any byte. `const char *` parameters named path or name end in NUL.
 * - Handles share no hidden state. nib_gguf, nib_tokenizer, nib_template, nib_chat, nib_model and nib_grammar are immutable
 *   after construction and may be used by many threads at once; nib_context, nib_batch, nib_sampler, nib_detok, nib_matcher
 *   and nib_stop belong to one thread at a time; nib_engine may be used by many.
 * - Config structs start with their size and are initialised by the _INIT macro of the same name; NULL means defaults.
 *
 * Same bits: the logits of a token depend on the model, the tokens before it, the type of the KV cache, and nothing
 * else - not on the batch, the chunking of the prefill, the number of threads or the instruction set.
 */
#ifndef NIB_H
#define NIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NIB_VERSION_MAJOR 0
#define NIB_VERSION_MINOR 1
#define NIB_VERSION_PATCH 0
#define NIB_VERSION "0.1.0"

#if defined(__GNUC__)
#define NIB_API __attribute__((visibility("default")))
#else
#define NIB_API
#endif

/* The version of the library at run time, "major.minor.patch". */
NIB_API const char *nib_version(void);

/* ------------------------------------------------------------------------------------------------ errors */

/* Values are fixed for ever; texts come from nib_status_text. */
typedef enum nib_status {
    NIB_OK = 0,
    NIB_E_NOMEM = -1,       /* memory could not be had */
    NIB_E_ARG = -2,         /* the caller passed something that is not allowed */
    NIB_E_IO = -3,          /* the operating system refused to open, read or write */
    NIB_E_FORMAT = -4,      /* a file or text is malformed; offset says where */
    NIB_E_UNSUPPORTED = -5, /* well-formed, but nib does not do it */
    NIB_E_LIMIT = -6,       /* a limit that the caller set (or its default) was reached */
    NIB_E_KV_FULL = -7,     /* the KV cache has too few free pages; nothing was changed */
    NIB_E_NUMERIC = -8,     /* NaN or infinity where a number was needed */
    NIB_E_CHANGED = -9,     /* a file changed while it was in use */
    NIB_E_CANCELLED = -10,  /* a callback asked to stop */
    NIB_E_BUSY = -11,       /* too much is waiting already: the same request may be taken later */
} nib_status;

#define NIB_NO_OFFSET UINT64_MAX

typedef struct nib_error {
    nib_status code;
    uint64_t offset;   /* byte position in the input, or NIB_NO_OFFSET */
    char message[496]; /* one line for a person, without a newline: what, found, expected, what to do */
} nib_error;

/* A constant, lower-case text for a status; never NULL. */
NIB_API const char *nib_status_text(nib_status status);

/* Bytes with a length; not NUL-terminated. */
typedef struct nib_str {
    const char *ptr;
    size_t len;
} nib_str;

/* Called during long work with done of total units (bytes). Return false to stop; the call then fails with
 * NIB_E_CANCELLED. Runs on the calling thread. */
typedef bool (*nib_progress_fn)(void *user, uint64_t done, uint64_t total);

/* ------------------------------------------------------------------------------------------------ GGUF files */

typedef struct nib_gguf nib_gguf;

typedef enum nib_load_mode {
    NIB_LOAD_READ = 0, /* read with pread: a file that shrinks or is replaced is an error value, never a signal */
    NIB_LOAD_MMAP = 1, /* map the file: a file that is truncated while mapped raises SIGBUS in the reading thread, as
                          any mapping does. Use it only where the file is known to stay, or with a handler. */
} nib_load_mode;

typedef struct nib_gguf_config {
    size_t size;
    nib_load_mode mode;         /* default NIB_LOAD_READ */
    uint64_t max_metadata_bytes;/* default 1 GiB: refuse a header that is longer */
    uint32_t max_tensors;       /* default 1 << 20 */
    uint32_t max_keys;          /* default 1 << 20 */
} nib_gguf_config;
#define NIB_GGUF_CONFIG_INIT {sizeof(nib_gguf_config), NIB_LOAD_READ, UINT64_C(1) << 30, 1u << 20, 1u << 20}

/* Metadata value types, numbered as in the file format. */
typedef enum nib_gguf_type {
    NIB_GGUF_U8 = 0, NIB_GGUF_I8 = 1, NIB_GGUF_U16 = 2, NIB_GGUF_I16 = 3, NIB_GGUF_U32 = 4, NIB_GGUF_I32 = 5,
    NIB_GGUF_F32 = 6, NIB_GGUF_BOOL = 7, NIB_GGUF_STRING = 8, NIB_GGUF_ARRAY = 9, NIB_GGUF_U64 = 10,
    NIB_GGUF_I64 = 11, NIB_GGUF_F64 = 12,
} nib_gguf_type;

typedef struct nib_gguf_value {
    nib_gguf_type type;
    nib_gguf_type elem; /* of an array: the type of its elements */
    uint64_t n;         /* of an array: the number of elements */
    union {
        uint64_t u64; /* U8 U16 U32 U64 */
        int64_t i64;  /* I8 I16 I32 I64 */
        double f64;   /* F32 F64 */
        bool b;
        nib_str str;
        nib_str raw; /* of an array: its elements as they stand in the file, little-endian, packed */
    } as;
} nib_gguf_value;

typedef struct nib_gguf_tensor {
    nib_str name;
    uint32_t type;        /* number in the file format */
    const char *type_name;/* "Q4_K", or "type 200" for a number nib does not know */
    bool is_supported;    /* nib can compute with this type */
    uint32_t n_dims;
    uint64_t dims[4];     /* dims[0] is the row length (contiguous); unused ones are 1 */
    uint64_t n_elements;
    uint64_t n_bytes;     /* 0 when the type is unknown */
    uint64_t offset;      /* of the first byte, from the start of its file */
    uint32_t file;        /* which part of a split model, from 0 */
} nib_gguf_tensor;

/* Opens a GGUF file, version 2 or 3, with all its parts when it is the first of a split (…-00001-of-0000N.gguf).
 * Everything in the header is checked; tensor data is not read. Thread-safe. */
NIB_API nib_status nib_gguf_open(nib_gguf **out, const char *path, const nib_gguf_config *config, nib_error *err);
NIB_API void nib_gguf_close(nib_gguf *file);

NIB_API const char *nib_gguf_path(const nib_gguf *file); /* of the first part */
NIB_API uint32_t nib_gguf_version(const nib_gguf *file);
NIB_API uint32_t nib_gguf_alignment(const nib_gguf *file);
NIB_API uint64_t nib_gguf_file_bytes(const nib_gguf *file); /* all parts together */
NIB_API uint32_t nib_gguf_n_files(const nib_gguf *file);

/* Metadata in file order. key_at: NULL name when i is out of range. find: NULL when the key is absent. */
NIB_API size_t nib_gguf_n_keys(const nib_gguf *file);
NIB_API nib_str nib_gguf_key_at(const nib_gguf *file, size_t i, const nib_gguf_value **value);
NIB_API const nib_gguf_value *nib_gguf_find(const nib_gguf *file, const char *name);
NIB_API const char *nib_gguf_type_name(nib_gguf_type type);

/* Walks an array of strings: `nib_str left = value->as.raw; while (nib_gguf_next_string(&left, &s)) …`. */
NIB_API bool nib_gguf_next_string(nib_str *left, nib_str *out);
/* Element i of an array of numbers or bools as a double (exact up to 2^53); 0 when out of range or not a number. */
NIB_API double nib_gguf_number_at(const nib_gguf_value *array, uint64_t i);

NIB_API size_t nib_gguf_n_tensors(const nib_gguf *file);
NIB_API const nib_gguf_tensor *nib_gguf_tensor_at(const nib_gguf *file, size_t i);
NIB_API const nib_gguf_tensor *nib_gguf_find_tensor(const nib_gguf *file, const char *name);
/* Copies n_bytes of a tensor's data from byte `from` on into dst. NIB_E_CHANGED when the file became shorter. */
NIB_API nib_status nib_gguf_read(const nib_gguf *file, const nib_gguf_tensor *tensor, uint64_t from, uint64_t n_bytes,
                                 void *dst, nib_error *err);

/* ------------------------------------------------------------------------------------------------ tokenizer */

typedef int32_t nib_token;
#define NIB_TOKEN_NONE (-1)

typedef struct nib_tokenizer nib_tokenizer;

typedef struct nib_tokenizer_config {
    size_t size;
    const char *pre; /* use this pre-tokenizer instead of tokenizer.ggml.pre; NULL: the file's */
} nib_tokenizer_config;
#define NIB_TOKENIZER_CONFIG_INIT {sizeof(nib_tokenizer_config), NULL}

typedef enum nib_token_attr { /* bits, as tokenizer.ggml.token_type says */
    NIB_TOKEN_NORMAL = 1, NIB_TOKEN_UNKNOWN = 2, NIB_TOKEN_CONTROL = 4, NIB_TOKEN_USER = 8, NIB_TOKEN_UNUSED = 16,
    NIB_TOKEN_BYTE = 32, NIB_TOKEN_EOG = 64, /* ends a generation: eos, eot, eom … */
} nib_token_attr;

/* Builds the tokenizer of a GGUF file; files without tensors (vocabulary only) are fine. Keeps nothing of `file`. */
NIB_API nib_status nib_tokenizer_new(nib_tokenizer **out, const nib_gguf *file, const nib_tokenizer_config *config,
                                     nib_error *err);
NIB_API void nib_tokenizer_free(nib_tokenizer *tok);

/* Notes for the user found while building ("no pre-tokenizer named, …"), one a call; NULL when i is past the last. */
NIB_API const char *nib_tokenizer_warning(const nib_tokenizer *tok, size_t i);
NIB_API const char *nib_tokenizer_kind(const nib_tokenizer *tok); /* "bpe", "spm", "wordpiece", "unigram" */
NIB_API const char *nib_tokenizer_pre(const nib_tokenizer *tok);  /* the pre-tokenizer in use, "" when none */
NIB_API uint32_t nib_tokenizer_n_tokens(const nib_tokenizer *tok);
NIB_API nib_str nib_tokenizer_text(const nib_tokenizer *tok, nib_token id); /* as in the file; empty when out of range */
NIB_API unsigned nib_tokenizer_attr(const nib_tokenizer *tok, nib_token id);/* bits of nib_token_attr; 0 out of range */
NIB_API bool nib_tokenizer_is_eog(const nib_tokenizer *tok, nib_token id);
NIB_API bool nib_tokenizer_add_bos(const nib_tokenizer *tok);
NIB_API bool nib_tokenizer_add_eos(const nib_tokenizer *tok);
/* Special ids by name: "bos" "eos" "eot" "eom" "unk" "sep" "pad" "mask" "cls" "fim_pre" "fim_suf" "fim_mid" …;
 * NIB_TOKEN_NONE when the model has none. */
NIB_API nib_token nib_tokenizer_special(const nib_tokenizer *tok, const char *name);

enum {
    NIB_ADD_SPECIAL = 1,   /* put BOS/EOS (CLS/SEP) where the model wants them */
    NIB_PARSE_SPECIAL = 2, /* "<|im_end|>" in the text is the control token; otherwise it is plain text */
};

typedef struct nib_token_list {
    nib_token *ids;
    size_t n, capacity;
    size_t most; /* tokens that the list may have: who tokenizes more into it gets NIB_E_LIMIT, mostly early; 0: no limit */
} nib_token_list; /* zero-initialise; free with nib_token_list_free */

/* Appends the tokens of len bytes of text to *out. Any bytes are accepted (invalid UTF-8 becomes byte tokens or
 * U+FFFD, as the kind of tokenizer has it). flags: NIB_ADD_SPECIAL, NIB_PARSE_SPECIAL. On error *out is unchanged.
 * Time is about linear in len. Thread-safe. */
NIB_API nib_status nib_tokenize(const nib_tokenizer *tok, const char *text, size_t len, unsigned flags,
                                nib_token_list *out, nib_error *err);
NIB_API void nib_token_list_free(nib_token_list *list);

enum {
    NIB_UNPARSE_SPECIAL = 1, /* write control tokens as their text; otherwise they are left out */
    NIB_REMOVE_SPECIAL = 2,  /* leave out BOS at the start and EOS at the end even when unparsing */
    NIB_KEEP_SPACES = 4,     /* do not clean up, as some models' decode() does: the space before . , ! ? and 's stays */
};

/* The text of n ids. *text is allocated with malloc (NUL added, not counted) and belongs to the caller: free(). */
NIB_API nib_status nib_detokenize(const nib_tokenizer *tok, const nib_token *ids, size_t n, unsigned flags,
                                  char **text, size_t *len, nib_error *err);

/* A detokenizer for a stream: gives whole UTF-8 characters only and holds the rest back. The concatenation of what
 * push and finish give equals nib_detokenize of the ids as one list with NIB_KEEP_SPACES, except that invalid UTF-8
 * becomes U+FFFD.
 * is_continuation: text came before the first id, so the space that begins its first word is kept; a stream that starts
 * a text drops the space that the tokenizer put in front. */
typedef struct nib_detok nib_detok;
NIB_API nib_status nib_detok_new(nib_detok **out, const nib_tokenizer *tok, unsigned flags, bool is_continuation,
                                 nib_error *err);
NIB_API void nib_detok_free(nib_detok *detok);
/* *piece is valid until the next call on this detok; it may be empty. An id out of range is NIB_E_ARG. */
NIB_API nib_status nib_detok_push(nib_detok *detok, nib_token id, nib_str *piece, nib_error *err);
NIB_API nib_str nib_detok_finish(nib_detok *detok); /* what was held back; incomplete bytes become U+FFFD */

/* ------------------------------------------------------------------------------------------------ chat templates */

/* A chat template: the Jinja program of a model that turns messages into its prompt, as Python's jinja2 3.1 runs it in
 * Hugging Face's setting. It has no I/O, cannot change its data, and runs within limits. Immutable: many threads may render
 * with one template at once. */
typedef struct nib_template nib_template;

/* Parses the text (UTF-8) and keeps nothing of it. err->offset is the place in the text, with each line end counted as one
 * byte: nib_template_place turns it into line and column. */
NIB_API nib_status nib_template_new(nib_template **out, const char *text, size_t len, nib_error *err);
NIB_API void nib_template_free(nib_template *tmpl);
NIB_API void nib_template_place(const char *text, size_t len, uint64_t offset, uint32_t *line, uint32_t *column);

typedef struct nib_template_config {
    size_t size;
    uint64_t max_steps;  /* default 4 million: some tenths of a second */
    size_t max_bytes;    /* memory of one render, its data and result included; default 32 MiB */
    uint32_t max_depth;  /* nesting and recursion; default 1000 (about 1 MiB of stack) */
    int64_t now;         /* what strftime_now shows: the local time as seconds since 1970; default 0 */
    const char *trusted; /* names of data, with a space between, whose text is as good as the template's; "messages.role":
                            the member of all of a list */
} nib_template_config;
#define NIB_TEMPLATE_CONFIG_INIT                                                                                       \
    {sizeof(nib_template_config), UINT64_C(4000000), (size_t)32 << 20, 1000, 0,                                        \
     "bos_token eos_token unk_token pad_token sep_token cls_token mask_token"}

/* Bytes that follow each other. Trusted ones come from the template: special tokens in them are meant. All others come
 * from the data: "<|im_end|>" typed by a user must stay plain text. */
typedef struct nib_span {
    size_t len;
    bool is_trusted;
} nib_span;

typedef struct nib_rendered {
    char *text; /* UTF-8 of len bytes, and a NUL; may be NULL when len is 0 */
    size_t len;
    nib_span *spans; /* all of the text, alternating */
    size_t n_spans;
} nib_rendered;

/* Renders with the data, a JSON object: {"messages": …, "tools": …, "add_generation_prompt": …}. NIB_E_FORMAT: the template
 * refused (raise_exception gives its message) or went wrong, NIB_E_LIMIT: a limit was reached; both have an offset in
 * the template. NIB_E_ARG: the data is not such JSON. Free *out with nib_rendered_free. Thread-safe. */
NIB_API nib_status nib_template_render(const nib_template *tmpl, const char *json, size_t len,
                                       const nib_template_config *config, nib_rendered *out, nib_error *err);
NIB_API void nib_rendered_free(nib_rendered *rendered);

/* Templates by name, for models whose file has none: the names of llama.cpp, NULL after the last, and the text of one, a
 * constant; ptr NULL: no such name. Where llama.cpp's output differs from the template that a model was published with, they
 * follow the model, but for system messages of its own. They use add_generation_prompt and messages whose content is a
 * string, and refuse a role that the format has no place for. Control tokens may be made of roles, so roles must be known
 * words, and "messages.role" trusted. BOS is left to the tokenizer. */
NIB_API const char *const *nib_chat_builtin_names(void);
NIB_API nib_str nib_chat_builtin_find(const char *name);

/* ------------------------------------------------------------------------------------------------ chat */

/* How a model talks: its chat template, what ends a turn, and the format of its answers. Immutable: many threads may render
 * with one nib_chat at once. */
typedef struct nib_chat nib_chat;

typedef struct nib_chat_config {
    size_t size;
    const char *text;    /* a template of the caller's, text_len bytes; goes before everything else. NULL: none */
    size_t text_len;
    const char *builtin; /* a template that nib brings along, by its name in nib_chat_builtin_names; NULL: the file's own */
    const char *variant; /* "tool_use": tokenizer.chat_template.tool_use of the file. NULL: the default one, and tool_use by
                            itself for requests with tools */
    const char *format;  /* how answers are written, by its name in nib_chat_format_names; NULL: found from the template */
} nib_chat_config;
#define NIB_CHAT_CONFIG_INIT {sizeof(nib_chat_config), NULL, 0, NULL, NULL, NULL}

/* Finds the template and tries what it can do: it is rendered a few dozen times with small conversations. file may be NULL
 * when config gives a template; nothing of it is kept. tok must outlive the chat. NIB_E_ARG: the file has no template, and
 * none was chosen. NIB_E_FORMAT: the template does not parse; the message names it, with line and column. */
NIB_API nib_status nib_chat_new(nib_chat **out, const nib_gguf *file, const nib_tokenizer *tok,
                                const nib_chat_config *config, nib_error *err);
NIB_API void nib_chat_free(nib_chat *chat);
NIB_API const char *nib_chat_source(const nib_chat *chat); /* "the model's template", "built-in chatml", …: to show */
NIB_API const char *nib_chat_format(const nib_chat *chat); /* the format of answers, by its name */
/* An answer is complete with a token for which this is true: those of nib_tokenizer_is_eog, and the one that the template
 * puts behind every answer. */
NIB_API bool nib_chat_ends_turn(const nib_chat *chat, nib_token id);
/* Strings that end an answer, where the template has no token for it: i from 0; ptr NULL past the last. */
NIB_API nib_str nib_chat_stop(const nib_chat *chat, size_t i);
/* Whether the text of a token is a marker of the format or part of one, which a parser of answers must see: of control tokens
 * these are unparsed (NIB_UNPARSE_SPECIAL), the others left out. */
NIB_API bool nib_chat_is_mark(const nib_chat *chat, nib_str token_text);

typedef struct nib_chat_render_config {
    size_t size;
    int64_t now;       /* as in nib_template_config, as are the limits */
    bool trust_all;    /* special tokens in messages are meant: whoever writes them can end his turn and begin another's */
    uint64_t max_steps;
    size_t max_bytes;
    uint32_t max_depth;
} nib_chat_render_config;
#define NIB_CHAT_RENDER_CONFIG_INIT                                                                                    \
    {sizeof(nib_chat_render_config), 0, false, UINT64_C(4000000), (size_t)32 << 20, 1000}

typedef struct nib_chat_prompt {
    nib_rendered rendered;
    bool starts_thinking; /* the prompt ends inside a block of thoughts: the answer begins there */
    const char *notes[7]; /* what had to be changed to suit the template, constant sentences to show; NULL behind the last */
} nib_chat_prompt;

/* A request as OpenAI's chat API has it, JSON -> the prompt:
 *   messages               a list, not empty: role; content, a string, null or text parts; name; tool_calls; tool_call_id;
 *                          reasoning_content (or reasoning) of an assistant
 *   tools, tool_choice     tool_choice "none" hides the tools
 *   documents              a list of objects for templates that have a place for them
 *   add_generation_prompt  true if not given: the prompt ends where the answer begins
 *   continue_final_message the prompt ends inside the last message, for the model to go on
 *   enable_thinking, reasoning_effort
 *   chat_template_kwargs   an object: more variables for the template
 * null is as good as not given, other fields are ignored. NIB_E_ARG: the message names the field ("messages[3].content").
 * NIB_E_UNSUPPORTED: content other than text. NIB_E_FORMAT: the template refused or went wrong; NIB_E_LIMIT: a limit was
 * reached. Free *out with nib_chat_prompt_free. Thread-safe. */
NIB_API nib_status nib_chat_render(const nib_chat *chat, const char *json, size_t len,
                                   const nib_chat_render_config *config, nib_chat_prompt *out, nib_error *err);
NIB_API void nib_chat_prompt_free(nib_chat_prompt *prompt);

/* Appends the tokens of rendered text, as nib_tokenize does for one text, but special tokens are recognised only where
 * every byte is trusted. Elsewhere they are plain text, and so are other added tokens that the file's own template is
 * written with ("<tool_call>"). flags: NIB_ADD_SPECIAL puts BOS (CLS) in front where the model wants it and the text does not
 * begin with it; nothing is put at the end. On error *out is unchanged. Thread-safe. */
NIB_API nib_status nib_tokenize_spans(const nib_tokenizer *tok, const nib_rendered *text, unsigned flags,
                                      nib_token_list *out, nib_error *err);

/* ------------------------------------------------------------------------------------------------ chat answers */

/* Names of the formats in which models answer, NULL behind the last. "generic" is for a model of which nothing is known,
 * "none" takes every answer for plain content. */
NIB_API const char *const *nib_chat_format_names(void);

/* Takes an answer apart into content, reasoning and tool calls while it comes. What comes out depends on the bytes only, not
 * on how they were cut into pieces, apart from the cuts of the text itself.
 *
 * - Control tokens must come as text (NIB_UNPARSE_SPECIAL) as far as the format has them among its markers. What may still
 *   become a marker is held back, with the blanks before it (at most 256), and no more.
 * - A call comes as a whole, as soon as its arguments are complete; a closing marker that is missing is forgiven. Bytes that
 *   begin like a call and are none stay text, and a warning says where. So does a call that the answer ends in.
 * - JSON arguments are the model's own bytes, checked strictly. The parameters of other formats become values of the types
 *   that the tool's schema wants; without a schema they are JSON when they parse as something other than a string, else a
 *   string. A call of a tool that was not given is a call all the same, after a warning; only JSON that no marker announces
 *   must name one that was given.
 * - With stream_calls a call begins as soon as its name and the first byte of its arguments are there, and these are given as
 *   they come: where they are JSON text in the answer (an id that follows them is not seen then); elsewhere they come at once.
 *   A call that breaks off ends after a warning: what was given of it stays, and what follows is text.
 * - White space next to a marker is dropped: around reasoning and calls, and at the ends of messages that have headers. All
 *   other text is let through as it is.
 * - <think> opens reasoning where content would begin; further on an answer may speak of it. */
typedef struct nib_chat_parser nib_chat_parser;

typedef enum nib_chat_event_kind {
    NIB_CHAT_CONTENT = 0,
    NIB_CHAT_REASONING = 1,
    NIB_CHAT_TOOL_CALL = 2,
    NIB_CHAT_WARNING = 3,
    NIB_CHAT_CALL_BEGIN = 4,     /* with stream_calls, in place of TOOL_CALL: */
    NIB_CHAT_CALL_ARGUMENTS = 5,
    NIB_CHAT_CALL_END = 6,
} nib_chat_event_kind;

/* Strings are valid during the call only. */
typedef struct nib_chat_event {
    nib_chat_event_kind kind;
    nib_str text;   /* CONTENT, REASONING: a piece, never empty; TOOL_CALL: the arguments, a JSON object; WARNING: a line;
                       CALL_ARGUMENTS: the next piece of them */
    uint32_t index; /* TOOL_CALL, CALL_…: from 0 on */
    nib_str name, id; /* TOOL_CALL, CALL_BEGIN: the id that the model wrote, else "call_0", "call_1", … */
} nib_chat_event;

/* False: stop; the push or finish then fails with NIB_E_CANCELLED. */
typedef bool (*nib_chat_event_fn)(void *user, const nib_chat_event *event);

typedef struct nib_chat_parser_config {
    size_t size;
    const char *format;   /* one of nib_chat_format_names(); default "generic" */
    bool starts_thinking; /* the prompt ends inside reasoning */
    bool parse_tools;     /* default true; false: calls are text */
    bool parse_reasoning; /* default true; false: reasoning is content, and its markers are, too */
    const char *tools;    /* JSON, a list as in OpenAI's requests: names and types of parameters; NULL: not known */
    size_t tools_len;
    size_t max_call_bytes; /* a longer call is text, with a warning; default 16 MiB */
    bool stream_calls;     /* give arguments as they come */
    nib_chat_event_fn event;
    void *user;
} nib_chat_parser_config;
#define NIB_CHAT_PARSER_CONFIG_INIT                                                                                    \
    {sizeof(nib_chat_parser_config), "generic", false, true, true, NULL, 0, (size_t)16 << 20, false, NULL, NULL}

/* NIB_E_ARG: no such format, or tools that are no JSON list. The config is not kept. */
NIB_API nib_status nib_chat_parser_new(nib_chat_parser **out, const nib_chat_parser_config *config, nib_error *err);
NIB_API void nib_chat_parser_free(nib_chat_parser *parser);
/* Once a call failed, all later ones fail in the same way. */
NIB_API nib_status nib_chat_parser_push(nib_chat_parser *parser, nib_str bytes, nib_error *err);
/* The answer is complete: what was held back comes out. Afterwards the parser takes no more. */
NIB_API nib_status nib_chat_parser_finish(nib_chat_parser *parser, nib_error *err);
NIB_API uint32_t nib_chat_parser_n_calls(const nib_chat_parser *parser); /* so far */

/* ------------------------------------------------------------------------------------------------ model */

typedef struct nib_model nib_model;

typedef struct nib_model_config {
    size_t size;
    const char *isa;      /* force a level: "scalar", "avx2", …; NULL: the best one that this machine has */
    int n_threads;        /* that load and pack; 0: nib_cpu_count() */
    bool mlock;           /* keep the weights in memory */
    bool check_tensors;   /* refuse NaN and infinity in weights and scales */
    /* Overrides of rope; NaN or 0: as in the file. */
    float rope_freq_base, rope_freq_scale;
    nib_progress_fn progress; /* NULL: none */
    void *user;
    bool plan_only;       /* do not read the weights: for questions about the model and its contexts; nib_decode refuses */
    const char *pack_cache; /* a folder, made when there is none, that keeps packed weights for the next load; NULL: none.
                               Not used with check_tensors. What goes wrong there is no error: nib_model_pack_cache says it */
} nib_model_config;
#define NIB_MODEL_CONFIG_INIT {sizeof(nib_model_config), NULL, 0, false, false, 0.0f, 0.0f, NULL, NULL, false, NULL}

/* Reads hyper-parameters, checks every tensor's name, type and shape, and packs the weights for this machine.
 * The model keeps a reference to `file`: close the file after the model. NIB_E_FORMAT and NIB_E_UNSUPPORTED name the
 * key or tensor, what was found and what was expected. */
NIB_API nib_status nib_model_open(nib_model **out, const nib_gguf *file, const nib_model_config *config,
                                  nib_error *err);
NIB_API void nib_model_close(nib_model *model);
/* Everything nib_model_open checks, without keeping anything: hyper-parameters, tensors, and with `data` also NaN and
 * infinity in every scale and weight. `report` gets each fault (there may be many); NULL: only the first, in err. */
NIB_API nib_status nib_model_check(const nib_gguf *file, bool data, void (*report)(void *user, const nib_error *fault),
                                   void *user, nib_error *err);

NIB_API const char *nib_model_arch(const nib_model *model);
NIB_API const char *nib_model_isa(const nib_model *model); /* the level in use */
NIB_API uint32_t nib_model_n_vocab(const nib_model *model);
NIB_API uint32_t nib_model_n_ctx_train(const nib_model *model);
NIB_API uint32_t nib_model_n_embd(const nib_model *model);
NIB_API uint32_t nib_model_n_layer(const nib_model *model);
NIB_API uint64_t nib_model_n_params(const nib_model *model);

/* How the hidden states of a text become one vector: that of its first or last token, or the mean of all. Numbered as in the
 * file format. The sum is taken in the order of the positions, so the bits are as independent of batches as logits are. */
typedef enum nib_pooling {
    NIB_POOLING_NONE = 0, NIB_POOLING_MEAN = 1, NIB_POOLING_CLS = 2, NIB_POOLING_LAST = 3,
} nib_pooling;
/* What the file says (pooling_type), MEAN if it does not; NONE: something that nib does not do. */
NIB_API nib_pooling nib_model_pooling(const nib_model *model);
/* What became of the pack cache: *what (may be NULL) gets a sentence to show, or NULL when none was used. Anything but
 * NIB_OK: the weights are loaded, but could not be kept for the next load. */
NIB_API nib_status nib_model_pack_cache(const nib_model *model, const char **what);
NIB_API uint64_t nib_model_weight_bytes(const nib_model *model);          /* as packed in memory */
NIB_API uint64_t nib_model_bytes_per_token(const nib_model *model);       /* weights read for one decoded token */
NIB_API uint64_t nib_model_kv_bytes_per_token(const nib_model *model, const char *k_type, const char *v_type);

/* The plan: the model as a flat list of steps. Rows are symbolic: TOK = tokens of the batch, OUT = rows with logits. */
typedef struct nib_step_info {
    const char *op;       /* "embed", "norm", "matmul", … */
    const char *fused;    /* what the step does besides, without a pass over memory of its own: "quant" (norm, glu), "add"
                             (norm, matmul); "" */
    const char *name;     /* "blk.3.attn_q" or "" */
    const char *type;     /* of the weight, "" when none */
    const char *rows;     /* "TOK" or "OUT" */
    int layer;            /* -1 outside layers */
    uint64_t n_in, n_out; /* row widths */
    uint32_t n_head, n_head_kv, head_dim; /* attention: heads of queries and of keys, width of a key; else 0 */
    uint32_t window;      /* attention: positions seen, the token's own included; 0: all */
    uint64_t bytes;       /* weights read by one run of the step, however many rows */
    uint64_t macs;        /* multiply-accumulates per row; attention: per row and position of context */
} nib_step_info;
NIB_API size_t nib_model_n_steps(const nib_model *model);
NIB_API nib_status nib_model_step(const nib_model *model, size_t i, nib_step_info *out);

/* CPUs this process may use: the smallest of affinity mask, cgroup quota (rounded down, at least 1) and physical cores,
 * of which only the fast ones count where there are several kinds. `reason` (may be NULL) gets a constant text that says
 * which of them decided. */
NIB_API int nib_cpu_count(const char **reason);
/* The levels this build has, best first, NULL-terminated; nib_isa_usable says whether this machine can run one. For "amx"
 * it runs a test product, since flags of the processor have lied; if that faults, the process gets SIGILL or SIGSEGV. */
NIB_API const char *const *nib_isa_names(void);
NIB_API bool nib_isa_usable(const char *isa);
/* Why a level that the processor claims to have is not usable, as a sentence to show; NULL when all is well. */
NIB_API const char *nib_isa_trouble(void);
/* The tensor types that nib computes with, NULL-terminated. */
NIB_API const char *const *nib_type_names(void);

/* ------------------------------------------------------------------------------------------------ context */

/* A KV cache, the buffers of one batch, and a team of worker threads. */
typedef struct nib_context nib_context;

typedef struct nib_context_config {
    size_t size;
    uint32_t n_ctx;      /* positions in the KV cache, all sequences together; 0: for each what the model was trained for,
                            or what half of the free memory holds, whichever is less */
    uint32_t n_seq;      /* sequences, ids 0 … n_seq-1; default 1 */
    uint32_t n_batch;    /* most tokens in one nib_decode; default 2048 */
    uint32_t n_ubatch;   /* tokens computed at once; default 512 */
    uint32_t n_logits;   /* most rows of logits in one nib_decode; default 32, at least n_seq */
    int n_threads;       /* 0: nib_cpu_count() */
    const char *k_type, *v_type; /* "f16" (default), "f32", "q8_0"; "q16": 16-bit codes with a scale for each head and position */
    bool profile;        /* keep the time of each step: nib_context_step_ms */
    bool (*abort)(void *user); /* asked between steps; true stops nib_decode with NIB_E_CANCELLED. NULL: never */
    void *user;
} nib_context_config;
#define NIB_CONTEXT_CONFIG_INIT {sizeof(nib_context_config), 0, 1, 2048, 512, 32, 0, NULL, NULL, false, NULL, NULL}

/* The model must outlive the context. Memory of the cache is reserved at once and touched as it is used; more than the
 * machine has is NIB_E_NOMEM. */
NIB_API nib_status nib_context_new(nib_context **out, const nib_model *model, const nib_context_config *config,
                                   nib_error *err);
NIB_API void nib_context_free(nib_context *ctx);

NIB_API uint32_t nib_context_n_ctx(const nib_context *ctx);
NIB_API uint32_t nib_context_n_batch(const nib_context *ctx);
NIB_API uint32_t nib_context_n_logits(const nib_context *ctx);
NIB_API int nib_context_n_threads(const nib_context *ctx);
NIB_API uint64_t nib_context_kv_bytes(const nib_context *ctx);      /* reserved for the cache */
NIB_API uint64_t nib_context_buffer_bytes(const nib_context *ctx);  /* activations and logits */
/* Pages of 32 positions: total, in use, and positions used (partly filled pages count what they hold). */
NIB_API uint32_t nib_context_n_pages(const nib_context *ctx);
NIB_API uint32_t nib_context_pages_used(const nib_context *ctx);

/* Tokens of any number of sequences that run together. */
typedef struct nib_batch nib_batch;
#define NIB_POS_NEXT (-1)
NIB_API nib_status nib_batch_new(nib_batch **out, uint32_t capacity, nib_error *err);
NIB_API void nib_batch_free(nib_batch *batch);
NIB_API void nib_batch_clear(nib_batch *batch);
NIB_API uint32_t nib_batch_n(const nib_batch *batch);
/* Appends a token. pos: its position in the sequence, or NIB_POS_NEXT; positions of a sequence must follow on what
 * the context holds without a gap (nib_decode checks). want_logits: keep a row of logits for it. NIB_E_LIMIT: full. */
NIB_API nib_status nib_batch_add(nib_batch *batch, nib_token token, int32_t pos, uint32_t seq, bool want_logits,
                                 nib_error *err);

/* Until it is cleared: the rows asked for shall be hidden states, those after the final norm, instead of logits. Such a batch may
 * have n_ubatch tokens, and as many rows. */
NIB_API void nib_batch_want_hidden(nib_batch *batch);

/* Runs the batch: appends its tokens to their sequences and computes the rows of logits asked for. On any error every
 * sequence is as it was before. NIB_E_KV_FULL says how many pages are missing. Allocates nothing. */
NIB_API nib_status nib_decode(nib_context *ctx, const nib_batch *batch, nib_error *err);

/* Row i of the last nib_decode (rows in the order of the tokens that asked): n_vocab floats, valid until the next
 * nib_decode. NULL when i is out of range. */
NIB_API const float *nib_logits(const nib_context *ctx, uint32_t i);
/* The best of each 32 logits of a row, which samplers can use (nib_sampler_hint); of a block with NaN, +infinity. */
NIB_API const float *nib_logits_best(const nib_context *ctx, uint32_t i);
NIB_API uint32_t nib_n_logits(const nib_context *ctx);
/* A 64-bit hash of the bits of a row, for comparing runs. */
NIB_API uint64_t nib_logits_hash(const nib_context *ctx, uint32_t i);
/* The same for a batch that wanted hidden states: n_embd floats. */
NIB_API const float *nib_hidden(const nib_context *ctx, uint32_t i);

/* Sequences. An unused id has length 0. */
NIB_API uint32_t nib_seq_length(const nib_context *ctx, uint32_t seq);
/* Makes dst (freed first) a copy of src: full pages are shared, a partly filled last one is copied. */
NIB_API nib_status nib_seq_fork(nib_context *ctx, uint32_t src, uint32_t dst, nib_error *err);
/* Keeps the first n positions. n beyond the length is NIB_E_ARG. */
NIB_API nib_status nib_seq_truncate(nib_context *ctx, uint32_t seq, uint32_t n, nib_error *err);
NIB_API void nib_seq_free(nib_context *ctx, uint32_t seq);

/* Called for the next n bytes; anything but NIB_OK ends the work and is passed on. A read fills all of them or fails. */
typedef nib_status (*nib_write_fn)(void *user, const void *data, size_t n, nib_error *err);
typedef nib_status (*nib_read_fn)(void *user, void *data, size_t n, nib_error *err);
/* Writes the keys and values of a sequence, with the ids of its tokens (as many as its length), for nib_seq_load. Whole
 * pages only: at most 31 positions are left out. */
NIB_API nib_status nib_seq_save(const nib_context *ctx, uint32_t seq, const nib_token *ids, nib_write_fn write,
                                void *user, nib_error *err);
/* Replaces a sequence by what was saved, and *ids (emptied first) by its tokens. Accepts only what this version wrote with
 * the same model, options of rope and types of the cache, on a machine of the same byte order, undamaged: else NIB_E_FORMAT
 * says what differs. NIB_E_KV_FULL: it does not fit. After an error the sequence is empty. */
NIB_API nib_status nib_seq_load(nib_context *ctx, uint32_t seq, nib_read_fn read, void *user, nib_token_list *ids,
                                nib_error *err);

/* Lets the next calls of nib_decode use n_threads threads, 1 to the context's; out of range: all. The bits stay the same. */
NIB_API void nib_context_limit_threads(nib_context *ctx, int n_threads);

/* The vector of n ids, n_embd floats, as the model has it: see nib_normalise. Runs in sequence 0, which is empty before and after.
 * NIB_E_NUMERIC: NaN or infinity. */
NIB_API nib_status nib_embed(nib_context *ctx, const nib_token *ids, size_t n, nib_pooling pooling, float *out, nib_error *err);
/* Makes the Euclidean length of a vector 1; zeros stay. */
NIB_API void nib_normalise(float *vector, size_t n);

/* With config.profile: milliseconds that step i took in the last nib_decode, summed over its parts; else 0. */
NIB_API double nib_context_step_ms(const nib_context *ctx, size_t i);
/* What its threads, on the average, spent of that at the barrier after it. */
NIB_API double nib_context_wait_ms(const nib_context *ctx, size_t i);

/* ------------------------------------------------------------------------------------------------ measuring */

/* A meter does one kind of work over and over, for somebody who takes the time: what the machine can do at most, or what
 * a kind of step reaches. Nothing else should compute meanwhile. */
typedef struct nib_meter nib_meter;

typedef enum nib_meter_kind {
    NIB_METER_READ = 0, /* reads n_bytes of memory once */
    NIB_METER_INT8 = 1, /* multiplies and adds bytes in registers, with the best instruction of the level */
    NIB_METER_F32 = 2,  /* the same with floats */
    NIB_METER_STEP = 3, /* runs steps like `step` on weights (or cached keys and values) of about n_bytes in all */
} nib_meter_kind;

typedef struct nib_meter_config {
    size_t size;
    nib_meter_kind kind;
    const char *isa;           /* NULL: the best usable level */
    int n_threads;             /* most threads of a run; 0: nib_cpu_count() */
    uint64_t n_bytes;          /* default 256 MiB; a STEP has at least one step */
    /* STEP: op ("matmul", "attention", "norm", "glu"), type (matmul: of the weights; norm and glu: of the weights that
     * their output is quantised for), n_in, n_out, n_head, n_head_kv, head_dim and window are read. */
    const nib_step_info *step;
    uint32_t n_tok;            /* STEP: rows; attention: in consecutive positions of n_seq sequences; default 1 */
    uint32_t n_seq, n_past;    /* attention: sequences (default 1), positions that each holds already (default 0) */
    const char *k_type, *v_type; /* attention: of the cache; NULL: "f16" */
} nib_meter_config;
#define NIB_METER_CONFIG_INIT                                                                                          \
    {sizeof(nib_meter_config), NIB_METER_READ, NULL, 0, UINT64_C(1) << 28, NULL, 1, 1, 0, NULL, NULL}

/* Memory is touched before it returns. NIB_E_UNSUPPORTED: the level is unknown to have a peak, or the op to have a meter. */
NIB_API nib_status nib_meter_new(nib_meter **out, const nib_meter_config *config, nib_error *err);
NIB_API void nib_meter_free(nib_meter *meter);
/* Does the work once on the first n_threads threads (1 … config.n_threads): seconds of the wall clock. */
NIB_API double nib_meter_run(nib_meter *meter, int n_threads);
/* The work of one run: bytes of packed weights, cache or memory; multiply-accumulates; steps. */
NIB_API uint64_t nib_meter_bytes(const nib_meter *meter);
NIB_API uint64_t nib_meter_macs(const nib_meter *meter);
NIB_API uint64_t nib_meter_steps(const nib_meter *meter);

/* ------------------------------------------------------------------------------------------------ sampling */

typedef struct nib_logit_bias {
    nib_token id;
    float bias; /* -INFINITY forbids the token */
} nib_logit_bias;

typedef struct nib_sampler_params {
    size_t size;
    uint32_t seed;           /* UINT32_MAX: taken from the system's random source; nib_sampler_seed tells */
    float temp;              /* 0.8; <= 0: greedy */
    float dynatemp_range;    /* 0: off */
    float dynatemp_exponent; /* 1 */
    int32_t top_k;           /* 40; <= 0: off */
    float top_p;             /* 0.95; >= 1: off */
    float min_p;             /* 0.05; <= 0: off */
    float typical_p;         /* 1: off */
    float top_n_sigma;       /* -1; <= 0: off */
    float xtc_probability;   /* 0: off */
    float xtc_threshold;     /* 0.1; > 0.5: off */
    int32_t penalty_last_n;  /* 64; 0: off, -1: the whole history */
    float penalty_repeat;    /* 1: off */
    float penalty_frequency, penalty_presence; /* 0: off */
    float dry_multiplier;    /* 0: off */
    float dry_base;          /* 1.75 */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* 64; 0: off, -1: the whole history */
    /* Breakers of DRY as token strings: a flat list of ids and the length of each breaker; see
     * nib_sampler_breakers for making them from text. NULL and 0: none. */
    const nib_token *dry_breakers;
    const uint32_t *dry_breaker_lengths;
    uint32_t n_dry_breakers;
    int32_t mirostat;        /* 0 off, 1, 2 */
    float mirostat_tau;      /* 5 */
    float mirostat_eta;      /* 0.1 */
    float adaptive_target;   /* -1; < 0: off */
    float adaptive_decay;    /* 0.9 */
    uint32_t min_keep;       /* 0 */
    const nib_logit_bias *bias;
    uint32_t n_bias;
    /* The chain as names or llama.cpp's letters, joined by ';' (penalties e, dry d, top_n_sigma s, top_k k, typ_p y,
     * top_p p, min_p m, xtc x, temperature t, adaptive_p a); "": none;
     * NULL: "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature". */
    const char *chain;
} nib_sampler_params;
#define NIB_SAMPLER_PARAMS_INIT                                                                                        \
    {sizeof(nib_sampler_params), UINT32_MAX, 0.8f, 0.0f, 1.0f, 40, 0.95f, 0.05f, 1.0f, -1.0f, 0.0f, 0.1f, 64, 1.0f,    \
     0.0f, 0.0f, 0.0f, 1.75f, 2, 64, NULL, NULL, 0, 0, 5.0f, 0.1f, -1.0f, 0.9f, 0, NULL, 0, NULL}

typedef struct nib_sampler nib_sampler;

typedef struct nib_logprob {
    nib_token id;
    float logprob; /* natural logarithm */
} nib_logprob;

/* What one sampler of the chain left: called in order of the chain when a trace function is set. candidates are
 * sorted by falling logit; at most 16 are given. */
typedef void (*nib_sampler_trace_fn)(void *user, const char *sampler, uint32_t n_before, uint32_t n_after,
                                     const nib_logprob *candidates, uint32_t n);

/* Copies params. Ids out of range in bias are NIB_E_ARG. */
NIB_API nib_status nib_sampler_new(nib_sampler **out, const nib_sampler_params *params, uint32_t n_vocab,
                                   nib_error *err);
NIB_API void nib_sampler_free(nib_sampler *sampler);
NIB_API uint32_t nib_sampler_seed(const nib_sampler *sampler);
/* Whether a bias forbids the token: for those that are not drawn, as behind nib_matcher_jump. */
NIB_API bool nib_sampler_forbids(const nib_sampler *sampler, nib_token id);
NIB_API void nib_sampler_trace(nib_sampler *sampler, nib_sampler_trace_fn fn, void *user);
/* Chooses a token for position pos (0 is the first of the sequence). mask: bit id set = allowed; NULL: all. The random
 * number is a function of (seed, pos) only. Equal logits: the lowest id wins. NaN or +infinity in the logits, or none
 * but -infinity, is NIB_E_NUMERIC; a mask and a bias that leave nothing, NIB_E_ARG. Allocates nothing. */
NIB_API nib_status nib_sampler_sample(nib_sampler *sampler, const float *logits, const uint32_t *mask, uint64_t pos,
                                      nib_token *id, nib_error *err);
/* What is known of the logits of the next nib_sampler_sample, and of no other: nib_logits_best of the row. The result is the same,
 * but what cannot matter is not read. */
NIB_API void nib_sampler_hint(nib_sampler *sampler, const float *best);
/* Tells the sampler what entered the sequence (prompt tokens too): history of the penalties, state of mirostat.
 * Allocates only to remember more than 65536 tokens, when a last_n is longer or -1; on error nothing has changed. */
NIB_API nib_status nib_sampler_accept(nib_sampler *sampler, nib_token id, nib_error *err);
NIB_API void nib_sampler_reset(nib_sampler *sampler); /* forgets the history */

/* Log-probabilities of raw logits in float32: that of `id` (NIB_TOKEN_NONE: not asked) and the k best, best first. That
 * of a logit of -infinity is -infinity (which JSON cannot write). NaN, +infinity or nothing else is NIB_E_NUMERIC. */
NIB_API nib_status nib_logprobs(const float *logits, uint32_t n_vocab, nib_token id, float *logprob, nib_logprob *top,
                                uint32_t k, nib_error *err);

/* Makes DRY breakers of text: every way that the vocabulary can begin inside a token and still contain the text.
 * *ids and *lengths are allocated with malloc and belong to the caller. */
NIB_API nib_status nib_sampler_breakers(const nib_tokenizer *tok, const char *const *texts, size_t n_texts,
                                        nib_token **ids, uint32_t **lengths, uint32_t *n, nib_error *err);

/* ------------------------------------------------------------------------------------------------ grammar */

/* What the text of a sequence must look like: a grammar is compiled once, a matcher follows one sequence and says which tokens
 * may come next. Nothing is widened: what is not understood is an error. */
typedef struct nib_grammar nib_grammar;
typedef struct nib_matcher nib_matcher;

/* The bytes of all tokens, arranged for masks; made once for a tokenizer, of which it keeps nothing. Immutable. */
typedef struct nib_grammar_vocab nib_grammar_vocab;
NIB_API nib_status nib_grammar_vocab_new(nib_grammar_vocab **out, const nib_tokenizer *tok, nib_error *err);
NIB_API void nib_grammar_vocab_free(nib_grammar_vocab *vocab);

typedef enum nib_syntax { /* of a grammar's text; docs/STRUCTURED.md has the details */
    NIB_SYNTAX_GBNF = 0,        /* llama.cpp's notation, from the rule root */
    NIB_SYNTAX_JSON_SCHEMA = 1, /* a schema of 2020-12 or draft-07: JSON texts that are valid by it */
    NIB_SYNTAX_REGEX = 2,       /* ECMAScript's notation; the whole text must match */
    NIB_SYNTAX_CHOICES = 3,     /* a JSON array of strings, one of which is the text */
    NIB_SYNTAX_JSON_OBJECT = 4, /* any JSON object; the grammar's text is not read */
} nib_syntax;

typedef enum nib_json_space { /* between the parts of JSON texts */
    NIB_JSON_SPACE_ANY = 0,     /* runs of at most 64 blanks, tabs and newlines, also before and behind the whole */
    NIB_JSON_SPACE_COMPACT = 1, /* none */
    NIB_JSON_SPACE_PRETTY = 2,  /* none, one blank, or one newline and at most 32 blanks */
} nib_json_space;

typedef struct nib_grammar_config {
    size_t size;
    nib_syntax syntax;        /* default GBNF */
    nib_json_space space;     /* default ANY */
    bool key_order;           /* keys of objects only in the order of the schema, others behind them; default: any order */
    bool keep_rules;          /* for nib_grammar_rules */
    uint32_t max_text_bytes;  /* of the grammar; default 1 MiB */
    uint32_t max_states;      /* default 1 << 18 */
    uint32_t max_edges;       /* default 1 << 20 */
    uint32_t max_depth;       /* nesting in the text; default 512 */
    uint32_t max_ms;          /* time to compile; default 2000 */
    uint32_t max_items;       /* ways to read a text that are followed at once; default 65536 */
    size_t max_cache_bytes;   /* states and masks kept while matching; default 64 MiB, shared by all matchers */
} nib_grammar_config;
#define NIB_GRAMMAR_CONFIG_INIT                                                                                        \
    {sizeof(nib_grammar_config), NIB_SYNTAX_GBNF, NIB_JSON_SPACE_ANY, false, false, 1u << 20, 1u << 18, 1u << 20, 512, \
     2000, 1u << 16, (size_t)64 << 20}

/* Compiles a text and keeps nothing of it. vocab: NULL for matching bytes only; else it must outlive the grammar. Errors:
 * NIB_E_FORMAT (malformed; offset: the byte), NIB_E_UNSUPPORTED, NIB_E_LIMIT (names the limit). Those of schemas begin with the
 * JSON pointer of the place, "#/properties/a/not: …". A grammar may be used by many threads at once, each with its matcher. */
NIB_API nib_status nib_grammar_new(nib_grammar **out, const char *text, size_t len, const nib_grammar_vocab *vocab,
                                   const nib_grammar_config *config, nib_error *err);
NIB_API void nib_grammar_free(nib_grammar *grammar);
/* One more owner, who frees it as well; the last one ends it. Matchers are owners, too. Thread-safe, as is freeing. */
NIB_API nib_grammar *nib_grammar_share(nib_grammar *grammar);
/* The rules that the text became, for a person to read; empty unless config.keep_rules. */
NIB_API nib_str nib_grammar_rules(const nib_grammar *grammar);
NIB_API size_t nib_grammar_n_states(const nib_grammar *grammar);

/* A matcher stands at the beginning of the text. It belongs to one thread at a time. */
NIB_API nib_status nib_matcher_new(nib_matcher **out, nib_grammar *grammar, nib_error *err);
NIB_API nib_status nib_matcher_fork(nib_matcher **out, const nib_matcher *matcher, nib_error *err);
NIB_API void nib_matcher_free(nib_matcher *matcher);
NIB_API void nib_matcher_reset(nib_matcher *matcher);

/* Sets the bits of the tokens that may come next, n_vocab bits (n_vocab+31)/32 words: for nib_sampler_sample. Tokens that end
 * a text (EOG) are among them exactly where the grammar may end. Needs a vocabulary. NIB_E_LIMIT: max_items. */
NIB_API nib_status nib_matcher_mask(nib_matcher *matcher, uint32_t *mask, uint32_t n_vocab, nib_error *err);
/* Takes a token; NIB_E_ARG when the grammar does not allow it. On error nothing has changed. */
NIB_API nib_status nib_matcher_accept(nib_matcher *matcher, nib_token id, nib_error *err);
/* Takes bytes as one step. *n_taken: how many fit; if not all of them do, nothing has changed and the result is NIB_E_ARG. */
NIB_API nib_status nib_matcher_feed(nib_matcher *matcher, nib_str bytes, size_t *n_taken, nib_error *err);
/* The bytes that must come next, up to the first choice; empty when there is one now. Valid until the next call. */
NIB_API nib_str nib_matcher_forced(nib_matcher *matcher);
/* What may come next, for a person to read: bytes, and "the end". Valid until the next call. */
NIB_API nib_str nib_matcher_expected(nib_matcher *matcher);
NIB_API bool nib_matcher_may_end(const nib_matcher *matcher);  /* the text so far is complete */
NIB_API bool nib_matcher_must_end(const nib_matcher *matcher); /* … and nothing can follow */
/* Takes back the last n steps; NIB_E_ARG for more than NIB_MATCHER_HISTORY or than there were. */
#define NIB_MATCHER_HISTORY 256
NIB_API nib_status nib_matcher_rollback(nib_matcher *matcher, uint32_t n, nib_error *err);
/* Appends the tokens of the text that must come next to *out, as the tokenizer cuts it, at most `most` of them, and takes them as
 * steps. The last one of the text is left out, as its token may go on behind it, unless that ends everything. */
NIB_API nib_status nib_matcher_jump(nib_matcher *matcher, const nib_tokenizer *tok, size_t most, nib_token_list *out, nib_error *err);

/* Compiled grammars, kept by their text, syntax, options and vocabulary, so that the same request is compiled once, and
 * shares states and masks. For many threads at once: who wants one that is being compiled waits for it. */
typedef struct nib_grammar_cache nib_grammar_cache;
/* The least recently used are forgotten beyond max_grammars or about max_bytes, states and masks included; never the last one. */
NIB_API nib_status nib_grammar_cache_new(nib_grammar_cache **out, uint32_t max_grammars, size_t max_bytes, nib_error *err);
NIB_API void nib_grammar_cache_free(nib_grammar_cache *cache); /* grammars that were given out stay */
/* As nib_grammar_new; the grammar is shared: free it. Errors are not kept. The vocabulary must outlive the cache. */
NIB_API nib_status nib_grammar_cache_get(nib_grammar_cache *cache, nib_grammar **out, const char *text, size_t len,
                                         const nib_grammar_vocab *vocab, const nib_grammar_config *config, nib_error *err);
typedef struct nib_grammar_cache_figures {
    uint32_t n_grammars;
    size_t n_bytes;        /* about */
    uint64_t n_hits, n_misses, n_evicted;
} nib_grammar_cache_figures;
NIB_API void nib_grammar_cache_stats(nib_grammar_cache *cache, nib_grammar_cache_figures *out);

/* ------------------------------------------------------------------------------------------------ grammars of answers */

/* What a whole answer of a chat must look like, in the format of the model: thoughts if it has them, then what is asked for. So
 * a constraint on the content begins where the content does, and calls of tools can be demanded. */
typedef struct nib_chat_grammar_config {
    size_t size;
    const char *format;       /* as in nib_chat_parser_config */
    bool starts_thinking;     /* as there: nib_chat_prompt.starts_thinking */
    bool no_thinking;         /* the model may not begin to think; a block that the prompt opened ends all the same */
    const char *tools;        /* JSON, a list as in OpenAI's requests; NULL: none */
    size_t tools_len;
    const char *tool_choice;  /* "none", "auto", or "required": nothing but calls, at least one. NULL: "auto" */
    const char *tool_name;    /* with "required": of this tool only; NULL: of any */
    bool one_call;            /* at most one */
    bool strict;              /* with "auto": the answer is text or calls, and calls are valid */
    const char *content;      /* a grammar of the content, as in nib_grammar_new; NULL: any text */
    size_t content_len;
    nib_grammar_config grammar; /* its syntax; limits of the whole; space and key_order hold for arguments, too */
} nib_chat_grammar_config;
#define NIB_CHAT_GRAMMAR_CONFIG_INIT                                                                                   \
    {sizeof(nib_chat_grammar_config), "generic", false, false, NULL, 0, NULL, NULL, false, false, NULL, 0,              \
     NIB_GRAMMAR_CONFIG_INIT}

/* The vocabulary of nib_grammar_vocab_new, in which what ends a turn of the chat ends a text: nib_chat_ends_turn. */
NIB_API nib_status nib_chat_vocab_new(nib_grammar_vocab **out, const nib_chat *chat, nib_error *err);
/* *out is NULL when nothing is asked for: no content, and no calls that are "required" or strict. A parser of the format reads
 * what the grammar permits as calls of the tools given, with arguments that are valid by their schemas; parameters that are
 * not among `properties` are not written where the format has a marker for each. Errors as of nib_grammar_new; those of tools
 * begin with the JSON pointer of the place in `tools`: "#/0/function/parameters/properties/a: …". Thread-safe. */
NIB_API nib_status nib_chat_grammar_new(nib_grammar **out, const nib_chat_grammar_config *config,
                                        const nib_grammar_vocab *vocab, nib_error *err);
/* The same through a cache. */
NIB_API nib_status nib_grammar_cache_chat(nib_grammar_cache *cache, nib_grammar **out, const nib_chat_grammar_config *config,
                                          const nib_grammar_vocab *vocab, nib_error *err);

/* ------------------------------------------------------------------------------------------------ stop strings */

/* Watches streamed text for stop strings that may span pieces. Holds back the longest suffix that can still become a
 * stop string, and no more. */
typedef struct nib_stop nib_stop;
NIB_API nib_status nib_stop_new(nib_stop **out, const nib_str *strings, size_t n, nib_error *err);
NIB_API void nib_stop_free(nib_stop *stop);
/* Feeds a piece; *show (valid until the next call) may be written out now. Returns the index of the stop string that
 * is now complete (the text up to it is in *show), and at every later call; of several that end at the same byte the
 * longest. -1: none is. -2: memory ran out and nothing was taken. */
NIB_API int nib_stop_push(nib_stop *stop, nib_str piece, nib_str *show);
NIB_API nib_str nib_stop_finish(nib_stop *stop); /* the text held back */

/* ------------------------------------------------------------------------------------------------ engine */

/* Serves many requests at once with one model: each turn runs the next token of every answer, and as much of the prompts
 * that wait as fits the time of a turn. What was computed is kept in pages that later requests with the same beginning use
 * again. An answer depends on its request alone, not on what runs beside it.
 *
 * A thread of the engine does all the work. The functions below may be called by any number of threads at once; one stream
 * is read by one thread at a time. */
typedef struct nib_engine nib_engine;
typedef struct nib_stream nib_stream; /* what one request receives */

typedef struct nib_engine_config {
    size_t size;
    nib_context_config context; /* n_seq: requests that run at once, default 16; n_ctx: positions of all of them together;
                                   abort and user are not used */
    uint32_t max_context;       /* positions of one request; 0: all, but no more than the model was trained for */
    uint32_t max_requests;      /* running and waiting, every answer counted; default 256 */
    uint64_t max_queued_tokens; /* of prompts that are not computed yet; 0 (default): no limit */
    double turn_ms;             /* what a turn that answers are waiting for may take; default 100 */
    double stream_ms;           /* how long a reader may not be told of a token, so that it hears of several at once: telling takes time
                                   from computing. The first event of a stream never waits. 0 (default): none does */
    uint32_t max_chunk;         /* most tokens of prompts in a turn; 0 (default): by time only */
    uint32_t max_draft;         /* most tokens of an answer that are guessed from its own text and computed with the next one, where
                                   that is faster; the answer is the same. Default 8; 0: none */
    size_t max_unread;          /* bytes of a stream that nobody reads; more end it. Default 1 MiB */
    bool no_prefix_cache;       /* compute every prompt from its beginning */
    const char *kv_dir;         /* pages are kept in this folder, too, of one engine for a model at a time, and found again by the
                                   next one; what is damaged or of another model or version is not used. NULL: none */
    uint64_t kv_disk;           /* most bytes there */
    void (*log)(void *user, const char *message); /* a line for the operator, when something is wrong with the folder; called by
                                                     nib_engine_new and the engine's thread: it must call nothing of nib */
    void *user;
} nib_engine_config;
#define NIB_ENGINE_CONFIG_INIT                                                                                         \
    {sizeof(nib_engine_config), {sizeof(nib_context_config), 0, 16, 2048, 512, 32, 0, NULL, NULL, false, NULL, NULL},   \
     0, 256, 0, 100.0, 0.0, 0, 8, (size_t)1 << 20, false, NULL, 0, NULL, NULL}

/* model and tok must outlive the engine. First it measures how long batches take: about a second. */
NIB_API nib_status nib_engine_new(nib_engine **out, const nib_model *model, const nib_tokenizer *tok,
                                  const nib_engine_config *config, nib_error *err);
/* Takes no more requests and waits until all are answered; after timeout_ms (negative: never) those that are left are
 * cancelled. False when there were such. */
NIB_API bool nib_engine_shutdown(nib_engine *engine, int timeout_ms);
/* Cancels what still runs. Free the streams first. */
NIB_API void nib_engine_free(nib_engine *engine);

typedef struct nib_request {
    size_t size;
    const nib_token *prompt;      /* at least one */
    size_t n_prompt;
    const nib_sampler_params *sampling; /* NULL: defaults */
    uint32_t max_tokens;          /* 0: as many as the context has room for */
    uint32_t min_tokens;          /* before, no token that ends the answer is chosen and no stop string looked for */
    bool ignore_eos;              /* no token that ends a generation or turn is chosen; a grammar that ends has its way */
    const nib_str *stops;
    size_t n_stops;
    const nib_token *stop_ids;    /* ids that end the answer, too */
    size_t n_stop_ids;
    const nib_token *allowed_ids; /* no other ids are chosen; NULL: all may be */
    size_t n_allowed_ids;
    uint32_t n_choices;           /* answers to the prompt, which is computed once; 0: one. Answer i is what a request for one
                                     with the seed + i would get */
    const nib_chat *chat;         /* whose tokens end the answer, and whose marks are written, of all control tokens; it must
                                     outlive the stream. NULL: a token that ends a generation ends it, none is written */
    nib_grammar *grammar;         /* what the text of the answer must look like; it is shared. NULL: anything */
    bool special;                 /* write control tokens */
    bool logprobs;                /* of every token */
    bool prompt_logprobs;         /* of the tokens of the prompt but the first: it is computed in any case */
    uint32_t n_top;               /* with either: of so many best tokens, too; at most 1000 */
    bool hash_logits;
    double queue_ms, total_ms;    /* how long it may wait to begin, and take in all; 0: for ever */
    int32_t priority;             /* lower first */
    uint64_t owner;               /* requests of different owners have equal shares */
    uint64_t salt;                /* requests of different salts use no pages of each other */
    bool jump_ahead;              /* with a grammar: text that leaves no choice is taken at once, in tokens as the tokenizer cuts it,
                                     but for those that the request forbids */
    nib_pooling pooling;          /* not NONE: no answer, but the embedding of the prompt, which comes with the END. The fields
                                     of answers are not used; only LAST takes part in the prefix cache */
    /* Called when there is something to read, on the engine's thread: it must return at once and call nothing of nib. Awaited
     * are what comes first and an END; all else is what has collected (stream_ms) and can wait a little longer. NULL: none. */
    void (*ready)(void *user, bool is_awaited);
    void *user;
} nib_request;
#define NIB_REQUEST_INIT {.size = sizeof(nib_request)}

/* Whether a request with so many tokens would be taken now: before the work of making them. NIB_E_BUSY: later,
 * nib_engine_figures.retry_s tells when; NIB_E_LIMIT: it can never fit. */
NIB_API nib_status nib_engine_admits(nib_engine *engine, size_t n_prompt, nib_error *err);
/* Hands in a request, of which nothing is kept but `chat` and `grammar`. Errors as above, and NIB_E_ARG. */
NIB_API nib_status nib_engine_submit(nib_stream **out, nib_engine *engine, const nib_request *request, nib_error *err);
/* Ends a request in whatever state it is, within a turn; its stream gets its ENDs. */
NIB_API void nib_engine_cancel(nib_engine *engine, nib_stream *stream);

typedef enum nib_finish {
    NIB_FINISH_STOP = 0,      /* a token that ends the answer, a stop string, or all that the grammar allows is said */
    NIB_FINISH_LENGTH = 1,    /* max_tokens, or the context */
    NIB_FINISH_CANCELLED = 2,
    NIB_FINISH_UNREAD = 3,    /* nobody read the stream: max_unread */
    NIB_FINISH_ERROR = 4,
    NIB_FINISH_TIMEOUT = 5,   /* queue_ms or total_ms are over */
} nib_finish;
#define NIB_N_FINISH 6

typedef struct nib_usage {
    uint32_t n_prompt, n_cached; /* tokens of the prompt, and those of them that were found computed: the same for all answers */
    uint32_t n_generated;        /* of this answer; the token that ends it included */
    uint32_t n_preempted;        /* how often it had to make place for others */
    uint32_t n_drafted, n_accepted; /* tokens that were guessed, and those of them that were right: max_draft */
    double queue_ms, ttft_ms, total_ms; /* from the submit to the first turn, the first token, the end; 0: never came */
} nib_usage;

typedef enum nib_stream_kind {
    NIB_STREAM_TOKEN = 0,  /* of an answer */
    NIB_STREAM_END = 1,    /* of an answer; each has one */
    NIB_STREAM_PROMPT = 2, /* with prompt_logprobs: a token of the prompt, before all others */
} nib_stream_kind;

/* Pointers are valid until the next call for this stream. */
typedef struct nib_stream_event {
    nib_stream_kind kind;
    uint32_t choice;        /* whose: 0 to n_choices - 1 */
    nib_str text;           /* what may be shown now: whole characters, up to a stop string; often empty */
    nib_token id;           /* TOKEN, PROMPT */
    float logprob;          /* with logprobs: of raw logits */
    const nib_logprob *top; /* best first */
    uint32_t n_top;
    uint64_t logits_hash;   /* with hash_logits: of the row that tells of the token, as nib_logits_hash */
    nib_finish finish;      /* END */
    int stop;               /* END: index of the stop string; -1: none */
    nib_usage usage;        /* END */
    const nib_error *error; /* END by an error, else NULL */
    const float *embedding; /* END of a request with pooling, unless it failed: n_embd floats, as nib_embed gives them */
} nib_stream_event;

/* The next event; waits for it at most timeout_ms (0: not at all; negative: for ever). False: there is none, and none will
 * come after the END of every answer. */
NIB_API bool nib_stream_next(nib_stream *stream, int timeout_ms, nib_stream_event *event);
/* Cancels the request if it still runs. `ready` is not called any more. */
NIB_API void nib_stream_free(nib_stream *stream);

typedef struct nib_engine_figures {
    uint32_t n_running, n_waiting;
    uint64_t queued_tokens;      /* of prompts that are not computed yet */
    uint32_t n_pages, n_free, n_cached, n_idle; /* pages of 32 positions; in the tree; of these, used by no running request */
    uint64_t kv_bytes, buffer_bytes; /* memory of all pages, touched as it is used, and of a batch */
    uint32_t max_context;        /* positions of one request */
    uint64_t n_disk_pages, disk_bytes; /* in kv_dir */
    uint64_t n_disk_read, n_disk_written, n_disk_bad; /* pages; bad: damaged, lost */
    bool disk_is_full;           /* writing failed: no more is written */
    uint64_t n_turns, n_prompt, n_reused, n_generated; /* tokens: of prompts that were answered, found computed, generated */
    uint64_t n_preempted, n_evicted, n_refused;
    uint64_t n_drafted, n_accepted; /* tokens that were guessed, and right: max_draft */
    uint64_t n_finished[NIB_N_FINISH]; /* by nib_finish */
    double turn_s, decode_s;     /* seconds in turns, and in nib_decode */
    double last_turn_ms, longest_turn_ms; /* longest: with answers waiting for it */
    uint32_t retry_s;            /* whole seconds until what is queued now will be computed, about; at least 1 */
} nib_engine_figures;
NIB_API void nib_engine_stats(nib_engine *engine, nib_engine_figures *out);

/* Pictures of the engine for people: every page, every request, every turn. Without a view nothing is noted and nothing is
 * copied; with one, a picture costs a copy, so ask for it a few times per second. */
typedef struct nib_engine_view nib_engine_view;

#define NIB_NO_PAGE UINT32_MAX

typedef enum nib_page_state {
    NIB_PAGE_FREE = 0,
    NIB_PAGE_CACHED = 1, /* in the tree of pages; used by no running request, kept until another one wants the page */
    NIB_PAGE_PINNED = 2, /* in the tree, used by running requests */
    NIB_PAGE_OWN = 3,    /* of running requests only */
} nib_page_state;

typedef struct nib_page_view {
    nib_page_state state;
    uint32_t n_users; /* sequences that hold it */
    uint32_t link;    /* in the tree: the page that comes before it, NIB_NO_PAGE: none. OWN: the sequence of its request */
} nib_page_view;

typedef enum nib_phase { NIB_PHASE_WAITING = 0, NIB_PHASE_PREFILL = 1, NIB_PHASE_DECODE = 2 } nib_phase;

typedef struct nib_request_view {
    uint64_t number, owner; /* number: by arrival, from 0; every answer of a request has its own */
    nib_phase phase;
    int32_t priority;
    uint32_t n_prompt, n_cached, n_computed, n_generated, n_max; /* tokens; n_max: of the answer */
    uint32_t n_preempted;
    uint32_t seq, page, n_pages; /* running: its sequence, the last of its pages that is in the tree, pages in all */
    double age_ms, ttft_ms;
} nib_request_view;

typedef struct nib_turn_part {
    uint64_t number; /* of the request */
    uint32_t n_tok;
    bool is_prompt;  /* else it is the next token of an answer */
} nib_turn_part;

typedef struct nib_turn_view {
    uint64_t number;
    double ms;
    uint32_t n_parts;
    const nib_turn_part *parts;
} nib_turn_view;

typedef struct nib_engine_picture {
    uint32_t n_pages, n_requests, n_turns;
    const nib_page_view *pages;
    const nib_request_view *requests; /* the running ones, then the first 256 of those that wait */
    const nib_turn_view *turns;       /* since the last picture; the first 256 */
    uint64_t n_missed;                /* of turns beyond */
} nib_engine_picture;

/* Views are freed before their engine; each has one reader at a time. */
NIB_API nib_status nib_engine_view_new(nib_engine_view **out, nib_engine *engine, nib_error *err);
NIB_API void nib_engine_view_free(nib_engine_view *view);
/* Asks for a picture, and returns the one that was asked for before, or NULL while it is not drawn: at the end of a turn, or at
 * once when nothing runs. Never waits. The picture is valid until the next call. */
NIB_API const nib_engine_picture *nib_engine_view_next(nib_engine_view *view);

#ifdef __cplusplus
}
#endif
#endif
