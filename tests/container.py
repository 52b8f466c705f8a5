#!/usr/bin/env python3
"""The image of Containerfile: builds it with buildah, looks at it, and lets it answer.

  container.py [--models DIR]

Skipped (77) without buildah, or without the base image, which is that of the Containerfile or of $NIB_BASE_IMAGE."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL, PORT, MOST_BYTES = "SmolLM2-135M-Instruct.Q4_1.gguf", 18999, 40 << 20
BASE = os.environ.get("NIB_BASE_IMAGE", "docker.io/library/debian:12-slim")


def buildah(*args, timeout=120, check=True):
    done = subprocess.run(["buildah", *args], cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    if check and done.returncode:
        sys.exit(f"buildah {' '.join(args)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def look(image):
    return json.loads(buildah("inspect", "--type", "image", image).stdout)


def bytes_above(image, base):
    """What its layers add to those of the base image."""
    layers = [{layer["digest"]: layer["size"] for layer in json.loads(look(name)["Manifest"])["layers"]} for name in (image, base)]
    return sum(size for digest, size in layers[0].items() if digest not in layers[1])


def answers(container, models):
    """Starts it as its configuration says, and asks."""
    command = ["buildah", "run", "--isolation", "chroot", "--user", "65534:65534", "-v", f"{os.path.abspath(models)}:/models:ro", container, "--",
               "nib", "serve", "--host", "127.0.0.1", "--port", str(PORT), "-c", "512", "-m", f"/models/{MODEL}"]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}).encode()
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/chat/completions", body, timeout=60) as reply:
                    return json.load(reply)["choices"][0]["message"]["content"]
            except OSError:
                time.sleep(0.1)
        sys.exit("the container does not answer")
    finally:
        server.terminate()
        server.wait(60)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default="models")
    opt = p.parse_args()
    if not shutil.which("buildah"):
        print("skipped: buildah is missing")
        return 77
    have = buildah("inspect", "--type", "image", BASE, check=False).returncode == 0
    if not have and buildah("pull", "--quiet", BASE, check=False).returncode:
        print(f"skipped: the image {BASE} cannot be had; NIB_BASE_IMAGE names another one")
        return 77
    buildah("build", "--isolation", "chroot", "--build-arg", f"BASE={BASE}", "--build-arg", "NPM=", "--layers", "-t", "nib-test", ".", timeout=1500)
    config = look("nib-test")["OCIv1"]["config"]
    assert config["User"] == "65534:65534", config
    assert config["Entrypoint"][:2] == ["nib", "serve"], config
    added = bytes_above("nib-test", BASE)
    print(f"{added / 1e6:.1f} MB above {BASE}")
    assert 0 < added < MOST_BYTES
    container = buildah("from", "nib-test").stdout.strip()
    try:
        print("answers:", repr(answers(container, opt.models)))
    finally:
        buildah("rm", container)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
