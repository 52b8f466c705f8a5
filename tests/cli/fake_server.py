"""A server that says what a test wants: OpenAI's API with no model behind it. Standard library only."""
import http.server
import json
import threading
import time


def chunk(delta=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def said(*texts, finish="stop", usage=None):
    """The events of an answer."""
    events = [chunk({"content": text}) for text in texts] + [chunk(finish=finish)]
    return events + ([{"choices": [], "usage": usage}] if usage else [])


class Server:
    """answers: one for each chat request, in order; the last one is given again and again. An answer is a list of events; or
    a tuple (status, body, headers); or a function of the handler. self.requests has what was asked."""

    def __init__(self, *answers, models=("fake",)):
        self.answers, self.requests, self.paths, self.keys, self.n_connections = list(answers), [], [], [], 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.n_connections += 1

            def log_message(self, *args):
                pass

            def whole(self, status, body, headers=()):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(data), **dict(headers)}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def begin(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()

            def event(self, value):
                data = b"data: %s\n\n" % (value if isinstance(value, bytes) else json.dumps(value).encode())
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def end(self):
                self.event(b"[DONE]")
                self.wfile.write(b"0\r\n\r\n")

            def do_GET(self):
                outer.paths.append(self.path)
                if models is None:
                    return self.whole(404, {"error": {"message": "no such page"}})
                return self.whole(200, {"object": "list", "data": [{"id": name, "max_model_len": 4096} for name in models]})

            def do_POST(self):
                outer.paths.append(self.path)
                outer.keys.append(self.headers.get("Authorization"))
                outer.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                if callable(answer):
                    return answer(self)
                if isinstance(answer, tuple):
                    return self.whole(*answer)
                self.begin()
                for event in answer:
                    self.event(event)
                return self.end()

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def slowly(*texts, then=None):
    """An answer that goes on for ever after these texts, or ends as `then` says."""
    def answer(handler):
        handler.begin()
        for text in texts:
            handler.event(chunk({"content": text}))
        if then:
            return then(handler)
        try:
            while True:
                time.sleep(0.05)
                handler.event(chunk({"content": "."}))
        except OSError:
            pass
    return answer


def cut(handler):
    """The connection breaks."""
    handler.close_connection = True
