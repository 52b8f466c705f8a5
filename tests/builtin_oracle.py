#!/usr/bin/env python3
# tests/builtin_oracle.py - built-in chat templates of nib render against llama.cpp's llama_chat_apply_template.
# usage: builtin_oracle.py --nib NIB [--libllama FILE] [--seed N] [--count N]
# Random conversations; the texts must be the same, but for what UNLIKE says: there nib follows the template that the model was
# published with. libllama.so is taken from --libllama or from the package llama-cpp-python. Exit 1 at a difference; 77 without it.
import argparse
import ctypes
import importlib.util
import json
import os
import random
import re
import subprocess
import sys


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


class Llama:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.llama_chat_apply_template.argtypes = [ctypes.c_char_p, ctypes.POINTER(Message), ctypes.c_size_t, ctypes.c_bool,
                                                       ctypes.c_char_p, ctypes.c_int32]

    def names(self):
        out = (ctypes.c_char_p * 1000)()
        return [out[i].decode() for i in range(self.lib.llama_chat_builtin_templates(out, ctypes.c_size_t(1000)))]

    def apply(self, name, messages, add):
        array = (Message * len(messages))(*[(m["role"].encode(), m["content"].encode()) for m in messages])
        buffer = ctypes.create_string_buffer(1 << 16)
        n = self.lib.llama_chat_apply_template(name.encode(), array, len(messages), add, buffer, len(buffer))
        return buffer.raw[:n].decode()


# ---- where nib is unlike llama.cpp: a function (llama, name, messages, add) -> text, None: nib must refuse, SKIP: not compared

SKIP = object()


def split(messages):
    """The text of the system message, None without one, and the other messages."""
    return (messages[0]["content"], messages[1:]) if messages[0]["role"] == "system" else (None, messages)


def has_blanks(messages):
    return any(m["content"] != m["content"].strip() for m in messages)


def patched(*rules):
    """Regular expressions and what they become."""
    def expected(llama, name, messages, add):
        text = llama.apply(name, messages, add)
        for pattern, new in rules:
            text = re.sub(pattern, new, text, flags=re.S)
        return text
    return expected


def system_before_last_question(llama, name, messages, add):
    system, rest = split(messages)
    if system is None:
        return llama.apply(name, messages, add)
    at = max(i for i, m in enumerate(rest) if m["role"] == "user")
    return llama.apply(name, rest[:at] + messages[:1] + rest[at:], add)


def system_untrimmed(llama, name, messages, add):
    return SKIP if has_blanks(messages[:1]) or messages[0]["content"] == "" else llama.apply(name, messages, add)


def no_line_after_system(llama, name, messages, add):
    system, rest = split(messages)
    return (system or "") + llama.apply(name, rest, add)


def no_system(llama, name, messages, add):
    return None if split(messages)[0] is not None else llama.apply(name, messages, add)


def exaone3(llama, name, messages, add):
    if has_blanks(messages):
        return SKIP
    empty = "" if messages[0]["role"] == "system" else "[|system|][|endofturn|]\n"
    return empty + llama.apply(name, messages, add)


def exaone4(llama, name, messages, add):
    thought = "<think>\n\n</think>\n\n"
    turns = ["[|%s|]\n%s%s[|endofturn|]\n" % (m["role"], thought if m["role"] == "assistant" else "", m["content"]) for m in messages]
    return "".join(turns) + ("[|assistant|]\n" + thought if add else "")


def exaone_moe(llama, name, messages, add):
    if has_blanks(messages):
        return SKIP
    text = llama.apply(name, messages, False).replace("<|assistant|>\n", "<|assistant|>\n<think>\n\n</think>\n\n")
    return text + ("<|assistant|>\n<think>\n" if add else "")


def answer_after_question(llama, name, messages, add):
    return llama.apply(name, messages, messages[-1]["role"] == "user") if add == (messages[-1]["role"] == "user") else SKIP


def smolvlm(llama, name, messages, add):
    system, rest = split(messages)
    text = llama.apply(name, rest, add)
    return text if system is None else text.replace("<|im_start|>", "<|im_start|>System: %s<end_of_utterance>\n" % system, 1)


def bailing2(llama, name, messages, add):
    system, rest = split(messages)
    if system is not None:
        messages = [{"role": "system", "content": system + "\ndetailed thinking off"}] + rest
    return llama.apply(name, messages, add)


def hunyuan_dense(llama, name, messages, add):
    text = llama.apply(name, messages, add).replace("<｜hy_Assistant｜><｜hy_Assistant｜>", "<｜hy_Assistant｜>")
    if messages[-1]["role"] == "user" and not add:
        return text.removesuffix("<｜hy_Assistant｜>")
    return text + ("<｜hy_Assistant｜>" if messages[-1]["role"] != "user" and add else "")


GPT_OSS = """<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.
Knowledge cutoff: 2024-06
Current date: 2024-07-26

Reasoning: medium

# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"""

spaced = patched((r"(\[/INST\])(?!$)(.*?)</s>", r"\1 \2 </s>"))
UNLIKE = {
    "llama2-sys": spaced,
    "llama2-sys-bos": spaced,
    "llama2-sys-strip": spaced,
    "mistral-v3": system_before_last_question,
    "mistral-v3-tekken": system_before_last_question,
    "gemma": system_untrimmed,
    "command-r": system_untrimmed,
    "deepseek3": no_line_after_system,
    "exaone3": exaone3,
    "exaone4": exaone4,
    "exaone-moe": exaone_moe,
    "rwkv-world": answer_after_question,
    "yandex": no_system,
    "smolvlm": smolvlm,
    "bailing2": bailing2,
    "hunyuan-dense": hunyuan_dense,
    "hunyuan-moe": patched((r"<\|extra_4\|><\|startoftext\|>", "<|extra_4|>")),
    "gpt-oss": patched((r"<\|start\|>system<\|message\|>(.*?)<\|end\|>", r"<|start|>developer<|message|># Instructions\n\n\1\n\n<|end|>"),
                       (r"assistant<\|message\|>(.*?)<\|return\|>", r"assistant<|channel|>final<|message|>\1<|end|>"),
                       (r"\A", GPT_OSS)),
}


# ---- conversations

def conversation(rng):
    words = ["Hello", "what is 1+1?", "Zürich", "日本語", "😀", "<b>", "{{ x }}", "a\nb", "\n\n", "  ", "\t", "{% if %}", "'\"\\"]

    def text():
        if rng.random() < 0.1:
            return ""
        blanks = [" ", "\n", "  "] if rng.random() < 0.2 else [""]
        return rng.choice(blanks) + " ".join(rng.choice(words) for _ in range(rng.randint(1, 4))) + rng.choice(blanks)

    roles = ["system"] * (rng.random() < 0.5) + ["user", "assistant"] * rng.randint(1, 4)
    if rng.random() < 0.8:
        roles.append("user")
    return [{"role": role, "content": text()} for role in roles]


def find_library(path):
    spec = importlib.util.find_spec("llama_cpp")
    path = path or (os.path.join(os.path.dirname(spec.origin), "lib", "libllama.so") if spec else "")
    if not os.path.exists(path):
        print("skipped: no libllama.so")
        sys.exit(77)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nib", required=True)
    parser.add_argument("--libllama", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="conversations for each template")
    args = parser.parse_args()
    llama = Llama(find_library(args.libllama))
    own = subprocess.run([args.nib, "render", "--list-templates"], check=True, capture_output=True, text=True).stdout.split()
    faults = compared = 0
    for name in sorted(set(own) ^ set(llama.names())):
        print("%s: only one of them has it" % name)
        faults += 1
    for name in own:
        rng = random.Random(args.seed)
        requests = [{"messages": conversation(rng), "add_generation_prompt": rng.random() < 0.7} for _ in range(args.count)]
        run = subprocess.run([args.nib, "render", "--chat-template", name, "--jsonl", "--date", "2024-07-26"], capture_output=True,
                             input="".join(json.dumps(r) + "\n" for r in requests), text=True)
        for request, line in zip(requests, run.stdout.splitlines(), strict=True):
            expected = UNLIKE.get(name, Llama.apply)(llama, name, request["messages"], request["add_generation_prompt"])
            answer = json.loads(line)
            compared += expected is not SKIP
            if expected is SKIP or answer.get("text") == expected:
                continue
            if faults < 20:
                print("%s %s\n  llama.cpp %r\n  nib       %r" % (name, json.dumps(request, ensure_ascii=False), expected, answer))
            faults += 1
    print("builtin_oracle: %d templates, %d texts compared, %d faults" % (len(own), compared, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
