/* jinja/template.h - nib_template for those who have values already: data -> text, without a detour through JSON. */
#ifndef NIB_JINJA_TEMPLATE_H
#define NIB_JINJA_TEMPLATE_H

#include "base/mem.h"
#include "jinja/value.h"

/* How deep JSON may be nested that becomes data of templates. */
#define NIB_JINJA_MAX_NESTING 200

/* Renders with the data, which lies in the arena or outlives the call; the render takes its memory from the arena, up to
 * config->max_bytes with what is in it already. config->trusted is not looked at. On error *out is empty. */
nib_status nib_jinja_template_run(const nib_template *t, nib_arena *arena, const jinja_dict *data,
                                  const nib_template_config *config, nib_rendered *out, nib_error *err);

/* Writes a value as json.dumps does, as a string in the arena. */
nib_status nib_jinja_template_json(nib_arena *arena, const jinja_value *v, jinja_value *out, nib_error *err);

#endif
