/* chat/tools.h - the tools of a request: JSON in, checked; a list as the template wants it out. */
#ifndef NIB_CHAT_TOOLS_H
#define NIB_CHAT_TOOLS_H

#include "chat/caps.h"
#include "chat/field.h"

/* tools and tool_choice of a request; *out is NONE where there are no tools, or the choice hides them. */
nib_status nib_chat_tools_read(nib_chat_reader *r, const jinja_dict *request, jinja_value *out);
nib_status nib_chat_tools_write(const nib_chat_reader *r, const jinja_value *tools, const nib_chat_caps *caps,
                                jinja_value *out);

#endif
