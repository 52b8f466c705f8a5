#!/usr/bin/env python3
"""JSON schemas against Python: texts that nib draws from a schema are valid by jsonschema, and instances that hypothesis-jsonschema
makes of it are taken byte by byte. Also every keyword of 2020-12 that is not in the table is refused by its pointer.

usage: schema_oracle.py --nib NIB [--schemas N] [--instances N] [--seed N] [--answers N] [--model GGUF [--answers-by PROGRAM]]
Schemas come from a generator of this file over the supported table. Texts are drawn with nib's masks by a tiny random model
(tests/cli/tiny_gguf.py), or by the model given. Exit 0: all right, 1: not, 77: the packages are missing.
All of it:
    schema_oracle.py --nib build/release/nib --schemas 500 --instances 20 --answers 20 \\
        --model models/SmolLM2-135M-Instruct.Q4_1.gguf --answers-by build/release/tests/answers_main"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(tempfile.gettempdir(), "nib-hypothesis"))
try:
    import jsonschema
    from hypothesis import HealthCheck, Phase, given, seed as fix_seed, settings
    from hypothesis.errors import HypothesisWarning, Unsatisfiable
    from hypothesis_jsonschema import from_schema
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli"))
import tiny_gguf  # noqa: E402

PATTERNS = ["^[a-z]+$", "^[A-Z]{2,4}-[0-9]{3}$", "[0-9]", "^(yes|no|maybe)?$", "^a.*z$", "^[^x]{1,5}$", "b|c$", "^\\w+@\\w+$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4"]
NAMES = ["a", "b", "name", "age", "x-1", "\u00e9t\u00e9", "a\"b", "", "longer key"]
# Words that constrain and are not supported, with a value that makes a valid schema.
REFUSED = {"if": {}, "then": {}, "else": {}, "contains": {}, "minContains": 1, "maxContains": 2, "dependentRequired": {"a": ["b"]},
           "dependentSchemas": {"a": {}}, "unevaluatedItems": False, "unevaluatedProperties": False, "$dynamicRef": "#x",
           "$dynamicAnchor": "x", "dependencies": {"a": ["b"]}, "$recursiveRef": "#", "x-unknown": 1, "uniqueItems": True,
           "format": "regex", "multipleOf": 0.1, "not": {"minimum": 3}, "minProperties": 2, "propertyNames": {"format": "date"},
           "oneOf": [{"minimum": 3}, {"maximum": 5}], "$ref": "https://example.org/x", "pattern": "(?=a)"}
IGNORED = {"title": "t", "description": "d", "default": 1, "examples": [1], "$comment": "c", "deprecated": True, "readOnly": True,
           "writeOnly": True, "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.org/y", "$anchor": "z",
           "contentEncoding": "base64", "contentMediaType": "text/plain", "contentSchema": {}, "$defs": {"u": {"if": 1}}, "$vocabulary": {}}


def draw_schema(rnd, depth):
    """A random schema of the supported table."""
    kinds = ["null", "boolean", "string", "integer", "number", "enum", "const", "types"]
    kinds += ["object", "array", "anyOf", "oneOf", "allOf", "any"] * 2 if depth else []
    kind = rnd.choice(kinds)
    sub = lambda: draw_schema(rnd, depth - 1)  # noqa: E731
    if kind in ("null", "boolean"):
        return {"type": kind}
    if kind == "any":
        return rnd.choice([{}, True])
    if kind == "string":
        s = {"type": "string"}
        form = rnd.randrange(4)
        if form == 0:
            s["minLength"] = rnd.randrange(4)
        if form <= 1:
            s["maxLength"] = s.get("minLength", 0) + rnd.randrange(1, 12)
        if form == 2:
            s["pattern"] = rnd.choice(PATTERNS)
        if form == 3 and rnd.randrange(2):
            s["format"] = rnd.choice(FORMATS)
        return s
    if kind in ("integer", "number"):
        s = {"type": kind}
        low = rnd.choice([-1000, -12, -1, 0, 1, 7, 99, 0.5, -2.25] if kind == "number" else [-1000, -12, -1, 0, 1, 7, 99])
        if rnd.randrange(2):
            s[rnd.choice(["minimum", "exclusiveMinimum"])] = low
        if rnd.randrange(2):
            s[rnd.choice(["maximum", "exclusiveMaximum"])] = low + rnd.choice([5, 42, 1000])
        if kind == "integer" and rnd.randrange(3) == 0:
            s["multipleOf"] = rnd.choice([2, 3, 5])
        return s
    if kind == "enum":
        return {"enum": rnd.sample(["red", "a\"b", "\u00e9", 1, 2.5, None, True, [1, "x"], {"k": []}, "", "\n"], rnd.randrange(1, 5))}
    if kind == "const":
        return {"const": rnd.choice(["v", 17, {"a": [None]}, False])}
    if kind == "types":
        return {"type": rnd.sample(["null", "boolean", "string", "integer", "array", "object"], rnd.randrange(1, 4))}
    if kind == "array":
        s = {"type": "array", "items": sub()}
        if rnd.randrange(2):
            s["minItems"] = rnd.randrange(3)
        if rnd.randrange(2):
            s["maxItems"] = s.get("minItems", 0) + rnd.randrange(1, 4)
        if rnd.randrange(3) == 0:
            s["prefixItems"] = [sub(), sub()]
        return s
    if kind == "object":
        names = rnd.sample(NAMES, rnd.randrange(0, 5))
        s = {"type": "object", "properties": {n: sub() for n in names}}
        if names:
            s["required"] = rnd.sample(names, rnd.randrange(0, len(names) + 1))
        form = rnd.randrange(5)
        if form == 0:
            s["additionalProperties"] = sub()
        if form in (1, 2):
            s["additionalProperties"] = False
        if form == 3:
            s["patternProperties"] = {rnd.choice(["^x-", "[0-9]$"]): sub()}
            s["additionalProperties"] = rnd.choice([False, sub()])
        if rnd.randrange(4) == 0:
            s["maxProperties"] = max(len(s.get("required", [])), 1) + rnd.randrange(3)
        return s
    if kind == "anyOf":
        return {"anyOf": [sub() for _ in range(rnd.randrange(1, 4))]}
    if kind == "oneOf":
        return {"oneOf": [{"type": "string", "maxLength": 5}, {"type": "array", "items": sub(), "maxItems": 2},
                          {"type": "object", "properties": {"k": {"const": "a"}, "v": sub()}, "required": ["k"]},
                          {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}][:rnd.randrange(1, 5)]}
    return {"allOf": [{"type": "object", "properties": {"a": sub()}, "required": ["a"]},
                      {"properties": {"b": {"type": "integer"}, "a": {}}}]}


def nib_lines(nib, requests):
    text = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([nib, "grammar", "test", "--jsonl"], input=text.encode(), capture_output=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def for_python(schema):
    """With patterns that mean to Python what they mean to ECMAScript, whose \\w is ASCII and whose dot takes no end of line."""
    text = json.dumps(schema).replace(r"\\w", "[A-Za-z0-9_]").replace("a.*z", r"a[^\\n\\r\u2028\u2029]*z")
    return json.loads(text)


def instances_of(schema, n, seed):
    """Instances by a generator that others wrote; [] where it finds none."""
    found = []
    schema = for_python(schema)

    @fix_seed(seed)
    @settings(max_examples=n, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(from_schema(schema))
    def collect(value):
        found.append(value)
    try:
        collect()
    except (Unsatisfiable, jsonschema.exceptions.SchemaError):
        pass
    valid = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return [v for v in found if valid.is_valid(v)]  # it knows draft-07 only, and not all formats


def check_keywords(nib):
    bad = 0
    requests = [{"schema": {"properties": {"p": {key: value}}}, "texts": ["{}"]} for key, value in {**REFUSED, **IGNORED}.items()]
    for request, answer in zip(requests, nib_lines(nib, requests)):
        key = next(iter(request["schema"]["properties"]["p"]))
        pointer = answer.get("error", {}).get("pointer", "")
        ok = pointer.startswith("#/properties/p/" + key) if key in REFUSED else "results" in answer
        if not ok:
            bad += 1
            print(f"keyword {key}: {answer}")
    known = set(REFUSED) | set(IGNORED)
    for vocabulary in ("core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content"):
        uri = f"https://json-schema.org/draft/2020-12/meta/{vocabulary}"
        meta = jsonschema.validators.Draft202012Validator({"$ref": uri})._resolver.lookup(uri).contents
        for key in meta["properties"]:
            if key not in known and "error" in nib_lines(nib, [{"schema": {key: sample(key)}, "texts": []}])[0]:
                bad += 1
                print(f"keyword {key} is refused and not in the table of this test")
    return bad


def sample(key):
    lists, schemas = ("prefixItems", "allOf", "anyOf", "oneOf"), ("items", "additionalProperties", "propertyNames", "not")
    if key in lists:
        return [{"type": "null"}]
    if key in schemas:
        return {"type": "null"} if key == "not" else {}
    return {"properties": {}, "patternProperties": {}, "type": "null", "enum": [1], "const": 1, "required": [], "pattern": "a",
            "$ref": "#/$defs/x" if key != "$ref" else "#/properties", "format": "date"}.get(key, 1)


def check_instances(nib, schemas, n, seed):
    bad = total = 0
    for schema in schemas:
        texts = []
        for value in instances_of(schema, n, seed):
            style = [{}, {"ensure_ascii": False}, {"indent": 2}, {"separators": (",", ":")}][len(texts) % 4]
            texts.append(json.dumps(value, **style))
        answer, = nib_lines(nib, [{"schema": schema, "texts": texts}])
        if "error" in answer:
            bad += 1
            print(f"{json.dumps(schema)}\n  refused: {answer['error']['message']}")
            continue
        for text, result in zip(texts, answer["results"]):
            total += 1
            value = json.loads(text)
            if not result["match"] and not is_written_otherwise(schema, value):
                bad += 1
                print(f"{json.dumps(schema)}\n  does not take {text}: {result}")
                break
    print(f"{total} instances of {len(schemas)} schemas")
    return bad


def is_written_otherwise(schema, value):
    """Values that nib writes in one way only: 1.0 where an integer is wanted."""
    return any(isinstance(x, float) and x.is_integer() for x in leaves(value))


def leaves(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from leaves(v)
    elif isinstance(value, list):
        for v in value:
            yield from leaves(v)
    else:
        yield value


def answers_one_by_one(nib, model, schemas, n, most):
    """Triples of a schema's number, a text and why it ended."""
    with tempfile.TemporaryDirectory() as folder:
        if not model:
            model = os.path.join(folder, "tiny.gguf")
            tiny_gguf.write(model)
        for number, schema in enumerate(schemas):
            for k in range(n):
                run = subprocess.run([nib, "-m", model, "-p", "JSON: ", "-n", str(most), "--temp", "1.2", "--seed", str(k), "--json",
                                      "--json-schema", json.dumps(schema)], capture_output=True, env={**os.environ, "XDG_CACHE_HOME": folder})
                answer = json.loads(run.stdout) if run.returncode == 0 else {"text": "", "finish_reason": run.stderr.decode()}
                yield number, answer["text"], answer["finish_reason"]


def answers_together(program, model, schemas, n, most):
    with tempfile.TemporaryFile("w+") as lines:
        lines.writelines(json.dumps(s) + "\n" for s in schemas)
        lines.seek(0)
        with subprocess.Popen([program, model, str(n), str(most)], stdin=lines, stdout=subprocess.PIPE, text=True) as run:
            for line in run.stdout:
                answer = json.loads(line)
                yield answer["schema"], answer["text"], answer["finish"]


def check_answers(nib, schemas, answers):
    """Complete answers are valid, those that were cut may still become so."""
    bad = total = 0
    cut = {}
    for number, text, finish in answers:
        total += 1
        if finish == "length":
            cut.setdefault(number, []).append(text)
            continue
        try:
            if finish != "stop":
                raise ValueError(finish)
            jsonschema.Draft202012Validator(schemas[number]).validate(json.loads(text))
        except (ValueError, jsonschema.ValidationError) as e:
            bad += 1
            print(f"{json.dumps(schemas[number])}\n  answered {text}\n  {str(e).splitlines()[0]}")
    for number, texts in cut.items():
        for text, result in zip(texts, nib_lines(nib, [{"schema": schemas[number], "texts": texts}])[0]["results"]):
            if not result["match"] and not result["incomplete"]:
                bad += 1
                print(f"{json.dumps(schemas[number])}\n  was on a wrong way with {text}")
    print(f"{total} answers, {sum(map(len, cut.values()))} of them cut by the number of tokens")
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nib", required=True)
    p.add_argument("--schemas", type=int, default=60)
    p.add_argument("--instances", type=int, default=12)
    p.add_argument("--answers", type=int, default=1)
    p.add_argument("--model", help="a GGUF file instead of a tiny random model")
    p.add_argument("--answers-by", metavar="PROGRAM", help="answers_main: draws the answers of a model all together")
    p.add_argument("--most", type=int, default=400, help="tokens of an answer")
    p.add_argument("--seed", type=int, default=1)
    opt = p.parse_args()
    warnings.simplefilter("ignore", HypothesisWarning)
    rnd = random.Random(opt.seed)
    schemas = [draw_schema(rnd, 2) for _ in range(opt.schemas)]
    bad = check_keywords(opt.nib)
    possible = [s for s in schemas if "error" not in nib_lines(opt.nib, [{"schema": s, "texts": []}])[0] or instances_of(s, 1, opt.seed)]
    print(f"{len(possible)} of {len(schemas)} schemas have instances")
    if opt.instances:
        bad += check_instances(opt.nib, possible, opt.instances, opt.seed)
    if opt.answers_by:
        answers = answers_together(opt.answers_by, opt.model, possible, opt.answers, opt.most)
    else:
        answers = answers_one_by_one(opt.nib, opt.model, possible, opt.answers, opt.most)
    bad += check_answers(opt.nib, possible, answers)
    print(f"{bad} differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
