"""nib chat in scripts: questions, messages, templates, tools, sessions, overflow, interruption. On a terminal: chat_terminal.py."""
import json
import os
import signal
import subprocess
import time

import tiny_gguf
from harness import Case, Config, tiny

TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}


class Chat(Case):
    @property
    def model(self):
        return tiny("chat", keys={"tokenizer.chat_template": (tiny_gguf.STRING, TEMPLATE)})

    def file(self, name, content):
        path = os.path.join(Config.scratch, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def chat(self, *args, **how):
        return self.nib("chat", "-m", self.model, "--temp", 0, "-n", 12, *args, **how)


class Question(Chat):
    def test_answers_once(self):
        plain = self.chat("-p", "Hello")
        r = self.chat("-p", "Hello", "--json").json
        self.assertEqual(r["message"]["role"], "assistant")
        self.assertEqual(plain.out, r["message"]["content"] + ("" if r["message"]["content"].endswith("\n") else "\n"))
        self.assertEqual(plain.err, "")
        self.assertEqual(r["finish_reason"], "length")
        self.assertEqual((r["usage"]["completion_tokens"], r["dropped_messages"]), (12, 0))
        prompt = "user: Hello</s>assistant: "
        ids = self.nib("tokenize", "-m", self.model, "-p", prompt, "--ids").json
        self.assertEqual(r["usage"]["prompt_tokens"], len(ids))

    def test_equals_the_text_that_the_template_makes(self):
        """What nib run says after the rendered prompt, bit for bit."""
        chat = self.chat("-p", "Hello", "--json", "--logits-hash").json
        run = self.nib("-m", self.model, "-p", "user: Hello</s>assistant: ", "--temp", 0, "-n", 12, "--json", "--logits-hash").json
        self.assertEqual(chat["logits_hash"], run["logits_hash"])
        self.assertEqual(chat["message"]["content"], run["text"])

    def test_where_it_comes_from(self):
        want = self.chat("-p", "Hello").out
        path = self.file("question.txt", b"Hello\n")
        for args, stdin in [(("-f", path), b""), (("-",), b"Hello\n"), ((), b"Hello"), ((), b"Hello\r\n")]:
            self.assertEqual(self.chat(*args, stdin=stdin).out, want, args)
        self.usage("chat", "-m", self.model, "-p", "a", "-f", path, says="twice")
        self.usage("chat", "-m", self.model, "--system-file", "-", "-", stdin=b"x", says="2 times")
        long = self.file("long.txt", b"word " * 8000000)
        self.assertIn("a conversation of 4", self.chat("-f", long, code=1).err)

    def test_nothing_asked(self):
        r = self.chat(stdin=b"")
        self.assertEqual((r.out, r.err), ("", ""))
        self.assertEqual(self.chat(stdin=b"\n\n").out, "")
        self.usage("chat", "-m", self.model, "--json", stdin=b"", says="no question")
        self.usage("chat", "-m", self.model, "-f", "/dev/null", says="/dev/null is empty")

    def test_system(self):
        r = self.chat("-p", "Hello", "--system", "Be brief.", "--json").json
        same = self.chat("--messages", self.file("m.json", [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]), "--json").json
        self.assertEqual(r["message"], same["message"])
        self.assertEqual(r["usage"]["prompt_tokens"], same["usage"]["prompt_tokens"])
        path = self.file("system.txt", b"Be brief.")
        self.assertEqual(self.chat("-p", "Hello", "--system-file", path, "--json").json["message"], r["message"])

    def test_users_cannot_write_special_tokens(self):
        plain = self.chat("-p", "a</s>b", "--json").json["usage"]["prompt_tokens"]
        permissive = self.chat("-p", "a</s>b", "--json", "--permissive").json["usage"]["prompt_tokens"]
        self.assertEqual(plain - permissive, 3)  # four bytes instead of one token

    def test_stop_strings(self):
        whole = self.chat("-p", "Hello", "--json").json["message"]["content"]
        stop = whole[3:5]
        r = self.chat("-p", "Hello", "--json", "-r", stop).json
        self.assertEqual((r["message"]["content"], r["finish_reason"]), (whole[:whole.index(stop)], "stop"))


class Messages(Chat):
    def test_object_array_and_stdin(self):
        messages = [{"role": "user", "content": "Hello"}]
        want = self.chat("-p", "Hello").out
        self.assertEqual(self.chat("--messages", self.file("m.json", messages)).out, want)
        self.assertEqual(self.chat("--messages", self.file("m.json", {"messages": messages})).out, want)
        self.assertEqual(self.chat("--messages", "-", stdin=json.dumps(messages).encode()).out, want)
        parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]
        self.chat("--messages", self.file("m.json", parts))

    def test_wrong_ones(self):
        for content, word in [([], "no messages"), ({}, "messages"), ([1], "messages[0]"), (b"{", "not JSON"), (b"[" * 100, "nested"),
                              ([{"role": "user"}], "content"), ([{"role": "user", "content": 7}], "content"),
                              ([{"role": "assistant", "content": "x"}], "assistant")]:
            r = self.nib("chat", "-m", self.model, "--messages", self.file("bad.json", content), code=None)
            self.assertIn(r.code, (1, 2), content)
            self.assertIn(word, r.err, content)
            self.assertEqual(r.out, "")

    def test_an_answer_of_tools(self):
        messages = [{"role": "user", "content": "What time is it?"},
                    {"role": "assistant", "content": None, "tool_calls": [
                        {"id": "call_0", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "call_0", "content": "12:00"}]
        self.chat("--messages", self.file("m.json", messages), "--tools", self.file("t.json", [TOOL]))
        self.nib("chat", "-m", self.model, "-p", "x", "--tools", self.file("t.json", TOOL), code=2)


CLOSED = {"type": "object", "additionalProperties": False, "required": ["city"],
          "properties": {"city": {"enum": ["Paris", "Oslo"]}, "n": {"type": "integer", "minimum": 0, "maximum": 9}}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": CLOSED}}


class Constraint(Chat):
    def content(self, *args):
        r = self.chat("-p", "x", "--json", "-n", 200, "--temp", 2, "--reasoning", "off", *args).json
        self.assertEqual(r["finish_reason"], "stop")
        return r["message"]["content"]

    def test_of_the_content(self):
        for seed in range(3):
            value = json.loads(self.content("--json-schema", json.dumps(CLOSED), "--seed", seed))
            self.assertIn(value["city"], ("Paris", "Oslo"))
        self.assertIn(self.content("--choice", "red,green"), ("red", "green"))
        self.assertRegex(self.content("--regex", "[a-c]{5}", "--format", "harmony"), "^[a-c]{5}$")

    def test_everything_permitted_changes_nothing(self):
        """Law 1, in thoughts that the prompt opened as well, about which a grammar of the content says nothing."""
        thinks = tiny("thinks", keys={"tokenizer.chat_template": (tiny_gguf.STRING, TEMPLATE.replace("assistant: ", "assistant: <think>"))})
        for model, grammar in ((self.model, "root ::= (!<[258]> | <[258]>)*"), (thinks, 'root ::= "yes"')):
            args = ("chat", "-m", model, "-p", "Hello", "--temp", 0, "-n", 12, "--json", "--logits-hash")
            free, bound = self.nib(*args).json, self.nib(*args, "--grammar", grammar).json
            for key in ("message", "logits_hash", "finish_reason"):
                self.assertEqual(free[key], bound[key])
        self.assertIn("before it matched the grammar", self.nib(*args, "--grammar", grammar).err)

    def test_calls(self):
        tools, n_calls = self.file("w.json", [WEATHER, TOOL]), 0
        for name in ("hermes", "qwen3-coder", "deepseek", "harmony", "gemma", "mistral", "llama3", "lfm2", "minimax-m3", "glm"):
            r = self.chat("-p", "x", "--json", "-n", 600, "--temp", 2, "--reasoning", "off", "--tools", tools, "--tool-choice",
                          "weather", "--format", name, "--seed", 1)
            if r.json["finish_reason"] == "length":  # runs of blanks, between calls
                continue
            self.assertEqual((r.json["finish_reason"], r.json["message"]["content"], r.err.count("warning")), ("tool_calls", None, 0))
            for call in r.json["message"]["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                self.assertEqual(call["function"]["name"], "weather")
                self.assertIn(arguments.pop("city"), ("Paris", "Oslo"))
                self.assertIn(arguments.pop("n", 0), range(10))
                self.assertEqual(arguments, {})
                n_calls += 1
        self.assertGreater(n_calls, 5)

    def test_none(self):
        tools = self.file("w.json", [WEATHER])
        r = self.chat("-p", "x", "--json", "--tools", tools, "--tool-choice", "none").json
        self.assertEqual(r["message"]["content"], self.chat("-p", "x", "--json").json["message"]["content"])

    def test_errors_come_before_the_model_is_loaded(self):
        tools = self.file("w.json", [{"name": "a", "parameters": {"properties": {"x": {"if": {}}}}}])
        ask = lambda *args, code=1: self.chat("-p", "x", *args, code=code).err
        self.assertIn("#/0/parameters/properties/x/if", ask("--tools", tools, "--tool-choice", "required"))
        self.assertIn('no tool is called "b"', ask("--tools", tools, "--tool-choice", "b", code=2))
        self.assertIn("--tool-choice needs --tools", ask("--tool-choice", "auto", code=2))
        self.assertIn("--regex", ask("--regex", "("))
        for args, says in ((("--samplers", "nope"), "no sampler is named 'nope'"), (("--format", "nope"), "there are: hermes"),
                           (("--date", "1"), "--date '1'")):
            self.assertIn(says, self.nib("chat", "-m", "/nowhere.gguf", "-p", "x", *args, code=2).err)


class Template(Chat):
    def test_none(self):
        r = self.nib("chat", "-m", tiny("tiny"), "-p", "Hello", code=2)
        self.assertIn("template", r.err)
        self.assertEqual(r.out, "")
        self.assertTrue(self.nib("chat", "-m", tiny("tiny"), "-p", "Hello", "-n", 3, "--chat-template", "chatml").out)

    def test_given(self):
        want = self.chat("-p", "Hello").out
        path = self.file("own.jinja", TEMPLATE.encode())
        self.assertEqual(self.chat("-p", "Hello", "--chat-template-file", path).out, want)
        self.assertEqual(self.chat("-p", "Hello", "--chat-template", TEMPLATE).out, want)
        self.usage("chat", "-m", self.model, "-p", "x", "--chat-template", "nonsense", says=("nonsense", "--list-templates"))
        self.usage("chat", "-m", self.model, "-p", "x", "--chat-template", "chatml", "--chat-template-file", path, says="leave one out")
        self.assertIn("3:", self.nib("chat", "-m", self.model, "-p", "x", "--chat-template", "{#\n#}\n{% if %}", code=1).err)

    def test_more_data(self):
        own = TEMPLATE + "{{ mood }}"
        a = self.chat("-p", "Hello", "--json", "--chat-template", own, "--chat-template-kwargs", '{"mood": "good"}').json
        b = self.chat("-p", "Hello", "--json", "--chat-template", own).json
        self.assertEqual(a["usage"]["prompt_tokens"] - b["usage"]["prompt_tokens"], 4)
        for bad in ("[]", "{", '{"messages": []}'):
            self.nib("chat", "-m", self.model, "-p", "x", "--chat-template-kwargs", bad, code=None)


class Session(Chat):
    def talk(self, path, *questions, **how):
        return [self.chat("-p", q, "--session", path, "--json", "--logits-hash", **how) for q in questions]

    def test_goes_on_with_the_same_bits(self):
        path = os.path.join(Config.scratch, "talk.nib")
        first, second = self.talk(path, "Hello there, how are you today?", "And now?")
        messages = [{"role": "user", "content": "Hello there, how are you today?"}, first.json["message"],
                    {"role": "user", "content": "And now?"}]
        whole = self.chat("--messages", self.file("m.json", messages), "--json", "--logits-hash").json
        self.assertEqual(second.json["logits_hash"], whole["logits_hash"])
        self.assertEqual(second.json["message"], whole["message"])
        self.assertEqual(first.json["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertGreaterEqual(second.json["usage"]["prompt_tokens_details"]["cached_tokens"], 32)
        self.assertNotIn("warning", second.err)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_damage_costs_time_only(self):
        path = os.path.join(Config.scratch, "damaged.nib")
        self.talk(path, "Hello there, how are you today?")
        with open(path, "rb") as f:
            good = f.read()
        want = self.talk(path, "And now?")[0].json
        for bad in (good[:-1], good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], good[:good.index(b"\n") + 1]):
            self.file("damaged.nib", bad)
            r = self.talk(path, "And now?")[0]
            self.assertIn("keys and values are not used", r.err)
            self.assertEqual(r.json["logits_hash"], want["logits_hash"])
        for bad in (b"", b"hello\n", b"{}\n", b"\0" * 100):
            self.file("damaged.nib", bad)
            self.assertIn("damaged.nib", self.chat("-p", "x", "--session", path, code=1).err)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), bad)  # what is not ours is not replaced

    def test_is_a_conversation_too(self):
        path = os.path.join(Config.scratch, "both.nib")
        self.talk(path, "Hello there, how are you today?")
        r = self.chat("--messages", path, "-p", "And now?", "--json").json
        self.assertEqual(r["message"], self.talk(path, "And now?")[0].json["message"])

    def test_another_model(self):
        path = os.path.join(Config.scratch, "other.nib")
        self.talk(path, "Hello there, how are you today?")
        other = tiny("chat-other", keys={"tokenizer.chat_template": (tiny_gguf.STRING, TEMPLATE),
                                         "llama.rope.freq_base": (tiny_gguf.F32, 5000.0)})
        r = self.nib("chat", "-m", other, "-p", "x", "-n", 2, "--session", path)
        self.assertIn("another model", r.err)

    def test_no_regular_file(self):
        for path in ("/dev/full", "/dev/zero", Config.scratch):
            self.assertIn("not a regular file", self.chat("-p", "x", "--session", path, code=1).err)

    def test_a_folder_that_is_not_there(self):
        r = self.chat("-p", "x", "--session", "nowhere/s.nib", code=1)
        self.assertIn("nowhere", r.err)
        self.assertEqual(r.out, "")  # known before the answer

    def test_messages_may_only_begin_it(self):
        path = os.path.join(Config.scratch, "begun.nib")
        messages = self.file("m.json", [{"role": "user", "content": "Hello"}])
        self.chat("--messages", messages, "--session", path)
        self.usage("chat", "-m", self.model, "--messages", messages, "--session", path, says=("begun.nib", "leave one out"))

    def test_another_program_changed_it(self):
        path = os.path.join(Config.scratch, "shared.nib")
        self.talk(path, "Hello")
        p = self.spawn("chat", "-m", self.model, "-p", "Again", "--ignore-eos", "-n", 100000, "--session", path,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(20)
        self.file("shared.nib", b"{}")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        self.assertIn(b"changed by another program", err)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"{}")
        with open(f"{path}.{p.pid}", "rb") as f:
            self.assertEqual(json.loads(f.readline())["messages"][2]["content"], "Again")

    def test_nothing_to_keep(self):
        path = os.path.join(Config.scratch, "nothing.nib")
        self.chat("--session", path, stdin=b"")
        bad = self.file("m.json", [{"role": "user", "content": "x", "tool_calls": 7}])
        r = self.chat("--messages", bad, "--session", path, code=2)
        self.assertIn("tool_calls", r.err)
        self.assertEqual(r.out, "")
        self.assertFalse(os.path.exists(path))


class Overflow(Chat):
    def messages(self, n):
        long = [{"role": "system", "content": "Be brief."}]
        for i in range(n):
            long += [{"role": "user", "content": f"question {i} " + "x" * 30}, {"role": "assistant", "content": "y" * 30}]
        return self.file("long.json", long + [{"role": "user", "content": "last"}])

    def test_trim(self):
        r = self.chat("--messages", self.messages(10), "-c", 256, "--json")
        self.assertGreater(r.json["dropped_messages"], 0)
        self.assertEqual(r.json["dropped_messages"] % 2, 0)
        self.assertIn("no longer shown", r.err)
        self.assertLessEqual(r.json["usage"]["prompt_tokens"], 256 - 12)

    def test_no_more_than_needed(self):
        """One turn more would not leave the room for the answer; a long conversation takes few tries."""
        short = self.chat("--messages", self.messages(10), "-c", 256, "--json").json
        longer = self.chat("--messages", self.messages(3000), "-c", 256, "--json", timeout=20).json
        self.assertEqual(longer["dropped_messages"], short["dropped_messages"] + 2 * 2990)
        turn = len("user: question 9 " + "x" * 30 + "assistant: " + "y" * 30) + 2
        self.assertGreater(short["usage"]["prompt_tokens"] + turn + 12, 256)

    def test_the_system_message_stays(self):
        with open(self.messages(10)) as f:
            messages = json.load(f)
        r = self.chat("--messages", self.messages(10), "-c", 256, "--json", "--logits-hash").json
        short = self.file("short.json", messages[:1] + messages[1 + r["dropped_messages"]:])
        self.assertEqual(self.chat("--messages", short, "-c", 256, "--json", "--logits-hash").json["logits_hash"], r["logits_hash"])

    def test_stop_and_error(self):
        for how in ("stop", "error"):
            r = self.chat("--messages", self.messages(10), "-c", 256, "--overflow", how, code=1)
            self.assertIn("256", r.err)
            self.assertEqual(r.out, "")
        fill = ("--messages", self.messages(1), "-c", 160, "-n", 500, "--ignore-eos")
        self.assertIn("cut", self.chat(*fill, "--overflow", "error", code=1).err)
        r = self.chat(*fill, "--overflow", "stop", "--json")
        self.assertEqual(r.json["finish_reason"], "length")
        self.assertIn("cut", r.err)

    def test_one_message_that_is_too_long(self):
        self.assertIn("256", self.chat("-p", "x" * 300, "-c", 256, code=1).err)


class Streams(Chat):
    def test_signals_keep_the_answer(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.keeps(number, os.path.join(Config.scratch, f"signal-{number}.nib"))

    def keeps(self, number, path):
        p = self.spawn("chat", "-m", self.model, "-p", "Hello", "--ignore-eos", "-n", 100000, "-c", 4096, "--session", path,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(20)
        time.sleep(0.05)
        p.send_signal(number)
        out, _ = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 128 + number)
        with open(path, "rb") as f:
            kept = json.loads(f.readline())["messages"]
        self.assertEqual([m["role"] for m in kept], ["user", "assistant"])
        self.assertGreater(len(out), 0)

    def test_reader_that_goes_away(self):
        p = self.spawn("chat", "-m", self.model, "-p", "Hello", "--ignore-eos", "-n", 4000, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(10)
        p.stdout.close()
        self.assertEqual(p.stderr.read(), b"")
        self.assertEqual(p.wait(timeout=60), 0)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            p = self.spawn("chat", "-m", self.model, "-p", "Hello", "-n", 8, stdin=subprocess.DEVNULL, stdout=full,
                           stderr=subprocess.PIPE)
            self.assertEqual(p.wait(timeout=60), 1)


class Real(Chat):
    def test_smollm2_answers(self):
        model = self.real("SmolLM2-135M-Instruct.Q4_1.gguf")
        r = self.nib("chat", "-m", model, "-p", "Why is the sky blue?", "--temp", 0, "-n", 60, "--json").json
        self.assertIn("Rayleigh scattering", r["message"]["content"])
        self.assertEqual(r["template"], "the model's template")
        r = self.nib("chat", "-m", model, "-p", "Hello", "--temp", 0, "--json").json
        self.assertEqual(r["finish_reason"], "stop")

    def test_gemma_base_has_no_template(self):
        model = self.real("gemma-3-270m-q4_k_m.gguf")
        self.assertIn("template", self.nib("chat", "-m", model, "-p", "Hello", code=2).err)
