/* tests/support/chat.c - chats of templates that a test writes down. */
#include "support/chat.h"

#include "gguf/write.h"
#include "support/files.h"
#include "support/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char chat_simple[] = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
                           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

nib_status chat_open(chat_fixture *f, const char *const *keys, const nib_chat_config *config, nib_error *err) {
    nib_gguf_writer w = {0};
    nib_buf bytes = {0};
    *f = (chat_fixture){0};
    nib_gguf_write_str(&w, "general.architecture", "llama");
    for (; keys && *keys; keys += 2) nib_gguf_write_str(&w, keys[0], keys[1]);
    nib_status status = vocab_write(&w, "bpe", 320, err);
    if (status == NIB_OK) status = nib_gguf_write_bytes(&w, &bytes, err);
    char *folder = files_folder(), *path = files_path(folder, "chat.gguf");
    if (status == NIB_OK) files_write(path, bytes.ptr, bytes.len);
    if (status == NIB_OK) status = nib_gguf_open(&f->file, path, NULL, err);
    if (status == NIB_OK) status = nib_tokenizer_new(&f->tok, f->file, NULL, err);
    if (status == NIB_OK) status = nib_chat_new(&f->chat, f->file, f->tok, config, err);
    files_remove(folder);
    free(path);
    nib_buf_free(&bytes);
    nib_gguf_write_free(&w);
    return status;
}

void chat_must(chat_fixture *f, const char *text) {
    const char *const keys[] = {"tokenizer.chat_template", text, NULL};
    nib_error err;
    if (chat_open(f, keys, NULL, &err) != NIB_OK) fail_msg("%s", err.message);
}

void chat_close(chat_fixture *f) {
    nib_chat_free(f->chat);
    nib_tokenizer_free(f->tok);
    nib_gguf_close(f->file);
}

void chat_prints(const nib_chat *chat, const char *request, const char *text) {
    nib_chat_prompt prompt;
    nib_error err;
    if (nib_chat_render(chat, request, strlen(request), NULL, &prompt, &err) != NIB_OK) fail_msg("%s: %s", request, err.message);
    assert_string_equal(prompt.rendered.text ? prompt.rendered.text : "", text);
    nib_chat_prompt_free(&prompt);
}

void chat_refuses(const nib_chat *chat, const char *request, nib_status code, const char *part) {
    nib_chat_prompt prompt;
    nib_error err = {0};
    nib_status status = nib_chat_render(chat, request, strlen(request), NULL, &prompt, &err);
    if (status != code || !strstr(err.message, part)) fail_msg("%.200s: %d, %s", request, status, err.message);
    assert_null(prompt.rendered.text);
}
