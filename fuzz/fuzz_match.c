/* fuzz/fuzz_match.c - any bytes as an answer to a grammar of each kind; see grammar.h. Byte 0: options, byte 1: which.
 */
#include "grammar.h"

static const struct {
    nib_syntax syntax;
    const char *text;
} GRAMMARS[] = {
    {NIB_SYNTAX_GBNF, "root ::= \"x\" root \"y\"? | [a-z0]{2,7} | \"\\\"\" .* \"\\\"\""},
    {NIB_SYNTAX_GBNF, "root ::= e\ne ::= t (\"+\" t)*\nt ::= \"(\" e \")\" | [0-9]+ | .{0,5} \"b\""},
    {NIB_SYNTAX_GBNF, "root ::= ([^<] | \"<\" [^a])* \"<a\" [ \\t\\n]{0,20} ([a-z] | [ab]* [\\n1])* \"z\""},
    {NIB_SYNTAX_REGEX, "(a|ab|name){2,5}[^z]{0,30}|\\p{L}{3,9}"},
    {NIB_SYNTAX_REGEX, "[a-z0-9.-]{1,40}@([a-z]+\\.)+[a-z]{2,}"},
    {NIB_SYNTAX_CHOICES, "[\"true\",\"null\",\"nullab\",\"\\u00e9\",\"\"]"},
    {NIB_SYNTAX_JSON_OBJECT, ""},
    {NIB_SYNTAX_JSON_SCHEMA, "{}"},
    {NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"string\",\"minLength\":2,\"maxLength\":9}"},
    {NIB_SYNTAX_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"b|^[^x]{1,5}$\",\"maxLength\":9}"},
    {NIB_SYNTAX_JSON_SCHEMA,
     "{\"anyOf\":[{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":99.5},{\"format\":\"date-time\","
     "\"type\":\"string\"},{\"type\":\"integer\",\"multipleOf\":7},{\"type\":\"string\",\"format\":\"email\"}]}"},
    {NIB_SYNTAX_JSON_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"},\"ab\":{\"enum\":[\"z\",null]},\"name\":"
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":3}},\"required\":[\"ab\"],"
     "\"patternProperties\":{\"^x-\":{\"type\":\"integer\"}},\"additionalProperties\":{\"type\":\"array\"}}"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t which = data[1] % (sizeof GRAMMARS / sizeof *GRAMMARS);
    nib_grammar_config config = grammar_config(GRAMMARS[which].syntax, data[0]);
    grammar_try(&config, grammar_str(GRAMMARS[which].text), (nib_str){(const char *)data + 2, size - 2});
    return 0;
}
