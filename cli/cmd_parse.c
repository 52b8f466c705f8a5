/* cli/cmd_parse.c - nib parse: an answer as the model wrote it, markers and all, taken apart -> JSON lines, an event
 * each. */
#include "base/status.h"
#include "input.h"
#include "json.h"

#include <string.h>

typedef struct parse_state {
    nib_cli_out out;
    nib_buf answer, tools;
    nib_chat_event_kind kind; /* of the text that is being joined */
    nib_buf text;
} parse_state;

static const char *const kinds[] = {"content", "reasoning", "tool_call", "warning"};

static json_t *line_of(nib_chat_event_kind kind) {
    json_t *line = json_object();
    nib_cli_json_set_str(line, "type", kinds[kind]);
    return line;
}

static void print_text(parse_state *p) {
    if (!p->text.len) return;
    json_t *line = line_of(p->kind);
    json_object_set_new(line, "text", nib_cli_json_str(nib_cli_bytes(&p->text)));
    nib_cli_json_write(&p->out, line);
    p->text.len = 0;
}

/* Pieces of one text are one line. */
static bool print_event(void *user, const nib_chat_event *event) {
    parse_state *p = user;
    if (event->kind != p->kind) print_text(p);
    p->kind = event->kind;
    if (event->kind != NIB_CHAT_TOOL_CALL) {
        bool ok = nib_buf_append(&p->text, event->text.ptr, event->text.len);
        if (event->kind == NIB_CHAT_WARNING) print_text(p);
        return ok;
    }
    json_t *line = line_of(event->kind);
    nib_cli_json_set_int(line, "index", event->index);
    json_object_set_new(line, "id", nib_cli_json_str(event->id));
    json_object_set_new(line, "name", nib_cli_json_str(event->name));
    json_object_set_new(line, "arguments", nib_cli_json_str(event->text));
    nib_cli_json_write(&p->out, line);
    return true;
}

static nib_status parse(parse_state *p, const nib_cli_options *opt, nib_error *err) {
    nib_chat_parser *parser;
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    if (opt->tools) NIB_TRY(nib_cli_input_file(opt->tools, &p->tools, err));
    NIB_TRY(nib_cli_input_read(opt, &p->answer, err));
    config.format = opt->format;
    config.starts_thinking = opt->thinking;
    config.tools = opt->tools ? nib_cli_bytes(&p->tools).ptr : NULL;
    config.tools_len = p->tools.len;
    config.event = print_event;
    config.user = p;
    NIB_TRY(nib_chat_parser_new(&parser, &config, err));
    nib_status status = nib_chat_parser_push(parser, nib_cli_bytes(&p->answer), err);
    if (status == NIB_OK) status = nib_chat_parser_finish(parser, err);
    nib_chat_parser_free(parser);
    print_text(p);
    return status;
}

int nib_cli_cmd_parse(const nib_cli_options *opt, const nib_cli_term *term) {
    parse_state p = {0};
    nib_error err;
    nib_cli_out_open(&p.out);
    int status = parse(&p, opt, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    nib_buf_free(&p.answer);
    nib_buf_free(&p.tools);
    nib_buf_free(&p.text);
    return nib_cli_out_close(&p.out, term, status);
}
